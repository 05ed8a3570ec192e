"""Bundles (`aggregates.py`) as variables: binding them, and the parts that loops and branches change.

A loop or a branch is translated on the assumption that the parts of bundles stay what they are. Where the result shows
that one changed, or that an offset may have become negative, the translation is undone and repeated with that known.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from ..diagnostics import DTypeError, Span
from ..ir.nodes import Assign, Expr, Literal, Use, Variable
from ..ir.walk import used_variables
from .aggregates import AGGREGATES, Part, differing_parts, form_of, is_run_time, parts_of, shown_parts, with_parts
from .ranges import is_nonnegative
from .shapes import describe, to_expr
from .values import BlockPointer, Const, Descriptor, Tuple, Undefined, Value

if TYPE_CHECKING:
    from .builder import Builder

T = TypeVar("T")


def bind_parts(builder: Builder, name: str, value: Value, span: Span) -> None:
    """`name = value`: each part keeps its variable, gets one, or stays an expression."""
    old = builder.scope.get(name)
    same_form = isinstance(old, AGGREGATES) and form_of(old) == form_of(value)
    before = [part.value for part in parts_of(old, name)] if same_form and isinstance(old, AGGREGATES) else None
    parts = parts_of(value, name)
    written = len(builder.statements)
    targets = [_target(builder, (name, n), before[n] if before else None) for n in range(len(parts))]
    values = [_read_first(builder, part, targets[:n], span) for n, part in enumerate(parts)]
    results = [
        _bound(builder, (name, n), part, one, targets[n], span)
        for n, (part, one) in enumerate(zip(parts, values, strict=True))
    ]
    builder.scope[name] = with_parts(value, results)
    if len(builder.statements) == written:
        builder.note("no code: its parts stand where they are used")


def _target(builder: Builder, key: tuple[str, int], old: Value | None) -> Variable | None:
    """The variable that a part of the bound name has already."""
    owned = key in builder.changing and isinstance(old, Use) and old.variable in builder.owned
    return old.variable if owned and isinstance(old, Use) else None


def _read_first(builder: Builder, part: Part, targets: list[Variable | None], span: Span) -> Value:
    """A part's new value, copied if it reads a variable that a part before it is about to change."""
    value = part.value
    if not isinstance(value, Expr) or not any(variable in targets for variable in used_variables(value)):
        return value
    name = f"{value.variable.name}_before" if isinstance(value, Use) else f"{part.name}_next"
    copy = builder.variable(name, value.type)
    builder.statements.append(Assign(builder.here, (copy,), value))
    return Use(copy.type, copy, span=span)


def _bound(
    builder: Builder, key: tuple[str, int], part: Part, value: Value, target: Variable | None, span: Span
) -> Value:
    if not is_run_time(value):
        return value
    changes = key in builder.changing
    if not changes and (isinstance(value, Const) or (isinstance(value, Expr) and _may_stay(builder, part, value))):
        return value
    expr = to_expr(value, span)
    if target is None or target.type != expr.type:
        target = builder.reuse(part.name, expr.type) or builder.variable(part.name, expr.type)
        _follow_sign(builder, key, part, target, expr, is_new=True)
    elif expr == Use(target.type, target):
        return expr
    else:
        _follow_sign(builder, key, part, target, expr, is_new=False)
    if changes:
        builder.owned.add(target)
    builder.write(target, expr)
    return Use(target.type, target)


def _may_stay(builder: Builder, part: Part, expr: Expr) -> bool:
    """Whether an expression means the same wherever the bundle is used."""
    return (part.stays_expression or isinstance(expr, (Use, Literal))) and all(
        variable in builder.protected
        or (variable in builder.block_of and variable.name in builder.source.assigned_once)
        for variable in used_variables(expr)
    )


