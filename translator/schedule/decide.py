"""Makes the schedule of a kernel: the other files of this package decide one thing each, here is their order.

In: a kernel whose loops load ahead (`staging/rings.py`), and its facts. Out: its `Schedule`. Instructions come first, because
they fix the layouts of what they multiply; then layouts; then what these leave registers and shared memory for.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import replace

from ..analysis.facts import Facts
from ..artifact import Options, Target
from ..hardware import WARP_SIZE
from ..ir.nodes import Kernel, Statement
from .accesses.coalesced import coalesce
from .accesses.loads_in_flight import blocks_for_all_loads, blocks_for_loads, names_one_block
from .accesses.small_offsets import small_offsets
from .accesses.windows import Windows, choose_windows
from .plan import Conversion, Schedule
from .products.computed_operands import with_computed_operands
from .products.dot_plan import Dots
from .products.dots import dot_statements, plan_dots, sums_apart
from .products.held_operands import held_operands
from .products.instructions import spare_registers
from .products.register_operands import with_register_operands
from .products.second_block import wants_second_block
from .products.stagger import stagger_rings
from .rewrites.found_starts import held_starts
from .staging.block_copies import choose_block_copies
from .staging.box_stores import cut_stores
from .staging.own_stages import blocks_beside_stages
from .staging.ring_plan import Rings
from .staging.rings import with_stages
from .staging.warp_copies import choose_warp_copies
from .tiles.index_layouts import index_layouts
from .tiles.kept_tiles import Kept, choose_kept, exchanges_of
from .tiles.layout_problem import Problem, find_problem
from .tiles.layouts import conversions_of, follow, of_variables, own_layouts, settle_numbers, solve, words_of_b
from .tiles.recomputed import is_straight, needed_at_once
from .tiles.registers import (
    HeldTiles,
    blocks_beside,
    blocks_that_fit,
    choose_shared,
    needs_whole_multiprocessor,
    peak_registers,
)
from .tiles.shared_room import shared_room


def decide(kernel: Kernel, facts: Facts, options: Options, target: Target, rings: Rings, blocks: int = 1) -> Schedule:
    """The schedule of a kernel with rings; where a warpgroup loads, for so many `blocks` on a multiprocessor."""
    problem = find_problem(kernel, facts, target)
    thread_bits = (options.num_warps * WARP_SIZE).bit_length() - 1
    dots = with_stages(plan_dots(kernel, facts, options, target), rings)
    dots = held_operands(kernel, facts, dots, words_of_b(problem, dots))
    dots = with_computed_operands(kernel, facts, dots, options.num_warps)
    solve(problem, kernel, dots, thread_bits)
    coalesce(problem, kernel, own_layouts(problem, thread_bits), follow, dots.staged if dots.plans else None)
    dots = _of_used(with_register_operands(dots, of_variables(problem)), kernel, facts)
    settle_numbers(problem, rings, {})
    conversions = conversions_of(problem)
    layouts = of_variables(problem)
    num_threads = options.num_warps * WARP_SIZE
    tiles = [tile for variable, tile in dots.staged.items() if variable not in rings.twins]
    room = shared_room(kernel, target.max_dynamic_shared_bytes, layouts, tiles, rings, bool(conversions), num_threads)
    store_parts, rings = cut_stores(kernel, facts, problem.answers, rings)
    windows, kept = _in_registers(kernel, facts, problem, conversions, dots, rings, target)
    in_shared = choose_shared(kept.arrays, num_threads, room)
    peak = peak_registers(kept.arrays) + sums_apart(dots)
    spare = spare_registers(peak, options.num_warps, blocks, rings.has_producer)
    if rings.has_producer:
        rings = stagger_rings(kernel, kept.arrays.facts, dots, kept.arrays.layouts, rings, spare)
    beside = blocks_beside(in_shared, kept.arrays.layouts, num_threads, target)
    made_room_for = kept.recomputed.blocks and min(kept.recomputed.blocks, beside)
    planned = blocks if rings.has_producer or blocks > 1 else None
    waiting = conversions.keys() | {*exchanges_of(kernel, problem.answers)}
    loading = _blocks_for_tiles(kept, problem, waiting, peak, num_threads, bool(dots.plans))
    beside_stages = min(beside, target.max_dynamic_shared_bytes // (target.max_dynamic_shared_bytes - room))
    hiding = blocks_beside_stages(kept.arrays, rings, num_threads, beside_stages, target)
    one = 1 if names_one_block(kernel, dots, rings, waiting, beside_stages, num_threads) else None
    wanted = made_room_for or planned or loading or hiding or one
    block_copies = choose_block_copies(kernel, facts, layouts, rings, num_threads)
    warp_copies = choose_warp_copies(kernel, facts, layouts, rings, block_copies)
    copied = {key: copy.layout for copies in (warp_copies, block_copies) for key, copy in copies.items()}
    settled = settle_numbers(problem, rings, copied)  # before `problem` is asked for what statements and indices run in
    return Schedule(
        layouts=layouts | settled,
        statement_layouts={node: layout for node, layout in problem.answers.items() if isinstance(node, Statement)},
        index_layouts=index_layouts(kernel, facts, problem, copied),
        conversions={key: tuple(value) for key, value in conversions.items()},
        in_shared=in_shared,
        recomputed=kept.recomputed,
        held_starts=held_starts(kernel, facts, options.num_warps),
        late_loads=kept.late_loads,
        windows=windows,
        small_offsets=small_offsets(kernel, facts, options),
        dots=dots.plans,
        staged=dots.staged,
        store_parts=store_parts,
        rings=rings,
        warp_copies=warp_copies,
        block_copies=block_copies,
        blocks_per_multiprocessor=wanted and min(wanted, target.resident_blocks(num_threads)),
        wants_second_block=blocks == 1 and wants_second_block(kernel, rings, dots, peak, options.num_warps),
        blocks_by_registers=max(blocks_that_fit(peak, num_threads, target), 1),
        spare_registers=spare,
        options=options,
        target=target,
    )


def _in_registers(
    kernel: Kernel,
    facts: Facts,
    problem: Problem,
    conversions: Mapping[Statement, list[Conversion]],
    dots: Dots,
    rings: Rings,
    target: Target,
) -> tuple[Windows, Kept]:
    """What the tiles that threads hold become: those that windows bring, and those that need another layout, stay arrays."""
    held = {variable: layout for variable, layout in of_variables(problem).items() if variable not in dots.staged}
    has_dots = bool(dots.plans)
    windows = Windows() if has_dots or rings.rings else choose_windows(kernel, facts, held)
    fixed = windows.arrays | {one.variable for wanted in conversions.values() for one in wanted}
    tiles = HeldTiles(kernel, facts, held)
    return windows, choose_kept(tiles, problem.answers, fixed, rings, has_dots, target)


def _blocks_for_tiles(
    kept: Kept,
    problem: Problem,
    waiting: Set[Statement],
    peak: int,
    num_threads: int,
    has_dots: bool,
) -> int | None:
    """The blocks that what threads hold and load leaves room for; None where ptxas may decide."""
    crowded = needs_whole_multiprocessor(peak, num_threads)
    if has_dots or kept.late_loads:  # what these take, peak does not tell
        return 1 if crowded else None
    held = kept.arrays
    if is_straight(held.kernel, ("reduce",)):
        at_once = needed_at_once(held, exchanges_of(held.kernel, problem.answers))
        if not waiting and is_straight(held.kernel):
            return blocks_for_all_loads(at_once, problem, held.layouts, num_threads)
        crowded = needs_whole_multiprocessor(at_once, num_threads)
    return 1 if crowded else blocks_for_loads(held.kernel, held.layouts, waiting, peak, num_threads)


def _of_used(dots: Dots, kernel: Kernel, facts: Facts) -> Dots:
    """The dots that something depends on; others become no code, and their operands may have no layout."""
    used = (statement for statement, _ in dot_statements(kernel) if statement.target not in facts.unused)
    return replace(dots, plans={key: dots.plans[key] for key in used})
