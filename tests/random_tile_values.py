"""What a random kernel knows of its own values: type, shape, and between which numbers they lie.

Floats are multiples of a power of two and so small that sums and products are exact, wherever that matters: whoever adds in
another order gets the same bits, and every difference is a mistake. What is rounded in an order of its own (quotients,
exponentials) is `rough`: it is compared with a tolerance and decides nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

SIGNED = ("int8", "int16", "int32", "int64")
UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
INTEGERS = (*SIGNED, *UNSIGNED)
DIGITS = {"float16": 11, "bfloat16": 8, "float32": 24, "float64": 53}  # of a significand
FLOATS = tuple(DIGITS)
EIGHT_BIT = ("float8e4nv", "float8e5")
MOST = {"float16": 3e4, "bfloat16": 1e30, "float32": 1e30, "float64": 1e30}


@dataclass(frozen=True)
class Value:
    """A variable of the kernel: its elements are multiples of 2 ** -unit from low to high."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    low: float
    high: float
    unit: int = 0
    rough: bool = False

    @property
    def reach(self) -> float:
        """The largest magnitude."""
        return max(abs(self.low), abs(self.high))

    @property
    def is_float(self) -> bool:
        """Whether arithmetic with it is that of floats."""
        return self.dtype in FLOATS


def bits(dtype: str) -> int:
    """The bits of a type of integers."""
    return int(dtype.lstrip("uint"))


def limits(dtype: str) -> tuple[int, int]:
    """The least and the greatest number of a type of integers."""
    if dtype == "int1":
        return 0, 1
    if dtype in UNSIGNED:
        return 0, (1 << bits(dtype)) - 1
    return -(1 << bits(dtype) - 1), (1 << bits(dtype) - 1) - 1


def wrapped(value: Value) -> Value:
    """A value whose bounds are known to fit in its type: all of the type where they do not."""
    if value.is_float or value.dtype in EIGHT_BIT:
        return value
    low, high = limits(value.dtype)
    inside = low <= value.low and value.high <= high
    return value if inside else replace(value, low=low, high=high)


def is_exact(dtype: str, reach: float, unit: int) -> bool:
    """Whether a type of floats has every multiple of 2 ** -unit up to `reach`."""
    return reach * 2.0**unit <= 2.0 ** DIGITS[dtype] and reach <= MOST[dtype] and unit <= 20


def promoted(left: str, right: str, division: bool = False) -> str:
    """The type that two tensors are computed in, as Triton has it."""
    both = (left, right)
    if "float64" in both or "float32" in both:
        return "float64" if "float64" in both else "float32"
    if "float16" in both:
        return "float32" if division else "float16"
    if "bfloat16" in both:
        return "bfloat16" if left == right and not division else "float32"
    if "int1" in both:
        return right if left == "int1" else left
    wide, narrow = (left, right) if bits(left) >= bits(right) else (right, left)
    if bits(wide) > bits(narrow) or wide in UNSIGNED:
        return wide
    return narrow if narrow in UNSIGNED else wide


def of_sum(dtype: str) -> str:
    """The type of a sum of elements of a type."""
    if dtype in ("int8", "int16"):
        return "int32"
    return "uint32" if dtype in ("uint8", "uint16", "int1") else dtype


def of_extremum(dtype: str) -> str:
    """The type of the largest of elements of a type."""
    if dtype in ("float16", "bfloat16"):
        return "float32"
    return "int32" if dtype in ("int8", "int16", "uint8", "uint16", "int1") else dtype
