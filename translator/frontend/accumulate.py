"""Sums of a dot and a tile, as dots that accumulate: what `acc += tl.dot(a, b)` means to a tensor core."""

from __future__ import annotations

from dataclasses import replace

from ..ir.nodes import Assign, Call, Expr, Use
from .builder import Builder
from .values import Value


def accumulated(builder: Builder, left: Value, right: Value) -> Expr | None:
    """`left + right` as one dot with an accumulator; None unless one side is a dot that has just been written.

    The other side has the type of the product. Triton folds such sums too, except of 8-bit floats.
    """
    for product, other in ((right, left), (left, right)):
        if isinstance(product, Use) and isinstance(other, Expr) and other.type == product.type and other != product:
            call = _fresh_dot(builder, product)
            if call is not None:
                statement = builder.statements.pop()
                added = replace(call, args=(*call.args, other))
                # Of another product that only this sum reads, nobody needs a copy.
                total = other if isinstance(other, Use) and other.variable.key in builder.temporaries else product
                builder.statements.append(Assign(statement.origin, (total.variable,), added))
                return total
    return None


def _fresh_dot(builder: Builder, product: Use) -> Call | None:
    """The dot without an accumulator that the last statement assigned to a name of ours, which only this sum reads."""
    if product.variable.key not in builder.temporaries or not builder.statements:
        return None
    last = builder.statements[-1]
    if not isinstance(last, Assign) or last.targets != (product.variable,) or last.origin is not builder.origin:
        return None
    call = last.value
    if not isinstance(call, Call) or call.op != "dot" or len(call.args) == 3 or call.args[0].type.dtype.is_fp8():
        return None
    return call
