"""Control flow: static and run-time `if`, loops, early return, and the ternary."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import libcst as cst

from ..diagnostics import ArgumentError, DTypeError, NotConstexprError, Span, UnsupportedLanguageConstruct
from ..ir.nodes import Assign, Expr, For, If, Literal, Return, Statement, Use, Variable, While
from ..ir.types import ValueType
from ..language import control as loops
from ..language.dtypes import DType
from ..ops.promotion import promote
from .aggregates import AGGREGATES, form_of, is_run_time, parts_of, with_parts
from .assigned import assigned_names
from .builder import Builder, Scope
from .carried import find_changes, own_parts, settled
from .joined import copy_over, merged
from .operators import is_static
from .ranges import is_nonnegative
from .shapes import as_bool, cast_to, elementwise, to_expr
from .tree import below
from .values import Const, Tuple, Undefined, Value

MOST_UNROLLED = 1 << 16  # iterations that tl.static_range writes out: more would take hours to compile


def scalar_condition(builder: Builder, value: Value, span: Span) -> Expr:
    """A condition as a scalar of type int1.

    Raises:
      DTypeError: for a tile.
    """
    expr = to_expr(value, span)
    if expr.type.is_tile:
        raise DTypeError(
            f"the condition is a tile of type {expr.type}; the truth of a tile is ambiguous",
            span,
            "use tl.where, or reduce the tile first with tl.max or tl.sum",
            builder.calls,
        )
    return as_bool(expr, span)


# ------------------------------------------------------------------------------------------------------------- if


def visit_if(builder: Builder, node: Any, rest: Sequence[Any]) -> bool:
    """An `if`; True when every way through it returns. `rest` are the statements that follow in the same block."""
    from .expressions import evaluate
    from .statements import visit_block

    condition = evaluate(builder, node.test)
    span = builder.source.span(node.test)
    if is_static(condition):
        truth = bool(builder.constant(condition, "the condition", span))
        _static_note(builder, node, truth)
        if truth:
            return visit_block(builder, node.body)
        return _visit_else(builder, node.orelse)
    test = scalar_condition(builder, condition, span)
    if builder.result is not None and _contains_return(node):
        _if_with_return(builder, node, rest, test, builder.here)
        return True
    return settled(builder, lambda: _run_time_if(builder, node, test, span))


def _run_time_if(builder: Builder, node: Any, test: Expr, span: Span) -> bool:
    from .statements import visit_block

    origin = builder.here
    names = assigned_names(node)
    _own_variables(builder, names)
    before = dict(builder.scope)
    with builder.into_block() as then:
        first_returns = visit_block(builder, node.body)
    then_scope, builder.scope = builder.scope, dict(before)
    siblings = builder.siblings
    builder.siblings = siblings | _made_variables(names, before, then_scope)
    with builder.into_block() as otherwise:
        second_returns = _visit_else(builder, node.orelse)
    else_origin = _else_origin(builder, node)
    builder.siblings = siblings
    if first_returns:
        scope = builder.scope
    elif second_returns:
        scope = then_scope
    else:
        scope = merged(builder, before, (then_scope, builder.scope), otherwise, origin, span)
    builder.scope = scope
    builder.statements.append(If(origin, test, tuple(then), tuple(otherwise), else_origin))
    return first_returns and second_returns


def _made_variables(names: Sequence[str], before: Scope, after: Scope) -> dict[str, Variable]:
    """The variables that a branch made for the names that it assigns, which the other branch shall assign too."""
    found: dict[str, Variable] = {}
    for name in names:
        value, old = after.get(name), before.get(name)
        if value is None or value == old or isinstance(value, Undefined):
            continue
        found |= {part.name: part.value.variable for part in parts_of(value, name) if isinstance(part.value, Use)}
    return found


def _static_note(builder: Builder, node: Any, truth: bool) -> None:
    """Says which way an `if` goes at compile time, and which lines are left out because of that."""
    left_out = getattr(node.orelse, "body", None) if truth else node.body
    lines = ""
    if isinstance(left_out, cst.IndentedBlock) and not isinstance(node.orelse if truth else None, cst.If):
        first = builder.source.span(left_out.body[0]).line
        last = builder.source.span(left_out.body[-1]).end_line
        lines = f": without L{first}" if first == last else f": without L{first}-L{last}"
    builder.note(f"{'true' if truth else 'false'} in this specialisation{lines}")


def _visit_else(builder: Builder, orelse: Any) -> bool:
    from .statements import visit_block

    if orelse is None:
        return False
    if isinstance(orelse, cst.If):
        builder.origin = builder.source.origin(orelse, None, builder.note_prefix)
        return visit_if(builder, orelse, ())
    return visit_block(builder, orelse.body)


def _else_origin(builder: Builder, node: Any) -> Any:
    if isinstance(node.orelse, cst.Else):
        return builder.source.origin(node.orelse, None, builder.note_prefix)
    return None


def _own_variables(builder: Builder, names: Sequence[str]) -> None:
    """Gives names that a branch or loop assigns a variable that it may change: parameters and numbers get a copy."""
    for name in names:
        value = builder.scope.get(name)
        if isinstance(value, AGGREGATES):
            own_parts(builder, name, value)
        if isinstance(value, Const) and value.is_number and name not in builder.constexpr_names:
            value = to_expr(value, builder.here.span)
        if isinstance(value, Expr) and not (isinstance(value, Use) and value.variable not in builder.protected):
            variable = builder.variable(name, value.type)
            builder.statements.append(Assign(builder.here, (variable,), value))
            builder.scope[name] = Use(value.type, variable)


def _contains_return(node: cst.CSTNode) -> bool:
    return any(type(one) is cst.Return for one in below(node))


def _if_with_return(builder: Builder, node: Any, rest: Sequence[Any], test: Expr, origin: Any) -> None:
    """In an inlined function, an early return makes the rest of the block the other branch."""
    from .statements import visit_block

    before = dict(builder.scope)
    _own_variables(builder, assigned_names(node))
    with builder.into_block() as then:
        if not visit_block(builder, node.body):
            visit_block(builder, cst.IndentedBlock(list(rest)))
    builder.scope = before
    with builder.into_block() as otherwise:
        if not _visit_else(builder, node.orelse):
            visit_block(builder, cst.IndentedBlock(list(rest)))
    builder.statements.append(If(origin, test, tuple(then), tuple(otherwise)))


def visit_return(builder: Builder, node: Any) -> None:
    """`return`: ends the program, or gives a function's value."""
    from .expressions import evaluate

    value = evaluate(builder, node.value) if node.value is not None else Const(None)
    if builder.result is not None:
        builder.result.give(builder, value, builder.source.span(node))
        return
    if builder.scalar_only:
        builder.returned.append(value)
        expr = to_expr(value, builder.source.span(node))
        builder.statements.append(Return(builder.here, expr))
        return
    if builder.loop_depth:
        raise UnsupportedLanguageConstruct(
            "Cannot have `return` statements inside `while` or `for` statements in triton",
            builder.source.span(node),
            "set a flag and test it after the loop",
            builder.calls,
        )
    builder.statements.append(Return(builder.here))


