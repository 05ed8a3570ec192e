"""Loops over the registers that a thread has of a tile, and what their variables are called."""

from __future__ import annotations

from collections.abc import Callable

from ...schedule.tiles.layout import Layout
from ..context import Context
from .point import FIRST, Point, point_of, register
from .unit import Node, unrolled

FALLBACK_INDICES = ("p", "r", "c", "k", "m", "n")  # of axes without a name


def axis_indices(context: Context, layout: Layout) -> list[str]:
    """A loop variable for every axis of a layout, all different."""
    chosen: list[str] = []
    for axis, bits in enumerate(layout.axes):
        named = context.axis_names.find(bits)
        wanted = named.index if named else FALLBACK_INDICES[axis % len(FALLBACK_INDICES)]
        choices = (wanted, *map(context.names.shared_index, FALLBACK_INDICES))
        if axis >= len(FALLBACK_INDICES):
            choices = (context.names.shared_index(f"p{axis}"),)
        chosen.append(next(choice for choice in choices if choice not in chosen))
    return chosen


def inner_index(context: Context, letter: str, layout: Layout) -> str:
    """A loop variable for a loop within those over a layout's axes: the letter, doubled where an axis has it."""
    taken = axis_indices(context, layout)
    while context.names.shared_index(letter) in taken:
        letter += letter[0]
    return context.names.shared_index(letter)


def each_register(context: Context, layout: Layout, body: Callable[[Point], tuple[Node, ...]]) -> tuple[Node, ...]:
    """Unrolled loops over all registers of a tile around `body` at each element."""
    names = axis_indices(context, layout)
    indices = tuple(
        register(names[axis]) if layout.registers(axis) > 1 else FIRST for axis in range(layout.rank)
    )  # fmt: skip
    nodes = body(point_of(layout, indices))
    for axis in reversed(range(layout.rank)):
        if layout.registers(axis) > 1:
            nodes = (unrolled(names[axis], context.count(layout.axes[axis]), nodes),)
    return nodes
