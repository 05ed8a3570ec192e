"""Loops: `for` over ranges, unrolled or at run time, and `while`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import libcst as cst

from ..diagnostics import ArgumentError, DTypeError, NotConstexprError, Span, UnsupportedLanguageConstruct
from ..ir.nodes import Expr, For, Literal, Note, Statement, Use, While
from ..ir.static_loops import StaticLoop, Trip
from ..ir.symbols import Number
from ..ir.types import ValueType
from ..ir.walk import used_variables
from ..language import control as loops
from ..language.dtypes import DType
from ..language.hints import NO_RANGE, no_bounds, no_carried_type, no_range_argument, no_static_bound, shown
from ..ops.promotion import promote
from ..ops.registry import OPS
from .assigned import assigned_names
from .builder import Builder
from .carried import find_changes, find_changing_constant, forget_changing_constants, own_variables, settled
from .conditionals import scalar_condition, without_block
from .joined import copy_over
from .named_numbers import is_c_int
from .ranges import is_nonnegative
from .shapes import cast_to, elementwise, to_expr
from .tree import below
from .values import Const, Undefined, Value, is_static

EXCLUSIVE_OR = (cst.BitXor, cst.BitXorAssign)
COMPUTES = frozenset(OPS) | {"to"}  # functions of `tl`, and a method, that access no memory
MOST_UNROLLED = 1 << 16  # iterations that tl.static_range writes out: more would take hours to compile


def visit_for(builder: Builder, node: Any) -> bool:
    """`for` over range, tl.range or tl.static_range; True when it certainly returns."""
    from .expressions import evaluate

    span = builder.source.span(node.iter)
    if node.orelse is not None:
        raise builder.unsupported(node.orelse, "Else")
    if not isinstance(node.target, cst.Name):
        raise UnsupportedLanguageConstruct(
            f"a for loop with the target {builder.source.code(node.target)}",
            builder.source.span(node.target),
            "loop over one range with one name, and index with it",
            builder.calls,
        )
    call = node.iter if isinstance(node.iter, cst.Call) else None
    function = evaluate(builder, call.func) if call is not None else None
    kind = function.value if isinstance(function, Const) else None
    if call is None or kind not in (range, loops.range, loops.static_range):
        raise UnsupportedLanguageConstruct(NO_RANGE[0], span, NO_RANGE[1], builder.calls)
    bounds, options = _range_arguments(builder, call, kind, span)
    if kind is loops.static_range:
        return _unroll(builder, node, bounds)
    _run_time_loop(builder, node, bounds, options, span)
    return False


def _range_arguments(
    builder: Builder, call: Any, kind: Any, span: Span
) -> tuple[list[Value], tuple[tuple[str, Any], ...]]:
    """(start, stop, step) and the hints of `tl.range`, which may stand behind the step without their names."""
    from .expressions import evaluate, unpacked

    positional: list[Value] = []
    named: dict[str, Value] = {}
    for argument in call.args:
        value = evaluate(builder, argument.value)
        if argument.keyword is None:
            positional += unpacked(builder, argument, value) if argument.star else (value,)
        else:
            named[argument.keyword.value] = value
    if kind is range and named:
        kind = (
            loops.range
        )  # Triton passes over keywords of Python's range, and public kernels have them: they mean the same
    hints = loops.RANGE_HINTS if kind is loops.range else ()
    named |= dict(zip(hints, positional[3:], strict=False))
    bounds = positional[: 3 if len(positional) <= 3 + len(hints) else None]
    if "step" in named:
        bounds = [*([Const(0)] if len(bounds) == 1 else []), *bounds, named.pop("step")]
    unknown = [name for name in named if name not in hints]
    if unknown:
        cause, remedy = no_range_argument(unknown[0], hints)
        raise ArgumentError(cause, span, remedy, builder.calls)
    bounds = bounds if len(bounds) > 1 else [Const(0), *bounds]
    step = bounds[2] if len(bounds) == 3 else None
    if not positional or len(bounds) > 3:
        cause, remedy = f"a range takes 1 to 3 bounds, not {len(positional)}", "write range(start, stop, step)"
        raise ArgumentError(cause, span, remedy, builder.calls)
    if isinstance(step, Const) and step.value == 0:
        raise ArgumentError("the step of a range must not be 0", span, "write 1, or leave it out", builder.calls)
    options = tuple((name, _hint(builder, name, value, span)) for name, value in named.items())
    return [*bounds, *([Const(1)] if len(bounds) == 2 else [])], options


def _hint(builder: Builder, name: str, value: Value, span: Span) -> Any:
    hint = builder.constant(value, f"{name} of the range", span)
    counted = type(hint) is int and hint >= 0
    if name in ("num_stages", "loop_unroll_factor") and hint is not None and not counted:
        message = f"{name} of a range must be None or an integer that is not negative, not {shown(hint)}"
        raise ArgumentError(message, span, f"write {name}=2, or leave it out", builder.calls)
    return hint


def _unroll(builder: Builder, node: Any, limits: list[Value]) -> bool:
    from .statements import visit_block

    span = builder.source.span(node.iter)
    bounds = [builder.constant(limit, "a bound of tl.static_range", span) for limit in limits]
    for bound in bounds:
        if not hasattr(bound, "__index__"):  # as Python's range asks
            cause, remedy = no_static_bound(bound)
            raise DTypeError(cause, span, remedy, builder.calls)
    start, stop, step = bounds
    trips = max(0, -((start - stop) // step))  # len(range(...)) takes no numbers of more than 64 bits
    if trips > MOST_UNROLLED:
        raise UnsupportedLanguageConstruct(
            f"a loop of {trips} iterations would be written out",
            builder.source.span(node.iter),
            "use range",
            builder.calls,
        )
    loop = _static_loop(builder, node, limits, range(*bounds))
    if loop is None:
        builder.note("written out below" if trips else f"no trip{without_block(builder, node.body)}")
    outer, returns, before, header = builder.trip, False, builder.scope.get(node.target.value), builder.here
    around, mixed, carried = builder.loops_around, builder.mixed, builder.carried
    builder.unrolled += 1
    builder.loops_around += (loop.place,) if loop else ()
    builder.mixed |= _mixed(builder, node) if loop else frozenset()
    builder.carried |= frozenset(assigned_names(node.body)) & builder.scope.keys()
    names = builder.piece_names
    for number, value in enumerate(range(*bounds)):
        if loop is None:
            builder.trip = ", ".join(filter(None, (outer, f"{node.target.value} = {value}")))
        else:
            builder.statements.append(Note(header, Trip(loop, number)))
            builder.piece_names = names  # what a trip loads twice has the same two names in each
        builder.scope[node.target.value] = Const(value, loop.number_of(number) if loop else None)
        returns = visit_block(builder, node.body)
        if returns:
            break
    if trips:
        _leave(builder, node, before, _last_of_trips(builder.scope[node.target.value]))
    if loop is not None and not returns:
        builder.statements.append(Note(header, Trip(loop, trips)))
    builder.loops_around, builder.mixed, builder.carried = around, mixed, carried
    builder.unrolled -= 1
    builder.trip = outer
    return returns


def _static_loop(builder: Builder, node: Any, limits: list[Value], numbers: range) -> StaticLoop | None:
    """The loop that may become one again, if its trips are alike; None where it is known not to."""
    span = builder.source.span(node.iter)
    place = (builder.source.function.path, span.line, span.column)
    known, name = builder.root.static_loops, node.target.value
    is_inside = place in builder.loops_around  # of a function that calls itself
    fits = all(map(is_c_int, (numbers.start, numbers.stop, numbers.step)))
    if len(numbers) < 2 or is_inside or not fits or place in builder.root.written_out_loops:
        return None
    values = (numbers.start, numbers.stop, numbers.step)
    start, stop, step = (
        getattr(limit, "symbol", None) or Number(value) for limit, value in zip(limits, values, strict=True)
    )
    return StaticLoop(name, known.setdefault(place, len(known)), place, start, stop, step, numbers)


def _mixed(builder: Builder, node: Any) -> frozenset[str]:
    """What the trips of a static loop make of one another in a body that has a `^` and nothing which may access memory.

    Such integers are the bits of random numbers or of hashes, and no places. One variable holds those of all trips, as it
    does floats.
    """
    inside = list(below(node.body))
    calls = (one.func for one in inside if isinstance(one, cst.Call))
    names = (one.attr.value if isinstance(one, cst.Attribute) else "" for one in calls)
    if not any(isinstance(one, EXCLUSIVE_OR) for one in inside) or not all(name in COMPUTES for name in names):
        return frozenset()
    return frozenset(assigned_names(node.body)) & builder.scope.keys()


def _last_of_trips(value: Value | Undefined) -> Value | Undefined:
    """What a static loop's variable holds behind it: a number, where it is still that."""
    return Const(value.value) if isinstance(value, Const) and value.trips else value


