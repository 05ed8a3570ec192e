"""Tiles that a tensor copy has brought, taken to registers by those who compute with them (`schedule/computed_operands.py`)."""

from __future__ import annotations

import math

from ..ir.nodes import Assign, Call, Use
from ..schedule.access import Access
from .context import Context, ctype
from .element import indexed, run_at
from .operand import element_place, place_line
from .point import Point
from .unit import Line, Loop, Node
from .vectors import vectors, width_name


def lower_box_read(context: Context, statement: Assign) -> tuple[Node, ...]:
    """`target = box_read(tile)`: consecutive elements at once, as many as lie side by side for a thread."""
    call, target = statement.value, statement.target
    if not isinstance(call, Call) or not isinstance(call.args[0], Use):
        raise TypeError("not a reading of a box")
    source = call.args[0].variable
    layout, tile = context.schedule.layouts[target], context.schedule.staged[source]
    base = f"{context.names.variable(source)}[{context.stages.stage_of[source]}]"
    width = min(layout.run(tile.fast), tile.chunk)
    access = Access(tile.fast, width, (), ())
    several = math.prod(layout.register_shape()) > width
    name = context.names.variable(target)
    context.needs.packets |= {width * tile.itemsize} if width > 1 else set()

    def read(point: Point) -> tuple[Node, ...]:
        naming, place = place_line(context, element_place(context, tile, source, point), source.name, several)
        element = indexed(context, name, target, point)
        if width == 1:
            return (*naming, Line(f"{element} = {base}[{place}];"))
        helper = context.use_helper("load_vec", "load_vec", kind="", modifier="", bools=False)
        count = width_name(context, layout, access)
        if layout.vector(tile.fast) >= width:
            return (*naming, Line(f"{helper}<{count}>({run_at(element)}, &{base}[{place}]);"))
        loaded, i = context.names.shared_index("loaded"), context.names.shared_index("i")
        moved = tuple(
            f"[{_added(point.indices[axis].text, i) if axis == tile.fast else point.indices[axis].text}]"
            for axis in layout.array_axes()
        )
        return (
            *naming,
            Line(f"{ctype(target.type)} {loaded}[{count}];"),
            Line(f"{helper}<{count}>({loaded}, &{base}[{place}]);"),
            Loop(
                f"for (int {i} = 0; {i} < {count}; ++{i})",
                (Line(f"{name}{''.join(moved)} = {loaded}[{i}];"),),
                unroll=True,
            ),
        )

    return (*context.declare(statement, target, layout), *vectors(context, layout, access, read))


def _added(index: str, more: str) -> str:
    return more if index == "0" else f"{index} + {more}"
