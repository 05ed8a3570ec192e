"""Correctly rounded arithmetic of NumPy arrays: one rounding, to nearest or in a given direction.

NumPy has neither a fused multiply-add nor directed rounding. Here a result is first computed exactly, as a fraction, and
rounded once; that is slow, and meant for the meaning of operations, not for their speed.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from .numpy_functions import library as _np

# What an exact operation answers: a fraction, or a number that needs no rounding (an infinity, NaN, a signed zero).
Exact = Callable[..., "Fraction | float"]


def rounded(exact: Exact, mode: str = "rn") -> Callable[..., Any]:
    """The operation `exact` on arrays of one float type.

    Args:
      exact: takes one Python float per operand.
      mode: "rn" to nearest even, "rz" towards zero, "rd" down, "ru" up.

    Returns:
      A function of arrays; its result has the type of the first.
    """

    def compute(*arrays: Any) -> Any:
        np = _np()
        dtype = arrays[0].dtype
        wide = np.broadcast_arrays(*(array.astype(np.float64) for array in arrays))
        flat = [array.reshape(-1).tolist() for array in wide]
        with np.errstate(all="ignore"):
            results = [round_fraction(exact(*values), dtype, mode) for values in zip(*flat, strict=True)]
        return np.asarray(results, dtype).reshape(wide[0].shape)

    return compute


def round_fraction(value: Fraction | float, dtype: Any, mode: str = "rn") -> Any:
    """An exact value as a scalar of the NumPy float type `dtype`, rounded once."""
    np = _np()
    if isinstance(value, float):
        return np.asarray(value).astype(dtype)[()]
    near = np.asarray(_to_nearest(value, _float_info(dtype))).astype(dtype)[()]
    if mode == "rn" or (np.isfinite(near) and Fraction(float(near)) == value):
        return near
    below = Fraction(float(near)) < value if np.isfinite(near) else near < 0
    wanted_below = mode == "rd" or (mode == "rz" and value > 0)
    if below == wanted_below:
        return near
    return np.nextafter(near, dtype.type(-math.inf if wanted_below else math.inf))


def _float_info(dtype: Any) -> Any:
    if dtype.kind == "f":
        return _np().finfo(dtype)
    import ml_dtypes

    return ml_dtypes.finfo(dtype)  # type: ignore[no-untyped-call]


def _to_nearest(value: Fraction, info: Any) -> float:
    """The nearest number with the mantissa and the smallest exponent of a type, ties to even, as a float64."""
    if value == 0:
        return 0.0
    exponent = max(_exponent(value), int(info.minexp))
    unit = Fraction(2) ** (exponent - int(info.nmant))
    try:
        return math.copysign(float(round(value / unit) * unit), value)
    except OverflowError:
        return math.copysign(math.inf, value)


def _exponent(value: Fraction) -> int:
    """The integer e with 2**e <= |value| < 2**(e + 1)."""
    size = abs(value)
    guess = size.numerator.bit_length() - size.denominator.bit_length()
    return guess if size >= Fraction(2) ** guess else guess - 1


# ------------------------------------------------------------------------------------------------- exact operations


def _finite(function: Callable[..., Fraction], otherwise: Callable[..., float]) -> Exact:
    """`function` on fractions; `otherwise` on floats where an operand is not finite or the exact result is zero."""

    def exact(*values: float) -> Fraction | float:
        if not all(math.isfinite(value) for value in values):
            return otherwise(*values)
        result = function(*(Fraction(value) for value in values))
        return result if result else otherwise(*values)

    return exact


def div(x: float, y: float) -> Fraction | float:
    """The quotient."""
    if x and y and math.isfinite(x) and math.isfinite(y):
        return Fraction(x) / Fraction(y)
    return float(_np().float64(x) / _np().float64(y))


def reciprocal(x: float) -> Fraction | float:
    """One over x."""
    return div(1.0, x)


def square_root(x: float) -> Fraction | float:
    """The square root with 64 bits more than any type has: enough to round it as the true one would be."""
    if not x > 0 or not math.isfinite(x):
        return math.nan if x < 0 else x
    value = Fraction(x)
    shift = 1 << 2 * (64 + 540)
    root = math.isqrt(value.numerator * shift // value.denominator)
    inexact = root * root * value.denominator != value.numerator * shift
    # A trailing half keeps an irrational root off the representable numbers.
    return (Fraction(root) + (Fraction(1, 2) if inexact else 0)) / (1 << (64 + 540))


add = _finite(lambda x, y: x + y, lambda x, y: x + y)
sub = _finite(lambda x, y: x - y, lambda x, y: x - y)
mul = _finite(lambda x, y: x * y, lambda x, y: x * y)
fma = _finite(lambda x, y, z: x * y + z, lambda x, y, z: x * y + z)