def conditional_value(builder: Builder, node: Any, condition: Value) -> Value:
    """`a if c else b` at run time: only the chosen side is evaluated when it does more than compute."""
    from .expressions import evaluate

    span = builder.source.span(node)
    test = scalar_condition(builder, condition, builder.source.span(node.test))
    with builder.into_block() as then:
        first = evaluate(builder, node.body)
    with builder.into_block() as otherwise:
        second = evaluate(builder, node.orelse)
    if isinstance(first, Const) and first.value is None and isinstance(second, Const) and second.value is None:
        builder.statements.append(If(builder.here, test, tuple(then), tuple(otherwise)))
        return Const(None)
    one, other = to_expr(first, span), to_expr(second, span)
    if one.type != other.type:
        raise DTypeError(
            f"Ternary expression with dynamic condition has inconsistent types {one.type} and {other.type}",
            span,
            "cast one side",
            builder.calls,
        )
    if not then and not otherwise and not one.type.is_tile:
        return elementwise("where", [test, one, other], span)
    builder.not_elementwise()
    target = builder.variable("chosen", one.type)
    then.append(Assign(builder.here, (target,), one))
    otherwise.append(Assign(builder.here, (target,), other))
    builder.statements.append(If(builder.here, test, tuple(then), tuple(otherwise)))
    return Use(target.type, target)