def _run_time_loop(
    builder: Builder, node: Any, bounds: list[Value], options: tuple[tuple[str, Any], ...], span: Span
) -> None:
    start, stop, step, descending = _loop_bounds(builder, _told_apart(builder, node.target.value, bounds), span)
    if builder.options.debug and not isinstance(step, Literal):
        steps = elementwise("ne", [step, Const(0)], span)
        builder.effect("device_assert", (steps,), span, message="the step of a range is 0")
    origin = builder.here
    variable = builder.variable(node.target.value, start.type)
    before = builder.scope.get(node.target.value)
    previous = _number_before(builder, node.target.value, variable.type, span)
    skipped = previous is None or is_nonnegative(builder, previous)  # what it holds behind a loop without a trip
    if is_nonnegative(builder, start) and skipped and not descending:
        builder.nonnegative.add(variable)

    if getattr(builder.scope.get(node.target.value), "type", variable.type) != variable.type:
        del builder.scope[node.target.value]  # the loop does not carry what an earlier one of another type left

    def enter() -> None:
        builder.scope[node.target.value] = Use(variable.type, variable)
        builder.protected.add(variable)

    body = _loop_body(builder, node, enter)
    builder.statements.append(For(origin, variable, start, stop, step, body, descending, options, previous))
    name = node.target.value
    if name in assigned_names(node.body):
        why, remedy = (
            "is changed inside the loop over it",
            f"in the loop, give what is computed from {name} another name",
        )
        builder.scope[name] = Undefined(builder.source.span(node.target), why, remedy)
    else:
        _leave(builder, node, before, Use(variable.type, variable))


