"""`tl.core` and `tl.standard`: the modules in which Triton defines what `tl` has, and into which public kernels reach."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from .constexpr import constexpr, unwrap
from .dtypes import DTYPES_BY_WORD, DType
from .namespaces import module


def get_int_dtype(bitwidth: int, signed: bool) -> DType:
    """The integer type of 1, 8, 16, 32 or 64 bits.

    Raises:
      ValueError: for another number of bits.
    """
    found = DTYPES_BY_WORD.get("int1" if bitwidth == 1 else f"{'int' if signed else 'uint'}{bitwidth}")
    if found is None:
        raise ValueError(f"there is no integer type of {bitwidth} bits; it is 1, 8, 16, 32 or 64")
    return found


def log2(i: int) -> int:
    """The exponent of a power of two; of another positive number, rounded down."""
    return int(i).bit_length() - 1


def is_power_of_two(i: int) -> bool:
    """Whether a number is a power of two."""
    return i > 0 and i & (i - 1) == 0


def inner_modules(members: dict[str, Any]) -> tuple[ModuleType, ModuleType]:
    """`tl.core` and `tl.standard`, both with the members of `tl`, which nobody looks up by where Triton defines them."""
    core = {"get_int_dtype": get_int_dtype, "_unwrap_if_constexpr": unwrap, "CONSTEXPR_0": constexpr(0)}
    standard = {"_log2": log2, "_is_power_of_two": is_power_of_two}
    return (
        module("core", "`tl.core`, where Triton defines what the compiler knows.", members | core),
        module("standard", "`tl.standard`, where Triton defines what is written in terms of that.", members | standard),
    )