def _follow_sign(
    builder: Builder, key: tuple[str, int], part: Part, target: Variable, expr: Expr, is_new: bool
) -> None:
    if not part.is_offset:
        return
    if not is_nonnegative(builder, expr):
        if target in builder.nonnegative:
            builder.nonnegative.discard(target)
            builder.signed.add(key)
    elif is_new and key not in builder.signed:
        builder.nonnegative.add(target)


# ------------------------------------------------------------------------------------------------ loops and branches


def own_parts(builder: Builder, name: str, value: Tuple | BlockPointer | Descriptor) -> None:
    """Gives the parts that are known to change variables that a loop or a branch may assign."""
    parts = parts_of(value, name)
    results = [part.value for part in parts]
    for number, part in enumerate(parts):
        key = (name, number)
        if key not in builder.changing:
            continue
        if isinstance(part.value, Use) and part.value.variable in builder.owned:
            if key in builder.signed:
                builder.nonnegative.discard(part.value.variable)
            continue
        expr = to_expr(part.value, builder.here.span)
        variable = builder.variable(part.name, expr.type)
        builder.statements.append(Assign(builder.here, (variable,), expr))
        builder.owned.add(variable)
        _follow_sign(builder, key, part, variable, expr, is_new=True)
        results[number] = Use(variable.type, variable)
    builder.scope[name] = with_parts(value, results)


def find_changes(builder: Builder, name: str, one: Any, other: Any, why: str, span: Span) -> None:
    """Records the parts in which two values of a name differ: before and after a loop's body, or in two branches.

    Raises:
      DTypeError: when a variable cannot hold both.
    """
    if one is None or other is None or not (isinstance(one, AGGREGATES) or isinstance(other, AGGREGATES)):
        return
    for number in differing_parts(name, one, other, why, span, builder.calls):
        left, right = (parts_of(value, name)[number] for value in (one, other))
        types = [to_expr(part.value, span).type for part in (left, right)]
        if types[0] != types[1]:
            shown = shown_parts(one, name)[number]
            raise DTypeError(
                f"{shown} is of type {types[0]}, but of type {types[1]} {why}",
                span,
                f"give {shown} one type, as with .to(tl.int64)",
                builder.calls,
            )
        builder.changing.add((name, number))


def find_changing_constant(builder: Builder, name: str, before: Any, after: Any, span: Span) -> None:
    """Records a name that is a compile-time value before a loop or after its body, and another value at the other end."""
    if before == after or before is None or after is None or isinstance(before, Undefined):
        return
    if not all(isinstance(end, (Expr, *AGGREGATES)) for end in (before, after)):
        builder.changing.add((name, -span.line))


def forget_changing_constants(builder: Builder, names: Sequence[str], span: Span) -> None:
    """Makes such names undefined where the body starts: what they stand for there is not known at compile time."""
    for name in names:
        value = builder.scope.get(name)
        if (name, -span.line) in builder.changing and value is not None and not isinstance(value, Undefined):
            why = f"is {describe(value)} before the loop, which changes it"
            remedy = f"before the loop, make {name} a number or tile of the type that it has in the loop"
            if isinstance(value, (Expr, *AGGREGATES)):  # what the loop makes of it is a module, None or a constexpr
                why = f"is {describe(value)} before the loop, which assigns what no variable of the loop can hold"
                remedy = "in the loop, give what is no number or tile another name"
            if name in builder.constexpr_names:
                why = f"is a constexpr, which the loop changes: cannot reassign constexpr {name} in the loop"
                remedy = f"assign it to another name before the loop, which then counts at run time: value = {name}"
            builder.scope[name] = Undefined(span, why, remedy)


def settled(builder: Builder, translate: Callable[[], T]) -> T:
    """Translates a loop or a branch until nothing more is found out about the parts of bundles."""
    before = builder.saved()
    while True:
        known = len(builder.changing) + len(builder.signed)
        result = translate()
        if len(builder.changing) + len(builder.signed) == known:
            return result
        builder.go_back_to(before)


def own_variables(builder: Builder, names: Sequence[str]) -> None:
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
