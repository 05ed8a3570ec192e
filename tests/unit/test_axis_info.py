"""The axis analysis against brute force: what it claims of an index expression holds for every value."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from tilewright.analysis.axis_info import axis_info, known_divisor
from tilewright.ir.nodes import Call, Expr, Literal, Use, Variable
from tilewright.ir.types import ValueType
from tilewright.language.dtypes import int1, int32

SIDE = 16
TILE = ValueType(int32, (SIDE,))
SCALAR = Variable("n", ValueType(int32), 1)
OPS: dict[str, Any] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "floordiv": lambda x, y: (x - np.fmod(x, y)) // y,
    "mod": np.fmod,
    "minimum": np.minimum,
    "neg": np.negative,
    "where": np.where,
    "lt": np.less,
    "ge": np.greater_equal,
    "le": np.less_equal,
}


@st.composite
def index_expressions(draw: Any, depth: int = 3) -> Expr:
    """Tiles of integers made of arange, a scalar, literals and operators."""
    if depth == 0 or draw(st.integers(0, 3)) == 0:
        kind = draw(st.integers(0, 2))
        if kind == 0:
            start = draw(st.sampled_from((0, 1, 4, 16)))
            return Call(TILE, "arange", (), (("start", start), ("end", start + SIDE)))
        if kind == 1:
            return Call(TILE, "broadcast", (Use(SCALAR.type, SCALAR),))
        return Literal(TILE, draw(st.sampled_from((1, 2, 3, 4, 8, 16, 24))))
    op = draw(st.sampled_from(("add", "sub", "mul", "floordiv", "mod", "minimum", "neg", "where")))
    left = draw(index_expressions(depth=depth - 1))
    if op == "neg":
        return Call(TILE, op, (left,))
    right = draw(index_expressions(depth=depth - 1))
    if op == "where":
        index = Call(TILE, "arange", (), (("start", 0), ("end", SIDE)))
        bound = Literal(TILE, draw(st.sampled_from((0, 1, 4, 8, 16))))
        return Call(TILE, op, (Call(ValueType(int1, (SIDE,)), "lt", (index, bound)), left, right))
    if op in ("floordiv", "mod"):
        right = Literal(TILE, draw(st.sampled_from((1, 2, 3, 4, 8, 16))))
    return Call(TILE, op, (left, right))


def value_of(expr: Expr, scalar: int) -> Any:
    """The tile that an expression stands for."""
    if isinstance(expr, Literal):
        return np.full(SIDE, expr.value, np.int64)
    assert isinstance(expr, Call)
    if expr.op == "arange":
        return np.arange(expr.attribute("start"), expr.attribute("end"), dtype=np.int64)
    if expr.op == "broadcast":
        return np.full(SIDE, scalar, np.int64)
    return OPS[expr.op](*(value_of(arg, scalar) for arg in expr.args))


def check_claims(expr: Expr, values: Any, divisor: int) -> None:
    info = axis_info(expr, {SCALAR: known_divisor(divisor)})
    contiguity, divisibility, constancy = (
        min(c[0], SIDE) for c in (info.contiguity, info.divisibility, info.constancy)
    )
    for start in range(0, SIDE, contiguity):
        run = values[start : start + contiguity]
        assert (np.diff(run) == 1).all(), f"not contiguous: {values} {info}"
        assert run[0] % divisibility == 0, f"not divisible: {values} {info}"
    for start in range(0, SIDE, constancy):
        assert len(set(values[start : start + constancy].tolist())) == 1, f"not constant: {values} {info}"


@settings(max_examples=300, deadline=None, derandomize=True)
@given(index_expressions(), st.integers(0, 12), st.sampled_from((1, 2, 16)))
def test_claims_hold(expr: Expr, scale: int, divisor: int) -> None:
    check_claims(expr, value_of(expr, scale * divisor), divisor)


@settings(max_examples=200, deadline=None, derandomize=True)
@given(index_expressions(), index_expressions(), st.sampled_from(("lt", "ge", "le")), st.integers(0, 12))
def test_comparisons_do_not_split_runs(left: Expr, right: Expr, op: str, scale: int) -> None:
    expr = Call(ValueType(int1, (SIDE,)), op, (left, right))
    info = axis_info(expr, {SCALAR: known_divisor(16)})
    values = value_of(expr, scale * 16)
    run = min(info.constancy[0], SIDE)
    for start in range(0, SIDE, run):
        assert len(set(values[start : start + run].tolist())) == 1


def test_numbers_that_cancel_each_other_leave_what_was_known() -> None:
    """As in convolutions, whose middle tap reads `place + 2 - 2`."""
    index = Call(TILE, "arange", (), (("start", 0), ("end", SIDE)))

    def moved(op: str, expr: Expr, number: int) -> Expr:
        return Call(TILE, op, (expr, Literal(TILE, number)))

    there_and_back = axis_info(moved("sub", moved("add", index, 2), 2), {})
    assert there_and_back.divisibility == axis_info(index, {}).divisibility and there_and_back.nonnegative
    assert axis_info(moved("add", moved("sub", index, 3), 11), {}).divisibility == (8,)
    assert axis_info(moved("sub", moved("add", index, 2), 3), {}).divisibility == (1,)


def test_what_is_divided_without_a_rest_stays_aligned() -> None:
    halves = Call(TILE, "floordiv", (Call(TILE, "broadcast", (Use(SCALAR.type, SCALAR),)), Literal(TILE, 2)))
    info = axis_info(halves, {SCALAR: known_divisor(16)})
    assert info.divisibility == (8,) and not info.nonnegative  # whatever the scalar's sign is
    assert axis_info(halves, {SCALAR: known_divisor(1)}).divisibility == (1,)


def test_remainders_of_what_may_be_negative_keep_what_divides_both() -> None:
    number = Call(TILE, "mul", (Use(TILE, Variable("x", TILE, 7)), Literal(TILE, 48)))
    info = axis_info(Call(TILE, "mod", (number, Literal(TILE, 64))), {})
    assert info.divisibility == (16,) and info.contiguity == (1,) and not info.nonnegative
