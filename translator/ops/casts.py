"""Conversions between element types: what they mean (NumPy) and how CUDA spells them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from ..diagnostics import DTypeError, ToolchainError
from ..language.dtypes import DType, Element, PointerType, float32, int1
from ..language.hints import shown

if TYPE_CHECKING:
    import numpy as np

FP8_LARGEST = {"fp8e4nv": 448.0, "fp8e5": 57344.0}
LARGEST = FP8_LARGEST | {"fp16": 65504.0, "bf16": (2 - 2**-7) * 2.0**127, "fp32": (2 - 2**-23) * 2.0**127}
BIT_CASTS = {
    ("fp32", "i32"): "__float_as_int({x})",
    ("fp32", "u32"): "__float_as_uint({x})",
    ("i32", "fp32"): "__int_as_float({x})",
    ("u32", "fp32"): "__uint_as_float({x})",
    ("fp64", "i64"): "__double_as_longlong({x})",
    ("fp64", "u64"): "static_cast<unsigned long long>(__double_as_longlong({x}))",
    ("i64", "fp64"): "__longlong_as_double({x})",
    ("u64", "fp64"): "__longlong_as_double(static_cast<long long>({x}))",
    ("fp16", "i16"): "__half_as_short({x})",
    ("fp16", "u16"): "__half_as_ushort({x})",
    ("i16", "fp16"): "__short_as_half({x})",
    ("u16", "fp16"): "__ushort_as_half({x})",
    ("bf16", "i16"): "__bfloat16_as_short({x})",
    ("bf16", "u16"): "__bfloat16_as_ushort({x})",
    ("i16", "bf16"): "__short_as_bfloat16({x})",
    ("u16", "bf16"): "__ushort_as_bfloat16({x})",
    ("fp16", "bf16"): "__ushort_as_bfloat16(__half_as_ushort({x}))",
    ("bf16", "fp16"): "__ushort_as_half(__bfloat16_as_ushort({x}))",
}
FROM_FLOAT = {
    "fp32": "{x}",
    "fp16": "__float2half({x})",
    "bf16": "__float2bfloat16({x})",
    "fp64": "static_cast<double>({x})",
}
FROM_FLOAT_RTZ = {"fp16": "__float2half_rz({x})", "bf16": "__float2bfloat16_rz({x})"}
TO_FLOAT = {
    "fp32": "{x}",
    "fp16": "__half2float({x})",
    "bf16": "__bfloat162float({x})",
    "fp64": "static_cast<float>({x})",
}
TOWARD_ZERO = "round_toward_zero"  # the helper of casts to 8-bit floats, for which CUDA has no word
WIDE_INTEGERS = {"i32": "int", "u32": "uint", "i64": "ll", "u64": "ull"}  # as in __int2half_rn


def check_cast(source: Element, wanted: Element, rounding: str | None, bitcast: bool) -> None:
    """Rejects a conversion that does not exist.

    Raises:
      DTypeError: says why.
    """
    if isinstance(source, PointerType) or isinstance(wanted, PointerType):
        other = wanted if isinstance(source, PointerType) else source
        asked = isinstance(source, PointerType) and other == int1 and not bitcast  # whether it points to anything
        if isinstance(other, DType) and other.bits != 64 and not asked:
            of_pointer = isinstance(source, PointerType)
            of_number = (
                "an address is an int64: cast with x.to(tl.int64) first; what a pointer points to has dtype.element_ty"
            )
            remedy = "did you forget tl.load?" if of_pointer else of_number
            raise DTypeError(
                f"cannot cast {source} to {wanted}: pointers convert to 64-bit integers only", None, remedy
            )
        return
    if bitcast and source.bits != wanted.bits:
        cause = f"Cannot bitcast data-type of size {source.bits} to data-type of size {wanted.bits}"
        raise DTypeError(cause, None, "convert to a type of as many bits first, or leave bitcast out")
    if rounding is not None and (
        bitcast or not (source.is_floating() and wanted.is_floating() and wanted.bits < source.bits)
    ):
        raise DTypeError("fp_downcast_rounding should be set only for truncating fp conversions", None, "leave it out")
    if rounding not in (None, "rtne", "rtz"):
        raise DTypeError(
            f"fp_downcast_rounding must be 'rtne' or 'rtz', not {shown(rounding)}", None, "leave it out for 'rtne'"
        )
    fp8_and_int = (source.is_fp8() and wanted.is_int()) or (wanted.is_fp8() and source.is_int())
    if fp8_and_int and not bitcast:
        raise DTypeError(f"cannot cast {source} to {wanted}", None, "go through a wider float, as x.to(tl.float32)")


# --------------------------------------------------------------------------------------------------------- CUDA


def cuda_cast(source: Element, wanted: Element, rounding: str | None = None, bitcast: bool = False) -> str:
    """The spelling of a conversion of `{x}`.

    Raises:
      DTypeError: when it does not exist.
    """
    check_cast(source, wanted, rounding, bitcast)
    if source == wanted:
        return "{x}"
    if isinstance(source, PointerType) and wanted == int1:
        return "{x} != nullptr"
    if isinstance(source, PointerType) or isinstance(wanted, PointerType):
        if isinstance(wanted, DType):
            return f"reinterpret_cast<{wanted.cuda}>({{x}})"
        memory = "unsigned char" if wanted.element_ty.is_bool() else wanted.element_ty.cuda
        return f"reinterpret_cast<{'const ' if wanted.const else ''}{memory}*>({{x}})"
    if bitcast:
        return _bit_cast(source, wanted)
    if wanted.is_bool():
        return _to_bool(source)
    if source.is_int():
        return f"static_cast<{wanted.cuda}>({{x}})" if wanted.is_int() else _integer_to_float(source, wanted)
    if wanted.is_int():
        inner = "{x}" if source.bits >= 32 else _to_float(source)
        return f"static_cast<{wanted.cuda}>({inner})"
    return _float_to_float(source, wanted, rounding == "rtz")


def _bit_cast(source: DType, wanted: DType) -> str:
    if source.is_int() and wanted.is_int():
        return f"static_cast<{wanted.cuda}>({{x}})"
    if (source.short, wanted.short) in BIT_CASTS:
        return BIT_CASTS[source.short, wanted.short]
    # CUDA has no words for the bits of an 8-bit float; the inner cast makes an object that a reference can name.
    return f"reinterpret_cast<const {wanted.cuda}&>(static_cast<const {source.cuda}&>({{x}}))"


def _to_bool(source: DType) -> str:
    if source.bits >= 32 or source.is_int():
        return "{x} != " + ("0" if source.is_int() else "0.0f" if source.bits == 32 else "0.0")
    return f"static_cast<bool>({_to_float(source)})"


def _to_float(source: DType) -> str:
    return "static_cast<float>({x})" if source.is_fp8() else TO_FLOAT[source.short]


def _integer_to_float(source: DType, wanted: DType) -> str:
    if wanted.bits >= 32:
        return f"static_cast<{wanted.cuda}>({{x}})"
    target = "half" if wanted.name == "fp16" else "bfloat16"
    if source.short in WIDE_INTEGERS:
        return f"__{WIDE_INTEGERS[source.short]}2{target}_rn({{x}})"
    return FROM_FLOAT[wanted.name].format(x="static_cast<float>({x})")


def _float_to_float(source: DType, wanted: DType, to_zero: bool) -> str:
    if wanted.is_fp8() and to_zero:
        single = "__double2float_rz({x})" if source.name == "fp64" else _to_float(source)
        return f"{TOWARD_ZERO}<{wanted.cuda}>({single})"
    if wanted.is_fp8():
        return f"{wanted.cuda}({{x}})" if source.name in ("fp32", "fp16") else f"{wanted.cuda}({_to_float(source)})"
    if source.name == "fp64":
        if to_zero:
            single = "__double2float_rz({x})"
            return single if wanted.name == "fp32" else FROM_FLOAT_RTZ[wanted.name].format(x=single)
        direct = {"fp32": "static_cast<float>({x})", "fp16": "__double2half({x})", "bf16": "__double2bfloat16({x})"}
        return direct[wanted.name]
    table = FROM_FLOAT_RTZ if to_zero else FROM_FLOAT
    return table[wanted.name].format(x=_to_float(source))


# ------------------------------------------------------------------------------------------------------- numbers


def rounded(number: float, dtype: DType) -> float:
    """What a value of a type of floats holds of a number, which literals of 16 and 8 bits come to by way of fp32."""
    if dtype.bits == 64 or number == 0 or not math.isfinite(number):
        return math.copysign(LARGEST[dtype.name], number) if dtype.is_fp8() and math.isinf(number) else number
    if dtype.bits < 32:
        number = _nearest(number, float32)
        if number == 0 or math.isinf(number):
            return rounded(number, dtype)
    near = _nearest(number, dtype)
    return math.copysign(LARGEST[dtype.name], number) if dtype.is_fp8() and math.isinf(near) else near


def _nearest(number: float, dtype: DType) -> float:
    """The number of a type of floats that is next to one; infinite beyond the largest."""
    largest = LARGEST[dtype.name]
    size = min(abs(number), 2 * largest)
    exponent = max(math.frexp(size)[1] - 1, 1 - dtype.exponent_bias) - dtype.mantissa_bits
    near = math.ldexp(round(math.ldexp(size, -exponent)), exponent)  # ties go to the even one
    return math.copysign(near if near <= largest else math.inf, number)


# -------------------------------------------------------------------------------------------------------- NumPy


def numpy_type(dtype: DType) -> np.dtype[Any]:
    """The NumPy type that holds values of a type.

    Raises:
      ToolchainError: for bf16 and fp8 where ml_dtypes is not installed.
    """
    import numpy as np

    if dtype.name in ("bf16", "fp8e5", "fp8e4nv"):
        try:
            import ml_dtypes
        except ImportError as error:
            raise ToolchainError(
                f"{dtype} in Python needs the package ml_dtypes: pip install tilewright[interpret]"
            ) from error
        extended: np.dtype[Any] = np.dtype(getattr(ml_dtypes, dtype.numpy_name))
        return extended
    return np.dtype(dtype.numpy_name)


def numpy_cast(values: Any, source: DType, wanted: DType, rounding: str | None = None, bitcast: bool = False) -> Any:
    """The conversion on an array of `source`'s NumPy type.

    Raises:
      DTypeError: when it does not exist.
    """
    import numpy as np

    check_cast(source, wanted, rounding, bitcast)
    values, target = np.asarray(values), numpy_type(wanted)
    if source == wanted:
        return values
    if bitcast:
        return values.reshape(-1).view(target).reshape(values.shape)
    if wanted.is_bool():
        return values != np.zeros((), values.dtype)
    if wanted.is_int() and source.is_floating():
        return _float_to_integer(values, source, wanted).astype(target)
    if wanted.is_fp8():
        largest = FP8_LARGEST[wanted.name]
        values = np.clip(
            _single_toward_zero(values) if rounding == "rtz" else values.astype(np.float32), -largest, largest
        )
    if rounding == "rtz":
        return _toward_zero(values, wanted, target)
    if wanted.is_fp8():
        return values.astype(target)
    if wanted.name == "bf16" and (source.is_int() or source.bits == 64):
        return _single_for_rounding(values).astype(target)
    return (
        values.astype(np.float32).astype(target)
        if source.bits == 16 and source.is_floating()
        else values.astype(target)
    )


def _single_for_rounding(values: Any) -> Any:
    """float32 numbers that round to a narrower float as the integers or float64 numbers `values` would.

    Rounding twice is exact when the first rounding goes to the neighbour with an odd last bit: a number between two
    float32 ones never lands on a tie of the narrower type.
    """
    import numpy as np

    if values.dtype.kind in "iu" and values.dtype.itemsize == 8:
        values = _double_for_rounding(values)
    wide = np.asarray(values, np.float64)
    near = wide.astype(np.float32)
    even = np.ascontiguousarray(near).view(np.uint32).reshape(near.shape) % 2 == 0
    inexact = np.isfinite(near) & (near.astype(np.float64) != wide)
    towards = np.where(wide > near, np.float32(np.inf), np.float32(-np.inf))
    return np.where(inexact & even, np.nextafter(near, towards), near)


def _double_for_rounding(values: Any) -> Any:
    """The same from integers of 64 bits to float64: what 53 bits cannot hold becomes one odd bit."""
    import numpy as np

    low = values & values.dtype.type(0x7FF)
    return np.where(
        np.abs(values.astype(np.float64)) < 2.0**53, values, (values - low) | (low != 0).astype(values.dtype) << 11
    )


def _float_to_integer(values: Any, source: DType, wanted: DType) -> Any:
    """Towards zero, as the hardware does: to 32 or 64 bits, of which fewer are the last ones.

    What does not fit gives the nearest end. NaN gives 0 from fp32 and narrower floats to 32 bits, otherwise the highest bit
    alone.
    """
    import numpy as np

    bits = max(wanted.bits, 32)
    between = np.dtype(f"{'int' if wanted.is_int_signed() else 'uint'}{bits}")
    low, high = int(np.iinfo(between).min), int(np.iinfo(between).max)
    wide = np.trunc(values.astype(np.float64))
    inside = (wide >= float(low)) & (wide < float(high) + 1.0)
    converted = np.where(inside, wide, 0.0).astype(between)
    ends = np.where(wide < float(low), between.type(low), between.type(high))
    of_nan = between.type(0 if bits == 32 and source.bits < 64 else low or 1 << (bits - 1))
    return np.where(np.isnan(wide), of_nan, np.where(inside, converted, ends))


def _single_toward_zero(values: Any) -> Any:
    """Floats as fp32, of which only fp64 loses digits: towards zero."""
    import numpy as np

    single = values.astype(np.float32)
    too_far = np.abs(single.astype(np.float64)) > np.abs(values) if values.dtype == np.float64 else False
    return np.where(too_far, np.nextafter(single, np.float32(0)), single)


def _toward_zero(values: Any, wanted: DType, target: Any) -> Any:
    import numpy as np

    single = _single_toward_zero(values)
    if wanted.name == "fp32":
        return single
    if wanted.name == "bf16":
        bits = single.reshape(-1).view(np.uint32) & np.uint32(0xFFFF0000)
        return bits.view(np.float32).reshape(single.shape).astype(target)
    near = single.astype(target)
    too_far = np.abs(near.astype(np.float32)) > np.abs(single)
    return np.where(too_far, np.nextafter(near, target.type(0)), near)
