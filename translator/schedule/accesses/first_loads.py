"""Loops whose loads come first, those of all trips, and then what is computed and stored.

In: a kernel's loops of few trips, which are written out (`unrolled.py`). Out: for those that store in their trips, what stands
in front of them: the loads, and what their places are found by. A compiler moves no load in front of a store, which may be to the
same place, so that each trip waits for memory behind the store of the one before. Where nothing is written through the pointers
that the loads go by, they bring the same in front of the loop.

Example, `for k in range(4): at = r * 4 + k; tl.store(y_ptr + at * N + c, tl.load(x_ptr + at * N + c) * 2)`:
  in front: at and the load, of each k, into x[k];  then in the loop: x[k] * 2, stored
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import field

from ...analysis.facts import Facts, read_through
from ...analysis.long_computations import takes_long
from ...frozen import frozen
from ...hardware import WORD_BYTES
from ...ir.nodes import Assign, Call, Effect, For, Kernel, Note, Statement, Variable
from ...ir.structured import assigns, is_elementwise
from ...ir.walk import assigned_inside, expressions, statements
from ..tiles.held_tiles import HeldTiles
from ..tiles.layout import Layout
from .access import plan_load
from .pointers import ADDRESS_BITS, lasting_loads
from .unrolled import trips_of_numbers, unroll_factor

MOST_REGISTERS = 32  # of a thread for what all trips load
OWN_WISHES = "loop_unroll_factor"


@frozen
class FirstLoads:
    """What stands in front of such loops.

    Attributes:
      ahead: of each loop, the loads and what finds their places, in order.
      registers: of a thread, for the loads of the loop that has most.
      unread: variables that nothing else is made of.
    """

    ahead: Mapping[For, tuple[Statement, ...]] = field(default_factory=dict)
    registers: int = 0
    unread: frozenset[Variable] = frozenset()


def loads_of_all_trips(held: HeldTiles, room: int, apart: Set[Variable], waiting: Set[Statement]) -> FirstLoads:
    """Decides for all loops.

    Args:
      held: the tiles that the kernel's threads hold.
      room: registers of a thread that are left beside them.
      apart: tiles that are not simply loaded to registers where their load stands.
      waiting: the statements in which threads wait for each other.
    """
    kernel, facts, layouts = held.kernel, held.facts, held.layouts
    loops = [s for s in statements(kernel.body) if isinstance(s, For) and _stores(s)]
    if not loops:
        return FirstLoads()
    lasts = lasting_loads(kernel)
    read_behind = _read_elsewhere(kernel, loops, facts)
    found: dict[For, tuple[Statement, ...]] = {}
    most = 0
    for loop in loops:
        loads = [s for s in loop.body if isinstance(s, Assign) and assigns(s, "load") and s.target not in facts.unused]
        targets = {load.target for load in loads}
        if not loads or waiting & {*statements(loop.body)} or not _are_written_out(loop, facts, layouts):
            continue
        alone = all(facts.assignments[v] == 1 for v in targets) and targets.isdisjoint(apart | read_behind[loop])
        plain = all(isinstance(load.value, Call) and lasts(load.value) for load in loads)
        size = sum(_registers(load, layouts, facts) for load in loads) * len(trips_of_numbers(loop, facts) or ())
        ahead = _found_by(loop, loads, facts) if alone and plain and size <= min(MOST_REGISTERS, room) else None
        if ahead is not None:
            found[loop], most = ahead, max(most, size)
    return FirstLoads(found, most, _unread(kernel, {s for ahead in found.values() for s in ahead}, facts))


def _stores(loop: For) -> bool:
    return any(isinstance(s, Effect) and s.call.op == "store" for s in loop.body)


def _are_written_out(loop: For, facts: Facts, layouts: Mapping[Variable, Layout]) -> bool:
    """Whether all trips of a loop stand behind each other, and no load is in another loop or in a branch.

    Trips that compute functions or quotients stay as they are: these take registers, and what all trips load would be spilled.
    """
    trips = trips_of_numbers(loop, facts)
    flat = all(isinstance(s, (Assign, Effect)) or (isinstance(s, Note) and s.trip is None) for s in loop.body)
    asked = dict(loop.options).get(OWN_WISHES)
    long = any(takes_long(expr) for statement in loop.body for expr in expressions(statement))
    return trips is not None and flat and not long and not asked and unroll_factor(loop, facts, layouts) == len(trips)


def _registers(load: Assign, layouts: Mapping[Variable, Layout], facts: Facts) -> int:
    """How many registers of a thread a load takes until it is used: each access some of its own."""
    target = load.target
    if target not in layouts:
        return 1
    width = plan_load(load, layouts[target], facts).width
    bytes_of_one = ADDRESS_BITS // 8 if target.type.is_pointer else target.type.dtype.itemsize
    return layouts[target].num_registers // width * -(-width * bytes_of_one // WORD_BYTES)


def _read_elsewhere(kernel: Kernel, loops: list[For], facts: Facts) -> dict[For, set[Variable]]:
    """For each loop, what statements outside of it read."""
    inside = {loop: {*statements(loop.body)} for loop in loops}
    found: dict[For, set[Variable]] = {loop: set() for loop in loops}
    for statement in statements(kernel.body):
        read = {v for expr in expressions(statement) for v in read_through(expr, facts)}
        for loop, own in inside.items():
            if statement not in own:
                found[loop] |= read
    return found


def _found_by(loop: For, loads: list[Assign], facts: Facts) -> tuple[Statement, ...] | None:
    """The loads and what finds their places; None where these follow from something that a trip loads, or one leaves."""
    changed = assigned_inside(loop) - {loop.variable}
    needed = {v for load in loads for expr in expressions(load) for v in read_through(expr, facts)} & changed
    kept: list[Statement] = []
    for statement in reversed(loop.body):
        if statement in loads:
            kept.append(statement)
        elif isinstance(statement, Assign) and needed.intersection(statement.targets):
            if not is_elementwise(statement.value) or facts.assignments[statement.target] > 1:
                return None
            needed.remove(statement.target)
            needed |= {*read_through(statement.value, facts)} & changed
            kept.append(statement)
    return tuple(reversed(kept)) if not needed else None


def _unread(kernel: Kernel, ahead: Set[Statement], facts: Facts) -> frozenset[Variable]:
    """What is assigned in front of loops, and read nowhere else; what stands at its use is read there."""
    made = {s.target for s in ahead if isinstance(s, Assign) and not assigns(s, "load")}
    for statement in statements(kernel.body) if made else ():
        at_use = isinstance(statement, Assign) and facts.absorbed.issuperset(statement.targets)
        if statement not in ahead and not at_use:
            made -= {v for expr in expressions(statement) for v in read_through(expr, facts)}
    return frozenset(made)
