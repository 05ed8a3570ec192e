"""How many stages pay where threads load ahead for themselves (`own_loads.py`), and what these leave to registers.

In: the tiles that a loop loads so, and their layouts once they are known. Out: stages and blocks.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from ...analysis.facts import Facts
from ...artifact import Target
from ...hardware import ACCESS_BYTES, COPY_BYTES, REGISTER_STEP, WARP_SIZE, WORD_BYTES
from ...ir.nodes import Assign, For, Kernel, Statement, Variable
from ...ir.structured import assigned_call, assigns, is_elementwise
from ...ir.walk import statements, used_variables
from ..accesses.access import plan_load
from ..tiles.held_tiles import HeldTiles
from ..tiles.layout import Layout, blocked
from ..tiles.recomputed import choose_recomputed
from ..tiles.registers import blocks_that_fit, peak_registers
from .own_loads import LEAST_BYTES, tile_bytes
from .ring_plan import RingPlan, Rings

if TYPE_CHECKING:
    from ..plan import Schedule

FEW_BLOCKS = 2  # with more blocks on a multiprocessor, one loads while another computes
SHARED_FOR_REDUCTIONS = 4096  # bytes of a block that stages leave to reductions that end in one number
LARGE_BLOCK = 512  # threads of a block, of which two leave few registers beside tiles


def own_stages(plan: RingPlan, loop: For, held: tuple[Variable, ...]) -> int:
    """How many trips ahead threads load what they will hold in a loop without dots; 0 where it does not pay.

    One tile less than `num_stages` asks for: the last is in registers. Blocks hide each other's loads where several fit on
    a multiprocessor, so stages take no more than what the registers leave unused, unless the loop itself asks for them.
    """
    threads = plan.given.options.num_warps * WARP_SIZE
    dots = any(inner in plan.dots.plans for inner in statements(loop.body))
    asked = dict(loop.options).get("num_stages")
    bytes_of_tiles = sum(map(tile_bytes, held))
    bytes_of_stage = bytes_of_tiles + sum(threads * v.type.dtype.itemsize for v in held if not v.type.is_tile)
    wanted = (plan.given.options.num_stages if asked is None else int(asked)) - 1
    blocks = plan.given.blocks()
    if not bytes_of_tiles or (asked is None and not dots and (blocks > FEW_BLOCKS or bytes_of_tiles < LEAST_BYTES)):
        return 0
    room = plan.given.target.max_dynamic_shared_bytes // (blocks if asked is None else 1) - SHARED_FOR_REDUCTIONS
    return max(min(wanted, room // bytes_of_stage), 0)


def evenly_shared_blocks(kernel: Kernel, facts: Facts, threads: int, target: Target) -> int:
    """How many blocks fit on a multiprocessor, each tile shared out evenly among the threads of a block."""
    layouts: dict[Variable, Layout] = {}
    reduced: dict[Statement, Layout] = {}
    nowhere = facts.index | facts.absorbed | facts.unused
    for statement in statements(kernel.body):
        if not isinstance(statement, Assign):
            continue
        if is_elementwise(statement.value) or len(statement.targets) == 1:
            for tile in statement.targets:
                if tile.type.is_tile and tile not in nowhere:
                    layouts[tile] = _shared_out(tile.type.shape, threads)
        reduction = assigned_call(statement, "reduce")
        if reduction is not None:
            reduced[statement] = _shared_out(reduction.args[0].type.shape, threads)
    held = HeldTiles(kernel, facts, layouts, reduced)
    in_loops = {inner for s in statements(kernel.body) if isinstance(s, For) for inner in statements(s.body)}
    outside = any(exchange not in in_loops for exchange in held.exchanges)
    blocks = choose_recomputed(held, target).blocks or 0
    # Room is made for a block more, and has none left for addresses of stages; but loops over rows are often launched with
    # few blocks, so that a third one may never come.
    if blocks and (outside or blocks <= FEW_BLOCKS):
        return FEW_BLOCKS + 1
    return blocks_that_fit(peak_registers(held), threads, target) or 1


def _shared_out(shape: tuple[int, ...], threads: int) -> Layout:
    return blocked(shape, threads, len(shape) - 1, 1)


def blocks_beside_stages(held: HeldTiles, rings: Rings, threads: int, most_blocks: int, target: Target) -> int | None:
    """The blocks that registers leave room for as stages do; None where ptxas may decide.

    Two blocks of 512 threads have 64 registers each: for a row that takes 32, one ptxas stays there by itself and another takes
    79 or 90, and the second block is gone. Smaller blocks have registers to spare, and take more if they are told so. Widened
    elements and copies of single ones, each with an address, take more registers than is foreseen, and would spill.

    Args:
      held: the tiles in registers.
      rings: what the kernel's loops load ahead.
      threads: threads of a block.
      most_blocks: how many fit by their shared memory.
      target: the architecture.
    """
    own = {tile for ring in rings.rings for tile in ring.own if tile.type.is_tile}
    if threads < LARGE_BLOCK or not own or not own <= held.layouts.keys() or any(r.kind != "own" for r in rings.rings):
        return None
    loads = [s for s in statements(held.kernel.body) if assigns(s, "load") and s.targets[0] in own]
    widest = all(_copy_bytes(load, held.layouts, held.facts) == ACCESS_BYTES for load in loads)
    as_they_are = all(tile.type.dtype.itemsize == WORD_BYTES for tile in own)
    # Sums and extrema of a block of one row are tiles of one element, which count no more than those of a row alone.
    tiles = held.without({variable for variable in held.layouts if set(variable.type.shape) == {1}})
    fit = blocks_that_fit(peak_registers(tiles) + REGISTER_STEP, threads, target)
    return FEW_BLOCKS if widest and as_they_are and min(fit, most_blocks) >= FEW_BLOCKS else None


def loads_not_ahead(kernel: Kernel, facts: Facts, schedule: Schedule) -> frozenset[Variable]:
    """The tiles that would be loaded where they stand, from places that are known for the copies of later trips alone.

    Threads copy what they hold where `cp.async` has copies of that size, which the layouts decide; the other loads of a ring
    stay where they are. Their addresses follow from the trip, but for sums of numbers from memory (`running_totals.py`).
    """
    sums = {variable for ring in schedule.rings.rings for variable in ring.running}
    own = {variable for ring in schedule.rings.rings for variable in ring.own if variable.type.is_tile}
    loads = (s for s in statements(kernel.body) if assigns(s, "load") and s.target in own - {*schedule.block_copies})
    by_sums = [s for s in loads if sums & set(used_variables(s.value))]
    return frozenset(s.target for s in by_sums if not is_copied_whole(s, schedule.layouts, facts))


def is_copied_whole(load: Assign, layouts: Mapping[Variable, Layout], facts: Facts) -> bool:
    """Whether `cp.async` can make the copies of what a thread holds of a load."""
    return _copy_bytes(load, layouts, facts) in COPY_BYTES


def _copy_bytes(load: Assign, layouts: Mapping[Variable, Layout], facts: Facts) -> int:
    """The bytes that one access brings a thread of a load."""
    target = load.target
    width = plan_load(load, layouts[target], facts).width if target.type.is_tile else 1
    return width * target.type.dtype.itemsize
