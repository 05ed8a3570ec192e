"""The verifier finds what it is there for: a valid kernel, broken once for every rule that docs/ir.md has of expressions."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import pytest
from broken_kernels import Change, attribute, of_zeros, operand, typed, valid
from tilewright.ir.expression_rules import OPERANDS, RULES, expression_problems
from tilewright.ir.nodes import (
    Call,
    CallFunction,
    Combine,
    Expr,
    Kernel,
    Literal,
    Use,
)
from tilewright.ir.printer import print_expr
from tilewright.ir.rewrite import mapped_in
from tilewright.ir.types import ValueType
from tilewright.ir.verify import find_violations
from tilewright.ir.walk import expressions, statements, subexpressions
from tilewright.language.dtypes import PointerType, float16, float32, int1, int32, int64


def with_part(expr: Expr, old: Expr, new: Expr) -> Expr:
    """The expression with `new` in the place of its part `old`."""
    if expr is old:
        return new
    if isinstance(expr, (Call, CallFunction)):
        return dataclasses.replace(expr, args=tuple(with_part(arg, old, new) for arg in expr.args))
    return expr


def parts(kernel: Kernel) -> list[Expr]:
    """Every expression of the kernel's body."""
    return [
        part
        for statement in statements(kernel.body)
        for expr in expressions(statement)
        for part in subexpressions(expr)
    ]


def operands(*numbers: int) -> Change:
    """The call's operands of these numbers, in this order."""
    return lambda call: dataclasses.replace(call, args=tuple(call.args[number] for number in numbers))


def of_a_row(call: Any) -> Expr:
    """A slice of a tile of one axis, which would be a scalar."""
    row = Literal(ValueType(float32, (16,)), 0.0)
    return dataclasses.replace(call, type=ValueType(float32), args=(row,))


def of_scalars(call: Any) -> Expr:
    """A reduction of what is no tile."""
    one = Literal(ValueType(int32), 1)
    return Call(one.type, "reduce", (one, one), (("axis", None), ("combine", call.attribute("combine"))))


def of_half(call: Any) -> Expr:
    """A dot of one type with a sum of another."""
    sums = Literal(call.type, 0.0)
    return dataclasses.replace(call, type=call.type.with_element(float16), args=(*call.args, sums))


def with_a_mask(call: Any) -> Expr:
    """An assertion on a scalar with a tile as its mask."""
    return dataclasses.replace(call, args=(*call.args, Literal(ValueType(int1, (16,)), True)))


def with_more(call: Any) -> Expr:
    """The call with another operand."""
    return dataclasses.replace(call, args=(*call.args, of_zeros(int32)(call)))


