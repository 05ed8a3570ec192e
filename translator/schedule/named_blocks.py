"""For how many blocks on a multiprocessor the register allocation is told to leave room.

In: what the threads of a kernel hold, and what a block takes. Out: the number; None leaves it to ptxas.
"""

from __future__ import annotations

from collections.abc import Set

from ..artifact import Target
from ..frozen import frozen
from ..ir.nodes import Assign, Statement, Variable
from ..ir.structured import assigns
from ..ir.walk import statements
from .accesses.loads_in_flight import (
    blocks_for_all_loads,
    blocks_for_first_loads,
    blocks_for_loads,
    blocks_for_reduced_loads,
    blocks_for_single_loads,
    names_one_block,
)
from .products.dot_plan import Dots
from .products.fragment_loads import blocks_beside_rows, blocks_for_fragments
from .staging.own_stages import blocks_beside_stages
from .staging.ring_plan import Rings
from .tiles.held_tiles import HeldTiles
from .tiles.kept_tiles import Kept
from .tiles.layout_problem import Problem
from .tiles.recomputed import is_straight, needed_at_once
from .tiles.registers import needs_whole_multiprocessor


@frozen
class BlockUse:
    """What a block takes of a multiprocessor, and how its threads get along.

    Attributes:
      target: the architecture.
      num_threads: the threads that share the tiles.
      peak: registers of a thread that hold tiles where these are most.
      beside_tiles: how many blocks have room for the tiles that they keep in shared memory.
      beside_stages: how many have room for the stages of their rings as well.
      waiting: the statements in which threads wait for each other.
      of_all_trips: registers of a thread for what all trips of a loop load in front of it.
      windowed: the loads that windows make together.
    """

    target: Target
    num_threads: int
    peak: int
    beside_tiles: int
    beside_stages: int
    waiting: frozenset[Statement]
    of_all_trips: int
    windowed: Set[Statement]


def named_blocks(kept: Kept, problem: Problem, dots: Dots, rings: Rings, use: BlockUse, asked: int) -> int | None:
    """The number: what room was made for, or what is `asked` for, or what loads want, or stages, loops, fragments."""
    wanted = (
        (kept.recomputed.blocks and min(kept.recomputed.blocks, use.beside_tiles))
        or (asked if rings.has_producer or asked > 1 else None)
        or _blocks_for_tiles(kept, problem, use, bool(dots.plans))
        or blocks_beside_stages(kept.arrays, rings, use.num_threads, use.beside_stages, use.target)
        or blocks_for_first_loads(use.of_all_trips, use.peak, use.num_threads)
        or names_one_block(kept.arrays.kernel, dots, rings, use.waiting, use.beside_stages, use.num_threads)
        or blocks_for_fragments(dots, use.peak, use.num_threads, use.target)
        or blocks_beside_rows(rings, dots, use.peak, use.num_threads, use.target)
    )
    return min(int(wanted), use.target.resident_blocks(use.num_threads)) if wanted else None


def _blocks_for_tiles(kept: Kept, problem: Problem, use: BlockUse, has_dots: bool) -> int | None:
    """The blocks that what threads hold and load leaves room for; None where ptxas may decide."""
    crowded = needs_whole_multiprocessor(use.peak, use.num_threads)
    if has_dots or kept.late_loads:  # what these take, peak does not tell
        return 1 if crowded else None
    held = kept.arrays
    if single := blocks_for_single_loads(held, problem, use.windowed, use.peak, use.num_threads):
        return single
    if is_straight(held.kernel, ("reduce",)):
        at_once = needed_at_once(held)
        if not use.waiting and is_straight(held.kernel):
            return blocks_for_all_loads(at_once, problem, held.layouts, use.num_threads)
        crowded = needs_whole_multiprocessor(at_once, use.num_threads)
        if not crowded and not held.exchanges and not is_straight(held.kernel) and _computes_as_wide(held):
            return blocks_for_reduced_loads(_loaded(held), problem, held.layouts, use.num_threads)
    return 1 if crowded else blocks_for_loads(held, use.waiting, use.peak, use.num_threads)


def _loaded(held: HeldTiles) -> list[Variable]:
    """The tiles that threads load."""
    loads = (s.target for s in statements(held.kernel.body) if isinstance(s, Assign) and assigns(s, "load"))
    return [tile for tile in loads if tile in held.layouts]


def _computes_as_wide(held: HeldTiles) -> bool:
    """Whether no tile is wider than what is loaded: with all pairs of elements, computing takes longer than memory."""
    loaded = (held.layouts[tile].num_registers for tile in _loaded(held))
    widest = max(layout.num_registers for layout in (*held.layouts.values(), *held.runs_in.values()))
    return max(loaded, default=0) >= widest
