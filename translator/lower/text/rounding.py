"""Tiles that are computed for a store; those that are rounded to 16 bits, two elements at a time.

A pair shares a register from the start; rounded one by one, each element keeps the register of its float until then.
"""

from __future__ import annotations

import re

from ...ir.nodes import Assign, Call, Effect, Expr, Use, Variable
from ...schedule.tiles.layout import Layout
from ..context import Context
from .pair_types import PAIR_TYPES, rounds_floats
from .point import FIRST, Point, point_of, register
from .register_loops import axis_indices, each_register
from .unit import Assignment, Line, Node, unrolled


def is_rounded_by_pairs(value: Expr, layout: Layout) -> bool:
    """Whether a tile is the rounding of floats to 16 bits, several of them side by side in a thread's array."""
    return rounds_floats(value) and bool(layout.array_axes())


def round_by_pairs(context: Context, name: str, variable: Variable, value: Call, layout: Layout) -> tuple[Node, ...]:
    """Fills the registers `name` of a tile with `value`; see `is_rounded_by_pairs`."""
    names = axis_indices(context, layout)
    *outer, innermost = layout.array_axes()
    dtype = variable.type.dtype
    pair = PAIR_TYPES[dtype.name]
    indices = tuple(register(names[a]) if layout.registers(a) > 1 else FIRST for a in range(layout.rank))
    text = context.speller.text(value.args[0], point_of(layout, indices))
    row = name + "".join(f"[{names[axis]}]" for axis in outer)
    index = names[innermost]
    array = re.fullmatch(rf"(\w+(?:\[\w+\])*)\[{index}\]", text) if _has_elements(context, value.args[0]) else None
    values: dict[str, object] = {"pair": pair.name, "function": pair.of_floats, "of_array": array is not None}
    helper = context.needs.overload("round_pairs", dtype.cuda, values, takes="array" if array else "")
    source = array[1] if array else f"[&](int {index}) {{ return {text}; }}"
    node: Node = Line(f"{helper}({row}, {source});")
    for axis in reversed(outer):
        count = context.count(layout.axes[axis])
        node = unrolled(names[axis], count, (node,))
    return (node,)


def _has_elements(context: Context, value: Expr) -> bool:
    """Whether a tile is a variable that holds elements, rather than one that stands for an expression."""
    return isinstance(value, Use) and value.variable not in context.facts.absorbed


def materialised(
    context: Context, statement: Assign | Effect, value: Expr, layout: Layout, tensor: str
) -> tuple[Variable, tuple[Node, ...]]:
    """Computes the value of a store into registers of its own; where there are others, `tensor` tells them apart."""
    variable = context.temporary(statement, "stored", value.type, f"{tensor}_stored")
    name = context.names.variable(variable)

    def one(point: Point) -> tuple[Node, ...]:
        place = name + "".join(f"[{point.indices[axis].text}]" for axis in layout.array_axes())
        return (Assignment(place, context.speller.text(value, point)),)

    declare = context.declaration(variable, layout, name)
    context.notes.stored.add(name)
    if isinstance(value, Call) and is_rounded_by_pairs(value, layout):
        return variable, (declare, *round_by_pairs(context, name, variable, value, layout))
    return variable, (declare, *each_register(context, layout, one))
