"""Which tiles of a loop all threads copy for one another: those that their holders could only copy in crumbs, or half lines.

In: the layouts in which tiles that a loop loads ahead are used. Out: for each whose holders' pieces are too small for an
asynchronous copy, or many more, or touch many more lines, the layout in which threads copy it instead, in pieces of up to 16
bytes along the axis that memory has contiguous, and how it lies in shared memory. A barrier must stand between the copies and
the reads, so this is for rings that have one in every iteration anyway.

Worked example, 8-bit weights [128, 64], contiguous along axis 1, that become B of `mma.sync` over 4 warps: a lane holds
columns 2 by 2, two bytes. 128 threads copy 4 pieces of 16 bytes each.
"""

from __future__ import annotations

from collections.abc import Mapping

from ...analysis.facts import Facts
from ...frozen import frozen
from ...hardware import ACCESS_BYTES, COPY_BYTES
from ...ir.nodes import Kernel, Variable
from ...ir.structured import assigns
from ...ir.types import padded
from ...ir.walk import statements
from ..accesses.access import load_operands, plan_copies, plan_load
from ..products.shared_tiles import SharedTile, has_chunks
from ..tiles.layout import Layout, blocked
from .ring_plan import Rings
from .warp_copies import Pieces, is_found_anywhere, lines_for_all, lines_for_holders, numbers_ahead

# Copies of a thread that copies what it holds, for one of a thread that need not: each takes its address, and its turn.
MANY_MORE = 4
MANY_LINES = 2  # for one: L2 takes as long to send half a line as a whole one


@frozen
class BlockCopy:
    """How all threads copy a tile: the layout of the copies, and how the tile lies in shared memory."""

    layout: Layout
    tile: SharedTile


def choose_block_copies(
    kernel: Kernel, facts: Facts, layouts: Mapping[Variable, Layout], rings: Rings, num_threads: int
) -> dict[Variable, BlockCopy]:
    """The tiles of rings with a barrier that all threads copy for those who hold them."""
    held = {v: ring for ring in rings.rings if ring.kind == "cp_async" for v in ring.own if v.type.is_tile}
    found: dict[Variable, BlockCopy] = {}
    numbers = numbers_ahead(kernel, rings)
    for load in statements(kernel.body):
        if not assigns(load, "load") or load.target not in held:
            continue
        target, pointer = load.target, load_operands(load)[0]
        shape, itemsize = target.type.shape, target.type.dtype.itemsize
        access = plan_load(load, layouts[target], facts)
        if len(shape) not in (2, 3) or any(padded(s) != s for s in shape):
            continue
        info = facts.at(load).info(pointer)
        fast = max((len(shape) - 1, len(shape) - 2), key=lambda axis: info.contiguity[axis])
        layout = blocked(shape, num_threads, fast, ACCESS_BYTES // itemsize)
        copied = plan_copies(load, layout, facts)
        own, shared = (one.num_registers // by.width for one, by in ((layouts[target], access), (layout, copied)))
        if access.width * itemsize in COPY_BYTES and own < MANY_MORE * max(shared, 1):
            pieces = [Pieces(shape, by.axis, by.width, itemsize, info.constancy) for by in (access, copied)]
            lines = lines_for_holders(layouts[target], pieces[0]), lines_for_all(layout, pieces[1])
            repeats = any(count > 1 for count in info.constancy)  # which holders load once
            if repeats or lines[0] < MANY_LINES * lines[1]:
                continue
        possible = copied.axis == fast and copied.width * itemsize in COPY_BYTES and has_chunks(shape, fast, itemsize)
        if possible and is_found_anywhere(load, facts, numbers):
            found[target] = BlockCopy(layout, SharedTile(shape, fast, itemsize, held[target].stages))
    return found
