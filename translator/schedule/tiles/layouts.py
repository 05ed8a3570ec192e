"""Chooses who holds which element of every tile.

In: a `Problem` (`layout_problem.py`). Out: its answers. Memory accesses are the anchors: the largest tile that is loaded or
stored gets a blocked layout along its contiguous axis, in 16-byte pieces; its neighbours follow through elementwise
operations, slices, transposes and reshapes, so that one statement touches one layout. Then the next largest. Where two
choices meet, the tile is converted for that statement.
"""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping

from ...hardware import ACCESS_BYTES, SECTOR_BYTES
from ...ir.nodes import Assign, Call, Expr, Kernel, Statement, Use, Variable
from ...ir.structured import assigns
from ...ir.types import padded
from ...ir.walk import REARRANGES, statements, subexpressions
from ..plan import Conversion
from ..products.dot_plan import Dots
from ..products.held_operands import Words
from ..products.shared_tiles import SharedTile
from ..staging.ring_plan import Rings
from .access_costs import access_cost, address_cost, most_side_by_side, reduction_cost, side_by_side
from .layout import Layout, blocked, drop_axis
from .layout_problem import Addresses, Node, Path, Problem, Relation
from .outer_tiles import operands_of, outer_layout
from .paths import is_join, operand_axes, result_axes

AS_GOOD = 1.1  # of the least cost: longer runs are fewer instructions
WORTH_LONGER = 0.95  # of what loads and reductions cost with runs as long as an access
WORTH_SHORTER = 0.75  # of what accesses cost with the longest runs: caches make up for less
LARGEST_REPEAT = 16  # elements that lie in one word and go to one thread


def solve(problem: Problem, kernel: Kernel, dots: Dots, thread_bits: int) -> None:
    """Gives every tile and every statement that needs one a layout."""
    problem.boxes = _boxes_read(kernel, dots)
    _settle_accumulators(problem, kernel, dots)
    _choose_anchors(problem, thread_bits)


def _boxes_read(kernel: Kernel, dots: Dots) -> dict[Node, SharedTile]:
    readings = (s for s in statements(kernel.body) if isinstance(s, Assign) and assigns(s, "box_read"))
    sources = ((s.target, part.variable) for s in readings for part in subexpressions(s.value) if isinstance(part, Use))
    return {target: dots.staged[source] for target, source in sources}


def of_variables(problem: Problem) -> dict[Variable, Layout]:
    """The answers for tiles, without those for statements."""
    return {node: layout for node, layout in problem.answers.items() if isinstance(node, Variable)}


def conversions_of(problem: Problem) -> dict[Statement, list[Conversion]]:
    """Where the layout of a tile is not the one that a statement needs."""
    found: dict[Statement, list[Conversion]] = {}
    for relation in problem.relations:
        expected = follow(problem.answers[relation.node], relation.path)
        if expected is None or problem.answers[relation.variable] != expected:
            layout = expected or problem.answers[relation.variable]
            wanted = found.setdefault(relation.statement, [])
            if (conversion := Conversion(relation.variable, layout)) not in wanted:
                wanted.append(conversion)
    return found


def _settle_accumulators(problem: Problem, kernel: Kernel, dots: Dots) -> None:
    """Gives the results of dots the layouts that their instructions leave them in."""
    settled: list[Node] = []
    for statement in statements(kernel.body):
        if statement in dots.plans and isinstance(statement, Assign) and statement.target not in problem.answers:
            problem.answers[statement.target] = dots.plans[statement].layout
            settled.append(statement.target)
            if fragment := dots.plans[statement].fragment:
                problem.answers[dots.plans[statement].rows.variable] = fragment
                settled.append(dots.plans[statement].rows.variable)
            if held := dots.plans[statement].held:
                problem.answers[dots.plans[statement].b.variable] = held.layout
                settled.append(dots.plans[statement].b.variable)
    _spread(problem, settled)


