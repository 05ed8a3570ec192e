"""Which rings are one ring: loops that run one after the other over tiles of the same format share stages and barriers.

In: the rings of a kernel. Out: the same rings; one whose tiles are like those of an earlier one says so, and its tiles take
the memory of that one's. Both roles of the block pass the loops in the same order, so that their counts of stages simply go
on, and the loads of the second loop start under the end of the first. Causal attention has such loops, for the blocks below
the diagonal and for those that it cuts.
"""

from __future__ import annotations

from dataclasses import replace

from ...ir.nodes import Assign, Statement, Variable
from ...ir.structured import assigned_call
from .ring_plan import Ring


def share_rings(rings: list[Ring], replaced: dict[Statement, Statement]) -> tuple[Ring, ...]:
    """The rings, each with the first one of its format (`Ring.like`); `replaced` has the loads that are tensor copies."""
    formats: dict[Variable, object] = {}
    for statement in replaced.values():
        if isinstance(statement, Assign) and (load := assigned_call(statement, "box_load")):
            axes = [axis for axis in load.attribute("axes") if axis is not None]
            shape = statement.target.type.shape
            sides = tuple(shape[axis] for axis in range(len(shape)) if axis != axes[-1])
            formats[statement.target] = (statement.target.type.element, sides, shape[axes[-1]])
    found: list[Ring] = []
    for ring in rings:
        if ring.kind == "tma":
            own = [formats[tile] for tile in ring.tiles]
            like = (one for one in found if one.kind == "tma" and one.like is None and one.stages == ring.stages)
            first = next((one for one in like if [formats[tile] for tile in one.tiles] == own), None)
            ring = replace(ring, like=first.loop if first else None)
        found.append(ring)
    return tuple(found)
