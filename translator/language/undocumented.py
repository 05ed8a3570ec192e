"""Names of Triton's own modules that kernels use although nothing documents them."""

from __future__ import annotations

from typing import Any

from .constexpr import constexpr, unwrap
from .dtypes import DTYPES_BY_NAME, DTYPES_BY_WORD, DType, PointerType

CONSTEXPR_0 = constexpr(0)


def get_int_dtype(bitwidth: int, signed: bool) -> DType:
    """The integer type of a width in bits, 1 to 64.

    Raises:
      ValueError: when there is none.
    """
    bits = unwrap(bitwidth)
    word = "int1" if bits == 1 else f"{'' if unwrap(signed) else 'u'}int{bits}"
    if word not in DTYPES_BY_WORD:
        raise ValueError(f"there is no integer type of {bits} bits")
    return DTYPES_BY_WORD[word]


def str_to_ty(name: str, c: Any = None) -> DType | PointerType:
    """The type that a signature writes as "fp32", "*fp32" or "*kfp32".

    Raises:
      ValueError: when there is none.
    """
    element = name.lstrip("*").removeprefix("k")
    if element not in DTYPES_BY_NAME:
        raise ValueError(f"there is no type {name!r}")
    dtype = DTYPES_BY_NAME[element]
    return PointerType(dtype, name.startswith("*k")) if name.startswith("*") else dtype


def _log2(i: int) -> int:
    """The logarithm of a power of two."""
    return int(unwrap(i)).bit_length() - 1


def _is_power_of_two(i: int) -> bool:
    """Whether a number is a power of two."""
    return i > 0 and i & (i - 1) == 0


def _unwrap_if_constexpr(value: Any) -> Any:
    """The plain value behind a constexpr, or the value itself."""
    return unwrap(value)