def settle_numbers(problem: Problem, rings: Rings, copied: Mapping[Variable, Layout]) -> dict[Variable, Layout]:
    """Has threads read what their own copies find their addresses by: nothing moves between threads ahead of a copy.

    `copied` has the layouts of tiles that are copied in another one than they are held in. Returns the new answers.
    """
    found: dict[Variable, Layout] = {}
    for variable in (one.variable for one in reversed(rings.ahead)):
        for relation in problem.relations_of.get(variable, ()):
            if relation.variable is variable and isinstance(relation.node, Variable):
                used = copied.get(relation.node) or problem.answers[relation.node]
                found[variable] = follow(used, relation.path) or problem.answers[variable]
                problem.answers[variable] = found[variable]
    return found


def words_of_b(problem: Problem, dots: Dots) -> dict[Variable, Words]:
    """For every B, how the elements that it is computed from lie in memory."""
    found: dict[Variable, Words] = {}
    for plan in dots.plans.values():
        shape, k_axis = plan.b.variable.type.shape, plan.b.k_axis
        n_axis = 2 * plan.b.variable.type.rank - 3 - k_axis
        loads = [a for m in _alike(problem, plan.b.variable) for a in problem.accesses.get(m, ()) if a.loads]
        sides = [side for a in loads if (side := a.info.constancy[k_axis]) < shape[k_axis]]
        columns = [ACCESS_BYTES // a.itemsize for a in loads if a.info.contiguity[n_axis] > 1]
        found[plan.b.variable] = Words(max(sides, default=1), max(columns, default=shape[n_axis]))
    return found


def _choose_anchors(problem: Problem, thread_bits: int) -> None:
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
    """The halves of a join that is neither loaded nor stored: it takes its layout from theirs, so that a thread holds both."""
    relations = problem.halves_of.get(node, ())
    meets = any(problem.accesses.get(member) for member in _alike(problem, node))
    return [] if meets else [relation.variable for relation in relations]


def _anchor(problem: Problem, node: Node, thread_bits: int, alone: bool = False) -> Layout:
    """A blocked layout for the accesses of everything that must share it; of `node` alone on demand."""
    shape = problem.shapes[node]
    num_threads = 1 << thread_bits
    per_thread = 1
    for side in shape:
        per_thread *= padded(side)
    per_thread = max(per_thread // num_threads, 1)
    members = (node,) if alone else _alike(problem, node)
    accesses = [access for member in members for access in problem.accesses.get(member, ())]
    if not accesses:
        return _between(problem, node, num_threads, per_thread)
    best_axis, best = len(shape) - 1, (False, 1, 0)
    longest = min(per_thread, _longest_run(accesses))
    for access in accesses:
        for axis in reversed(range(len(shape))):
            run = min(side_by_side(access, axis), padded(shape[axis]), longest)
            contiguous = min(access.info.contiguity[axis], padded(shape[axis])) > 1
            if (contiguous, run, access.closeness(axis)) > best:
                best_axis, best = axis, (contiguous, run, access.closeness(axis))

    reductions = _reductions_of_loads(problem, members, accesses)
    reduced = {axis for member in members for axis, _ in problem.reductions_of.get(member, ())}
    if best_axis not in reductions:
        reduced.discard(best_axis)

    def with_runs_of(run: int) -> Layout:
        repeats = _repeats(problem, node, best_axis, per_thread // run)
        return blocked(shape, num_threads, best_axis, run, repeats, _distances(problem, members), reduced)

    slices = [] if alone or any(access.repeated for access in accesses) else _loaded_in_loops(problem, members)
    chosen = _with_best_runs(accesses, slices, best_axis, best[1], with_runs_of)
    widest = max(access.itemsize for access in accesses)
    most = min(per_thread, padded(shape[best_axis]), ACCESS_BYTES // widest)
    return _with_reduced_runs(accesses, reductions[best_axis], best_axis, most, chosen, with_runs_of)


def _reductions_of_loads(problem: Problem, members: Iterable[Node], accesses: Iterable[Addresses]) -> Counter[int]:
    """How many reductions follow each load, by axis: of what a loop loads and only adds up, none does."""
    repeated = any(access.repeated for access in accesses)
    found = ((axis, target) for member in members for axis, target in problem.reductions_of.get(member, ()))
    return Counter(axis for axis, target in found if not repeated or target in problem.looped)


def _loaded_in_loops(problem: Problem, members: Iterable[Node]) -> list[tuple[Addresses, Path]]:
    """The loads, in every trip of a loop, of the rows and columns that tiles are made of, each with the way to it."""
    return [
        (access, path)
        for operand, path in operands_of(problem, members) if operand not in problem.answers
        for one in _alike(problem, operand) for access in problem.accesses.get(one, ()) if access.repeated and access.loads
    ]  # fmt: skip


def _with_best_runs(
    accesses: list[Addresses],
    slices: list[tuple[Addresses, Path]],
    axis: int,
    longest: int,
    with_runs_of: Callable[[int], Layout],
) -> Layout:
    """The layout with the longest runs along an axis, or one with shorter ones where some accesses gain much by these.

    Rows that are not aligned, and elements that lie a few apart, are accessed one by one: best by neighbours, for all that others
    gain by runs. Of further rows each has an address of its own. What is loaded in a loop counts alone, be it in `slices`.
    """
    along = [a for a in accesses if a.info.contiguity[axis] > 1 or a.spread(axis, longest) >= SECTOR_BYTES]
    inner = [access for access in along if access.repeated == any(one.repeated for one in along)]
    if not slices and all(side_by_side(access, axis) * access.itemsize >= ACCESS_BYTES for access in inner):
        return with_runs_of(longest)

    def cost(layout: Layout) -> float:
        if slices:
            held = [(access, follow(layout, path)) for access, path in slices]
            return sum(access_cost(access, own) for access, own in held if own is not None)
        return sum(access_cost(access, layout) + address_cost(access, layout, axis) for access in inner)

    layouts = [with_runs_of(longest >> bits) for bits in range(longest.bit_length())]
    costs = [cost(layout) for layout in layouts]
    return layouts[costs.index(min(costs))] if min(costs) < WORTH_SHORTER * costs[0] else layouts[0]


def _with_reduced_runs(
    accesses: list[Addresses],
    reductions: int,
    axis: int,
    longest: int,
    chosen: Layout,
    with_runs_of: Callable[[int], Layout],
) -> Layout:
    """The `chosen` layout, or one with longer runs along an axis where fewer exchanges between lanes make up for its accesses.

    Of short rows that are not aligned a thread holds an element or two, so that all lanes of a warp combine each row for itself.
    """
    loads = [access for access in accesses if access.loads]
    if not reductions or not loads or chosen.rank == 1:
        return chosen
    layouts = [chosen, *(with_runs_of(run) for run in _doubled(2 * chosen.run(axis), longest))]
    costs = [reduction_cost(loads, reductions, layout, axis) for layout in layouts]
    if min(costs) >= WORTH_LONGER * costs[0]:
        return chosen
    return [layout for layout, cost in zip(layouts, costs, strict=True) if cost <= AS_GOOD * min(costs)][-1]


def _doubled(first: int, last: int) -> Iterator[int]:
    while first <= last:
        yield first
        first *= 2


def _between(problem: Problem, node: Node, num_threads: int, per_thread: int) -> Layout:
    """A layout for what touches no memory: by what it is made of and reduced to, or by halves that are split.

    Of these each thread has a long run, so that it holds both; of what a tensor copy has brought, as much as it reads at once.
    """
    shape = problem.shapes[node]
    paths = [relation.path for relation in problem.relations_of.get(node, ())]
    splits = any(isinstance(call, Call) and call.op == "select" for path in paths for call, _ in path)
    outer = None if splits else outer_layout(problem, node, num_threads, _alike, follow)
    boxes = [problem.boxes[member] for member in _alike(problem, node) if member in problem.boxes]
    if boxes and not splits:
        return outer or blocked(shape, num_threads, boxes[0].fast, min(per_thread, boxes[0].chunk))
    return outer or blocked(shape, num_threads, len(shape) - 1, per_thread if splits else 1)


def _distances(problem: Problem, members: Iterable[Node]) -> dict[int, float]:
    """How far apart in memory neighbours along axes lie, at the most, where numbers tell for all accesses."""
    accesses = [access for member in members for access in problem.accesses.get(member, ())]
    axes = [set(access.steps) for access in accesses]
    return {axis: max(access.steps[axis] for access in accesses) for axis in set().union(*axes[:1]).intersection(*axes)}


def own_layouts(problem: Problem, thread_bits: int) -> Callable[[Node], Layout]:
    """The best layout of a statement's accesses alone."""
    return lambda node: _anchor(problem, node, thread_bits, alone=True)


def _longest_run(accesses: list[Addresses]) -> int:
    """How many consecutive elements a thread has at most, so that it stores them at once.

    In two stores each would leave gaps that the other fills, and sectors be written in pieces. What stands behind a loop
    with other accesses does not count, nor what is stored element by element in any case. Of stores that memory allows different
    widths the widest counts, and of atomics those that memory, not the GPU, allows no wider.
    """
    inner = any(access.repeated for access in accesses)
    stores = [access for access in accesses if not access.loads and access.at_once > 1 and access.repeated == inner]
    sizes = [access.itemsize for access in stores]
    widths = [(access, most_side_by_side(access)) for access in stores]
    known = [run for access, run in widths if run > 1 and (run < access.at_once or not access.adds)]
    return max(min(ACCESS_BYTES // max(sizes, default=1), max(known, default=ACCESS_BYTES)), 1)


def _repeats(problem: Problem, node: Node, fast_axis: int, most: int) -> dict[int, int]:
    """Runs along other axes, of which one thread loads elements once.

    They have equal addresses, as words in which several elements lie, or the trips of a loop move along them.
    """
    repeats: dict[int, int] = {}
    for member in _alike(problem, node):
        for access in problem.accesses.get(member, ()):
            for axis, side in enumerate(problem.shapes[node]):
                run = min(access.info.constancy[axis], padded(side), LARGEST_REPEAT, most)
                if access.loads and axis != fast_axis and run > repeats.get(axis, 1):
                    repeats[axis] = run
    while math.prod(repeats.values()) > most:
        repeats.popitem()
    members = [member for member in _alike(problem, node) if isinstance(member, Variable)]
    moving = {axis for member in members for axis in problem.moving.get(member, ())} - {fast_axis}
    if not repeats and len(moving) == 1:
        repeats = dict.fromkeys(moving, most)
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
    return isinstance(call, Call) and (call.op in REARRANGES or call.op == "expand_dims")


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
                followed = follow(layout, relation.path)
                if (
                    followed
                    and not _crowds(problem, relation, followed)
                    and not _crowds_halves(problem, relation.variable, followed)
                ):
                    settle(relation.variable, followed)
            else:
                settle(relation.node, _lead(layout, relation.path))
        for axis, target in problem.reductions_of.get(node, ()):
            settle(target, drop_axis(layout, axis))


def follow(layout: Layout, path: Path) -> Layout | None:
    """The layout of what a path leads to; None where no permutation of bits is one."""
    axes = layout.axes
    for call, operand in path:
        moved = operand_axes(call, operand, axes)
        if moved is None:
            return None
        axes = moved
    return Layout(axes, layout.thread_bits)


def _crowds_halves(problem: Problem, joined: Variable, layout: Layout) -> bool:
    """Whether threads would hold twice what they need of halves, so that what is joined of them moves as one, behind the join."""
    halves = problem.halves_of.get(joined, ())
    return any((half := follow(layout, r.path)) is not None and _crowds(problem, r, half) for r in halves)


def _crowds(problem: Problem, relation: Relation, layout: Layout) -> bool:
    """Whether threads would hold twice what they need of a tile that is joined, because each of them uses one half's elements.

    What a tensor copy has brought lies in shared memory, from where whoever needs an element takes it.
    """
    half = relation.variable
    if problem.accesses.get(half) or half in problem.boxes or not any(is_join(*step) for step in relation.path):
        return False
    needed = math.prod(map(padded, problem.shapes[half])) >> layout.thread_bits
    return layout.num_registers > max(needed, 1)


def _lead(layout: Layout, path: Path) -> Layout | None:
    axes = layout.axes
    for call, operand in reversed(path):
        moved = result_axes(call, operand, axes)
        if moved is None:
            return None
        axes = moved
    return Layout(axes, layout.thread_bits)
