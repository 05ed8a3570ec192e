"""Whether a kernel has its arrays share their memory so that more of its blocks run at once on a multiprocessor.

In: a schedule and the shared memory of a block with and without that. Out: yes or no.

A warp that waits, for memory, for a barrier or for the tensor cores, is hidden by others that do not. Where shared memory has
room for few of them, and registers for more, what arrays save by taking turns is worth the barriers that they cost.
"""

from __future__ import annotations

from .plan import Schedule

ENOUGH_WARPS = 32  # on a multiprocessor, eight for each of its schedulers: half of what it can have


def wants_more_blocks(schedule: Schedule, shared_bytes: int) -> bool:
    """Whether shared memory, of which each block takes so much, leaves a multiprocessor with few warps, and alone does so.

    A warpgroup that loads makes use of all of the memory that there is, for its stages.
    """
    blocks = schedule.target.blocks_by_shared(shared_bytes)
    few = blocks * schedule.options.num_warps < ENOUGH_WARPS and blocks < schedule.blocks_by_registers
    return few and not schedule.rings.has_producer


def has_more_blocks(sharing: Schedule, shared_bytes: int, before: int) -> bool:
    """Whether a third more blocks run at once, where each takes so many bytes of shared memory, and took `before`.

    Seven blocks in place of six are not worth their barriers, four in place of three are.
    """
    blocks = min(sharing.target.blocks_by_shared(shared_bytes), sharing.blocks_by_registers)
    return 3 * blocks >= 4 * sharing.target.blocks_by_shared(before)
