"""Layouts of tiles that no memory holds, made of rows and columns and reduced: distances of all pairs, forces, small products.

In: such a tile, with those that share its layout. Out: the layout that costs least. Nothing anchors it to memory, so threads
may lie along any axis: those along the reduced one exchange partial results, each of the others loads more of the operands.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from ...hardware import LANE_BITS, MOST_OF_THREAD, REGISTER_FILE
from ...ir.nodes import Variable
from .access_costs import access_cost, side_by_side
from .layout import REGISTER, Layout, bits_of, blocked, drop_axis
from .layout_problem import Node, Path, Problem

# What things cost, in instructions of a thread.
STEP = 2  # of an exchange between lanes: a shuffle and what combines
ACROSS_WARPS = 4  # of a result by way of shared memory, besides
BARRIERS = 60  # of an exchange between warps, whatever moves
WORTH_SHORTER = 0.5  # of what loads cost with long runs: for less than that each vector has a test of its own
SPILLED = 4  # of an operand or result for which there is no register, on top of what it costs anyway

Alike = Callable[[Problem, Node], Sequence[Node]]  # the tiles that share a tile's layout, with itself first
Follow = Callable[[Layout, Path], Layout | None]  # the layout of what a path leads to


def outer_layout(problem: Problem, node: Node, num_threads: int, alike: Alike, follow: Follow) -> Layout | None:
    """The cheapest layout of tiles that are reduced, all of one shape; None where none of them is, along some axis."""
    members = alike(problem, node)
    reduced = [axis for member in members for axis, _ in problem.reductions_of.get(member, ())]
    if not reduced or len(problem.shapes[node]) < 2:
        return None
    fast = max(reduced, key=lambda axis: (reduced.count(axis), axis))
    layouts = _layouts(problem.shapes[node], num_threads, fast)
    best = min(layouts, key=lambda layout: _cost(problem, members, layout, alike, follow))  # the first of equals
    return _with_short_runs(problem, members, best, alike, follow)


def _with_short_runs(problem: Problem, members: Sequence[Node], layout: Layout, alike: Alike, follow: Follow) -> Layout:
    """The same with runs no longer than an access along an axis, where loads gain much by neighbours that lie side by side.

    A thread holds as much as before, but not in one run: of a long one each of a warp's accesses touches a line for each lane.
    """
    loads = [
        (load, path)
        for operand, path in operands_of(problem, members) if operand not in problem.answers
        for one in alike(problem, operand) for load in problem.accesses.get(one, ()) if load.loads
    ]  # fmt: skip
    widths = {side_by_side(load, axis) for load, _ in loads for axis in range(len(load.info.contiguity))} - {1}

    def cost(one: Layout) -> float:
        held = [(load, follow(one, path)) for load, path in loads]
        return sum(access_cost(load, own) for load, own in held if own is not None)

    for axis in range(layout.rank) if widths else ():
        shorter = min((_shortened(layout, axis, width) for width in sorted(widths, reverse=True)), key=cost)
        layout = shorter if cost(shorter) < WORTH_SHORTER * cost(layout) else layout
    return layout


def _shortened(layout: Layout, axis: int, run: int) -> Layout:
    """The layout with runs of so many elements along an axis, if they are longer: further registers count runs."""
    bits = layout.axes[axis]
    own = min(layout.run(axis), run).bit_length() - 1
    threads = tuple(bit for bit in bits if bit != REGISTER)
    moved = (*bits[:own], *threads, *(REGISTER,) * (len(bits) - own - len(threads)))
    return Layout((*layout.axes[:axis], moved, *layout.axes[axis + 1 :]), layout.thread_bits)


def _layouts(shape: tuple[int, ...], num_threads: int, fast: int) -> Iterator[Layout]:
    """All ways to have so many threads along each axis; what a thread holds lies side by side, and `fast` goes to neighbours."""
    bits = [bits_of(side) for side in shape]
    wanted = min(num_threads.bit_length() - 1, sum(bits))

    def shares(axis: int, left: int) -> Iterator[tuple[int, ...]]:
        if axis == len(bits):
            yield from [()] if left == 0 else []
            return
        for own in range(min(bits[axis], left) + 1):
            yield from ((own, *rest) for rest in shares(axis + 1, left - own))

    for share in shares(0, wanted):
        runs = {axis: 1 << bits[axis] - own for axis, own in enumerate(share)}
        yield blocked(shape, num_threads, fast, runs[fast], runs)


def _cost(problem: Problem, members: Sequence[Node], layout: Layout, alike: Alike, follow: Follow) -> float:
    """Instructions of a thread: exchanges, operands that are brought, and registers that are too many."""
    exchanges = results = 0
    for axis in (axis for member in members for axis, _ in problem.reductions_of.get(member, ())):
        count = drop_axis(layout, axis).num_registers
        lanes = sum(0 <= bit < LANE_BITS for bit in layout.axes[axis])
        warps = sum(bit >= LANE_BITS for bit in layout.axes[axis])
        exchanges += count * (STEP * lanes + ACROSS_WARPS * bool(warps)) + BARRIERS * bool(warps)
        results += count
    brought, operands = 0.0, 0
    for operand, path in operands_of(problem, members):
        if operand not in problem.answers and (own := follow(layout, path)):
            held = own.num_registers
            loads = [access for one in alike(problem, operand) for access in problem.accesses.get(one, ())]
            brought += max([held, *(access_cost(load, own) for load in loads)])
            operands += held
    room = min(MOST_OF_THREAD, REGISTER_FILE // (1 << layout.thread_bits)) // 2
    return exchanges + brought + SPILLED * max(operands + results - room, 0)


def operands_of(problem: Problem, members: Iterable[Node]) -> Iterator[tuple[Variable, Path]]:
    """The rows, columns and planes that the tiles are made of, each once, with the ways to them."""
    seen = set()
    for member in members:
        for relation in problem.relations_of.get(member, ()):
            smaller = relation.variable.type.shape != problem.shapes[member]
            if relation.node == member and smaller and relation.variable not in seen:
                seen.add(relation.variable)
                yield relation.variable, relation.path
