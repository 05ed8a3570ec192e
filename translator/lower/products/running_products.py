"""Products of wgmma that run on while their warps do something else: the wait stands where the first of the sums is used.

In a loop, a dot starts its products and closes their group; nothing waits for it yet. In front of every statement that reads
or writes a sum stands the wait for its group, which is complete when those that were started before it are; later ones
run on. A dot that adds to the same sum need not wait, for the tensor cores work in order. Everything is waited for where
the threads meet (what the products read may be written behind a barrier), where control flow begins, and at the end of a trip.
"""

from __future__ import annotations

from ...ir.nodes import Assign, Call, Statement, Use, Variable
from ...ir.walk import assigned_variables, read_variables
from ..context import Context
from ..text.unit import Line, Node


def dots_behind(context: Context, block: tuple[Statement, ...]) -> dict[Statement, tuple[Assign, ...]]:
    """By a dot, the dots right behind it in a block, whose operands can be copied with its own."""
    found: dict[Statement, tuple[Assign, ...]] = {}
    for place, first in enumerate(block):
        sums, others = list[Variable](), list[Assign]()
        for statement in block[place:]:
            plan = context.schedule.dots.get(statement)
            if plan is None or not isinstance(statement, Assign) or plan.instruction.kind != "wgmma":
                break
            if plan.instruction.split or not {plan.a.variable, plan.b.variable}.isdisjoint(sums):
                break
            sums.append(statement.target)
            others.append(statement)
        if len(others) > 1:
            found[first] = tuple(others[1:])
    return found


def runs_on(context: Context, statement: Assign) -> bool:
    """Notes that nothing has waited for a dot's products; False where the dot is to wait itself."""
    if context.around.may_run_on:
        context.progress.running = (*context.progress.running, statement)
    return context.around.may_run_on


def is_running(context: Context, statement: Assign) -> bool:
    """Whether products on their way add to the sum of a dot, whose registers are then not to be touched."""
    return any(dot.target is statement.target for dot in context.progress.running)


def wait_before(context: Context, statement: Statement, running: tuple[Assign, ...], meets: bool) -> tuple[Node, ...]:
    """The wait for those products of the `running` ones that a statement needs: all of them where it `meets` the others."""
    needed = [place for place, dot in enumerate(running) if meets or _touches(context, statement, dot)]
    if not needed:
        return ()
    complete, later = running[: needed[-1] + 1], running[needed[-1] + 1 :]
    context.progress.running = tuple(dot for dot in context.progress.running if dot not in complete)
    return _wait(context, complete, later)


def wait_for_all(context: Context) -> tuple[Node, ...]:
    """The wait for all products that are on their way."""
    running, context.progress.running = context.progress.running, ()
    return _wait(context, running, ()) if running else ()


def _wait(context: Context, complete: tuple[Assign, ...], later: tuple[Assign, ...]) -> tuple[Node, ...]:
    from .dot_wgmma import pin

    context.use_helper("wgmma_wait")
    sums = list(dict.fromkeys(dot.target for dot in complete if not any(dot.target is one.target for one in later)))
    plans = {dot.target: context.schedule.dots[dot] for dot in complete}
    words = [context.names.variable(one) for one in sums]
    comment = f"{' and '.join(words)} {'is' if len(words) == 1 else 'are'} complete"
    comment += ", later products run on" if later else ""
    pins = (pin(context, context.names.variable(one), plans[one].instruction.accumulator) for one in sums)
    return (Line(f"wgmma_wait<{len(later)}>();", comment), *pins)


def _touches(context: Context, statement: Statement, dot: Assign) -> bool:
    """Whether a statement reads or writes the sum of a dot, other than by adding further products to it."""
    read = list(read_variables(statement))
    if dot.target not in (*read, *assigned_variables(statement)):
        return False
    plan = context.schedule.dots.get(statement)
    if plan is None or not isinstance(statement, Assign) or not isinstance(statement.value, Call):
        return True
    if plan.instruction.kind != "wgmma" or plan.instruction.split or dot.target in (plan.a.variable, plan.b.variable):
        return True
    start = statement.value.args[2:]
    return not (
        statement.target is dot.target and start and isinstance(start[0], Use) and start[0].variable is dot.target
    )
