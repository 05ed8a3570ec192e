"""How many registers a thread should have so that the loads of a loop are all under way before the first is used.

In: a kernel whose loops load tiles and only add them up, or the like: in no iteration threads wait for each other. Out: how
many blocks the register allocation must leave room for. Left to itself ptxas takes as few registers as it can, for more
blocks at a time, and puts the use of one load before the next load: every iteration then waits for memory several times. With
room for so many blocks named it takes what these leave, and starts all loads first.

Where threads wait for each other in every iteration, or for the places that they load from, more blocks hide that better than
longer iterations would. In kernels without loops the same is done where a thread loads much. So is it where lanes of a
warp reduce what is loaded, all of which they hold: with few registers, some loads wait for exponentials of others, or until
others are in shared memory on their way to other threads.

Other loops in which nobody waits for anybody name one block, which allows a thread all registers that it can have
(`names_one_block`). Where nothing is named ptxas gives up a good order of an iteration's instructions to save a few: what is
loaded for the next iteration it asked for at the end of this one. Kernels without loops are left to it, for with one block named
it starts all loads of a thread at once, and few blocks have room.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Set
from dataclasses import replace

from ...analysis.doubled_tiles import Count, Doubling
from ...analysis.facts import Facts
from ...hardware import REGISTER_FILE, WORD_BYTES
from ...ir.nodes import Assign, Effect, Expr, For, Kernel, Literal, Statement, Variable, While
from ...ir.structured import assigns
from ...ir.walk import computed_with, in_loops, reachable, statements, used_variables
from ..products.dot_plan import Dots
from ..products.second_block import multiplies_again
from ..staging.ring_plan import Rings
from ..tiles.access_costs import own_addresses, side_by_side
from ..tiles.held_tiles import HeldTiles
from ..tiles.layout import Layout
from ..tiles.layout_problem import Addresses, Problem
from ..tiles.registers import register_count
from .access import load_operands

THREADS_AT_ONCE = 768  # on a multiprocessor: 80 registers each
LEAST_THREADS = 384  # on a multiprocessor: fewer that load all at once do not hide each other's waiting
LEAST_BYTES = 16  # that a thread loads in an iteration
LEAST_BESIDE_STORES = 32  # in one that stores as well: the next one's loads stay behind that
ADDRESSES = 32  # registers beside those of tiles
MUCH_LOADED = 64  # registers of a thread, without a loop
MUCH_REDUCED = 24  # the same, where lanes reduce what they load
MUCH_ONE_BY_ONE = 24  # elements that a thread loads by themselves, without a loop
FEW_OTHERS = 16  # registers beside those, without a loop
MOST_FREE_THREADS = 256  # on a multiprocessor, that may have all registers that a thread can


def blocks_for_loads(held: HeldTiles, waiting: Set[Statement], peak: int, num_threads: int) -> int | None:
    """Blocks to leave room for; None where no loop is such a one.

    `waiting` are the statements in which threads wait for each other, `peak` the registers of the tiles.
    """
    loops = _loops(held.kernel)
    if _wait(loops, waiting) or not any(_adds_up(loop, held.layouts) for loop in loops):
        return None
    fit = REGISTER_FILE // ((peak + ADDRESSES) * num_threads)
    return max(min(THREADS_AT_ONCE // num_threads, fit), 1)


def blocks_for_all_loads(
    at_once: int, problem: Problem, layouts: Mapping[Variable, Layout], num_threads: int
) -> int | None:
    """Blocks to leave room for where all that is loaded, `at_once` registers a thread, can be under way; None for few loads.

    Two blocks are worth it even if not all of it fits: while one computes, the other loads. What is loaded element by
    element does not count: these are so many loads that enough of them are under way in any order, and each one's address
    takes more registers than what it loads. Of those that come together, a register is left for each row's address.
    """
    single = (variable for variable in layouts if any(map(_is_single, problem.accesses.get(variable, ()))))
    if at_once - sum(register_count(variable, layouts[variable]) for variable in single) < MUCH_LOADED:
        return None
    addresses = (own_addresses(one, layouts[tile]) for tile in layouts for one in problem.accesses.get(tile, ()))
    fit = REGISTER_FILE // ((at_once + max(FEW_OTHERS, *addresses)) * num_threads)
    return max(fit, min(REGISTER_FILE // (at_once * num_threads), 2), 1)


def blocks_for_reduced_loads(
    loads: Iterable[Variable], problem: Problem, layouts: Mapping[Variable, Layout], num_threads: int
) -> int | None:
    """Blocks to leave room for where `loads` are all that a kernel loads, and lanes of a warp reduce it; None for few loads.

    All of it is under way if there is room, in as many threads as loops have. What comes of it may be held as floats until it
    is stored: with less room than the compiler takes by itself, it spills.
    """
    tiles = [tile for tile in loads if not any(map(_is_single, problem.accesses.get(tile, ())))]
    loaded = sum(register_count(tile, layouts[tile]) for tile in tiles)
    if loaded < MUCH_REDUCED:
        return None
    widened = sum(layouts[tile].num_registers for tile in tiles)
    blocks = REGISTER_FILE // (max(loaded + ADDRESSES, widened + FEW_OTHERS) * num_threads)
    return blocks if blocks * num_threads >= THREADS_AT_ONCE else None


def blocks_for_single_loads(
    held: HeldTiles, problem: Problem, windowed: Set[Statement], peak: int, num_threads: int
) -> int | None:
    """Blocks to leave room for where a thread loads many elements by themselves that its neighbours' lie beside; None for few.

    None as well in loops, where loads may bring what others have brought, as those of a stencil do, which find it in the cache,
    and where tiles take so many registers, `peak`, that few blocks are left. What is `windowed` comes by vectors.
    """
    repeated = in_loops(held.kernel.body)
    if any(assigns(statement, "load") for statement in repeated) or _share_elements(held):
        return None
    together = {statement.target for statement in windowed if isinstance(statement, Assign)}
    found = [
        (layout.num_registers // _in_one_place(access, layout), own_addresses(access, layout))
        for tile, layout in held.layouts.items() if tile not in together
        for access in problem.accesses.get(tile, ()) if _is_one_by_one(access, layout)
    ]  # fmt: skip
    elements, addresses = (sum(numbers) for numbers in zip(*found, strict=True)) if found else (0, 0)
    if elements < MUCH_ONE_BY_ONE:
        return None
    fit = REGISTER_FILE // ((max(elements + addresses, peak) + FEW_OTHERS) * num_threads)
    blocks = min(THREADS_AT_ONCE // num_threads, fit)
    return blocks if blocks * num_threads >= LEAST_THREADS else None


def blocks_for_first_loads(of_all_trips: int, peak: int, num_threads: int) -> int | None:
    """Blocks to leave room for where the loads of all trips come first (`first_loads.py`), so many registers of a thread.

    No more than that is under way in any order, and each further block hides what the loop waits for.
    """
    return max(REGISTER_FILE // ((peak + of_all_trips + ADDRESSES) * num_threads), 1) if of_all_trips else None


def names_one_block(
    kernel: Kernel, dots: Dots, rings: Rings, waiting: Set[Statement], blocks_by_shared: int, num_threads: int
) -> bool:
    """Whether a kernel names one block where nothing else says how many: for its loops. Else ptxas may decide.

    It may where threads wait for each other, for the reason above. With products it may, too, for then threads hold large sums,
    and fewer blocks would lie on a multiprocessor than it finds by itself: unless an operand is computed where it is multiplied,
    or loaded an iteration ahead, so that loads must come long before their use, or unless what was multiplied is computed further
    and multiplied again, as in attention, and shared memory has no room for more blocks anyway.

    Args:
      kernel: the kernel.
      dots: the plans of its products.
      rings: what its loops load ahead.
      waiting: the statements in which threads wait for each other.
      blocks_by_shared: how many blocks shared memory has room for.
      num_threads: threads of a block.
    """
    loops = _loops(kernel)
    if not dots.plans:
        return bool(loops) and not _wait(loops, waiting)
    if rings.for_next or any(plan.held for plan in dots.plans.values()):
        return True
    is_full = blocks_by_shared * num_threads <= MOST_FREE_THREADS
    return is_full and bool(loops) and multiplies_again(kernel, dots)


def _loops(kernel: Kernel) -> list[For | While]:
    return [statement for statement in statements(kernel.body) if isinstance(statement, (For, While))]


def _wait(loops: list[For | While], waiting: Set[Statement]) -> bool:
    """Whether threads wait for each other in a loop."""
    return any(inner in waiting for loop in loops for inner in statements(loop.body))


def _share_elements(held: HeldTiles) -> bool:
    """Whether loads may bring what others bring: elements of the same array, moved along its rows or to other rows of a tile.

    What starts somewhere else for all of a tile is taken to be apart: another row of a program, or a row that was looked up.
    """
    counting = Doubling(held.kernel)
    rows_of: dict[object, object] = {}
    places = set[object]()
    for statement in statements(held.kernel.body):
        if not assigns(statement, "load") or statement.target not in held.layouts:
            continue
        count = counting.count(load_operands(statement)[0])
        if count is None:
            return True
        count = _with_numbers(count)
        array = frozenset(v for part in count.parts for v in used_variables(part) if v.type.is_pointer)
        rows = [part for part in count.parts if part.type.is_tile]
        first = array not in rows_of
        known = rows_of.setdefault(array, _counted(rows))
        if not first and (known != _counted(rows) or not all(_lasts(part, held.facts) for part in rows)):
            return True
        if all(_lasts(part, held.facts) for part in count.parts):
            place = (array, _counted(count.parts), count.step, count.number % max(count.step, 1))
            if place in places:
                return True
            places.add(place)
    return False


def _counted(parts: Iterable[Expr]) -> frozenset[tuple[Expr, int]]:
    """The parts of a sum, in whatever order they are added."""
    return frozenset(Counter(parts).items())


def _with_numbers(count: Count) -> Count:
    """The same count, with the numbers of this trip of static loops among the others."""
    numbers = [part.value for part in count.parts if isinstance(part, Literal)]
    parts = tuple(part for part in count.parts if not isinstance(part, Literal))
    return replace(count, number=count.number + int(sum(numbers)), parts=parts)


def _lasts(part: Expr, facts: Facts) -> bool:
    """Whether an expression has one value throughout a kernel."""
    return all(facts.assignments[variable] <= 1 for variable in used_variables(part))


def _is_one_by_one(access: Addresses, layout: Layout) -> bool:
    """Whether threads load elements that lie beside those of their neighbours, each by itself, or those of a word at once."""
    runs = [(layout.run(axis), side_by_side(access, axis)) for axis in range(layout.rank) if access.closeness(axis)]
    return (
        access.loads
        and bool(runs)
        and all(run == most and (run == 1 or run * access.itemsize <= WORD_BYTES) for run, most in runs)
    )


def _in_one_place(access: Addresses, layout: Layout) -> int:
    """How many elements of a thread have one place in memory, and are loaded once."""
    return math.prod(min(access.info.constancy[axis], layout.run(axis)) for axis in range(layout.rank))


def _is_single(access: Addresses) -> bool:
    """Whether each element is loaded from a place of its own."""
    return access.loads and not access.side_by_side and max(access.info.contiguity) == 1


def _adds_up(loop: For | While, layouts: Mapping[Variable, Layout]) -> bool:
    inner = list(statements(loop.body))
    loads = [s for s in inner if assigns(s, "load")]
    if _finds_places(inner, loads):
        return False
    stores = any(isinstance(s, Effect) and s.call.op == "store" for s in inner)
    least = LEAST_BESIDE_STORES if stores else LEAST_BYTES
    return sum(_bytes_of_thread(load.targets[0], layouts) for load in loads) >= least


def _finds_places(inner: list[Statement], loads: list[Assign]) -> bool:
    """Whether an iteration loads from places that follow from tiles that it has loaded; scalars come ahead of it."""
    tiles = [target for load in loads for target in load.targets if target.type.is_tile]
    loaded = reachable(tiles, computed_with(inner))
    return any(not loaded.isdisjoint(used_variables(load.value.args[0])) for load in loads)  # type: ignore[attr-defined]


def _bytes_of_thread(tile: Variable, layouts: Mapping[Variable, Layout]) -> int:
    if tile not in layouts:
        return 0
    return layouts[tile].num_registers * tile.type.dtype.itemsize
