"""The verifier finds what it is there for: a valid kernel, broken once for every rule that docs/ir.md has of statements."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import pytest
from broken_kernels import (
    Change,
    Kernels,
    attribute,
    of_zeros,
    operand,
    typed,
    valid,
    with_statement,
)
from tilewright.frontend.shapes import broadcast_to
from tilewright.ir.nodes import (
    Assign,
    Call,
    Combine,
    DeviceFunction,
    Effect,
    Expr,
    For,
    If,
    Kernel,
    Literal,
    Return,
    Statement,
    Use,
    Variable,
    While,
)
from tilewright.ir.types import ValueType
from tilewright.ir.verify import STATEMENT_RULES, InvalidKernelError, Violation, find_violations, verify
from tilewright.language.dtypes import PointerType, float32, int1, int32, int64


def assigns(name: str) -> Callable[[Statement], bool]:
    """Whether a statement assigns to a name."""
    return lambda one: isinstance(one, Assign) and one.targets[0].name == name


def in_function(change: Callable[[DeviceFunction], DeviceFunction]) -> Kernels:
    """Changes the kernel's device function."""
    return lambda kernel: dataclasses.replace(kernel, functions=tuple(map(change, kernel.functions)))


def with_value(change: Change) -> Callable[[Assign], Statement]:
    """Another value that is assigned."""
    return lambda one: dataclasses.replace(one, value=change(one.value))


def with_targets(change: Callable[[tuple[Variable, ...]], tuple[Variable, ...]]) -> Callable[[Assign], Statement]:
    """Other variables that are assigned."""
    return lambda one: dataclasses.replace(one, targets=change(one.targets))


def nested(expr: Any) -> Expr:
    """A structured operation inside another expression."""
    return Call(expr.type, "neg", (expr,))


def retyped(variable: Variable, element: Any) -> Variable:
    """A variable of another type in the place of one."""
    return Variable(variable.name, ValueType(element), variable.key)


def reads_its_result(reduction: Assign) -> Statement:
    """Each element is computed with the first result."""
    call: Any = reduction.value
    result, shape = Use(reduction.targets[0].type, reduction.targets[0]), call.args[0].type.shape
    result = broadcast_to(Call(result.type.with_shape((shape[0], 1)), "expand_dims", (result,), (("axis", 1),)), shape)
    return dataclasses.replace(reduction, value=dataclasses.replace(call, args=(result, *call.args[1:])))


def loaded_condition(branch: If) -> Statement:
    """A branch on what a load gives."""
    pointer = Literal(ValueType(PointerType(int1)), False)
    return dataclasses.replace(branch, condition=Call(ValueType(int1), "load", (pointer,)))


def only_a_condition(assumption: Any) -> Statement:
    """The condition of an assumption as an effect of its own."""
    return dataclasses.replace(assumption, call=assumption.call.args[0])


def assigned_inside(loop: For) -> Statement:
    """A loop that assigns to its own variable."""
    own = Assign(loop.origin, (loop.variable,), Literal(loop.variable.type, 0))
    return dataclasses.replace(loop, body=(*loop.body, own))


def without_start(kernel: Kernel) -> Kernel:
    """Without the statement that gives `x` its value in front of the loop."""
    return dataclasses.replace(kernel, body=tuple(one for one in kernel.body if not assigns("x")(one)))


def on_one_way(kernel: Kernel) -> Kernel:
    """With a branch around the statement that gives `x` its value."""
    condition = Literal(ValueType(int1), True)
    body = tuple(If(one.origin, condition, (one,)) if assigns("x")(one) else one for one in kernel.body)
    return dataclasses.replace(kernel, body=body)


def parameter_assigned(kernel: Kernel) -> Kernel:
    """With a first statement that assigns to a parameter."""
    trips = kernel.parameters[-1].variable
    first = Assign(kernel.body[0].origin, (trips,), Literal(trips.type, 1))
    return dataclasses.replace(kernel, body=(first, *kernel.body))


def other_reduction(change: Callable[[Combine], Combine]) -> Change:
    """What a reduction does with two partial results, changed."""
    return lambda call: attribute("combine", change(call.attribute("combine")))(call)


def foreign_in_combination(combine: Combine) -> Combine:
    """A combination that reads a variable of nobody."""
    other = Use(combine.results[0].type, Variable("foreign", combine.results[0].type, 10**6))
    (last,) = combine.body[-1:]
    return dataclasses.replace(combine, body=(*combine.body, dataclasses.replace(last, value=other)))


def untyped_combination(combine: Combine) -> Combine:
    """A combination whose last assignment gives a value of another type."""
    (last,) = combine.body[-1:]
    return dataclasses.replace(combine, body=(dataclasses.replace(last, value=Literal(ValueType(int32), 0)),))


def ends(function: DeviceFunction) -> DeviceFunction:
    """The function without its last statement, which returns."""
    return dataclasses.replace(function, body=function.body[:-1])


def returns(value: Expr | None) -> Callable[[DeviceFunction], DeviceFunction]:
    """The function with another last value."""
    return lambda function: dataclasses.replace(function, body=(*function.body[:-1], Return(function.origin, value)))


