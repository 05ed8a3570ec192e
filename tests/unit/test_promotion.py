"""The promotion table of the language, exhaustively, and the special rules of literals."""

from __future__ import annotations

import pytest
from tilewright.diagnostics import DTypeError
from tilewright.language.dtypes import DTYPES_BY_NAME, DTYPES_BY_WORD, float16, float32, float64, int8, int32, uint32
from tilewright.ops.promotion import arithmetic, comparison, integer_division, literal_type, promote, true_division
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
        assert promote(DTYPES_BY_NAME[left], DTYPES_BY_NAME[right]).name == expected


def result(rule: object, left: object, right: object) -> str:
    operands = tuple(Operand(literal_type(v), v) if isinstance(v, (int, float)) else Operand(v) for v in (left, right))
    return rule(operands).result.name  # type: ignore[operator]


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
    assert {value: literal_type(value).name for value in cases} == cases
    with pytest.raises(DTypeError):
        literal_type(2**64)
