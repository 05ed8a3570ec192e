"""Conditions: static and run-time `if`, and the ternary."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import libcst as cst

from ..diagnostics import DTypeError, Span
from ..ir.nodes import Assign, Expr, If, Use, Variable
from ..ir.walk import used_variables
from ..language.tile_hints import ambiguous_truth
from .aggregates import differing_parts, parts_of, with_parts
from .builder import Builder
from .carried import own_variables, settled
from .draft import Scope
from .joined import merged
from .returns import in_loop, to_the_end
from .shapes import as_bool, elementwise, to_expr
from .tree import below
from .values import Const, Tuple, Undefined, Value, is_static

CHOSEN = "chosen"  # what variables of a ternary's value are named after


def scalar_condition(builder: Builder, value: Value, span: Span) -> Expr:
    """A condition as a scalar of type int1; a tile of one element is its element.

    Raises:
      DTypeError: for a tile of several.
    """
    from .builtins_reduce import only_element

    expr = to_expr(value, span)
    builder.decided.update(used_variables(expr))
    if expr.type.numel == 1 and not expr.type.is_pointer:
        expr = only_element(builder, expr, span)
    if expr.type.is_tile:
        cause, remedy = ambiguous_truth(expr.type)
        raise DTypeError(cause, span, remedy, builder.calls)
    return as_bool(expr, span)


def visit_if(builder: Builder, node: Any, rest: Sequence[Any]) -> bool:
    """An `if`; True when every way through it returns. `rest` are the statements that follow in the same block."""
    from .expressions import evaluate
    from .statements import visit_block

    condition = evaluate(builder, node.test)
    span = builder.source.span(node.test)
    if is_static(condition):
        truth = bool(builder.constant(condition, "the condition", span))
        _static_note(builder, node, truth)
        builder.following = (*builder.following, rest)
        returns = visit_block(builder, node.body) if truth else _visit_else(builder, node.orelse)
        builder.following = builder.following[:-1]
        return returns
    test = scalar_condition(builder, condition, span)
    if builder.result is not None and not in_loop(builder) and _contains_return(node):
        _if_with_return(builder, node, (*builder.following, rest), test, span)
        return True
    return settled(builder, lambda: _run_time_if(builder, node, test, span))


def _run_time_if(builder: Builder, node: Any, test: Expr, span: Span) -> bool:
    from .statements import visit_block

    origin = builder.here
    names = builder.source.assigned_by[node]
    own_variables(builder, names)
    before, annotated = dict(builder.scope), set(builder.constexpr_names)
    with builder.into_block() as then:
        first_returns = visit_block(builder, node.body)
    then_scope, builder.scope = builder.scope, dict(before)
    then_annotated, builder.constexpr_names = builder.constexpr_names, set(annotated)
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
        ended = (then_annotated | builder.constexpr_names) - annotated
        scope = merged(builder, before, (then_scope, builder.scope), otherwise, origin, span, ended)
    builder.scope, builder.constexpr_names = scope, annotated  # what a branch annotates is its own, as in Triton
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
    if truth and isinstance(node.orelse, cst.If):
        lines = without(builder, node.orelse, node.orelse)
    else:
        lines = without_block(builder, getattr(node.orelse, "body", None) if truth else node.body)
    builder.note(f"{'true' if truth else 'false'} in this specialisation{lines}")


def without_block(builder: Builder, block: Any) -> str:
    """What a note says of the lines of a block that the kernel does without; "" where they are no lines of their own."""
    return without(builder, block.body[0], block.body[-1]) if isinstance(block, cst.IndentedBlock) else ""


def without(builder: Builder, first: Any, last: Any) -> str:
    """What a note says of the lines from one statement to another that the kernel does without."""
    start, end = builder.source.span(first).line, builder.source.span(last).end_line
    return f": without L{start}" if start == end else f": without L{start}-L{end}"


def _visit_else(builder: Builder, orelse: Any) -> bool:
    from .statements import visit_block

    if orelse is None:
        return False
    if isinstance(orelse, cst.If):
        builder.origin = builder.origin_of(orelse)
        return visit_if(builder, orelse, ())
    return visit_block(builder, orelse.body)


def _else_origin(builder: Builder, node: Any) -> Any:
    if isinstance(node.orelse, cst.Else):
        return builder.origin_of(node.orelse)
    return None


def _contains_return(node: cst.CSTNode) -> bool:
    return any(type(one) is cst.Return for one in below(node))


def _if_with_return(builder: Builder, node: Any, following: tuple[Sequence[Any], ...], test: Expr, span: Span) -> None:
    """In an inlined function, what follows an `if` with a `return` stands in those branches that do not return."""
    from .statements import visit_block

    origin = builder.here
    before = dict(builder.scope)
    own_variables(builder, builder.source.assigned_by[node])
    with builder.into_block() as then:
        to_the_end(builder, lambda: visit_block(builder, node.body), following, span)
    builder.scope = before
    with builder.into_block() as otherwise:
        to_the_end(builder, lambda: _visit_else(builder, node.orelse), following, span)
    builder.statements.append(If(origin, test, tuple(then), tuple(otherwise)))


def conditional_value(builder: Builder, node: Any, condition: Value) -> Value:
    """`a if c else b` at run time: only the chosen side is evaluated when it does more than compute."""
    from .expressions import evaluate

    span = builder.source.span(node)
    test = scalar_condition(builder, condition, builder.source.span(node.test))
    before = dict(builder.scope)
    with builder.into_block() as then:
        first = evaluate(builder, node.body)
    then_scope, builder.scope = builder.scope, dict(before)
    with builder.into_block() as otherwise:
        second = evaluate(builder, node.orelse)
    if {**then_scope, **builder.scope} != before:  # an assignment expression in one of the sides
        builder.scope = merged(builder, before, (then_scope, builder.scope), otherwise, builder.here, span, set())
    if isinstance(first, Const) and first.value is None and isinstance(second, Const) and second.value is None:
        builder.statements.append(If(builder.here, test, tuple(then), tuple(otherwise)))
        return Const(None)
    parts = [part.value for part in parts_of(first, CHOSEN)]
    choices = _choices(builder, first, second, span)
    if not then and not otherwise and not any(one.type.is_tile for one, _ in choices.values()):
        chosen: list[Expr] = [elementwise("where", [test, one, other], span) for one, other in choices.values()]
    else:
        builder.not_elementwise()
        names = parts_of(first, CHOSEN)
        targets = [builder.variable(names[place].name, one.type) for place, (one, _) in choices.items()]
        for target, (one, other) in zip(targets, choices.values(), strict=True):
            then.append(Assign(builder.here, (target,), one))
            otherwise.append(Assign(builder.here, (target,), other))
        builder.statements.append(If(builder.here, test, tuple(then), tuple(otherwise)))
        chosen = [Use(target.type, target) for target in targets]
    for place, expr in zip(choices, chosen, strict=True):
        parts[place] = expr
    return with_parts(first, parts)


def _choices(builder: Builder, first: Value, second: Value, span: Span) -> dict[int, tuple[Expr, Expr]]:
    """What a ternary chooses between, by the place among the parts of its sides: of tuples, items that are the same stay.

    Raises:
      DTypeError: for sides of different types or forms, and for blocks.
    """
    if not isinstance(first, Tuple) and not isinstance(second, Tuple):
        places = {0}
    elif any(part.stays_expression for side in (first, second) for part in parts_of(side, CHOSEN)):
        cause = "a ternary expression chooses between numbers, tiles, and tuples of these"
        raise DTypeError(cause, span, "choose blocks with if and else", builder.calls)
    else:
        places = differing_parts(CHOSEN, first, second, "with the condition", span, builder.calls)
    sides = [[part.value for part in parts_of(side, CHOSEN)] for side in (first, second)]
    found = {}
    for place in sorted(places):
        one, other = to_expr(sides[0][place], span), to_expr(sides[1][place], span)
        if one.type != other.type:
            cause = f"Ternary expression with dynamic condition has inconsistent types {one.type} and {other.type}"
            raise DTypeError(cause, span, "cast one side", builder.calls)
        found[place] = (one, other)
    return found
