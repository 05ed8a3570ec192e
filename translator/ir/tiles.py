"""Tiles made of tiles: broadcast, joined along a new axis, and taken apart again.

A join is made of what tiles have anyway: a choice by the coordinate of an axis of two, or of one tile a broadcast.
"""

from __future__ import annotations

from dataclasses import replace

from ..diagnostics import Span
from ..language.dtypes import int1, int32
from .nodes import Call, Expr, Literal
from .types import ValueType


def broadcast_to(expr: Expr, shape: tuple[int, ...], span: Span | None = None) -> Expr:
    """`expr` in a shape that its own broadcasts to."""
    span = span or expr.span
    if expr.type.shape == shape:
        return expr
    if isinstance(expr, Literal):
        return replace(expr, type=expr.type.with_shape(shape), span=span)
    if expr.type.is_tile:
        while expr.type.rank < len(shape):
            expr = grown(expr, 0, span)
        if expr.type.shape == shape:
            return expr
    return Call(expr.type.with_shape(shape), "broadcast", (expr,), span=span)


def grown(expr: Expr, axis: int, span: Span | None = None) -> Expr:
    """A tile with a new axis of one element."""
    shape = (*expr.type.shape[:axis], 1, *expr.type.shape[axis:])
    return Call(expr.type.with_shape(shape), "expand_dims", (expr,), (("axis", axis),), span=span)


def joined(left: Expr, right: Expr, span: Span | None = None) -> Expr:
    """Two tiles of one type, or two scalars, along a new last axis: `left` at coordinate 0, `right` at 1."""
    shape = (*left.type.shape, 2)
    columns = (grown(part, part.type.rank, span) if part.type.is_tile else part for part in (left, right))
    parts = tuple(broadcast_to(column, shape, span) for column in columns)
    if left == right:  # words are often doubled so, for each of the numbers that they hold
        return parts[0]
    return Call(left.type.with_shape(shape), "where", (is_element(shape, 0, span), *parts), span=span)


def selected(expr: Expr, number: int, span: Span | None = None) -> Expr:
    """The elements at one coordinate along the last axis."""
    return Call(expr.type.with_shape(expr.type.shape[:-1]), "select", (expr,), (("index", number),), span=span)


def is_element(shape: tuple[int, ...], number: int, span: Span | None = None) -> Expr:
    """Whether the coordinate along the last axis, whose side is 2, is `number`."""
    index = Call(ValueType(int32, (2,)), "arange", (), (("start", 0), ("end", 2)), span=span)
    other = Literal(ValueType(int32, (2,)), number, span=span)
    return broadcast_to(Call(ValueType(int1, (2,)), "eq", (index, other), span=span), shape, span)
