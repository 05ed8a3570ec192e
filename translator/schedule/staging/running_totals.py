"""Sums of numbers from memory that a loop's loads find their addresses by, kept a second time for the copies.

  for k in range(count):
      tile = tl.load(x_ptr + place + ...)
      place += tl.load(steps_ptr + k)

Where the tile of a trip lies is known when the trips before it are over, so there is no closed form. But copies are started
trip by trip, in order: with a total of their own, and the numbers read a second time, they are as many trips ahead as they
have stages. A thread that does nothing but load needs it for tiles of indices or pointers alone, which it has none of.

In: a loop. Out: the total of each of its irregular steps, and the statements that keep it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import replace

from ...analysis.induction import Induction, Source, Step, without_broadcasts
from ...frozen import frozen
from ...ir.nodes import Assign, Call, Expr, For, Literal, Statement, Use, Variable
from ...ir.types import ValueType
from ...ir.walk import used_variables
from ...language.dtypes import int64
from ..accesses.pointers import roots_of
from .ring_plan import RingPlan
from .trips import value_in_any_trip

NOTE = "for the next copies"
AT_FIRST = "nothing so far, for the first copies"


@frozen
class RunningTotal:
    """What a loop has added to a variable in the trips whose copies have been started.

    Attributes:
      variable: the total, a scalar.
      value: what it says of how far the loop's own variable has moved: the total, times what all trips multiply by.
      step: the change of that variable.
      reads: the loads of the numbers that a trip adds, into variables of their own.
      update: the addition.
    """

    variable: Variable
    value: Expr
    step: Step
    reads: tuple[Assign, ...]
    update: Assign

    @property
    def statements(self) -> tuple[Assign, ...]:
        """What the end of a trip does for it."""
        return (*self.reads, self.update)


def is_read_only(plan: RingPlan, load: Assign) -> bool:
    """Whether a statement loads what the kernel does not write, so that it may be read in another iteration."""
    call = load.value
    if not isinstance(call, Call) or call.op != "load" or load.target in plan.dots.staged:
        return False
    if call.attribute("volatile") or call.attribute("cache_modifier"):
        return False
    return roots_of(call.args[0], plan.given.sources) <= plan.given.read_only


def running_totals(plan: RingPlan, loop: For) -> tuple[RunningTotal, ...]:
    """The totals of a loop's steps that have no closed form."""
    if loop not in plan.totals:
        reads: dict[Variable, Assign] = {}
        steps = plan.given.induction.steps[loop].values()
        found = [_total(plan, step, loop, reads) for step in steps if not _is_regular(plan.given.induction, step, loop)]
        plan.totals[loop] = tuple(total for total in found if total is not None)
    return plan.totals[loop]


def knowing(induction: Induction, totals: Sequence[RunningTotal]) -> Induction:
    """The same induction, in which irregular steps of a loop have closed forms, of these totals."""
    sums: dict[Statement, Expr] = {one.step.update: one.value for one in totals}
    return replace(induction, totals=sums)


def _is_regular(induction: Induction, step: Step, loop: For) -> bool:
    """Whether a step has a closed form, in which its own variable does not occur."""
    target = step.update.target
    found = induction.value_at(Use(target.type, target), loop.body[0])
    return found is not None and target not in used_variables(found)


def _total(plan: RingPlan, step: Step, loop: For, reads: dict[Variable, Assign]) -> RunningTotal | None:
    """The total of a step; None where it adds what a trip computes, or what differs between the elements of a tile.

    `reads` are the loads that have been made again for other totals.
    """
    amount, factor = _with_factor(without_broadcasts(step.amount), plan.given.induction.changed[loop])
    top = plan.given.top[loop]
    if amount.type.is_tile or step.update not in top:
        return None

    def read_again(variable: Variable, place: Statement = step.update) -> Expr | None:
        version = plan.given.induction.versions[place].get(variable)
        load = version.statement if version and version.source is Source.ASSIGNED else None
        if not isinstance(load, Assign) or not isinstance(load.value, Call) or variable.type.is_tile:
            return None
        if load not in top or not is_read_only(plan, load):
            return None
        if variable not in reads:
            args = [
                value_in_any_trip(
                    plan.given.induction, plan.given.facts, arg, load, loop, lambda other: read_again(other, load)
                )
                for arg in load.value.args
            ]
            if None in args:
                return None
            call = replace(load.value, args=tuple(arg for arg in args if arg is not None))
            reads[variable] = Assign(
                load.origin.noted(NOTE), (plan.variable(f"ahead_{variable.name}", variable.type),), call
            )
        own = reads[variable].target
        return Use(own.type, own)

    value = value_in_any_trip(plan.given.induction, plan.given.facts, amount, step.update, loop, read_again)
    if value is None:
        return None
    if step.update.target.type.is_pointer:  # an address has no end where 32 bits have
        value, factor = _long(value), factor and _long(factor)
    total = plan.variable(f"ahead_{step.update.target.name}", value.type)
    use = Use(value.type, total)
    added = Call(value.type, "sub" if step.negative else "add", (use, value))
    update = Assign(step.update.origin.noted(NOTE), (total,), added)
    moved = use if factor is None else Call(value.type, "mul", (use, factor))
    return RunningTotal(total, moved, step, _needed(value, reads), update)


def _with_factor(amount: Expr, changed: Set[Variable]) -> tuple[Expr, Expr | None]:
    """An amount, and what a loop that has `changed` these multiplies all its amounts by: it says along which axis they are."""
    if isinstance(amount, Call) and amount.op == "mul":
        for each, factor in (amount.args, reversed(amount.args)):
            if not changed & set(used_variables(factor)) and each.type == factor.type == amount.type:
                return each, factor
    return amount, None


def _long(value: Expr) -> Expr:
    return value if value.type.dtype.bits == int64.bits else Call(ValueType(int64), "cast", (value,))


def _needed(value: Expr, reads: Mapping[Variable, Assign]) -> tuple[Assign, ...]:
    """The loads that a value depends on, each behind those of its address."""
    wanted = set(used_variables(value))
    for read in reversed(list(reads.values())):
        if read.target in wanted:
            wanted |= {v for arg in read.value.args for v in used_variables(arg)}  # type: ignore[attr-defined]
    return tuple(read for read in reads.values() if read.target in wanted)


def keep_totals(plan: RingPlan, loop: For, totals: Iterable[RunningTotal]) -> None:
    """Adds what keeps some totals to the kernel, at the end of every trip."""
    kept: list[Variable] = []
    for total in dict.fromkeys(totals):
        origin = total.step.update.origin.noted(AT_FIRST)
        start = Assign(origin, (total.variable,), Literal(total.variable.type, 0))
        behind = [statement for statement in total.statements if statement.target not in kept]
        plan.add_before(loop, start)
        plan.add_behind(loop.body[-1], *behind)
        kept += [statement.target for statement in behind]


def assigned_for(totals: Iterable[RunningTotal]) -> tuple[Variable, ...]:
    """The variables that the ends of trips assign for some totals."""
    return tuple(dict.fromkeys(statement.target for total in totals for statement in total.statements))
