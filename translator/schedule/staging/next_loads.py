"""Loads that no copy can make ahead are made an iteration ahead all the same, into registers.

In: the plan of a kernel's rings and a loop that has one. Out: the loads, and in their places the statements that

    next_scale = load(of the first iteration)         in front of the loop
    for ...:
        scale = next_scale
        next_scale = load(of the next iteration)      where there is one

`cp.async` copies 4 bytes and more. Bytes, and halves whose places are not known to be even, would be loaded where they stand, and
every iteration wait for memory once more: scales of small floats, zero points, lists of bits. Only small tiles are loaded
so, for they take registers twice.

Nor are there copies in a loop without a ring. One that carries a state from trip to trip and stores in each, a recurrence, has
too little to load for stages in shared memory; but every trip waits for what it loads, which the compiler may not move in front
of the store of the trip before. Its loads are made an iteration ahead, too.
"""

from __future__ import annotations

import math
from dataclasses import replace

from ...analysis.facts import Facts
from ...hardware import COPY_BYTES, WARP_SIZE, WORD_BYTES
from ...ir.nodes import Assign, Call, Effect, Expr, For, Use, Variable, While
from ...ir.rewrite import substituted
from ...ir.types import ValueType, padded
from ...ir.walk import assigned_variables, read_variables, statements, used_variables
from ...language.dtypes import int1
from .own_loads import is_plain_load
from .read_ahead import load_in_any_trip
from .ring_plan import RingPlan

MOST_ELEMENTS = 16  # of a tile for each thread: as many registers
MOST_REGISTERS = 32  # of all tiles that a recurrence loads
FIRST, AHEAD, NEXT = "for the first iteration", "loaded an iteration ahead", "for the next iteration"


def load_into_registers(plan: RingPlan, loop: For) -> None:
    """Adds to the plan what the module's docstring says."""
    for load in _small_loads(plan, loop):
        if _has_no_copy(plan.given.facts, load):
            _load_ahead(plan, loop, load)


def may_be_recurrence(loop: For) -> bool:
    """Whether a loop stores in its trips and has no loop inside."""
    inner = list(statements(loop.body))
    stores = any(isinstance(s, Effect) and isinstance(s.call, Call) and s.call.op == "store" for s in inner)
    return stores and not any(isinstance(s, (For, While)) for s in inner)


def load_recurrence(plan: RingPlan, loop: For) -> None:
    """The same for all small loads of a loop without a ring that is a recurrence."""
    dots = any(inner in plan.dots.plans for inner in statements(loop.body))
    if dots or not may_be_recurrence(loop) or not _has_state(loop):
        return
    loads = _small_loads(plan, loop)
    if sum(_registers(load.target, plan.given.options.num_warps) for load in loads) <= MOST_REGISTERS:
        for load in loads:
            _load_ahead(plan, loop, load)


def _has_state(loop: For) -> bool:
    """Whether a trip reads floats that the one before has left."""
    read, carried, assigned = set[Variable](), set[Variable](), set[Variable]()
    for statement in statements(loop.body):
        read |= set(read_variables(statement)) - assigned
        assigned |= {*assigned_variables(statement)}
        carried |= read & assigned
    return any(not variable.type.is_pointer and variable.type.dtype.is_floating() for variable in carried)


def is_small(tile: Variable, num_warps: int) -> bool:
    """Whether each thread of so many warps has few elements of a tile, or of a scalar."""
    return _elements(tile, num_warps) <= MOST_ELEMENTS


def _elements(tile: Variable, num_warps: int) -> int:
    """How many elements of a tile a thread has where each is in one thread."""
    return -(-math.prod(map(padded, tile.type.shape)) // (num_warps * WARP_SIZE))


def _registers(tile: Variable, num_warps: int) -> int:
    return -(-_elements(tile, num_warps) * tile.type.dtype.itemsize // WORD_BYTES)


def _small_loads(plan: RingPlan, loop: For) -> list[Assign]:
    """The loads that stay where they are and bring each thread few elements."""
    return [
        statement for statement in plan.given.top[loop]
        if isinstance(statement, Assign) and statement not in plan.replaced
        and is_plain_load(plan, statement, only_value=False) and is_small(statement.target, plan.given.options.num_warps)
    ]  # fmt: skip


def _has_no_copy(facts: Facts, statement: Assign) -> bool:
    """Whether a load makes accesses that `cp.async` does not have."""
    target, pointer = statement.target, statement.value.args[0]  # type: ignore[attr-defined]
    info, itemsize = facts.at(statement).info(pointer), target.type.dtype.itemsize
    widths = (math.gcd(run * itemsize, info.divisibility[axis]) for axis, run in enumerate(info.contiguity))
    return max(itemsize, *widths) < min(COPY_BYTES)


def _load_ahead(plan: RingPlan, loop: For, statement: Assign) -> None:
    if plan.given.induction.changed[loop] & {*used_variables(loop.stop), *used_variables(loop.step)}:
        return
    found = load_in_any_trip(plan, statement, loop)
    if found is None or found.numbers or found.totals:
        return
    (call,) = found.calls
    if loop.variable not in {v for arg in call.args for v in used_variables(arg)}:
        return
    target = statement.target
    ahead = plan.variable(f"next_{target.stem}", target.type)
    plan.for_next.append(ahead)
    use = Use(loop.variable.type, loop.variable)
    later = Call(loop.variable.type, "add", (use, loop.step))
    quiet = replace(statement.origin, comments=(), blank_before=False)
    first = Assign(quiet.noted(FIRST), (ahead,), _at(call, loop, loop.start))
    after = Assign(quiet.noted(NEXT), (ahead,), _at(call, loop, later))
    plan.add_before(loop, first)
    plan.replaced[statement] = replace(
        statement, origin=statement.origin.noted(AHEAD), value=Use(ahead.type, ahead, span=call.span)
    )
    plan.add_behind(statement, after)


def _at(call: Call, loop: For, place: Expr) -> Call:
    """A load of the iteration whose variable has the value `place`; of none, where the loop ends before it."""
    pointer, *rest = (substituted(arg, {loop.variable: place}) for arg in call.args)
    exists: Expr = Call(ValueType(int1), "gt" if loop.descending else "lt", (place, loop.stop))
    if pointer.type.is_tile:
        exists = Call(ValueType(int1, pointer.type.shape), "broadcast", (exists,))
    mask = Call(exists.type, "and", (exists, rest[0])) if rest else exists
    return replace(call, args=(pointer, mask, *rest[1:]))
