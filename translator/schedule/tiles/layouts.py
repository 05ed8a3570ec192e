"""Chooses who holds which element of every tile.

In: a typed kernel and its facts. Out: a `Schedule`. Memory accesses are the anchors: the largest tile that is loaded or
stored gets a blocked layout along its contiguous axis, in 16-byte pieces; its neighbours follow through elementwise
operations, slices, transposes and reshapes, so that one statement touches one layout. Then the next largest. Where two
choices meet, the tile is converted for that statement.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Set
from dataclasses import replace

from ...analysis.facts import Facts
from ...artifact import Options, Target
from ...hardware import ACCESS_BYTES, WARP_SIZE
from ...ir.nodes import Assign, Call, Expr, Kernel, Variable
from ...ir.types import padded
from ...ir.walk import statements
from ..accesses.coalesced import coalesce_loads, coalesce_stores
from ..accesses.loads_in_flight import blocks_for_all_loads, blocks_for_loads
from ..plan import Conversion, Schedule
from ..products.computed_operands import with_computed_operands
from ..products.dot_plan import Dots
from ..products.dots import dot_statements, plan_dots, sums_apart
from ..products.held_operands import Words, held_operands
from ..products.instructions import spare_registers
from ..products.register_operands import with_register_operands
from ..products.second_block import wants_second_block
from ..products.stagger import stagger_rings
from ..staging.block_copies import choose_block_copies
from ..staging.box_stores import cut_stores
from ..staging.ring_plan import Rings
from ..staging.rings import with_stages
from ..staging.warp_copies import choose_warp_copies
from .index_layouts import index_layouts
from .kept_tiles import Kept, choose_kept, exchanges_of
from .layout import Layout, blocked, drop_axis
from .layout_problem import Access, Node, Path, Problem, find_problem
from .paths import is_join, operand_axes, result_axes
from .recomputed import is_straight, needed_at_once
from .registers import (
    blocks_beside,
    choose_shared,
    needs_whole_multiprocessor,
    peak_registers,
)
from .shared_room import shared_room

LARGEST_REPEAT = 16  # elements that lie in one word and go to one thread


def choose_layouts(
    kernel: Kernel, facts: Facts, options: Options, target: Target, rings: Rings, blocks: int = 1
) -> Schedule:
    """Decides the layout of every tile of the kernel; where a warpgroup loads, for so many blocks on a multiprocessor."""
    problem = find_problem(kernel, facts)
    thread_bits = (options.num_warps * WARP_SIZE).bit_length() - 1
    dots = with_stages(plan_dots(kernel, facts, options, target), rings)
    dots = held_operands(kernel, facts, dots, _words_of_b(problem, dots))
    dots = with_computed_operands(kernel, facts, dots, options.num_warps)
    _settle_accumulators(problem, kernel, dots)
    _solve(problem, thread_bits)
    own_layout = _own_layouts(problem, thread_bits)
    coalesce_stores(problem, kernel, target, own_layout, _follow)
    if not dots.plans:
        coalesce_loads(problem, kernel, own_layout)
    dots = _of_used(with_register_operands(dots, _of_variables(problem)), kernel, facts)
    _settle_numbers(problem, rings, {})
    conversions = _conversions(problem)
    layouts = _of_variables(problem)
    in_registers = {variable: layout for variable, layout in layouts.items() if variable not in dots.staged}
    num_threads = options.num_warps * WARP_SIZE
    tiles = [tile for variable, tile in dots.staged.items() if variable not in rings.twins]
    room = shared_room(kernel, target.max_dynamic_shared_bytes, layouts, tiles, rings, bool(conversions), num_threads)
    store_parts, rings = cut_stores(kernel, facts, problem.answers, rings)
    kept = choose_kept(kernel, facts, in_registers, problem.answers, conversions, rings, bool(dots.plans))
    in_shared = choose_shared(kernel, kept.facts, kept.layouts, num_threads, room)
    peak = peak_registers(kernel, kept.facts, kept.layouts) + sums_apart(dots)
    spare = spare_registers(peak, options.num_warps, blocks, rings.has_producer)
    if rings.has_producer:
        rings = stagger_rings(kernel, kept.facts, dots, kept.layouts, rings, spare)
    beside = blocks_beside(in_shared, kept.layouts, num_threads, target.max_dynamic_shared_bytes)
    made_room_for = kept.recomputed.blocks and min(kept.recomputed.blocks, beside)
    planned = blocks if rings.has_producer or blocks > 1 else None
    loading = _blocks_for_tiles(kernel, facts, kept, problem, conversions.keys(), peak, num_threads, bool(dots.plans))
    warp_copies = choose_warp_copies(kernel, facts, layouts, rings)
    block_copies = choose_block_copies(kernel, facts, layouts, rings, num_threads)
    copied = {key: copy.layout for key, copy in warp_copies.items()}
    copied |= {key: copy.layout for key, copy in block_copies.items()}
    return Schedule(
        layouts=layouts | _settle_numbers(problem, rings, copied),
        statement_layouts={node: layout for node, layout in problem.answers.items() if isinstance(node, int)},
        index_layouts=index_layouts(kernel, facts, problem, copied),
        conversions={key: tuple(value) for key, value in conversions.items()},
        in_shared=in_shared,
        recomputed=kept.recomputed,
        late_loads=kept.late_loads,
        dots=dots.plans,
        staged=dots.staged,
        store_parts=store_parts,
        rings=rings,
        warp_copies=warp_copies,
        block_copies=block_copies,
        blocks_per_multiprocessor=made_room_for or planned or loading,
        wants_second_block=blocks == 1 and wants_second_block(kernel, rings, dots, peak, options.num_warps),
        spare_registers=spare,
        options=options,
        target=target,
    )


def _blocks_for_tiles(
    kernel: Kernel,
    facts: Facts,
    kept: Kept,
    problem: Problem,
    conversions: Set[int],
    peak: int,
    num_threads: int,
    has_dots: bool,
) -> int | None:
    """The blocks that what threads hold and load leaves room for; None where ptxas may decide."""
    exchanges = exchanges_of(kernel, problem.answers)
    waiting = frozenset(map(id, exchanges)) | conversions
    crowded = needs_whole_multiprocessor(peak, num_threads)
    if has_dots or kept.late_loads:  # what these take, peak does not tell
        return 1 if crowded else None
    if is_straight(kernel, ("reduce",)):
        at_once = needed_at_once(kernel, kept.facts, kept.layouts, exchanges)
        if not waiting and is_straight(kernel):
            return blocks_for_all_loads(at_once, problem, kept.layouts, num_threads)
        crowded = needs_whole_multiprocessor(at_once, num_threads)
    return 1 if crowded else blocks_for_loads(kernel, facts, kept.layouts, waiting, peak, num_threads)


def _of_variables(problem: Problem) -> dict[Variable, Layout]:
    return {node: layout for node, layout in problem.answers.items() if isinstance(node, Variable)}


def _of_used(dots: Dots, kernel: Kernel, facts: Facts) -> Dots:
    """The dots that something depends on; others become no code, and their operands may have no layout."""
    used = (id(statement) for statement, _ in dot_statements(kernel) if statement.target not in facts.unused)
    return replace(dots, plans={key: dots.plans[key] for key in used})


def _conversions(problem: Problem) -> dict[int, list[Conversion]]:
    """Where the layout of a tile is not the one that a statement needs, by `id` of the statement."""
    found: dict[int, list[Conversion]] = {}
    for relation in problem.relations:
        expected = _follow(problem.answers[relation.node], relation.path)
        if expected is None or problem.answers[relation.variable] != expected:
            layout = expected or problem.answers[relation.variable]
            wanted = found.setdefault(relation.statement, [])
            if (conversion := Conversion(relation.variable, layout)) not in wanted:
                wanted.append(conversion)
    return found


# ---------------------------------------------------------------------------------------------------- the answer


def _settle_accumulators(problem: Problem, kernel: Kernel, dots: Dots) -> None:
    """Gives the results of dots the layouts that their instructions leave them in."""
    settled: list[Node] = []
    for statement in statements(kernel.body):
        if id(statement) in dots.plans and isinstance(statement, Assign) and statement.target not in problem.answers:
            problem.answers[statement.target] = dots.plans[id(statement)].layout
            settled.append(statement.target)
            if fragment := dots.plans[id(statement)].fragment:
                problem.answers[dots.plans[id(statement)].rows.variable] = fragment
                settled.append(dots.plans[id(statement)].rows.variable)
            if held := dots.plans[id(statement)].held:
                problem.answers[dots.plans[id(statement)].b.variable] = held.layout
                settled.append(dots.plans[id(statement)].b.variable)
    _spread(problem, settled)


def _settle_numbers(problem: Problem, rings: Rings, copied: Mapping[Variable, Layout]) -> dict[Variable, Layout]:
    """Has threads read what their own copies find their addresses by: nothing moves between threads ahead of a copy.

    `copied` has the layouts of tiles that are copied in another one than they are held in. Returns the new answers.
    """
    found: dict[Variable, Layout] = {}
    for variable in (one.variable for one in reversed(rings.ahead)):
        for relation in problem.relations_of.get(variable, ()):
            if relation.variable is variable and isinstance(relation.node, Variable):
                used = copied.get(relation.node) or problem.answers[relation.node]
                found[variable] = _follow(used, relation.path) or problem.answers[variable]
                problem.answers[variable] = found[variable]
    return found


def _words_of_b(problem: Problem, dots: Dots) -> dict[Variable, Words]:
    """For every B, how the elements that it is computed from lie in memory."""
    found: dict[Variable, Words] = {}
    for plan in dots.plans.values():
        shape, k_axis = plan.b.variable.type.shape, plan.b.variable.type.rank - (1 if plan.b.swapped else 2)
        n_axis = 2 * plan.b.variable.type.rank - 3 - k_axis
        loads = [a for m in _alike(problem, plan.b.variable) for a in problem.accesses.get(m, ()) if a.loads]
        sides = [side for a in loads if (side := a.info.constancy[k_axis]) < shape[k_axis]]
        columns = [ACCESS_BYTES // a.itemsize for a in loads if a.info.contiguity[n_axis] > 1]
        found[plan.b.variable] = Words(max(sides, default=1), max(columns, default=shape[n_axis]))
    return found


def _solve(problem: Problem, thread_bits: int) -> None:
    def importance(node: Node) -> tuple[bool, int]:
        numel = 1
        for side in problem.shapes[node]:
            numel *= padded(side)
        return bool(problem.accesses.get(node)), numel

    order = sorted(problem.shapes, key=importance, reverse=True)  # stable: source order among equals
    # Larger tiles first whether accessed or not: their slices must follow them, not the other way round.
    order.sort(key=lambda node: importance(node)[1], reverse=True)
    for largest in order:
        for node in (*_joined_to(problem, largest), largest) if largest not in problem.answers else ():
            if node not in problem.answers:
                problem.answers[node] = _anchor(problem, node, thread_bits)
                _spread(problem, [node])


def _joined_to(problem: Problem, node: Node) -> list[Node]:
    """The halves of a join that touches no memory: it takes its layout from theirs, so that a thread holds both."""
    relations = [
        r for r in problem.relations_of.get(node, ()) if r.node == node and any(is_join(*step) for step in r.path)
    ]
    meets = any(
        problem.accesses.get(member)
        for one in (node, *(r.variable for r in relations))
        for member in _alike(problem, one)
    )
    return [] if meets else [relation.variable for relation in relations]


def _anchor(problem: Problem, node: Node, thread_bits: int, alone: bool = False) -> Layout:
    """A blocked layout for the accesses of everything that must share it; of `node` alone on demand."""
    shape = problem.shapes[node]
    num_threads = 1 << thread_bits
    per_thread = 1
    for side in shape:
        per_thread *= padded(side)
    per_thread = max(per_thread // num_threads, 1)
    best_axis, best = len(shape) - 1, (False, 1, 0)
    members = (node,) if alone else _alike(problem, node)
    longest = min(
        per_thread, _longest_run([access for member in members for access in problem.accesses.get(member, ())])
    )
    for member in members:
        for access in problem.accesses.get(member, ()):
            info, itemsize = access.info, access.itemsize
            for axis in reversed(range(len(shape))):
                contiguity = min(info.contiguity[axis], padded(shape[axis]))
                aligned = max(info.divisibility[axis] // itemsize, 1) if contiguity > 1 else 1
                run = min(contiguity, aligned, max(ACCESS_BYTES // itemsize, 1), longest)
                if (contiguity > 1, run, access.closeness(axis)) > best:
                    best_axis, best = axis, (contiguity > 1, run, access.closeness(axis))
    if not any(problem.accesses.get(member) for member in members):
        return _between(problem, node, num_threads, per_thread)
    repeats = _repeats(problem, node, best_axis, per_thread // best[1])
    return blocked(shape, num_threads, best_axis, best[1], repeats, _distances(problem, members))


def _between(problem: Problem, node: Node, num_threads: int, per_thread: int) -> Layout:
    """A layout for what touches no memory: a long run for each thread where halves are split, so that it holds both."""
    paths = [relation.path for relation in problem.relations_of.get(node, ())]
    splits = any(isinstance(call, Call) and call.op == "select" for path in paths for call, _ in path)
    shape = problem.shapes[node]
    return blocked(shape, num_threads, len(shape) - 1, per_thread if splits else 1)


def _distances(problem: Problem, members: Iterable[Node]) -> dict[int, float]:
    """How far apart in memory neighbours along axes lie, at the most, where numbers tell for all accesses."""
    accesses = [access for member in members for access in problem.accesses.get(member, ())]
    axes = [set(access.steps) for access in accesses]
    return {axis: max(access.steps[axis] for access in accesses) for axis in set().union(*axes[:1]).intersection(*axes)}


def _own_layouts(problem: Problem, thread_bits: int) -> Callable[[Node], Layout]:
    """The best layout of a statement's accesses alone."""
    return lambda node: _anchor(problem, node, thread_bits, alone=True)


