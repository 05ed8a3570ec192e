"""Makes the schedule of a kernel: the other files of this package decide one thing each, here is their order.

In: a kernel whose loops load ahead (`staging/rings.py`), and its facts. Out: its `Schedule`. Instructions come first, because
they fix the layouts of what they multiply; then layouts; then what these leave registers and shared memory for.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ..analysis.facts import Facts
from ..artifact import Options, Target
from ..hardware import WARP_SIZE
from ..ir.nodes import Kernel, Statement
from .accesses.coalesced import coalesce
from .accesses.first_loads import loads_of_all_trips
from .accesses.small_offsets import small_offsets
from .accesses.window import Windows
from .accesses.windows import choose_windows
from .named_blocks import BlockUse, named_blocks
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
from .staging.ring_plan import Rings
from .staging.rings import with_stages
from .staging.warp_copies import choose_warp_copies
from .tiles.held_tiles import HeldTiles
from .tiles.index_layouts import index_layouts
from .tiles.kept_tiles import choose_kept
from .tiles.layout_problem import Problem, find_problem
from .tiles.layouts import conversions_of, follow, of_variables, own_layouts, settle_numbers, solve, words_of_b
from .tiles.registers import blocks_beside, blocks_that_fit, choose_shared, peak_registers, registers_left
from .tiles.shared_room import shared_room


def decide(
    kernel: Kernel,
    facts: Facts,
    options: Options,
    target: Target,
    rings: Rings,
    blocks: int = 1,
    in_place: bool = False,
) -> Schedule:
    """The schedule of a kernel with rings; for so many `blocks` where a warpgroup loads; `in_place` is that of `coalesce`."""
    num_threads = options.num_warps * WARP_SIZE
    dots, problem = _laid_out(kernel, facts, options, target, rings, in_place)
    conversions, layouts = conversions_of(problem), of_variables(problem)
    tiles = [tile for variable, tile in dots.staged.items() if variable not in rings.twins]
    room = shared_room(kernel, target.max_dynamic_shared_bytes, layouts, tiles, rings, bool(conversions), num_threads)
    store_parts, rings = cut_stores(kernel, facts, problem.answers, rings)
    held = _held(kernel, facts, problem, dots, conversions)
    windows = Windows() if dots.plans or rings.rings else choose_windows(kernel, facts, held.layouts)
    kept = choose_kept(replace(held, fixed=held.fixed | windows.arrays), rings, bool(dots.plans), target)
    in_shared = choose_shared(kept.arrays, num_threads, room)
    peak = peak_registers(kept.arrays) + sums_apart(dots)
    spare = spare_registers(peak, options.num_warps, blocks, rings.has_producer)
    if rings.has_producer:
        rings = stagger_rings(kept.arrays, dots, rings, spare)
    beside = blocks_beside(in_shared, kept.arrays.layouts, num_threads, target)
    beside_stages = min(beside, target.max_dynamic_shared_bytes // (target.max_dynamic_shared_bytes - room))
    waiting = frozenset((*conversions, *held.exchanges))
    apart = frozenset((*kept.late_loads, *windows.arrays, *in_shared, *dots.staged, *rings.for_next))
    first_loads = loads_of_all_trips(held, registers_left(peak, num_threads), apart, waiting)
    windowed = windows.taken.keys()
    use = BlockUse(target, num_threads, peak, beside, beside_stages, waiting, first_loads.registers, windowed)
    block_copies = choose_block_copies(kernel, facts, layouts, rings, num_threads)
    warp_copies = choose_warp_copies(kernel, facts, layouts, rings, block_copies)
    copied = {key: copy.layout for copies in (warp_copies, block_copies) for key, copy in copies.items()}
    settled = settle_numbers(problem, rings, copied)  # before `problem` is asked for what indices run in
    return Schedule(
        layouts=layouts | settled,
        statement_layouts=held.runs_in,
        index_layouts=index_layouts(kernel, facts, problem, copied),
        conversions={key: tuple(value) for key, value in conversions.items()},
        in_shared=in_shared,
        recomputed=kept.recomputed,
        held_starts=held_starts(kernel, facts, options.num_warps),
        late_loads=kept.late_loads,
        windows=windows,
        first_loads=first_loads,
        small_offsets=small_offsets(kernel, facts, options, bool(rings.maps)),
        dots=dots.plans,
        staged=dots.staged,
        store_parts=store_parts,
        rings=rings,
        warp_copies=warp_copies,
        block_copies=block_copies,
        blocks_per_multiprocessor=named_blocks(kept, problem, dots, rings, use, blocks),
        wants_second_block=blocks == 1 and wants_second_block(kernel, rings, dots, peak, options.num_warps),
        blocks_by_registers=max(blocks_that_fit(peak, num_threads, target), 1),
        spare_registers=spare,
        options=options,
        target=target,
    )


def _laid_out(
    kernel: Kernel, facts: Facts, options: Options, target: Target, rings: Rings, in_place: bool
) -> tuple[Dots, Problem]:
    """What multiplies, and the layouts of all tiles and statements: the answers of the problem."""
    problem = find_problem(kernel, facts, target)
    thread_bits = (options.num_warps * WARP_SIZE).bit_length() - 1
    dots = with_stages(plan_dots(kernel, facts, options, target), rings)
    dots = held_operands(kernel, facts, dots, words_of_b(problem, dots))
    dots = with_computed_operands(kernel, facts, dots, options.num_warps)
    solve(problem, kernel, dots, thread_bits)
    coalesce(problem, kernel, own_layouts(problem, thread_bits), follow, dots.staged if dots.plans else None, in_place)
    dots = _of_used(with_register_operands(dots, of_variables(problem)), kernel, facts)
    settle_numbers(problem, rings, {})
    return dots, problem


def _held(
    kernel: Kernel, facts: Facts, problem: Problem, dots: Dots, conversions: Mapping[Statement, list[Conversion]]
) -> HeldTiles:
    """The tiles that have registers; those that some statement needs in another layout stay arrays."""
    held = {variable: layout for variable, layout in of_variables(problem).items() if variable not in dots.staged}
    runs_in = {node: layout for node, layout in problem.answers.items() if isinstance(node, Statement)}
    converted = frozenset(one.variable for wanted in conversions.values() for one in wanted)
    return HeldTiles(kernel, facts, held, runs_in, converted)


def _of_used(dots: Dots, kernel: Kernel, facts: Facts) -> Dots:
    """The dots that something depends on; others become no code, and their operands may have no layout."""
    used = (statement for statement, _ in dot_statements(kernel) if statement.target not in facts.unused)
    return replace(dots, plans={key: dots.plans[key] for key in used})
