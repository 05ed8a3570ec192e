"""Which loads of a loop threads make ahead for themselves: tiles that are used in registers, not by dots from shared memory.

In: the plan of a kernel's rings and a loop. Out: the loads. Every thread copies the elements that it will hold to places of its
own and reads them back where the load stands, so that nobody waits for anybody. A scalar goes the same way: it is one element
that all threads hold, and loaded where it stands it would have all of them wait for memory.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from ...analysis.affine import NotAffineError
from ...analysis.coordinates import Reader
from ...analysis.induction import Induction
from ...ir.nodes import Assign, Call, For, Literal, Statement, Variable
from ...ir.structured import assigns
from ...ir.types import padded
from ...ir.walk import top_statements, used_variables
from ...language.dtypes import PointerType
from ..accesses.access import is_zero
from .read_ahead import Found, load_in_any_trip
from .ring_plan import RingPlan
from .running_totals import is_read_only

OVERLAPS = 8  # elements of a tile for each in memory, of a table that all lines of a tile are cut from
LEAST_BYTES = 4096  # of a stage, in a loop without dots: less is on its way soon enough


def may_load_ahead(loop: For) -> bool:
    """Whether loading ahead could pay in a loop without dots, by the sizes of its tiles alone."""
    calls = [s.value for s in top_statements(loop.body) if isinstance(s, Assign) and isinstance(s.value, Call)]
    tiles = [call.type for call in calls if call.op == "load" and call.type.is_tile and not call.type.is_pointer]
    size = sum(math.prod(map(padded, type_.shape)) * type_.dtype.itemsize for type_ in tiles)
    return size >= LEAST_BYTES or (bool(tiles) and dict(loop.options).get("num_stages") is not None)


def own_loads(plan: RingPlan, loop: For) -> list[Found]:
    """The loads that every iteration of a loop makes, and that can be made ahead."""
    found: list[Found] = []
    for statement in plan.given.top[loop]:
        if not isinstance(statement, Assign) or not is_plain_load(plan, statement):
            continue
        if statement.target in plan.given.wishes.not_ahead:
            continue
        one = load_in_any_trip(plan, statement, loop)
        if one is None or _asks_again(one) or _is_overlapping(plan.given.induction, statement):
            continue
        changing = {loop.variable, *(total.variable for total in one.totals)}
        if any(changing & set(used_variables(call.args[0])) for call in one.calls):
            found.append(one)
    return found


def _asks_again(one: Found) -> bool:
    """Whether the iteration that reads a load needs a mask of numbers that are those of a later iteration by then.

    Copies leave zeros outside of the mask; anything else is put there when the elements are read.
    """
    _, *rest = next(one.calls).args
    numbers = {own.target for _, own in one.numbers} | {total.variable for total in one.totals}
    return len(rest) > 1 and not is_zero(rest[1]) and bool(numbers & set(used_variables(rest[0])))


def _is_overlapping(induction: Induction, load: Assign) -> bool:
    """Whether many elements of a tile are few of memory, such as those of a table by differences of rows and columns.

    Loaded where they stand they are in the cache, at places that have an address in common; copies would each have their own.
    """
    type_ = load.target.type
    pointer = induction.value_at(load.value.args[0], load) if type_.is_tile else None  # type: ignore[attr-defined]
    if pointer is None:
        return False
    try:
        terms = Reader(numeric=True).sum(pointer)
    except NotAffineError:
        return False
    lanes = [term for term in terms if term.lane is not None]
    moving = {term.lane for term in lanes}  # along any other axis neighbours are one element, which is copied once
    if any(term.unknowns for term in lanes) or any(side > 1 and n not in moving for n, side in enumerate(type_.shape)):
        return False
    different = 1 + sum(abs(term.number) * (type_.shape[term.lane or 0] - 1) for term in lanes)
    return different * OVERLAPS < math.prod(type_.shape)


def large_loads(own: list[Found]) -> list[Found]:
    """The loads, if tiles among them are so large that it pays beside tensor copies: weights that a dot's operand is made of.

    A row of statistics is there soon enough, unless the loop has several products, which wait for one another, or computes an
    operand in registers, and there are registers to spare (`small_loads.py`).
    """
    return own if any(tile_bytes(one.statement.target) >= LEAST_BYTES for one in own) else []


def several_products(block: Iterable[Statement]) -> bool:
    """Whether there is more than one dot in a block."""
    return sum(assigns(s, "dot") for s in block) > 1


def tile_bytes(variable: Variable) -> int:
    """Bytes of a tile, with its padding; none of a scalar."""
    type_ = variable.type
    return math.prod(map(padded, type_.shape)) * type_.dtype.itemsize if type_.is_tile else 0


def is_plain_load(plan: RingPlan, statement: Assign, only_value: bool = True) -> bool:
    """Whether a load brings elements into registers, from memory that the kernel does not write, without special wishes.

    As a rule it is the `only_value` of its variable, which then stands for what was copied.
    """
    call, target = statement.value, statement.targets[0]
    if not isinstance(call, Call) or not is_read_only(plan, statement):
        return False
    if (only_value and plan.given.facts.assignments[target] != 1) or target in plan.given.facts.unused:
        return False
    pointee = call.args[0].type.element
    if not isinstance(pointee, PointerType) or pointee.element_ty.is_bool():
        return False
    return len(call.args) < 3 or isinstance(call.args[2], Literal)