PROGRAM = "a program index is a scalar int32 along axis 0, 1 or 2"
SHAPES = "shapes [16, 32] and [16, 32] are not compatible for matmul: the first has 32 columns, the second 16 rows"
ATOMICS = tuple(f"atomic_{kind}" for kind in ("add", "max", "min", "and", "or", "xor", "xchg"))
NO_RULE = {"device_print", "barrier", "gdc_wait", "gdc_launch_dependents"}  # takes anything, or nothing
BROKEN_CALLS: list[tuple[str, str, Change]] = [
    ("program_id", PROGRAM, typed(int64)),
    ("program_id", PROGRAM, attribute("axis", 3)),
    ("num_programs", PROGRAM, attribute("axis", -1)),
    ("num_programs", "num_programs takes 0 operands, not 1", with_more),
    ("cast", "cast takes 1 operand, not 2", with_more),
    ("ptr_add", "ptr_add takes 2 operands, not 1", operands(0)),
    ("load", "load takes 1 to 3 operands, not 4", with_more),
    ("store", "store takes 2 to 3 operands, not 1", operands(0)),
    ("reduce", "reduce takes 1 or more operands, not 0", operands()),
    ("arange", "arange has the type i32[16]", attribute("end", 8)),
    ("cast", "a cast from i32[16] to itself", typed(int32)),
    ("cast", "an operand of type i32[16] for a result of type fp32[8]", typed(shape=(8,))),
    ("broadcast", "i32[16, 1] does not broadcast to i64[16, 32]", typed(int64)),
    ("broadcast", "i32[16, 1] does not broadcast to i32[8, 32]", typed(shape=(8, 32))),
    ("broadcast", "i32[16, 1] does not broadcast to i32[16, 1, 32]", typed(shape=(16, 1, 32))),
    ("expand_dims", "i32[16] with a new axis 0 is not i32[16, 1]", attribute("axis", 0)),
    ("ptr_add", "an operand of type i32[16, 32] for a result of type *fp16[32, 16]", typed(shape=(32, 16))),
    ("ptr_add", "*fp16[16, 32] is moved to i32[16, 32]", typed(int32)),
    ("ptr_add", "i32[16, 32] is moved to *fp16[16, 32]", operands(1, 1)),
    ("ptr_add", "an offset of type *fp16[16, 32]", operands(0, 0)),
    ("ptr_add", "an offset of type fp32[16, 32]", operand(1, of_zeros(float32))),
    ("hint", "a hint changes the type", typed(int64)),
    ("permute", "the order (0, 0) of 2 axes", attribute("order", (0, 0))),
    ("permute", "fp16[16, 32] in the order (1, 0) is not fp16[16, 32]", typed(shape=(16, 32))),
    ("reshape", "fp32[16, 16] is no fp32[16, 4, 2]", typed(shape=(16, 4, 2))),
    ("reshape", "fp32[16, 16] is no i32[16, 8, 2]", typed(int32)),
    ("repack", "fp16[6, 4] is no fp16[3, 4]", typed(shape=(3, 4))),
    ("select", "fp32[8, 16] is no slice of fp32[16, 8, 2]", typed(shape=(8, 16))),
    ("select", "fp16[16, 8] is no slice of fp32[16, 8, 2]", typed(float16)),
    ("select", "fp32 is no slice of fp32[16]", of_a_row),
    ("select", "fp32[16, 8, 2] has no element 2 along its last axis", attribute("index", 2)),
    ("load", "a load of i32[16, 32] through *fp16[16, 32]", typed(int32)),
    ("load", "a load of fp16[16, 16] through *fp16[16, 32]", typed(shape=(16, 16))),
    ("load", "a load of fp16[16, 32] through i32[16, 32]", operand(0, of_zeros(int32))),
    ("load", "a load of fp16[16, 32] with an operand of type i32[16, 32]", operand(1, of_zeros(int32))),
    ("load", "a load of fp16[16, 32] with an operand of type fp32[16, 32]", operand(2, of_zeros(float32))),
    ("load", "a load of fp16[16, 32] with an operand of type fp16[32]", operand(2, of_zeros(float16, (32,)))),
    ("store", "store through i32[16]", operand(0, of_zeros(int32))),
    ("store", "store at *fp32[16] takes an operand of type i32[16]", operand(1, of_zeros(int32))),
    ("store", "store at *fp32[16] takes an operand of type fp32[8]", operand(1, of_zeros(float32, (8,)))),
    ("store", "store at *fp32[16] takes an operand of type fp32[16]", operands(0, 1, 1)),
    *((op, f"{op} through *i32 gives i64", typed(int64)) for op in (*ATOMICS, "atomic_cas")),
    *(
        (op, f"{op} at *i32 takes an operand of type i64", operand(1, of_zeros(int64)))
        for op in (*ATOMICS, "atomic_cas")
    ),
    *((op, f"{op} at *i32 takes an operand of type i32", operands(0, 1, 1)) for op in ATOMICS),
    ("atomic_cas", "atomic_cas at *i32 takes an operand of type i1", operand(2, of_zeros(int1))),
    ("reduce", "tiles of several shapes are reduced together", operand(1, of_zeros(int32, (16, 16)))),
    ("reduce", "fp32[16, 8] reduced along axis 0 is not fp32[16]", attribute("axis", 0)),
    ("reduce", "fp32[16, 8] reduced along axis None is not fp32[16]", attribute("axis", None)),
    ("reduce", "i32 reduced along axis None is not i32", of_scalars),
    ("reduce", "empty does not combine scalars of the reduced types", attribute("combine", Combine(None, "empty"))),
    ("dot", "a dot of fp16[16, 32] and fp16[32, 16] is not fp32[16, 32]", typed(shape=(16, 32))),
    ("dot", "a dot of fp16[16, 32] and fp16[32, 16] and fp32[16, 16] is not fp16[16, 16]", of_half),
    ("dot", "input_precision 'tf32' of operands of type fp16", attribute("input_precision", "tf32")),
    ("dot", SHAPES, operands(0, 0)),
    ("device_assert", "an assertion takes a condition and a mask of one shape", operand(0, of_zeros(int32))),
    ("device_assert", "an assertion takes a condition and a mask of one shape", with_a_mask),
    ("assume", "an assumption is a scalar condition", operand(0, of_zeros(int1, (16,)))),
]


