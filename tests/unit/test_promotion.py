"""The promotion table of the language, exhaustively, and the special rules of literals."""

from __future__ import annotations

import pytest
from tilewright.diagnostics import DTypeError
from tilewright.language.dtypes import DTYPES_BY_NAME, DTYPES_BY_WORD, float16, float32, float64, int8, int32, uint32
from tilewright.ops import OPS
from tilewright.ops.promotion import (
    arithmetic,
    comparison,
    integer_division,
    literal_type,
    ordered_type,
    promote,
    summed_type,
    true_division,
)
from tilewright.ops.registry import Operand

COLUMNS = "i1 i8 u8 i16 u16 i32 u32 i64 u64 fp8e4nv fp8e5 fp16 bf16 fp32 fp64".split()
TABLE = """
i1 i8 u8 i16 u16 i32 u32 i64 u64 ERR ERR fp16 fp32 fp32 fp64
i8 i8 u8 i16 u16 i32 u32 i64 u64 ERR ERR fp16 fp32 fp32 fp64
u8 u8 u8 i16 u16 i32 u32 i64 u64 ERR ERR fp16 fp32 fp32 fp64
i16 i16 i16 i16 u16 i32 u32 i64 u64 ERR ERR fp16 fp32 fp32 fp64
u16 u16 u16 u16 u16 i32 u32 i64 u64 ERR ERR fp16 fp32 fp32 fp64
i32 i32 i32 i32 i32 i32 u32 i64 u64 ERR ERR fp16 fp32 fp32 fp64
u32 u32 u32 u32 u32 u32 u32 i64 u64 ERR ERR fp16 fp32 fp32 fp64
i64 i64 i64 i64 i64 i64 i64 i64 u64 ERR ERR fp16 fp32 fp32 fp64
u64 u64 u64 u64 u64 u64 u64 u64 u64 ERR ERR fp16 fp32 fp32 fp64
ERR ERR ERR ERR ERR ERR ERR ERR ERR fp8e4nv fp16 fp16 fp32 fp32 fp64
ERR ERR ERR ERR ERR ERR ERR ERR ERR fp16 fp8e5 fp16 fp32 fp32 fp64
fp16 fp16 fp16 fp16 fp16 fp16 fp16 fp16 fp16 fp16 fp16 fp16 fp16 fp32 fp64
fp32 fp32 fp32 fp32 fp32 fp32 fp32 fp32 fp32 fp32 fp32 fp16 bf16 fp32 fp64
fp32 fp32 fp32 fp32 fp32 fp32 fp32 fp32 fp32 fp32 fp32 fp32 fp32 fp32 fp64
fp64 fp64 fp64 fp64 fp64 fp64 fp64 fp64 fp64 fp64 fp64 fp64 fp64 fp64 fp64
"""
ROWS = dict(zip(COLUMNS, (line.split() for line in TABLE.strip().splitlines()), strict=True))


@pytest.mark.parametrize("left", COLUMNS)
@pytest.mark.parametrize("right", COLUMNS)
def test_table(left: str, right: str) -> None:
    expected = ROWS[left][COLUMNS.index(right)]
    if expected == "ERR":
        with pytest.raises(DTypeError):
            promote(DTYPES_BY_NAME[left], DTYPES_BY_NAME[right])
    else:
        assert promote(DTYPES_BY_NAME[left], DTYPES_BY_NAME[right]).short == expected


def result(rule: object, left: object, right: object) -> str:
    operands = tuple(Operand(literal_type(v), v) if isinstance(v, (int, float)) else Operand(v) for v in (left, right))
    return rule(operands).result.short  # type: ignore[operator]


def test_literals_adapt_in_arithmetic() -> None:
    assert result(arithmetic, float16, 2.0) == "fp16" and result(arithmetic, int8, 1) == "i8"
    assert result(arithmetic, int32, 2.5) == "fp32" and result(arithmetic, int32, 1e-40) == "fp64"
    assert result(arithmetic, DTYPES_BY_WORD["int1"], 2) == "i32"
    with pytest.raises(DTypeError, match="Scalar 300 is out of range for type int8"):
        result(arithmetic, int8, 300)
    with pytest.raises(DTypeError, match="unsigned tensor"):
        result(arithmetic, uint32, -1)


def test_literals_do_not_adapt_in_comparisons() -> None:
    operands = (Operand(float16), Operand(float32, 1e-5))
    assert comparison(operands).operands == (float32, float32)
    assert comparison((Operand(int8), Operand(int32, 300))).operands == (int32, int32)


def test_division() -> None:
    assert result(true_division, DTYPES_BY_WORD["int64"], DTYPES_BY_WORD["int64"]) == "fp32"
    assert result(true_division, float16, float16) == "fp32"
    assert result(true_division, float64, int32) == "fp64"
    with pytest.raises(DTypeError, match="different signedness"):
        result(integer_division, int32, uint32)
    with pytest.raises(DTypeError, match="unexpected type fp32"):
        result(integer_division, float32, float32)


