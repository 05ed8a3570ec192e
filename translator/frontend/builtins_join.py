"""Tiles put together and taken apart: join, split, interleave, cat.

All are made of what tiles have anyway: a new axis of two, a choice by its coordinate, transposes and reshapes.
"""

from __future__ import annotations

from ..diagnostics import ArgumentError, DTypeError, ShapeError, Span
from ..ir.nodes import Assign, Call, Combine, Expr, Literal, Use
from ..ir.tiles import broadcast_to, is_element, joined, selected
from ..ir.types import ValueType
from ..language.dtypes import DTYPES_BY_NAME, DType, PointerType, int32
from .builder import Builder
from .builtins_reduce import reduce_tiles
from .builtins_shape import axis_argument, permuted, reshaped
from .shapes import cast_to, common_shape, elementwise, to_expr
from .values import Tuple, Value

Arguments = dict[str, Value]


def _operands(builder: Builder, a: Arguments, names: tuple[str, str], span: Span) -> tuple[Expr, Expr]:
    """Both operands in their common shape.

    Raises:
      DTypeError: when their types differ.
    """
    builder.not_elementwise()
    left, right = (to_expr(a[name], span) for name in names)
    if left.type.element != right.type.element:
        raise DTypeError(
            f"both tiles must have the same type, got {left.type} and {right.type}",
            span,
            "cast one of them, as y.to(x.dtype)",
            builder.calls,
        )
    shape = common_shape([left.type.shape, right.type.shape], span)
    return broadcast_to(left, shape, span), broadcast_to(right, shape, span)


def _join(builder: Builder, a: Arguments, span: Span) -> Value:
    return joined(*_operands(builder, a, ("a", "b"), span), span)


def _interleave(builder: Builder, a: Arguments, span: Span) -> Value:
    both = joined(*_operands(builder, a, ("a", "b"), span), span)
    shape = both.type.shape
    return both if len(shape) == 1 else reshaped(builder, both, (*shape[:-2], 2 * shape[-2]), span)


def _cat(builder: Builder, a: Arguments, span: Span) -> Value:
    left, right = _operands(builder, a, ("input", "other"), span)
    rank = left.type.rank
    if not rank:
        raise ShapeError("tl.cat takes tiles, not scalars", span, "use tl.join", builder.calls)
    if builder.constant(a["can_reorder"], "can_reorder", span) and rank != 1:
        raise ArgumentError("tl.cat with can_reorder takes tiles of one axis", span, "drop can_reorder", builder.calls)
    axis = axis_argument(builder, a["dim"], rank, span)
    order = (*range(axis), rank, *range(axis, rank))
    shape = left.type.shape
    side_by_side = permuted(builder, joined(left, right, span), order, span)
    return reshaped(builder, side_by_side, (*shape[:axis], 2 * shape[axis], *shape[axis + 1 :]), span)


def _split(builder: Builder, a: Arguments, span: Span) -> Value:
    expr = to_expr(a["a"], span)
    if not expr.type.is_tile or expr.type.shape[-1] != 2:
        raise ShapeError(
            f"tl.split takes a tile whose last side is 2, not {expr.type}",
            span,
            "reshape it to (..., 2), or transpose it",
            builder.calls,
        )
    builder.not_elementwise()
    if expr.type.rank == 1:
        return Tuple(tuple(_scalar(builder, expr, number, span) for number in (0, 1)))
    named = _named(builder, expr, span)
    return Tuple(tuple(selected(named, number, span) for number in (0, 1)))


def _named(builder: Builder, expr: Expr, span: Span) -> Expr:
    """What is computed gets a name, since both halves read it; a tile seen from another side needs none."""
    inner = expr
    while isinstance(inner, Call) and inner.op in ("permute", "reshape", "expand_dims"):
        (inner,) = inner.args
    if isinstance(inner, Use):
        return expr
    variable = builder.variable("pairs", expr.type)
    builder.statements.append(Assign(builder.here, (variable,), expr))
    return Use(expr.type, variable, span=span)


def _scalar(builder: Builder, expr: Expr, number: int, span: Span) -> Expr:
    """One element of a tile of two, the same for all threads: bits of the one, zeros of the other."""
    dtype = expr.type.element
    if isinstance(dtype, PointerType):
        raise DTypeError("tl.split of two pointers is not supported", span, "split their offsets", builder.calls)
    bits: DType = DTYPES_BY_NAME[f"i{max(dtype.bits, 8)}"]
    same_size = not dtype.is_bool()
    as_bits = cast_to(expr, bits, span, None, same_size)
    zero = broadcast_to(cast_to(Literal(ValueType(int32), 0, span=span), bits, span), expr.type.shape, span)
    one = elementwise("where", [is_element(expr.type.shape, number, span), as_bits, zero], span)
    name = "second" if number else "first"
    (element,) = reduce_tiles(builder, (one,), 0, Combine("xor", "xor"), False, (name,), span)
    return cast_to(element, dtype, span, None, same_size)


HANDLERS = {"join": _join, "split": _split, "interleave": _interleave, "cat": _cat}