def _told_apart(builder: Builder, name: str, bounds: list[Value]) -> list[Value]:
    """Bounds that would have one name: of `for i in range(tl.load(ends + r), tl.load(ends + r + 1))` the second is i_stop."""
    start, stop, step = bounds
    word = f"{name.strip('_')}_stop".lstrip("_")
    both = isinstance(start, Use) and isinstance(stop, Use) and start.variable.name == stop.variable.name
    if not both or not isinstance(stop, Use) or start == stop or word in builder.source.names:
        return bounds
    called = builder.variable(word, stop.type)
    return [start, Use(called.type, called, span=stop.span), step] if builder.take_over(stop, called) else bounds


def _leave(builder: Builder, node: Any, before: Value | Undefined | None, last: Value | Undefined) -> None:
    """Gives a loop's variable its last value behind the loop, in the variable that the name has around the block."""
    name = node.target.value
    builder.scope[name] = last
    is_read = name in builder.source.read_outside_their_loops
    if not isinstance(before, Use) or isinstance(last, Undefined) or not is_read:
        return
    if before.variable not in builder.protected and builder.block_of.get(before.variable) != builder.block:
        builder.scope[name] = before
        builder.bind(name, last, builder.source.span(node.target))


def _number_before(builder: Builder, name: str, type_: ValueType, span: Span) -> Expr | None:
    """What a loop's variable holds before its loop, in its type; None unless that is an integer that may be read again."""
    value = builder.scope.get(name) if name in builder.source.read_outside_their_loops else None
    if isinstance(value, Const) and type(value.value) is int:
        return Literal(type_, value.value, symbol=value.symbol)
    if isinstance(value, Expr) and not value.type.is_tile and not value.type.is_pointer and value.type.dtype.is_int():
        return cast_to(value, type_.dtype, span)
    return None


