"""Numbers from memory that a loop's loads find their addresses by, such as the block of a page table: read ahead of them.

In: a load of a loop. Out: the load in terms of the loop's variable, of what the loop does not change, and of such numbers;
and the loads of these, each of which is made an iteration before what needs it, so that no copy waits for its address. Where
an address is found in several steps, each step is read an iteration before the next:

  iteration j starts the copies of iteration t, reads the rows of t + 1 from a list, and the place in the list of t + 2.

A number gets a variable of its own for every load that needs it, and for every step: its value is that of another iteration.
Sums of such numbers are kept for the copies alone (`running_totals.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from ...analysis.facts import unused_variables
from ...analysis.induction import Source
from ...frozen import frozen
from ...ir.nodes import Assign, Call, Expr, For, Use, Variable
from ...ir.rewrite import with_replaced
from ...ir.walk import children, used_variables
from ..tiles.layout import bits_of
from ..tiles.paths import Axes, operand_axes
from .ring_plan import ReadAhead, RingPlan
from .running_totals import RunningTotal, is_read_only, knowing, running_totals
from .trips import in_any_trip


@frozen
class Found:
    """A load that can be made ahead.

    Attributes:
      statement: the load as it stands.
      ahead: the same with operands for any trip.
      numbers: the loads of what these are found by: (as it stands, into a variable of its own).
      read: the same, as the ring has it.
      totals: sums of numbers that it is found by.
    """

    statement: Assign
    ahead: Assign
    numbers: tuple[tuple[Assign, Assign], ...] = ()
    read: tuple[ReadAhead, ...] = ()
    totals: tuple[RunningTotal, ...] = ()

    @property
    def calls(self) -> Iterator[Call]:
        """The load, and those that it depends on, for any trip."""
        yield from (s.value for s in (self.ahead, *(own for _, own in self.numbers)) if isinstance(s.value, Call))


def load_in_any_trip(plan: RingPlan, statement: Assign, loop: For) -> Found | None:
    """See the module docstring; None where a load cannot be ahead."""
    found = _found(plan, statement, loop, statement.target, 1)
    if found is not None or not statement.target.type.is_tile:
        return found
    totals = running_totals(plan, loop)
    return _found(plan, statement, loop, statement.target, 1, totals) if totals else None


def _found(
    plan: RingPlan,
    statement: Assign,
    loop: For,
    tile: Variable,
    distance: int,
    totals: tuple[RunningTotal, ...] = (),
) -> Found | None:
    numbers: list[tuple[Assign, Assign]] = []
    read: list[ReadAhead] = []

    def of_its_own(variable: Variable) -> Expr | None:
        version = plan.given.induction.versions[statement].get(variable)
        load = version.statement if version and version.source is Source.ASSIGNED else None
        if not isinstance(load, Assign) or load not in plan.given.top[loop] or not is_read_only(plan, load):
            return None
        below = _found(plan, load, loop, tile, distance + 1)
        if below is None:
            return None
        own = plan.variable(f"{'next' if distance == 1 else 'later'}_{variable.stem}", variable.type)
        numbers.extend((*below.numbers, (load, replace(below.ahead, targets=(own,)))))
        read.extend((*below.read, ReadAhead(own, distance, tile)))
        return Use(own.type, own)

    call = in_any_trip(knowing(plan.given.induction, totals), plan.given.facts, statement, loop, of_its_own)
    if call is None or not all(_seen_one_way(call, own.target) for _, own in numbers):
        return None
    used = {v for arg in call.args for v in used_variables(arg)}
    needed = tuple(one for one in totals if one.variable in used)
    return Found(statement, Assign(statement.origin, statement.targets, call), tuple(numbers), tuple(read), needed)


def _seen_one_way(call: Call, number: Variable) -> bool:
    """Whether a thread needs the same elements of a tile of numbers wherever it stands in a load: one array has them."""
    ways: set[Axes[tuple[int, int]] | None] = set()

    def visit(expr: Expr, axes: Axes[tuple[int, int]] | None) -> None:
        if isinstance(expr, Use) and expr.variable is number:
            ways.add(axes)
        for child in children(expr):
            if child.type.is_tile:
                visit(child, axes and operand_axes(expr, child, axes))

    for arg in call.args if number.type.is_tile else ():
        if arg.type.is_tile:
            visit(
                arg,
                tuple(tuple((axis, bit) for bit in range(bits_of(side))) for axis, side in enumerate(arg.type.shape)),
            )
    return None not in ways and len(ways) <= 1


def without_numbers(plan: RingPlan, found: list[Found], moved: list[Found]) -> list[Found]:
    """The loads that are still needed where they stand once the addresses of others, `moved` too, no longer come from them."""
    if not any(one.numbers or one.totals for one in (*moved, *found)):
        return found
    body = with_replaced(plan.given.kernel.body, plan.replaced | {one.statement: one.ahead for one in found})
    unused = unused_variables(body)
    return [one for one in found if one.statement.target not in unused]


def take(plan: RingPlan, found: Iterable[Found]) -> tuple[ReadAhead, ...]:
    """Puts loads for any trip in the place of those that stand in the loop; what they are found by is loaded beside them."""
    for one in found:
        plan.replaced[one.statement] = one.ahead
        for load, own in one.numbers:
            plan.add_before(load, own)
    return tuple(read for one in found for read in one.read)


def totals_of(found: Iterable[Found]) -> list[RunningTotal]:
    """The sums of numbers that some loads are found by, each once."""
    return list({one.variable: one for load in found for one in load.totals}.values())