def own_parameter_assigned(function: DeviceFunction) -> DeviceFunction:
    """The function with a first statement that assigns to its parameter."""
    own = function.parameters[0]
    return dataclasses.replace(function, body=(Assign(function.origin, (own,), Literal(own.type, 1)), *function.body))


def always(_: Statement) -> bool:
    return True


FLOAT_ONE, WIDE_ONE = Literal(ValueType(float32), 1.0), Literal(ValueType(int64), 1)
OF_BODIES = {"defined", "constant-parameters", "returned-type"}
BROKEN_STATEMENTS: list[tuple[str, str, Kernels]] = [
    (
        "assigned-type",
        "places: i32[16, 32] = a value of type i64[16, 32]",
        with_statement(Assign, with_value(of_zeros(int64)), assigns("places")),
    ),
    (
        "assigned-type",
        "combined: fp32 = a value of type i32",
        with_statement(Assign, with_value(other_reduction(untyped_combination)), assigns("reduced")),
    ),
    (
        "single-target",
        "2 targets of load(count_ptr)",
        with_statement(Assign, with_targets(lambda own: own * 2), assigns("count")),
    ),
    (
        "single-target",
        "3 targets of reduce(",
        with_statement(Assign, with_targets(lambda own: (*own, own[0])), assigns("largest")),
    ),
    (
        "single-target",
        "place: i32[16] takes a result reduced from fp32[16, 8]",
        with_statement(Assign, with_targets(lambda own: own[::-1]), assigns("largest")),
    ),
    (
        "stands-alone",
        "load(count_ptr) stands inside an expression",
        with_statement(Assign, with_value(nested), assigns("count")),
    ),
    ("stands-alone", "load(False) stands inside an expression", with_statement(If, loaded_condition, always)),
    (
        "stands-alone",
        "atomic_cas(count_ptr, 0, 1, sem='acq_rel', scope='gpu') stands inside an expression",
        with_statement(Assign, with_value(nested), assigns("seen")),
    ),
    (
        "own-results",
        "largest is read by the statement that assigns it",
        with_statement(Assign, reads_its_result, assigns("largest")),
    ),
    ("effects", "gt(trips, 0) has no effect", with_statement(Effect, only_a_condition, always)),
    (
        "scalar-conditions",
        "the condition has the type i32",
        with_statement(If, lambda one: dataclasses.replace(one, condition=Literal(ValueType(int32), 1)), always),
    ),
    (
        "scalar-conditions",
        "the condition has the type i1[16]",
        with_statement(
            While, lambda one: dataclasses.replace(one, condition=of_zeros(int1, (16,))(one.condition)), always
        ),
    ),
    (
        "loop-bounds",
        "the loop variable has the type fp32",
        with_statement(For, lambda one: dataclasses.replace(one, variable=retyped(one.variable, float32)), always),
    ),
    *(
        (
            "loop-bounds",
            "a bound has the type i64, the variable i32",
            with_statement(For, lambda one, bound=bound: dataclasses.replace(one, **{bound: WIDE_ONE}), always),
        )
        for bound in ("start", "stop", "step")
    ),
    (
        "typed-expressions",
        "a hint changes the type in hint(",
        with_statement(Assign, with_value(operand(0, typed(int64))), assigns("columns")),
    ),
    ("defined", "x may be undefined", without_start),
    ("defined", "x may be undefined", on_one_way),
    (
        "defined",
        "foreign may be undefined",
        with_statement(Assign, with_value(other_reduction(foreign_in_combination)), assigns("reduced")),
    ),
    ("constant-parameters", "trips is assigned", parameter_assigned),
    ("constant-parameters", "step is assigned", with_statement(For, assigned_inside, always)),
    ("constant-parameters", "value is assigned", in_function(own_parameter_assigned)),
    ("returned-type", "clipped may end without a value", in_function(ends)),
    ("returned-type", "clipped returns another type than i32", in_function(returns(FLOAT_ONE))),
    ("returned-type", "clipped returns another type than i32", in_function(returns(None))),
]


@pytest.mark.parametrize(("rule", "message", "change"), BROKEN_STATEMENTS)
def test_a_statement_that_breaks_a_rule_is_found(rule: str, message: str, change: Kernels) -> None:
    found = find_violations(change(valid()))
    assert any(one.rule == rule and one.detail.startswith(message) for one in found), found


def test_every_rule_of_statements_is_broken_once() -> None:
    assert {rule for rule, _, _ in BROKEN_STATEMENTS} == set(STATEMENT_RULES) | OF_BODIES


def test_all_that_is_wrong_is_listed_with_its_lines() -> None:
    broken = parameter_assigned(in_function(ends)(valid()))
    line, of_function = broken.body[0].origin.span.line, broken.functions[0].origin.span.line
    assert find_violations(broken) == (
        Violation("constant-parameters", "trips is assigned", line),
        Violation("returned-type", "clipped may end without a value", of_function),
    )
    with pytest.raises(InvalidKernelError) as raised:
        verify(broken)
    assert str(raised.value).splitlines() == [
        "everything breaks 2 rules of docs/ir.md:",
        f"  constant-parameters (line {line}): trips is assigned",
        f"  returned-type (line {of_function}): clipped may end without a value",
    ]
