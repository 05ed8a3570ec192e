"""Offsets of masked elements that are found for all of them before the first is loaded.

The compiler branches around a load whose address takes long to compute, and computes it there: nothing of it is shared with
other elements, whose branches are others. Offsets in an array of their own are computed without branches, and loads of what
they lead to are predicated.
"""

from __future__ import annotations

from collections.abc import Callable

from ...ir.c_operators import ATOM
from ...ir.nodes import Call, Expr, Statement, Use, Variable
from ...ir.types import ValueType
from ...ir.walk import MOVES
from ...language.dtypes import int32, int64
from ...schedule.tiles.layout import Layout
from ..context import Context
from ..text.element import indexed
from ..text.operators import Text
from ..text.point import Point
from ..text.register_loops import each_register
from ..text.unit import Assignment, Node

MANY = 12  # operations of an offset


def found_offsets(
    context: Context, statement: Statement, target: Variable, pointer: Expr, layout: Layout
) -> tuple[tuple[Node, ...], Callable[[Point], Text]] | None:
    """The text that finds all offsets, and the element that an offset leads to; None where addresses are short."""
    while isinstance(pointer, Use) and pointer.variable in context.speller.written_out:
        pointer = context.speller.written_out[pointer.variable]
    if not isinstance(pointer, Call) or pointer.op != "ptr_add" or not layout.array_axes():
        return None
    base, offset = pointer.args
    if offset.type.shape != target.type.shape or _operations(context, offset) < MANY:
        return None
    wide = context.speller.offset_is_wide(offset) or offset.type.dtype == int64
    if not wide and offset.type.dtype != int32:
        return None
    variable = context.beside(statement, target, "at", ValueType(int64 if wide else int32, target.type.shape))
    name = context.names.variable(variable)

    def find(point: Point) -> tuple[Node, ...]:
        text = context.speller.offset(offset, point.operand(pointer, offset)).text
        return (Assignment(indexed(context, name, variable, point), text),)

    def element(point: Point) -> Text:
        start = context.speller.spell(base, point.operand(pointer, base))
        return Text(f"{start.within(ATOM)}[{indexed(context, name, variable, point)}]")

    return (context.declaration(variable, layout, name), *each_register(context, layout, find)), element


def _operations(context: Context, expr: Expr) -> int:
    """How many operations an expression has, with what has no name in the text."""
    count, pending = 0, [expr]
    while pending and count < MANY:
        part = pending.pop()
        if isinstance(part, Use) and part.variable in context.speller.written_out:
            pending.append(context.speller.written_out[part.variable])
        elif isinstance(part, Call):
            count += part.op not in MOVES
            pending += part.args
    return count