@pytest.mark.parametrize(("op", "message", "change"), BROKEN_CALLS)
def test_a_call_that_breaks_the_rule_of_its_operation_is_found(op: str, message: str, change: Change) -> None:
    found = next(part for part in parts(valid()) if isinstance(part, Call) and part.op == op)
    assert_found(found, change(found), message)


def assert_found(old: Expr, new: Expr, message: str) -> None:
    """An expression in the place of another is found to be wrong, in these words, and so is the kernel that has it."""
    assert message in expression_problems(new)
    kernel = dataclasses.replace(valid(), body=mapped_in(valid().body, lambda expr: with_part(expr, old, new)))
    found = [one.detail for one in find_violations(kernel) if one.rule == "typed-expressions"]
    assert f"{message} in {print_expr(new)}" in found


def test_every_operation_with_a_rule_is_broken_once() -> None:
    """A rule that is added has to be broken above; NO_RULE are the operations of which nothing can be wrong."""
    assert {op for op, _, _ in BROKEN_CALLS} == set(RULES) - NO_RULE
    assert OPERANDS.keys() == RULES.keys()
    assert {RULES[op] for op in NO_RULE}.isdisjoint(RULES[op] for op in set(RULES) - NO_RULE)
    assert {part.op for part in parts(valid()) if isinstance(part, Call)} >= set(RULES)
    assert not find_violations(valid())


def is_a(kind: type[Expr]) -> Callable[[Expr], bool]:
    return lambda part: isinstance(part, kind)


def is_sum(part: Expr) -> bool:
    return isinstance(part, Call) and part.op == "add"


POINTERS = ValueType(PointerType(float16), (16, 32))
BROKEN_EXPRESSIONS: list[tuple[Callable[[Expr], bool], str, Change]] = [
    (is_a(Use), "trips of type i32 is used as i64", typed(int64)),
    (is_a(Literal), "0 as a literal of type fp32", typed(float32)),
    (is_a(Literal), "0 as a literal of type i1", typed(int1)),
    (is_a(Literal), "0.5 as a literal of type i32", lambda one: Literal(one.type, 0.5)),
    (is_a(CallFunction), "clipped takes i32, i32", operands(0)),
    (is_a(CallFunction), "clipped takes i32, i32", operand(1, of_zeros(int64))),
    (is_a(CallFunction), "clipped returns i32", typed(int64)),
    (is_a(CallFunction), "an operand of type i32 for a result of type i32[16]", typed(shape=(16,))),
    (is_sum, "add returns i32, not i64", typed(int64)),
    (is_sum, "add wants its operands as i64, i64", operand(0, of_zeros(int64))),
    (is_sum, "an operand of type i32[16, 32] for a result of type i32[32]", typed(shape=(32,))),
    (
        is_sum,
        "invalid operands of type *fp16: a pointer takes only + and - with an integer",
        operand(0, lambda _: Literal(POINTERS, False)),
    ),
    (is_sum, "add takes 2 operands, not 1", operands(0)),
    (is_sum, "add takes 2 operands, not 3", operands(0, 1, 1)),
    (is_sum, "sum is no operation", lambda one: dataclasses.replace(one, op="sum")),
]


@pytest.mark.parametrize(("which", "message", "change"), BROKEN_EXPRESSIONS)
def test_an_expression_that_breaks_a_rule_is_found(which: Callable[[Expr], bool], message: str, change: Change) -> None:
    found = next(part for part in parts(valid()) if which(part))
    assert_found(found, change(found), message)


def test_what_is_no_expression_is_told() -> None:
    assert list(expression_problems(Expr(ValueType(int32)))) == ["Expr is no expression"]