# ---------------------------------------------------------------------------------------------------------- loops


def visit_for(builder: Builder, node: Any) -> None:
    """`for` over range, tl.range or tl.static_range."""
    from .expressions import evaluate

    span = builder.source.span(node.iter)
    if node.orelse is not None or not isinstance(node.target, cst.Name):
        raise UnsupportedLanguageConstruct("this form of for loop", span, "loop over one range", builder.calls)
    call = node.iter if isinstance(node.iter, cst.Call) else None
    function = evaluate(builder, call.func) if call is not None else None
    kind = function.value if isinstance(function, Const) else None
    if call is None or kind not in (range, loops.range, loops.static_range):
        raise UnsupportedLanguageConstruct(
            "a kernel's for loop runs over range, tl.range or tl.static_range only",
            span,
            "index with a range, or write the iterations out",
            builder.calls,
        )
    bounds, options = _range_arguments(builder, call, span)
    if kind is loops.static_range:
        _unroll(builder, node, [builder.constant(b, "a bound of tl.static_range", span) for b in bounds])
    else:
        _run_time_loop(builder, node, bounds, options, span)


def _range_arguments(builder: Builder, call: Any, span: Span) -> tuple[list[Value], tuple[tuple[str, Any], ...]]:
    from .expressions import evaluate

    positional: list[Value] = []
    named: dict[str, Value] = {}
    for argument in call.args:
        value = evaluate(builder, argument.value)
        if argument.keyword is None:
            positional += value.items if argument.star and isinstance(value, Tuple) else (value,)
        else:
            named[argument.keyword.value] = value
    if "step" in named:
        start: list[Value] = [Const(0)] if len(positional) == 1 else []
        positional = [*start, *positional, named.pop("step")]
    options = tuple((name, builder.constant(value, f"{name} of the range", span)) for name, value in named.items())
    bounds = positional if len(positional) > 1 else [Const(0), *positional]
    step = bounds[2] if len(bounds) == 3 else None
    if not positional or len(bounds) > 3:
        raise ArgumentError(f"a range takes 1 to 3 bounds, not {len(positional)}", span, "", builder.calls)
    if isinstance(step, Const) and step.value == 0:
        raise ArgumentError("the step of a range must not be 0", span, "", builder.calls)
    return [*bounds, *([Const(1)] if len(bounds) == 2 else [])], options


def _unroll(builder: Builder, node: Any, bounds: list[Any]) -> None:
    from .statements import visit_block

    try:
        trips = len(range(*bounds))
    except (TypeError, OverflowError) as error:
        raise DTypeError(f"tl.static_range: {error}", builder.source.span(node.iter), "", builder.calls) from None
    if trips > MOST_UNROLLED:
        raise UnsupportedLanguageConstruct(
            f"a loop of {trips} iterations would be written out",
            builder.source.span(node.iter),
            "use range",
            builder.calls,
        )
    builder.note("written out below")
    prefix = builder.note_prefix
    for value in range(*bounds):
        builder.note_prefix = f"({node.target.value} = {value})"
        builder.scope[node.target.value] = Const(value)
        visit_block(builder, node.body)
    builder.note_prefix = prefix


def _run_time_loop(
    builder: Builder, node: Any, bounds: list[Value], options: tuple[tuple[str, Any], ...], span: Span
) -> None:
    start, stop, step, descending = _loop_bounds(builder, bounds, span)
    origin = builder.here
    variable = builder.variable(node.target.value, start.type)
    if is_nonnegative(builder, start) and not descending:
        builder.nonnegative.add(variable)

    previous = _number_before(builder, node.target.value, variable.type, span)

    def enter() -> None:
        builder.scope[node.target.value] = Use(variable.type, variable)
        builder.protected.add(variable)

    body = _loop_body(builder, node, enter)
    builder.statements.append(For(origin, variable, start, stop, step, body, descending, options, previous))
    builder.scope[node.target.value] = Use(variable.type, variable)