def _longest_run(accesses: list[Access]) -> int:
    """How many consecutive elements a thread has at most, so that it stores them at once.

    In two stores each would leave gaps that the other fills, and sectors be written in pieces. What stands behind a loop
    with other accesses does not count.
    """
    inner = any(access.repeated for access in accesses)
    sizes = [access.itemsize for access in accesses if not access.loads and access.repeated == inner]
    return max(ACCESS_BYTES // max(sizes, default=1), 1)


def _repeats(problem: Problem, node: Node, fast_axis: int, most: int) -> dict[int, int]:
    """Runs of equal addresses along other axes, which one thread loads once: of words that several elements lie in."""
    repeats: dict[int, int] = {}
    for member in _alike(problem, node):
        for access in problem.accesses.get(member, ()):
            for axis, side in enumerate(problem.shapes[node]):
                run = min(access.info.constancy[axis], padded(side), LARGEST_REPEAT, most)
                if access.loads and axis != fast_axis and run > repeats.get(axis, 1):
                    repeats[axis] = run
    while math.prod(repeats.values()) > most:
        repeats.popitem()
    return repeats


def _alike(problem: Problem, node: Node) -> list[Node]:
    """The tiles that share the layout of `node` because statements combine them element by element."""
    found, pending = {node: None}, [node]  # a set that keeps the order in which tiles were found
    while pending:
        current = pending.pop()
        for relation in problem.relations_of.get(current, ()):
            if any(call.type.shape != operand.type.shape or _moves(call) for call, operand in relation.path):
                continue
            other = relation.variable if relation.node == current else relation.node
            if other not in found:
                found[other] = None
                pending.append(other)
    return list(found)


def _moves(call: Expr) -> bool:
    return isinstance(call, Call) and call.op in ("permute", "reshape", "expand_dims", "select")


def _spread(problem: Problem, settled: list[Node]) -> None:
    """Gives neighbours of settled tiles the layouts that follow."""
    pending = deque(settled)

    def settle(node: Node, layout: Layout | None) -> None:
        if layout is not None and node not in problem.answers:
            problem.answers[node] = layout
            pending.append(node)

    while pending:
        node = pending.popleft()
        layout = problem.answers[node]
        for relation in problem.relations_of.get(node, ()):
            if relation.node == node:
                followed = _follow(layout, relation.path)
                if followed and not _is_crowded(problem, relation.variable, followed, relation.path):
                    settle(relation.variable, followed)
            else:
                settle(relation.node, _lead(layout, relation.path))
        for axis, target in problem.reductions_of.get(node, ()):
            settle(target, drop_axis(layout, axis))


def _follow(layout: Layout, path: Path) -> Layout | None:
    axes = layout.axes
    for call, operand in path:
        moved = operand_axes(call, operand, axes)
        if moved is None:
            return None
        axes = moved
    return Layout(axes, layout.thread_bits)


def _is_crowded(problem: Problem, half: Variable, layout: Layout, path: Path) -> bool:
    """Whether threads would hold twice what they need of a tile that is joined, because each of them uses one half's elements."""
    if problem.accesses.get(half) or not any(is_join(*step) for step in path):
        return False
    needed = math.prod(map(padded, problem.shapes[half])) >> layout.thread_bits
    return math.prod(layout.register_shape()) > max(needed, 1)


def _lead(layout: Layout, path: Path) -> Layout | None:
    axes = layout.axes
    for call, operand in reversed(path):
        moved = result_axes(call, operand, axes)
        if moved is None:
            return None
        axes = moved
    return Layout(axes, layout.thread_bits)
