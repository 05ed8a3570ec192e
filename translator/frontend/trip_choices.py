"""Values that the number of a static loop's trip chooses, `right if dx else 1.0 - right`.

Both sides stand in the text, so that all trips have the same one and the loop can stay. Where trips differ otherwise, numbers
take the place of their words, and the choice is made at compile time like any other.
"""

from __future__ import annotations

from typing import Any

import libcst as cst

from ..diagnostics import CompilationError
from ..ir.nodes import Expr
from .builder import Builder
from .shapes import elementwise, to_expr
from .values import Const, Value

COMPARED = {
    cst.Equal: "eq",
    cst.NotEqual: "ne",
    cst.LessThan: "lt",
    cst.LessThanEqual: "le",
    cst.GreaterThan: "gt",
    cst.GreaterThanEqual: "ge",
}


def chosen_by_trip(builder: Builder, node: Any, condition: Value) -> Expr | None:
    """The choice between two floats, or tiles of them, that are only computed; None where it is one for compile time."""
    test = _test(builder, node.test, condition)
    if test is None:
        return None
    one, other = _computed(builder, node.body), _computed(builder, node.orelse)
    if one is None or other is None or one.type != other.type:
        return None
    return elementwise("where", [test, one, other], builder.source.span(node))


def _test(builder: Builder, node: Any, condition: Value) -> Expr | None:
    """What a condition asks about the number of a trip; None where it does not, or asks more than one thing."""
    span = builder.source.span(node)
    if isinstance(condition, Const) and condition.trips:
        return elementwise("ne", [to_expr(condition, span), Const(0)], span)
    if not isinstance(node, cst.Comparison) or len(node.comparisons) != 1:
        return None
    sign = COMPARED.get(type(node.comparisons[0].operator))
    sides = [_number(builder, side) for side in (node.left, node.comparisons[0].comparator)]
    numbers = [side for side in sides if side is not None]
    if sign is None or len(numbers) < len(sides) or not any(number.trips for number in numbers):
        return None
    return elementwise(sign, [to_expr(number, span) for number in numbers], span)


def _number(builder: Builder, node: Any) -> Const | None:
    """A compile-time integer that a name or a numeral stands for."""
    from .expressions import evaluate

    value = evaluate(builder, node) if isinstance(node, (cst.Name, cst.Integer)) else None
    return value if isinstance(value, Const) and type(value.value) is int else None


def _computed(builder: Builder, node: Any) -> Expr | None:
    """A side of the choice; None unless it is a float or a tile of floats, and takes no statement."""
    from .expressions import evaluate

    before = dict(builder.scope)
    try:
        with builder.into_block() as block:
            value = evaluate(builder, node)
    except CompilationError:  # of the side that this trip does not take
        return None
    finally:
        changed, builder.scope = builder.scope != before, before
    plain = isinstance(value, Expr) and not value.type.is_pointer and value.type.dtype.is_floating()
    return value if plain and not block and not changed else None  # type: ignore[return-value]
