"""The text of tiles that are computed again wherever they are used; `schedule/tiles/recomputed.py` says which and why."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ...ir.nodes import Statement, Variable
from ..context import Context
from ..text.operators import Text
from ..text.point import FIRST, Point, point_of, register
from ..text.register_loops import axis_indices
from ..text.unit import Lambda, Line, Node, unrolled

ONE_LINE = 80  # columns of a function that stands in one line


def function_of_index(context: Context, target: Variable, element: Callable[[Point], Text]) -> tuple[Node, ...]:
    """A tile that is computed, or loaded, where it is used: a function instead of an array; `element` spells it."""
    layout = context.schedule.layouts[target]
    indices = axis_indices(context, layout)
    parameters = ", ".join(f"int {indices[axis]}" for axis in layout.array_axes())
    point = point_of(
        layout, tuple(register(indices[a]) if layout.registers(a) > 1 else FIRST for a in range(layout.rank))
    )
    text = element(point).text
    found = Lambda(context.names.variable(target), parameters, (Line(f"return {text};"),))
    return (replace(found, is_short=len(found.header) + len(text) <= ONE_LINE),)


def forget_tiles(context: Context, statement: Statement) -> tuple[Node, ...]:
    """Makes the compiler compute anew what follows from narrow tiles; see `schedule/tiles/recomputed.py`."""
    nodes: list[Node] = []
    for tile in context.schedule.recomputed.forgotten.get(statement, ()):
        context.use_helper("forget")
        layout = context.schedule.layouts[tile]
        names = axis_indices(context, layout)
        outer = layout.array_axes()[:-1]
        row = "".join(f"[{names[axis]}]" for axis in outer)
        node: Node = Line(f"forget({context.names.variable(tile)}{row});")
        for axis in reversed(outer):
            count = context.count(layout.axes[axis])
            node = unrolled(names[axis], count, (node,))
        nodes.append(node)
    return tuple(nodes)
