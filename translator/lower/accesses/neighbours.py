"""Elements that a thread holds already, in another tile's array; `schedule/accesses/neighbours.py` says which and why."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ...ir.nodes import Assign
from ..context import Context
from ..text.axis_names import NamedAxis
from ..text.element import indexed
from ..text.operators import Text, infix
from ..text.point import Point

Held = Callable[[Text, Callable[[Text], Text]], Text]


def neighbour(context: Context, load: Assign, point: Point) -> Held | None:
    """Chooses between what is loaded and, for elements that another tile has, what is made of these; None where none are."""
    own = context.schedule.windows.neighbours.get(load)
    if own is None:
        return None
    layout, index = point.layout, point.indices[own.axis]
    named = context.axis_names.find(layout.axes[own.axis])
    alone = layout.registers(own.axis) == own.run
    place = index.whole if alone else infix(index.whole, "%", Text(_run(named, own.run)))
    moved = replace(index, whole=infix(index.whole, "+" if own.by > 0 else "-", Text(str(abs(own.by)))))
    there = replace(point, indices=(*point.indices[: own.axis], moved, *point.indices[own.axis + 1 :]))
    element = Text(indexed(context, context.names.variable(own.tile), own.tile, there))
    if own.by > 0:
        test = infix(place, "<", infix(Text(_run(named, own.run, alone)), "-", Text(str(own.by))))
    else:
        test = infix(place, ">", Text(str(-own.by - 1)))

    def choose(loaded: Text, made: Callable[[Text], Text]) -> Text:
        return Text(f"{test.within(4)} ? {made(element).within(3)} : {loaded.within(3)}", 3, "?")

    return choose


def _run(named: NamedAxis | None, run: int, alone: bool = False) -> str:
    """The constant that counts the elements of a run: all of an axis, where there are no others."""
    if named is None or named.run != run:
        return str(run)
    return named.count if alone else named.vector