def _loop_bounds(builder: Builder, bounds: list[Value], span: Span) -> tuple[Expr, Expr, Expr, bool]:
    exprs = [to_expr(bound, span) for bound in bounds]
    common: DType | None = None
    builder.decided.update(variable for expr in exprs for variable in used_variables(expr))
    for expr in exprs:
        if expr.type.is_tile or expr.type.is_pointer or not expr.type.dtype.is_int() or expr.type.dtype.is_bool():
            cause, remedy = no_bounds([str(e.type) for e in exprs], any(e.type.is_tile for e in exprs))
            raise DTypeError(cause, span, remedy, builder.calls)
        common = expr.type.dtype if common is None else promote(common, expr.type.dtype)
    if common is None:
        raise DTypeError("a range needs a bound", span, "write range(stop)", builder.calls)
    start, stop, step = (cast_to(expr, common, span) for expr in exprs)
    descending = isinstance(step, Literal) and step.value < 0
    return start, stop, step, descending


def visit_while(builder: Builder, node: Any) -> None:
    """`while` with a run-time condition."""
    from .expressions import evaluate

    span = builder.source.span(node.test)
    origin = builder.here
    state: dict[str, Any] = {}

    def enter() -> None:
        with builder.into_block() as prelude:
            value = evaluate(builder, node.test)
            if is_static(value):
                raise NotConstexprError(
                    "the condition of a while loop is a compile-time value", span, "use for or if", builder.calls
                )
            state["condition"] = scalar_condition(builder, value, span)
        state["prelude"] = tuple(prelude)

    body = _loop_body(builder, node, enter)
    builder.statements.append(While(origin, state["prelude"], state["condition"], body))


def _loop_body(builder: Builder, node: Any, enter: Callable[[], None]) -> tuple[Statement, ...]:
    """A loop's body; names that it changes keep their type and shape from one iteration to the next."""
    if node.orelse is not None:
        raise builder.unsupported(node.orelse, "Else")
    return settled(builder, lambda: _translated_body(builder, node, enter))


def _translated_body(builder: Builder, node: Any, enter: Callable[[], None]) -> tuple[Statement, ...]:
    from .statements import visit_block

    origin = builder.here
    own_target = getattr(node.target, "value", "") if isinstance(node, cst.For) else ""
    inside = assigned_names(node.body) if own_target else assigned_names(node.test, node.body)
    names = [name for name in inside if name != own_target]
    own_variables(builder, names)
    forget_changing_constants(builder, names, builder.source.span(node))
    before = dict(builder.scope)
    builder.loop_depth += 1
    with builder.into_block() as body:
        enter()
        visit_block(builder, node.body)
    builder.loop_depth -= 1
    builder.origin = origin
    for name, value in before.items():
        _check_carried(builder, name, value, builder.scope.get(name), node)
    for name in names:
        find_changes(builder, name, before.get(name), builder.scope.get(name), "in the loop", builder.source.span(node))
        find_changing_constant(builder, name, before.get(name), builder.scope.get(name), builder.source.span(node))
    after = builder.scope
    kept: list[tuple[str, Any, Any]] = [
        (name, before[name], after[name]) for name in names if _is_kept(before.get(name), after.get(name))
    ]
    copy_over(builder, kept, body, origin)
    undefined = Undefined(builder.source.span(node), "is defined only inside the loop")
    builder.scope = {name: before.get(name, undefined) for name in after}
    return tuple(body)


def _is_kept(before: Value | Undefined | None, after: Value | Undefined | None) -> bool:
    """Whether a name has a value both before a loop and after its body."""
    return not any(value is None or isinstance(value, Undefined) for value in (before, after))


def _check_carried(builder: Builder, name: str, before: Any, after: Any, node: Any) -> None:
    if before == after or isinstance(before, Undefined) or not isinstance(before, Use) or not hasattr(after, "type"):
        return
    if before.type == after.type:
        return
    cause, remedy = no_carried_type(name, before.type, after.type)
    raise DTypeError(cause, builder.source.span(node), remedy, builder.calls)
