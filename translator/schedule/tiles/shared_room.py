"""How much shared memory is left to tiles that registers cannot hold, before it is known what else will need it.

In: a kernel, its layouts, conversions and rings. Out: bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ...ir.nodes import Kernel, Variable
from ...ir.structured import assigns
from ...ir.walk import statements
from ..products.shared_tiles import SharedTile
from ..staging.own_stages import SHARED_FOR_REDUCTIONS
from ..staging.ring_plan import Rings
from .layout import Layout

SHARED_FOR_EXCHANGE = 32 * 1024  # bytes that are left to reductions and conversions of tiles


def shared_room(
    kernel: Kernel,
    most_bytes: int,
    layouts: Mapping[Variable, Layout],
    staged: Iterable[SharedTile],
    rings: Rings,
    converts: bool,
    num_threads: int,
) -> int:
    """The bytes of `most_bytes` that neither stages nor exchanges take; below zero where these are too many already.

    Args:
      kernel: the kernel.
      most_bytes: what a block may have.
      layouts: the layouts of its tiles.
      staged: tiles that dots read, with their stages.
      rings: what loops load ahead.
      converts: whether a tile changes its layout.
      num_threads: threads of a block, the loading ones apart.
    """
    room = most_bytes - sum(tile.stage_bytes * tile.stages for tile in staged)
    for ring in rings.rings:
        room -= sum(_held_bytes(layouts.get(v), v, num_threads) * ring.stages for v in ring.own)
    return room - (SHARED_FOR_EXCHANGE if converts or _reduces_to_tiles(kernel) else SHARED_FOR_REDUCTIONS)


def _held_bytes(layout: Layout | None, variable: Variable, threads: int) -> int:
    """Bytes of a tile or a scalar in all threads' registers: copies that several of them hold count as often."""
    return (layout.num_registers if layout else 1) * threads * variable.type.dtype.itemsize


def _reduces_to_tiles(kernel: Kernel) -> bool:
    """Whether partial results of a reduction are tiles, not numbers."""
    return any(assigns(s, "reduce") and s.targets[0].type.is_tile for s in statements(kernel.body))
