"""Loads that no copy can make ahead are made an iteration ahead all the same, into registers.

In: the plan of a kernel's rings and a loop that has one. Out: the loads, and in their places the statements that

    next_scale = load(of the first iteration)         in front of the loop
    for ...:
        scale = next_scale
        next_scale = load(of the next iteration)      where there is one

`cp.async` copies 4 bytes and more. Bytes, and halves whose places are not known to be even, would be loaded in their turn, and
every iteration wait for memory once more: scales of small floats, zero points, lists of bits. Only small tiles are loaded
so, for they take registers twice.
"""

from __future__ import annotations

import math
from dataclasses import replace

from ...analysis.axis_info import axis_info
from ...hardware import COPY_BYTES, WARP_SIZE
from ...ir.nodes import Assign, Call, Expr, For, Statement, Use, Variable
from ...ir.rewrite import substituted
from ...ir.types import ValueType, padded
from ...ir.walk import assigned_variables, statements, used_variables
from ...language.dtypes import int1
from .own_stages import is_plain_load
from .read_ahead import load_in_any_trip
from .ring_plan import RingPlan

MOST_ELEMENTS = 16  # of a tile for each thread: as many registers
FIRST, AHEAD, NEXT = "for the first iteration", "loaded an iteration ahead", "for the next iteration"


def load_into_registers(plan: RingPlan, loop: For, top: list[Statement]) -> None:
    """Adds to the plan what the module's docstring says; `top` has the statements that every iteration passes once."""
    changed = {v for inner in statements(loop.body) for v in assigned_variables(inner)}
    if loop.descending or changed & {*used_variables(loop.stop), *used_variables(loop.step)}:
        return
    for statement in top:
        if isinstance(statement, Assign) and id(statement) not in plan.replaced and _is_small(plan, statement):
            _load_ahead(plan, loop, statement, top)


def _is_small(plan: RingPlan, statement: Assign) -> bool:
    """Whether a load brings each thread few elements, by accesses that `cp.async` does not have."""
    if not is_plain_load(plan, statement):
        return False
    target, pointer = statement.target, statement.value.args[0]  # type: ignore[attr-defined]
    if math.prod(map(padded, target.type.shape)) > MOST_ELEMENTS * plan.options.num_warps * WARP_SIZE:
        return False
    info, itemsize = axis_info(pointer, plan.facts.environments[id(statement)]), target.type.dtype.itemsize
    widths = (math.gcd(run * itemsize, info.divisibility[axis]) for axis, run in enumerate(info.contiguity))
    return max(itemsize, *widths) < min(COPY_BYTES)


def _load_ahead(plan: RingPlan, loop: For, statement: Assign, top: list[Statement]) -> None:
    found = load_in_any_trip(plan, statement, loop, top)
    if found is None or found.numbers or found.totals:
        return
    (call,) = found.calls
    if loop.variable not in {v for arg in call.args for v in used_variables(arg)}:
        return
    plan.last_key += 1
    target = statement.target
    ahead = Variable(f"next_{target.name}", target.type, plan.last_key)
    plan.for_next.append(ahead)
    use = Use(loop.variable.type, loop.variable)
    later = Call(loop.variable.type, "add", (use, loop.step))
    quiet = replace(statement.origin, comments=(), blank_before=False)
    first = Assign(quiet.noted(FIRST), (ahead,), _at(call, loop, loop.start))
    after = Assign(quiet.noted(NEXT), (ahead,), _at(call, loop, later))
    plan.added.setdefault((id(loop), False), []).append(first)
    plan.replaced[id(statement)] = replace(
        statement, origin=statement.origin.noted(AHEAD), value=Use(ahead.type, ahead, span=call.span)
    )
    plan.added.setdefault((id(statement), True), []).append(after)


def _at(call: Call, loop: For, place: Expr) -> Call:
    """A load of the iteration whose variable has the value `place`; of none, where the loop ends before it."""
    pointer, *rest = (substituted(arg, {loop.variable: place}) for arg in call.args)
    exists: Expr = Call(ValueType(int1), "lt", (place, loop.stop))
    if pointer.type.is_tile:
        exists = Call(ValueType(int1, pointer.type.shape), "broadcast", (exists,))
    mask = Call(exists.type, "and", (exists, rest[0])) if rest else exists
    return replace(call, args=(pointer, mask, *rest[1:]))
