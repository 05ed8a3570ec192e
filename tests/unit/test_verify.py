"""The verifier finds what it is there for: one valid kernel, broken once for every rule of docs/ir.md."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import cache
from typing import Any, TypeVar

import pytest
import tilewright as triton
import tilewright.language as tl
from tilewright.artifact import Options
from tilewright.frontend import build_kernel
from tilewright.frontend.shapes import broadcast_to
from tilewright.ir.expression_rules import OPERANDS, RULES, expression_problems
from tilewright.ir.nodes import (
    Assign,
    Call,
    CallFunction,
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
from tilewright.ir.printer import print_expr
from tilewright.ir.rewrite import mapped_in, with_replaced
from tilewright.ir.types import ValueType
from tilewright.ir.verify import STATEMENT_RULES, InvalidKernelError, Violation, find_violations, verify
from tilewright.ir.walk import expressions, statements, subexpressions
from tilewright.language.dtypes import PointerType, float16, float32, int1, int32, int64
from tilewright.runtime.arguments.signature import parse_signature
from tilewright.schedule.targets import find_target

S = TypeVar("S", bound=Statement)
Change = Callable[[Any], Expr]
Kernels = Callable[[Kernel], Kernel]


@triton.jit
def joined(a, b):
    return a * b + a + b


@triton.jit
def clipped(value, limit):
    if value > limit:
        return limit
    return value


@triton.jit
def everything(x_ptr, count_ptr, out_ptr, trips, N: tl.constexpr):
    # Every operation that has a rule of its own.
    tl.assume(trips > 0)
    tl.extra.cuda.gdc_wait()
    tl.extra.cuda.gdc_launch_dependents()
    rows, columns = tl.arange(0, N)[:, None], tl.max_contiguous(tl.arange(0, 2 * N), 2 * N)[None, :]
    places = rows * (2 * N) + columns
    x = tl.load(x_ptr + places, mask=columns < trips, other=0.0)
    total = tl.dot(x, tl.trans(x))
    for step in range(trips):
        total = tl.dot(tl.load(x_ptr + step + places), tl.trans(x), total)
    even, odd = tl.split(tl.reshape(total, (N, N // 2, 2)))
    while tl.load(count_ptr) < trips:
        tl.atomic_add(count_ptr, 1)
        tl.atomic_max(count_ptr, 1)
        tl.atomic_min(count_ptr, 1)
        tl.atomic_and(count_ptr, 1)
        tl.atomic_or(count_ptr, 1)
        tl.atomic_xor(count_ptr, 1)
        tl.atomic_xchg(count_ptr, 1)
        seen = tl.atomic_cas(count_ptr, 0, 1)
        if seen == tl.num_programs(0):
            tl.debug_barrier()
    tl.device_assert(trips > tl.program_id(0), "fewer")
    tl.device_print("trips", trips)
    largest, place = tl.max(even, 1, return_indices=True)
    sums = tl.reduce(even + odd, 1, joined) + largest + place
    tl.store(out_ptr + tl.arange(0, N) * clipped(trips, step), sums)
    moved = tl.reshape(tl.load(x_ptr + tl.arange(0, 6)[:, None] * 4 + tl.arange(0, 4)[None, :]), (3, 8))
    tl.store(x_ptr + tl.arange(0, 3)[:, None] * 8 + tl.arange(0, 8)[None, :], moved.to(tl.float16))


@cache
def valid() -> Kernel:
    """The kernel as the frontend leaves it."""
    signature = parse_signature(everything, "*fp16:16, *i32:16, *fp32:16, i32, 16")
    options = Options(debug=True, sanitize_overflow=False)
    return build_kernel(everything, signature, options, find_target("sm_90a"))


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


def with_statement(kind: type[S], change: Callable[[S], Statement], which: Callable[[S], bool]) -> Kernels:
    """Changes the first statement of a kind for which `which` holds."""

    def changed(kernel: Kernel) -> Kernel:
        old = next(one for one in statements(kernel.body) if isinstance(one, kind) and which(one))
        return dataclasses.replace(kernel, body=with_replaced(kernel.body, {old: change(old)}))

    return changed


# ------------------------------------------------------------------------------------------------------- expressions


def typed(element: Any = None, shape: tuple[int, ...] | None = None) -> Change:
    """Another type of the result."""

    def changed(expr: Expr) -> Expr:
        of = expr.type
        return dataclasses.replace(expr, type=ValueType(element or of.element, of.shape if shape is None else shape))

    return changed


def attribute(name: str, value: Any) -> Change:
    """Another compile-time argument."""
    return lambda call: dataclasses.replace(call, attributes=tuple({**dict(call.attributes), name: value}.items()))


def operands(*numbers: int) -> Change:
    """The call's operands of these numbers, in this order."""
    return lambda call: dataclasses.replace(call, args=tuple(call.args[number] for number in numbers))


def operand(number: int, change: Change) -> Change:
    """Another operand."""

    def changed(call: Any) -> Expr:
        args = list(call.args)
        args[number] = change(args[number])
        return dataclasses.replace(call, args=tuple(args))

    return changed


def of_zeros(element: Any, shape: tuple[int, ...] | None = None) -> Change:
    """Zeros of another type in the place of an expression."""
    return lambda expr: Literal(ValueType(element, expr.type.shape if shape is None else shape), 0)


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


# -------------------------------------------------------------------------------------------------------- statements


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
