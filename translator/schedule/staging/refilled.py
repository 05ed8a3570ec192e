"""Whether a ring that threads copy into is filled again where it has been read, with a stage less: for more blocks at once.

In: a plan in which products of `mma.sync` wait for copies by threads. Out: whether another one is worth a look.

A stage that is filled in the next iteration lies idle until then. Filled again behind a barrier in the iteration that has read
it, two stages have as much on their way as three, for a barrier an iteration more. Where shared memory leaves a multiprocessor
with few warps, the blocks that the third stage would cost are worth more than that. Not where threads have so many products
that copies are mixed among them, and not for tiles of 16 rows, of which each fragment is read for one product: there the loop
waits for shared memory, which more warps do not hide.
"""

from __future__ import annotations

from ...analysis.facts import Facts
from ...ir.nodes import Kernel
from ...ir.structured import assigns
from ...ir.walk import statements
from ..plan import Schedule
from ..products.fragment_loads import waits_for_matrices
from .ring_plan import Ring
from .tile_copies import bytes_at_once

LEAST_STAGES = 3  # of the ring as it was asked for
LEAST_ROWS = 32  # of the tiles of sums
ENOUGH_WARPS = 16  # on a multiprocessor, four for each of its schedulers


def wants_refilled(kernel: Kernel, facts: Facts, schedule: Schedule, shared_bytes: int) -> bool:
    """Whether a multiprocessor has few warps of such a kernel because its ring takes shared memory, and for no other reason."""
    rings, target = schedule.rings.rings, schedule.target
    if len(rings) != 1 or not _is_plain(rings[0]):
        return False
    if not all(map(waits_for_matrices, schedule.dots.values())):
        return False
    if any(dot.target.type.shape[-2] < LEAST_ROWS for dot in statements(kernel.body) if assigns(dot, "dot")):
        return False
    blocks = target.blocks_by_shared(shared_bytes)
    few = blocks * schedule.options.num_warps < ENOUGH_WARPS and blocks < schedule.blocks_by_registers
    loads = [s for s in statements(kernel.body) if assigns(s, "load") and s.target in rings[0].tiles]
    return few and all(bytes_at_once(load, schedule.layouts, schedule.staged, facts) for load in loads)


def _is_plain(ring: Ring) -> bool:
    """Whether nothing but tiles for products comes ahead, as they lie."""
    plain = ring.kind == "cp_async" and not (ring.rows or ring.own or ring.ahead or ring.running or ring.overlapped)
    return plain and ring.stages >= LEAST_STAGES
