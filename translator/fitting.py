"""The plan that fits the target: decisions that only a whole plan can judge.

In: a kernel. Out: its `Plan`, that is, the kernel in the form that was scheduled, with facts, schedule and unit.

How many stages and blocks have room, and whether it pays to start products or loads earlier, is known when the registers and the
shared memory of a whole plan have been counted. So the plain plan is made first, and others that may take its place after it:

- `fitted`: arrays share their memory as far as they must.
- `_fitted`: twice the warps, fewer moves between threads, loads and products earlier, small loads ahead, teams that take turns.
- `_in_blocks`: room for a second block, or for more of them.
- `_with_room`: as many stages as fit, with arrays of their own or shared ones.
- `_planned`: one plan, without any choice left.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial

from .analysis.facts import Facts, find_facts
from .artifact import Options, Target
from .diagnostics import OutOfResources
from .frozen import frozen
from .ir.nodes import Kernel, Variable
from .lower.kernel import lower_kernel
from .lower.shared.turns import Sharing
from .lower.text.unit import Unit
from .preparing import check, prepared
from .schedule.decide import decide
from .schedule.more_blocks import has_more_blocks, wants_more_blocks
from .schedule.plan import Schedule
from .schedule.products.dots import dot_statements, plan_dots
from .schedule.products.second_block import half_of, serves_two
from .schedule.products.stagger import without_copied_operands
from .schedule.rewrites.early_loads import with_early_loads
from .schedule.rewrites.early_products import serves, with_early_products
from .schedule.rewrites.narrow_moves import with_narrow_moves
from .schedule.rewrites.second_loads import with_second_loads
from .schedule.staging import rings, teams
from .schedule.staging.own_stages import loads_not_ahead
from .schedule.staging.refilled import wants_refilled
from .schedule.staging.ring_plan import Rings, RingWishes
from .schedule.staging.small_loads import loads_more, may_load_more


@frozen
class Plan:
    """A kernel as it was scheduled, what is known of it, what was decided, and what is to be written."""

    kernel: Kernel
    facts: Facts
    schedule: Schedule
    unit: Unit


@frozen
class _Request:
    """What a plan is made for.

    Attributes:
      kernel: the kernel, before its rings are planned.
      options: those of the launch.
      target: the architecture, with the room that a block may take.
      sharing: which arrays may share their memory.
      blocks: for how many blocks on a multiprocessor registers are to be left.
      small_loads: whether small tiles are loaded ahead, too.
      in_place: whether rows that are not aligned are stored from where they are held, through no shared memory.
      teams: how many take turns at the programs of a block.
      refilled: whether a stage that threads copy into is filled again where it has been read, and there is one less.
    """

    kernel: Kernel
    options: Options
    target: Target
    sharing: Sharing
    blocks: int = 1
    small_loads: bool = False
    in_place: bool = False
    teams: int = 1
    refilled: bool = False


def fitted(kernel: Kernel, options: Options, target: Target) -> Plan:
    """The plan of a kernel: its loads and products as early as they can be where registers have room for that.

    Where a kernel fits in no other way, shared arrays have their memory only where they are in use, and rows that are not aligned
    are stored from where they are held.

    Raises:
      OutOfResources: when the kernel does not fit at all.
    """
    plain = _Request(kernel, options, target, Sharing.AREAS)
    try:
        return _fitted(plain)
    except OutOfResources:
        for sharing, in_place in ((Sharing.NESTED, False), (Sharing.AREAS, True), (Sharing.NESTED, True)):
            with suppress(OutOfResources):
                return _fitted(replace(plain, sharing=sharing, in_place=in_place))
        raise


def _fitted(written: _Request) -> Plan:
    """The plan of a kernel as it was written, whose arrays share their memory that much at most.

    Where a thread cannot hold its tiles, and the multiprocessor has more registers than that many threads can have, the block
    gets twice the warps that were asked for.
    """
    options = written.options
    request = replace(written, kernel=prepared(written.kernel, options, written.target))
    plan = _in_blocks(request)
    if plan.schedule.wants_more_warps:
        with suppress(OutOfResources):
            return _fitted(replace(written, options=replace(options, num_warps=2 * options.num_warps)))
    request, plan = _in_place_for_stages(request, *_with_fewer_moves(request, plan))
    request, plan = _with_early_work(request, plan)
    return _with_teams(request, _with_small_loads(request, plan))


# --------------------------------------------------------------------------- what may take the place of the plain plan


def _with_fewer_moves(request: _Request, plan: Plan) -> tuple[_Request, Plan]:
    """The kernel with less that moves between threads than in its plan, and the plan of that."""
    kernel = request.kernel
    for name, rewritten in (("second_loads", with_second_loads), ("narrow_moves", with_narrow_moves)):
        before, kernel = kernel, rewritten(kernel, plan.facts, plan.schedule)
        if kernel is not before:
            check(kernel, name)
    if kernel is request.kernel:
        return request, plan
    request = replace(request, kernel=kernel)
    return request, _in_blocks(request)


def _in_place_for_stages(written: _Request, request: _Request, plan: Plan) -> tuple[_Request, Plan]:
    """The kernel as `written` whose rows that are not aligned stay in place, where what they move through takes stages."""
    if _takes_stages(request, plan) and not written.in_place:
        other = replace(written, in_place=True)
        with suppress(OutOfResources):
            found = _in_blocks(other)
            if _stages_of(found.schedule.rings) > _stages_of(plan.schedule.rings):
                return other, found
    return request, plan


def _with_early_work(request: _Request, plan: Plan) -> tuple[_Request, Plan]:
    """The kernel with loads and products of its dots moved up, and the plan of that, where that serves."""
    kernel = request.kernel
    if not any(True for _ in dot_statements(kernel)):
        return request, plan
    dots = plan_dots(kernel, find_facts(kernel), request.options, request.target)  # by themselves, whatever loads ahead
    early = kernel if _takes_turns(plan) else with_early_loads(kernel, dots.staged)
    early = with_early_products(early, lambda dot: dot in dots.plans and dots.plans[dot].runs_by_itself)
    if early is kernel:
        return request, plan
    check(early, "early_loads and early_products")
    moved = replace(request, kernel=early)
    found = _in_blocks(moved)
    return (moved, found) if serves(found.schedule, plan.schedule) else (request, plan)


def _with_small_loads(request: _Request, plan: Plan) -> Plan:
    """The plan in which small tiles are loaded ahead as well, where that hides more."""
    if not may_load_more(plan.kernel, plan.schedule):
        return plan
    more = _in_blocks(replace(request, small_loads=True))
    return more if loads_more(more.schedule, plan.schedule) else plan


def _with_teams(request: _Request, plan: Plan) -> Plan:
    """The plan in which two warpgroups take turns at programs, where one by itself would have the multiprocessor."""
    if request.options.few_programs or not teams.may_take_turns(plan.kernel, plan.facts, plan.schedule):
        return plan
    with suppress(OutOfResources):
        in_turns = _with_room(replace(request, teams=teams.TEAMS, sharing=Sharing.NONE))
        return in_turns if teams.serves_teams(in_turns.schedule, in_turns.unit.shared_bytes) else plan
    return plan


# ------------------------------------------------------------------------------------------------ blocks and stages


def _in_blocks(request: _Request) -> Plan:
    """The plan for as many blocks on a multiprocessor as pay and fit.

    Raises:
      OutOfResources: when the kernel does not fit at all.
    """
    found = _with_room(request)
    if request.options.few_programs:
        return found
    if found.schedule.wants_second_block:
        with suppress(OutOfResources):
            smaller = _with_room(replace(request, target=half_of(request.target), blocks=2))
            return smaller if serves_two(smaller.schedule, found.schedule) else found
    if wants_refilled(found.kernel, found.facts, found.schedule, found.unit.shared_bytes):
        again = _planned(replace(request, refilled=True), _stages_of(found.schedule.rings))
        if isinstance(again, Plan) and has_more_blocks(
            again.schedule, again.unit.shared_bytes, found.unit.shared_bytes
        ):
            return again
    if wants_more_blocks(found.schedule, found.unit.shared_bytes) and not _takes_turns(found):
        for sharing in (Sharing.AREAS, Sharing.NESTED):
            in_turns = _planned(replace(request, sharing=sharing), _stages_of(found.schedule.rings))
            if isinstance(in_turns, Plan) and has_more_blocks(
                in_turns.schedule, in_turns.unit.shared_bytes, found.unit.shared_bytes
            ):
                return in_turns
    return found


def _takes_turns(plan: Plan) -> bool:
    """Whether arrays share their memory."""
    return any(array.turn for array in plan.unit.dynamic_shared)


@frozen
class _NoRoom:
    """A plan that does not fit: how many stages it has at most, 1 without rings, and what it lacks."""

    stages: int
    error: OutOfResources


def _with_room(request: _Request) -> Plan:
    """The plan with as many stages in its rings as shared memory has room for.

    Where there is room for no ring, or not even for the kernel without one, arrays share their memory.

    Raises:
      OutOfResources: when the kernel does not fit even so.
    """
    most = max(request.options.num_stages, rings.MOST_STAGES)
    if request.sharing is Sharing.AREAS:  # nested ones are for kernels for which even these have no room
        apart = replace(request, sharing=Sharing.NONE)
        found = _with_most_stages(partial(_planned, apart), rings.LEAST_STAGES, most)
        if isinstance(found, Plan):
            return _with_more_stages(request, found, most)
    least = 1 if request.blocks == 1 else rings.LEAST_STAGES  # 1, without rings, where nothing else fits
    found = _with_most_stages(partial(_planned, request), least, most)
    if isinstance(found, _NoRoom):
        raise found.error
    if any(ring.kind == "own" for ring in found.schedule.rings.rings):
        plain = _planned(request, 1)  # accumulators come before what threads load ahead: they would be in local memory
        if isinstance(plain, Plan) and found.schedule.in_shared < plain.schedule.in_shared:
            return plain
    return _with_more_stages(request, found, most) if request.sharing is Sharing.AREAS else found


def _with_more_stages(request: _Request, apart: Plan, most: int) -> Plan:
    """The plan with more stages, of those asked for, where what moves between threads can have the memory of a ring behind it."""
    if not _takes_stages(request, apart):
        return apart
    stages = _stages_of(apart.schedule.rings)
    nested = _with_most_stages(partial(_planned, replace(request, sharing=Sharing.NESTED)), stages + 1, most)
    return nested if isinstance(nested, Plan) and _stages_of(nested.schedule.rings) > stages else apart


def _takes_stages(request: _Request, plan: Plan) -> bool:
    """Whether rings of products have fewer stages than asked for, perhaps for what moves between threads."""
    wanted = max(request.options.num_stages, rings.LEAST_STAGES)
    moves = plan.schedule.conversions and plan.schedule.dots
    return bool(moves) and _stages_of(plan.schedule.rings) < wanted


def _with_most_stages(plan: Callable[[int], Plan | _NoRoom], least: int, most: int) -> Plan | _NoRoom:
    """The plan of the most stages from `least` to `most` that fits: fewer need no more room."""
    found = plan(most)
    if isinstance(found, Plan):
        return found
    most = found.stages - 1
    while least <= most:
        stages = (least + most + 1) // 2
        tried = plan(stages)
        if isinstance(tried, Plan):
            found, least = tried, stages + 1
        else:
            most = min(stages, tried.stages) - 1
    return found


def _planned(request: _Request, most_stages: int) -> Plan | _NoRoom:
    """The plan with rings of at most so many stages."""
    options, target, not_ahead = request.options, request.target, frozenset[Variable]()
    wishes = RingWishes(most_stages, request.small_loads, teams=request.teams, refilled=request.refilled)
    while True:
        kernel, chosen = rings.plan_rings(request.kernel, options, target, replace(wishes, not_ahead=not_ahead))
        facts = find_facts(kernel)
        schedule = decide(kernel, facts, options, target, chosen, request.blocks, request.in_place)
        late = loads_not_ahead(kernel, facts, schedule)
        if not late:
            break
        not_ahead |= late
    if request.sharing is not Sharing.NONE:
        rest = without_copied_operands(schedule.rings, schedule.dots, schedule.staged)
        schedule = replace(schedule, rings=rest)
    try:
        return Plan(kernel, facts, schedule, lower_kernel(kernel, facts, schedule, request.sharing))
    except OutOfResources as error:
        return _NoRoom(_stages_of(chosen), error)


def _stages_of(chosen: Rings) -> int:
    """The most stages of a ring; 1 without rings.

    Beside the stages on their way, threads hold the tile that they use: such a ring is one stage deeper than it says.
    """
    return max((ring.stages + (ring.kind == "own") for ring in chosen.rings), default=1)
