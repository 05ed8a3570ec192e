"""Stores by tensor copies that every warpgroup makes for its own rows, so that none waits for another.

In: a kernel with `box_store` statements and the layouts in which they run. Out: the warpgroups that share each such store,
and the tensor maps with boxes of one warpgroup's rows. A warpgroup that is done with its rows goes on to the next tile's
products while the others still store.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ..artifact import TensorMap
from ..ir.nodes import Call, Effect, Kernel, Variable
from ..ir.walk import statements
from .instructions import WARPGROUP_BITS
from .layout import Layout
from .ring_plan import Rings

PATTERN_BITS = 3  # a swizzle repeats after 8 lines


def cut_stores(kernel: Kernel, layouts: Mapping[Variable | int, Layout], rings: Rings) -> tuple[dict[int, int], Rings]:
    """(by `id` of a store the warpgroups that copy out their own rows, the rings with the maps for it)."""
    stores = [s for s in statements(kernel.body) if isinstance(s, Effect) and s.call.op == "box_store"]
    parts = {id(s): _warpgroups(s.call, layouts[id(s)]) for s in stores}
    maps = []
    for one in rings.maps:
        sharing = [s for s in stores if s.call.attribute("map") == one.name]
        counts = {parts[id(s)] for s in sharing}
        if len(counts) > 1:
            parts |= dict.fromkeys(map(id, sharing), 1)
        maps.append(_cut(one, sharing[0].call, counts.pop()) if len(counts) == 1 else one)
    return {key: count for key, count in parts.items() if count > 1}, replace(rings, maps=tuple(maps))


def _warpgroups(call: Call, layout: Layout) -> int:
    """How many warpgroups hold whole lines of a stored tile, one run of lines each; 1 when they do not, or must keep an order."""
    if call.attribute("repeated") or layout.thread_bits <= WARPGROUP_BITS:
        return 1
    slow = next(axis for axis in call.attribute("axes") if axis is not None)
    own, axis = tuple(range(WARPGROUP_BITS, layout.thread_bits)), layout.axes[slow]
    whole = len(axis) - len(own) >= PATTERN_BITS  # of the swizzle
    return 1 << len(own) if axis[-len(own) :] == own and whole else 1


def _cut(one: TensorMap, call: Call, parts: int) -> TensorMap:
    """The map with boxes of so many parts of the lines."""
    axes = call.attribute("axes")
    slow = len(axes) - 1 - next(place for place, axis in enumerate(axes) if axis is not None)
    box = tuple(side // parts if place == slow else side for place, side in enumerate(one.box))
    return replace(one, box=box)