def _number_before(builder: Builder, name: str, type_: ValueType, span: Span) -> Expr | None:
    """What a loop's variable holds before its loop, in its type; None unless that is an integer that may be read again."""
    value = builder.scope.get(name) if name in builder.source.read_outside_their_loops else None
    if isinstance(value, Const) and type(value.value) is int:
        return Literal(type_, value.value, symbol=value.symbol)
    if isinstance(value, Expr) and value.type == type_:
        return value
    return None


def _loop_bounds(builder: Builder, bounds: list[Value], span: Span) -> tuple[Expr, Expr, Expr, bool]:
    exprs = [to_expr(bound, span) for bound in bounds]
    common: DType | None = None
    for expr in exprs:
        if expr.type.is_tile or expr.type.is_pointer or not expr.type.dtype.is_int():
            raise DTypeError(
                f"For loop bounds and step must all be ints, are ({', '.join(str(e.type) for e in exprs)})",
                span,
                "cast them to tl.int32",
                builder.calls,
            )
        common = expr.type.dtype if common is None else promote(common, expr.type.dtype)
    if common is None:
        raise DTypeError("a range needs a bound", span, "", builder.calls)
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
            if isinstance(value, Const) and isinstance(value.value, loops.condition):
                value = value.value.value
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
        raise UnsupportedLanguageConstruct("else of a loop", builder.source.span(node), "", builder.calls)
    return settled(builder, lambda: _translated_body(builder, node, enter))


def _translated_body(builder: Builder, node: Any, enter: Callable[[], None]) -> tuple[Statement, ...]:
    from .statements import visit_block

    origin = builder.here
    names = assigned_names(node.body)
    _own_variables(builder, names)
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
    after = builder.scope
    kept: list[tuple[str, Any, Any]] = [
        (name, before[name], after[name]) for name in names if _is_kept(before.get(name), after.get(name))
    ]
    copy_over(builder, kept, body, origin)
    inside = Undefined(builder.source.span(node), "is defined only inside the loop")
    builder.scope = {name: before.get(name, inside) for name in after}
    return tuple(body)


def _is_kept(before: Value | Undefined | None, after: Value | Undefined | None) -> bool:
    """Whether a name has a value both before a loop and after its body."""
    return not any(value is None or isinstance(value, Undefined) for value in (before, after))


def _check_carried(builder: Builder, name: str, before: Any, after: Any, node: Any) -> None:
    if before == after or isinstance(before, Undefined) or not isinstance(before, Use) or not hasattr(after, "type"):
        return
    if before.type == after.type:
        return
    raise DTypeError(
        f"Loop-carried variable {name} has initial type {before.type} but is re-assigned to {after.type} in loop! "
        "Please make sure that the type stays consistent.",
        builder.source.span(node),
        f"give {name} its final type and shape before the loop",
        builder.calls,
    )


class Result:
    """Where an inlined function's returns put its value."""

    def __init__(self, name: str) -> None:
        """`name` is given to the result when several returns share it."""
        self.name = name
        self.value: Value | None = None
        self.variables: tuple[Variable, ...] = ()

    def give(self, builder: Builder, value: Value, span: Span) -> None:
        """One `return value`."""
        if builder.block == self.home:
            self.value = value
            return
        if self.value is not None and form_of(value) != form_of(self.value):
            raise DTypeError("this return gives another form than one before", span, "return one form", builder.calls)
        parts = parts_of(value, self.name)
        exprs = [to_expr(part.value, span) for part in parts if is_run_time(part.value)]
        if self.value is None:
            self.variables = tuple(
                builder.variable(part.name, expr.type)
                for part, expr in zip([part for part in parts if is_run_time(part.value)], exprs, strict=True)
            )
            uses = iter(Use(variable.type, variable) for variable in self.variables)
            self.value = with_parts(value, [next(uses) if is_run_time(part.value) else part.value for part in parts])
        if len(exprs) != len(self.variables):
            raise DTypeError("this return gives None, another one a value", span, "return one type", builder.calls)
        for variable, expr in zip(self.variables, exprs, strict=True):
            if variable.type != expr.type:
                raise DTypeError(
                    f"Return type mismatch: {variable.type} and {expr.type}", span, "cast one of them", builder.calls
                )
            builder.statements.append(Assign(builder.here, (variable,), expr))

    home = 0
