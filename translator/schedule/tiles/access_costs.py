"""What an access costs in a layout, in cycles of the unit that serves a warp's requests.

In: a load or store, and the layout that it runs in. Out: the requests of a warp, and the lines of the cache that they touch:
threads whose elements lie side by side share lines, and a request of few bytes from lanes that lie far apart touches many.
Divisions of indices come on top, which neighbours of a thread often have in common.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from ...hardware import CACHE_LINE_BYTES, LANE_BITS, WARP_SIZE
from .layout import Layout
from .layout_problem import Addresses

QUOTIENT = 16  # cycles that a division of integers takes
LINE = 0.5  # cycles of a line of short rows: the first element of a thread's run brings it for the others
SHUFFLE = 1.25  # cycles of a step in which lanes combine what they have, and of its operation
BARRIER = 10  # cycles of a way through shared memory, to other warps
ADDRESS = 16  # cycles that an address takes to be found and a register pair to be kept in


def access_cost(access: Addresses, layout: Layout) -> float:
    """Requests and lines for all that a thread holds, and the divisions that find it."""
    lanes = [sum(0 <= bit < LANE_BITS for bit in bits) for bits in layout.axes]
    axis = max(range(layout.rank), key=lambda one: access.info.contiguity[one], default=0)
    held = layout.num_registers
    if not layout.rank or access.info.contiguity[axis] == 1:
        return held * (1 + _lines(access, layout))
    run = layout.run(axis)
    width = min(run, side_by_side(access, axis))
    along = (run << lanes[axis]) * access.itemsize / CACHE_LINE_BYTES
    lines = max(along, 1) * (1 << sum(lanes) - lanes[axis])
    return held / width * (1 + min(lines, WARP_SIZE)) + access.quotients * QUOTIENT * held / run


def _lines(access: Addresses, layout: Layout) -> int:
    """The lines that a warp's lanes touch with an element each, where numbers tell how far apart they lie; else one each."""
    offsets, unknown = [0], 1
    for axis, bits in enumerate(layout.axes):
        for place, bit in enumerate(bits):
            if not 0 <= bit < LANE_BITS:
                continue
            if axis not in access.steps:
                unknown *= 2
            else:
                offsets += [offset + (access.steps[axis] * access.itemsize << place) for offset in offsets]
    return unknown * len({offset // CACHE_LINE_BYTES for offset in offsets})


def address_cost(access: Addresses, layout: Layout, axis: int) -> float:
    """What a thread's rows along `axis` cost on top: an address each, where only the launch knows how far apart they lie."""
    return ADDRESS * (own_addresses(access, layout, axis) - 1)


def reduction_cost(loads: Iterable[Addresses], reductions: int, layout: Layout, axis: int) -> float:
    """What it costs to load rows along `axis`, and to combine each `reductions` times, be it by shuffles or with other warps.

    The rows of a warp lie behind one another, as short ones mostly do: how far they are apart, only the launch knows.
    """
    lanes = sum(0 <= bit < LANE_BITS for bits in layout.axes for bit in bits)
    run, held = layout.run(axis), layout.num_registers
    cost = 0.0
    for access in loads:
        lines = max((run << lanes) * access.itemsize / CACHE_LINE_BYTES, 1)
        cost += held / min(run, side_by_side(access, axis)) * (1 + lines * LINE)
    bits = layout.axes[axis]
    rows = math.prod(layout.registers(one) for one in range(layout.rank) if one != axis)
    shuffles = rows * sum(0 <= bit < LANE_BITS for bit in bits)
    return cost + reductions * (SHUFFLE * shuffles + BARRIER * any(bit >= LANE_BITS for bit in bits))


def own_addresses(access: Addresses, layout: Layout, axis: int | None = None) -> int:
    """How many addresses a thread has that no numbers tell apart, of its rows along `axis` or along any that is contiguous."""
    apart = (one for one in range(layout.rank) if one != axis and one not in access.steps)
    return math.prod(layout.registers(one) for one in apart)


def side_by_side(access: Addresses, axis: int) -> int:
    """How many elements along an axis one access may bring, by what is known of addresses."""
    contiguity = access.info.contiguity[axis]
    aligned = max(access.info.divisibility[axis] // access.itemsize, 1) if contiguity > 1 else 1
    return min(contiguity, aligned, access.at_once)


def most_side_by_side(access: Addresses) -> int:
    """The same along the axis along which it is most."""
    return max((side_by_side(access, axis) for axis in range(len(access.info.contiguity))), default=1)