def test_types_of_literals() -> None:
    cases = {
        True: "i1",
        0: "i32",
        0xFFFFFFFF: "u32",
        2**40: "i64",
        2**63: "u64",
        0.5: "fp32",
        1e-40: "fp64",
        1e300: "fp64",
    }
    assert {value: literal_type(value).short for value in cases} == cases
    with pytest.raises(DTypeError):
        literal_type(2**64)


@pytest.mark.parametrize("left", COLUMNS)
@pytest.mark.parametrize("right", COLUMNS)
def test_division_never_ends_in_16_bits(left: str, right: str) -> None:
    one, other = DTYPES_BY_NAME[left], DTYPES_BY_NAME[right]
    expected = ROWS[left][COLUMNS.index(right)]
    mixed = one.is_int() and other.is_int() and one.is_int_signed() != other.is_int_signed()
    if expected == "ERR" or mixed:
        for op in ("div", "mod", "floordiv"):
            with pytest.raises(DTypeError):
                OPS[op].rule((Operand(one), Operand(other)))
        return
    integers = one.is_int() and other.is_int()
    quotient = "fp64" if expected == "fp64" else "fp32"
    assert result(OPS["div"].rule, one, other) == quotient
    assert result(OPS["mod"].rule, one, other) == (expected if integers else quotient)


def test_booleans_have_no_sign() -> None:
    boolean = DTYPES_BY_WORD["int1"]
    for op in ("div", "mod", "floordiv"):
        with pytest.raises(DTypeError, match="different signedness"):
            result(OPS[op].rule, boolean, 2)
    assert result(arithmetic, boolean, 2) == "i32" and result(arithmetic, 1, boolean) == "i32"
    assert result(arithmetic, boolean, 1.5) == "fp32" and result(arithmetic, boolean, True) == "i1"


def test_where_adapts_literals_and_maximum_does_not() -> None:
    where, condition = OPS["where"].rule, Operand(DTYPES_BY_WORD["int1"])
    assert where((condition, Operand(float16), Operand(float32, 0.0))).result == float16
    assert where((condition, Operand(int8), Operand(int32, 3))).result == int8
    assert (
        result(OPS["maximum"].rule, float16, 0.0) == "fp32" and result(OPS["maximum"].rule, float16, float16) == "fp16"
    )
    bfloat16 = DTYPES_BY_NAME["bf16"]
    assert result(OPS["maximum"].rule, bfloat16, bfloat16) == "fp32"
    assert OPS["clamp"].rule((Operand(bfloat16),) * 3).result == float32
    assert OPS["fma"].rule((Operand(float16),) * 3).result == float16


def test_a_shift_keeps_the_sign_of_its_left_side() -> None:
    shift = OPS["shr"].rule
    assert (
        result(shift, int32, 3) == "i32"
        and result(shift, uint32, int32) == "u32"
        and result(shift, int32, int8) == "i32"
    )
    mixed = shift((Operand(int32), Operand(uint32)))
    assert mixed.operands == (int32, int32) and mixed.result == uint32


def test_eight_bit_floats_are_for_storage() -> None:
    fp8 = DTYPES_BY_NAME["fp8e5"]
    with pytest.raises(DTypeError, match="cast to a wider float first"):
        result(arithmetic, fp8, 1.0)
    assert result(arithmetic, fp8, float16) == "fp16" and result(true_division, fp8, fp8) == "fp32"


def test_types_of_reductions() -> None:
    sums = {"i1": "u32", "i8": "i32", "u16": "u32", "i64": "i64", "fp16": "fp16", "bf16": "bf16", "fp64": "fp64"}
    assert {name: summed_type(DTYPES_BY_NAME[name]).short for name in sums} == sums
    orders = {"i1": "i32", "u8": "i32", "u32": "u32", "fp16": "fp32", "bf16": "fp32", "fp8e5": "fp32", "fp64": "fp64"}
    assert {name: ordered_type(DTYPES_BY_NAME[name]).short for name in orders} == orders


def test_functions_of_the_library_take_a_common_type() -> None:
    """Of operands that none of its versions takes; those that one takes stay as they are."""
    power = OPS["libdevice.pow"].rule
    single, half, whole = (Operand(DTYPES_BY_WORD[word]) for word in ("float32", "float16", "int32"))
    assert [dtype.word for dtype in power((single, half)).operands] == ["float32", "float32"]
    assert [dtype.word for dtype in power((single, whole)).operands] == ["float32", "int32"]
    with pytest.raises(DTypeError, match="got \\(float16, float16\\)"):
        power((half, half))
