"""The test in front of a choice that most trips of a loop need not make (`schedule/tiles/crossed_tiles.py`)."""

from __future__ import annotations

from ..ir.nodes import Assign
from ..schedule.tiles.crossed_tiles import Comparison, Run, crossed
from ..schedule.tiles.layout import Layout
from .context import Context
from .shared.arrays import side_text
from .text.unit import Branch, Node

FEWEST = 16  # elements of a thread that are worth a branch


def unless_all_hold(context: Context, statement: Assign, layout: Layout, nodes: tuple[Node, ...]) -> tuple[Node, ...]:
    """The nodes of an assignment to a tile in this layout, in a branch where its condition may hold for all elements."""
    if layout.num_registers < FEWEST or context.declares(statement, statement.target):
        return nodes
    tests = [_fails(context, one) for one in crossed(context.kernel, statement, context.facts)]
    if not tests:
        return nodes
    return (Branch(" || ".join(tests), nodes, comment="elsewhere the condition holds for the whole tile"),)


def _fails(context: Context, one: Comparison) -> str:
    """That a comparison fails somewhere, by the first of the larger ones and the last of the smaller ones."""
    last = _first(context, one.smaller)
    if one.smaller.count > 1:
        side = side_text(context, one.smaller.count).within(12)
        last = f"{side} - 1" if last == "0" else f"{last} + {side} - 1"
    return f"{_first(context, one.larger)} {'<=' if one.strict else '<'} {last}"


def _first(context: Context, run: Run) -> str:
    return "0" if run.first is None else context.speller.spell(run.first).within(11, "<")
