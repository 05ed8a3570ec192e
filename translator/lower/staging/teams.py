"""Warpgroups that take turns at the programs of a block (`schedule/staging/teams.py`): who is who, and whose turn it is.

All count the programs of their block, and pass over those of the others with the stages that these use. The products of a program
begin when those of the one before it are complete: a barrier of a stage tells of one use after the other, and not of which.
"""

from __future__ import annotations

from ...hardware import LAST_BARRIER
from ...ir.nodes import Literal
from ...schedule.staging.teams import TEAMS, bounds_of_program
from ..context import Context
from ..text.operators import Text, infix
from ..text.unit import Assignment, Branch, Declaration, Line, Node, const
from .ring_barriers import position_name

TURN_BARRIER = LAST_BARRIER - TEAMS  # the first of one for each


def team_and_thread(context: Context) -> tuple[Node, ...]:
    """The numbers of a thread's team, and of the thread in it: what is computed of the latter is the same in all."""
    last = context.schedule.rings.teams
    return (
        const("int", context.axis_names.team, "threadIdx.x / NUM_THREADS", f"team {last} loads"),
        const("int", context.axis_names.tid, "threadIdx.x % NUM_THREADS"),
    )


def turn_counters(context: Context) -> tuple[Node, ...]:
    """The counts that those start with who multiply, besides that of stages."""
    if context.schedule.rings.teams == 1:
        return ()
    return (
        const("int", _trips(context), _number_of_trips(context), "stages that a program uses"),
        Declaration("int", _turn(context), "0", comment="programs so far, those of other teams too"),
    )


def _number_of_trips(context: Context) -> str:
    """How many trips the loop over a program's products has."""
    (ring,) = context.schedule.rings.rings
    bounds = bounds_of_program(context.kernel, context.facts, ring)
    if bounds is None:
        raise ValueError("teams whose programs have other loops")
    numbers = [int(bound.value) for bound in bounds if isinstance(bound, Literal)]
    if len(numbers) == len(bounds):
        return str(len(range(*numbers)))
    start, stop, step = map(context.speller.spell, bounds)
    known = context.role.loop_stops.get(ring.loop) or context.role.known_scalars.get(stop.text)
    stop = Text(known) if known else stop
    length = stop if start.text == "0" else infix(stop, "-", start)
    if step.text != "1":
        rest = Text(str(int(step.text) - 1)) if step.text.isdecimal() else infix(step, "-", Text("1"))
        length = infix(Text(f"{length.within(12)} + {rest.within(12)}", 12, "+"), "/", step)
    return f"max({length.text}, 0)"


def pass_over(context: Context) -> tuple[Node, ...]:
    """The end of a trip of the loop over programs that is another team's."""
    if context.schedule.rings.teams == 1 or context.role.name != "consumer":
        return ()
    (ring,) = context.schedule.rings.rings
    others = f"{_turn(context)}++ % {context.num_teams()} != {context.axis_names.team}"
    passed = Assignment(position_name(context, ring), _trips(context), "+")
    return (Branch(others, (passed, Line("continue;")), (), "the other team multiplies this program"),)


def turn_of_products(context: Context) -> tuple[tuple[Node, ...], tuple[Node, ...]]:
    """What stands in front of the loop over a program's products, and behind it."""
    if context.schedule.rings.teams == 1:
        return (), ()
    for helper in ("named_barrier_sync", "named_barrier_arrive"):
        context.use_helper(helper)
    barrier = context.constants.named(
        "TURN_BARRIER", TURN_BARRIER, "the teams' named barriers for their turns", topic="threads"
    )
    team, teams, threads = context.axis_names.team, context.num_teams(), context.multiplying_threads()
    wait = Line(f"named_barrier_sync({barrier} + {team}, {threads});", "the other team's products are complete")
    hand_over = Line(
        f"named_barrier_arrive({barrier} + ({team} + 1) % {teams}, {threads});", "it is the other team's turn"
    )
    return (Branch(f"{_turn(context)} > 1", (wait,), (), "all but the first program"),), (hand_over,)


def _trips(context: Context) -> str:
    return context.names.once("trips", "trips of a program")


def _turn(context: Context) -> str:
    return context.names.once("turn", "turn of a team")
