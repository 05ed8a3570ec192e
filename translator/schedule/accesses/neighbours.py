"""Loads of a block that bring what a thread holds already, beside its first and last elements: the neighbours in a stencil.

In: a kernel, its facts, the layouts. Out: for such loads, which tile has their elements, and by how much these are moved.
Behind `u = tl.load(p + at, mask=inside)` a thread that holds runs of four neighbours finds three of four elements of
`up = tl.load(p + at + 1, mask=inside & (x + 1 < W))` in `u`, where `inside` holds for all of a run or for none: what else is
asked of the later load lets through less. Between both, nothing changes memory or the tile.

The trips of a loop share such elements by a window (`windows.py`), which also loads what no trip has by a vector.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from ...analysis.axis_info import axis_info
from ...analysis.doubled_tiles import Doubling
from ...analysis.facts import Facts
from ...analysis.masks import conjuncts
from ...ir.nodes import Assign, Kernel, Statement, Variable
from ...ir.walk import blocks, used_variables
from ..tiles.layout import Layout
from .access import load_operands, plan_load
from .records import Field, changed_between, loads_together
from .window import Neighbours


def own_neighbours(
    kernel: Kernel, facts: Facts, layouts: Mapping[Variable, Layout], taken: Mapping[Statement, object]
) -> dict[Statement, Neighbours]:
    """See the module docstring; loads that are `taken` from windows are left alone."""
    counting = Doubling(kernel)
    found: dict[Statement, Neighbours] = {}
    for block in blocks(kernel.body):
        for together in loads_together(block, facts, counting, under_one_mask=False):
            held = [one for one in together if one.load not in taken and one.load.target in layouts]
            for later, own in _shared(held, block, facts, layouts):
                found.setdefault(later, own)
    return found


def _shared(
    fields: list[Field], block: Sequence[Statement], facts: Facts, layouts: Mapping[Variable, Layout]
) -> Iterator[tuple[Statement, Neighbours]]:
    """Loads of neighbours, each with an earlier one."""
    for number, later in enumerate(fields):
        layout = layouts[later.load.target]
        axis = layout.rank - 1
        run = layout.run(axis)
        if later.count.step != 1 or run == 1 or plan_load(later.load, layout, facts).width > 1:
            continue
        for first in fields[:number]:
            by = later.count.number - first.count.number
            same = layouts[first.load.target] == layout and 0 < abs(by) < run
            if same and _stays(first, later, block, facts) and _lets_through(first.load, later.load, axis, run, facts):
                yield later.load, Neighbours(first.load.target, axis, run, by)


def _stays(first: Field, later: Field, block: Sequence[Statement], facts: Facts) -> bool:
    """Whether a tile, and what its elements were found by, are the same where a later load stands."""
    after = replace(first, place=first.place + 1)
    parts = (*first.count.parts, *conjuncts(load_operands(first.load)[1], facts))
    read = {first.load.target, *(variable for part in parts for variable in used_variables(part))}
    return first.load.target is not later.load.target and read.isdisjoint(changed_between(after, later, block))


def _lets_through(first: Assign, later: Assign, axis: int, run: int, facts: Facts) -> bool:
    """Whether the mask of a load holds for all of a run wherever that of a later one holds for an element of it."""
    parts, others = (conjuncts(load_operands(load)[1], facts) for load in (first, later))
    known = facts.environments[first]
    return all(part in others and axis_info(part, known).constancy[axis] % run == 0 for part in parts)
