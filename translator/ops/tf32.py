"""The bits of fp32 that tf32 keeps, and the rounding to them in NumPy."""

from __future__ import annotations

from typing import Any

DROPPED_BITS = 13
HALF = 1 << (DROPPED_BITS - 1)
KEPT = 0xFFFFFFFF >> DROPPED_BITS << DROPPED_BITS
EXPONENT = 0x7F800000


def round_to_tf32(values: Any) -> Any:
    """An array of fp32 rounded to nearest, ties to even; infinities and NaN stay what they are."""
    import numpy as np

    bits = values.view(np.uint32)
    with np.errstate(over="ignore"):
        raised = bits + np.uint32(HALF - 1) + (bits >> np.uint32(DROPPED_BITS) & np.uint32(1))
    finite = bits & np.uint32(EXPONENT) != EXPONENT
    return np.where(finite, (raised & np.uint32(KEPT)).view(np.float32), values)
