"""Stores by tensor copies that every warpgroup makes for its own rows, so that none waits for another.

In: a kernel with `box_store` statements and the layouts in which they run. Out: the warpgroups that share each such store,
and the tensor maps with boxes of one warpgroup's rows. A warpgroup that is done with its rows goes on to the next tile's
products while the others still store.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ...analysis.axis_info import axis_info
from ...analysis.facts import Facts
from ...artifact import TensorMap
from ...hardware import WARPGROUP_BITS
from ...ir.nodes import Call, Effect, Kernel, Statement, Variable
from ...ir.walk import statements
from ..tiles.layout import Layout
from .ring_plan import Rings

PATTERN_BITS = 3  # a swizzle repeats after 8 lines


def cut_stores(
    kernel: Kernel, facts: Facts, layouts: Mapping[Variable | Statement, Layout], rings: Rings
) -> tuple[dict[Statement, int], Rings]:
    """(how many warpgroups copy out their own rows, by the store; the rings with the maps for that)."""
    stores = [s for s in statements(kernel.body) if isinstance(s, Effect) and s.call.op == "box_store"]
    parts: dict[Statement, int] = {}
    maps = {one.name: one for one in rings.maps}
    for base in dict.fromkeys(s.call.attribute("base") for s in stores):
        own = [s for s in stores if s.call.attribute("base") is base]
        counts = {_warpgroups(s.call, layouts[s]) for s in own}
        if len(counts) > 1 or counts == {1} or not _keep_order([s.call for s in own], facts):
            continue
        count = counts.pop()
        parts |= dict.fromkeys(own, count)
        for name, call in {s.call.attribute("map"): s.call for s in own}.items():
            maps[name] = _cut(maps[name], call, count)
    return parts, replace(rings, maps=tuple(maps.values()))


def _slow(call: Call) -> int:
    """The place, in the tensor, of the axis along which lines of the stored tile follow each other."""
    return next(place for place, axis in enumerate(call.attribute("axes")) if axis is not None)


def _warpgroups(call: Call, layout: Layout) -> int:
    """How many warpgroups hold whole lines of a stored tile, one run of lines each; 1 when they do not."""
    own = tuple(range(WARPGROUP_BITS, layout.thread_bits))
    axis = layout.axes[call.attribute("axes")[_slow(call)]]
    whole = len(axis) - len(own) >= PATTERN_BITS
    return 1 << len(own) if own and axis[-len(own) :] == own and whole else 1


def _keep_order(calls: list[Call], facts: Facts) -> bool:
    """Whether two stores to one place are always the same warpgroup's, so that one thread orders their copies."""
    if not any(call.attribute("overwrites") for call in calls):
        return True
    sides = {call.args[0].type.shape[call.attribute("axes")[_slow(call)]] for call in calls}
    starts = [axis_info(call.args[1 + _slow(call)], facts.known) for call in calls]
    return len(sides) == 1 and all(start.divisibility[0] % max(sides) == 0 for start in starts)


def _cut(one: TensorMap, call: Call, parts: int) -> TensorMap:
    """The map with boxes of so many parts of the lines."""
    slow = len(one.box) - 1 - _slow(call)
    return replace(one, box=tuple(side // parts if place == slow else side for place, side in enumerate(one.box)))
