"""The architectures that text is written for: one row each."""

from __future__ import annotations

import re

from ..artifact import Target
from ..diagnostics import SignatureError

KIB = 1024

TARGETS = {
    target.name: target
    for target in (
        Target("sm_80", 80, 48 * KIB, 163 * KIB),
        Target("sm_86", 86, 48 * KIB, 99 * KIB),
        Target("sm_89", 89, 48 * KIB, 99 * KIB),
        Target("sm_90a", 90, 48 * KIB, 227 * KIB),
        Target("sm_100a", 100, 48 * KIB, 227 * KIB),
        Target("sm_120a", 120, 48 * KIB, 99 * KIB),
    )
}


def find_target(name: str) -> Target:
    """The row of an architecture; "sm_90" and "sm_90a" are the same row.

    Raises:
      SignatureError: for an architecture that no row describes.
    """
    wanted = re.sub(r"[af]$", "", str(name))
    for target in TARGETS.values():
        if target.name.rstrip("a") == wanted:
            return target
    raise SignatureError(f"unknown architecture {name!r}; tilewright writes for {', '.join(TARGETS)}")
