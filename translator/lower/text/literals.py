"""Numbers as CUDA C++ spells them, typed, without any header beyond CUDA's own."""

from __future__ import annotations

import math
from collections.abc import Callable

from ...language.dtypes import DType, float32
from ...ops.casts import rounded

SUFFIX = {"int": "", "unsigned": "u", "long long": "LL", "unsigned long long": "ULL"}
LEAST_IN_FULL, MOST_IN_FULL = 1e-4, 1e7  # single numbers between these are written without an exponent
CONVERSIONS = {  # of an integer to a floating-point number
    "fp32": "static_cast<float>",
    "fp64": "static_cast<double>",
    "fp16": "__float2half",
    "bf16": "__float2bfloat16",
}
ALL_BUT_ONE = (7, 15)  # digits, of the 8 or 16 that 32 and 64 bits have
INFINITY_BITS = {False: "0x7f800000", True: "0xff800000"}


def infinity_bits(negative: bool) -> str:
    """An infinity of fp32, which CUDA spells by its bits."""
    return f"__int_as_float({INFINITY_BITS[negative]})"


def literal_text(
    value: int | float | bool, dtype: DType, base: int = 10, infinity: Callable[[bool], str] = infinity_bits
) -> str:
    """The literal of `dtype` with this value, such as "0.5f", "5LL", in base 16 "0xff", or "__float2half(2.0f)".

    `infinity` spells those of fp32, by whether they are negative.
    """
    if dtype.is_bool():
        return "true" if value else "false"
    if dtype.is_int():
        return _integer_text(int(value), dtype, base)
    number = float(value)
    if dtype.name == "fp64":
        return _double_text(number)
    single = _float_text(number, infinity)
    match dtype.name:
        case "fp32":
            return single
        case "fp16" | "bf16":
            return f"{CONVERSIONS[dtype.name]}({single})"
    return f"{dtype.cuda}({single})"


def plain_text(value: int, base: int) -> str:
    """An integer without a suffix; negative ones are in base 10, as 0xff has no sign. Masks have all digits: 0x0f0f0f0f."""
    if base != 16 or value < 0:
        return str(value)
    digits = f"{value:x}"
    return f"0x0{digits}" if len(digits) in ALL_BUT_ONE else f"0x{digits}"


def _integer_text(value: int, dtype: DType, base: int) -> str:
    value &= (1 << dtype.bits) - 1
    if dtype.is_int_signed() and value >> (dtype.bits - 1):
        value -= 1 << dtype.bits
    suffix = SUFFIX.get(dtype.cuda)
    if suffix is None:
        return f"static_cast<{dtype.cuda}>({plain_text(value, base)})"
    if value == -(1 << (dtype.bits - 1)) and dtype.is_int_signed():
        return f"(-{(1 << (dtype.bits - 1)) - 1}{suffix} - 1)"  # the literal 2147483648 is no int
    return f"{plain_text(value, base)}{suffix}"


def _float_text(number: float, infinity: Callable[[bool], str]) -> str:
    if math.isinf(number):
        return infinity(number < 0)
    if math.isnan(number):
        return "__int_as_float(0x7fc00000)"
    single = rounded(number, float32)
    if not math.isfinite(single):
        return infinity(single < 0)
    as_written = number != single != 0 and not _is_between(number, single)
    return f"{_as_written(repr(number)) if as_written else _shortest_single(single)}f"


def _is_between(number: float, single: float) -> bool:
    """Whether a number lies so near the middle of two of fp32 that its decimal digits may round to the other one."""
    return any(rounded(number * (1 + step), float32) != single for step in (-1e-15, 1e-15))


def _double_text(number: float) -> str:
    if math.isinf(number):
        bits = "0xfff0000000000000LL" if number < 0 else "0x7ff0000000000000LL"
        return f"__longlong_as_double({bits})"
    if math.isnan(number):
        return "__longlong_as_double(0x7ff8000000000000LL)"
    return _with_point(repr(number))


def _shortest_single(number: float) -> str:
    """The shortest decimal that rounds to a number of fp32."""
    text = next(text for digits in range(1, 18) if rounded(float(text := f"{number:.{digits}g}"), float32) == number)
    if "e" in text and LEAST_IN_FULL <= abs(number) < MOST_IN_FULL:
        return repr(float(text))
    return _as_written(text)


def _as_written(text: str) -> str:
    """Python's digits, which are the user's where a number is no result: 1.44269504, not what fp32 makes of it, 1.442695."""
    return _with_point(text.replace("e+0", "e").replace("e+", "e").replace("e-0", "e-"))


def _with_point(text: str) -> str:
    if "e" in text or "." in text:
        return text
    return f"{text}.0"
