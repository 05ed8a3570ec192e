"""The plan that fits the target: decisions that only a whole plan can judge.

In: a kernel. Out: its `Plan`, that is, the kernel in the form that was scheduled, with facts, schedule and unit.

How many stages and blocks have room, and whether it pays to start products or loads earlier, is known when the registers and the
shared memory of a whole plan have been counted. So the plain plan is made first, and others that may take its place after it.
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
from .schedule.staging import rings
from .schedule.staging.own_stages import loads_in_turn, loads_more, may_load_more
from .schedule.staging.ring_plan import Rings


@frozen
class Plan:
    """A kernel as it was scheduled, what is known of it, what was decided, and what is to be written."""

    kernel: Kernel
    facts: Facts
    schedule: Schedule
    unit: Unit


def fitted(kernel: Kernel, options: Options, target: Target) -> Plan:
    """The plan of a kernel: its loads and products as early as they can be where registers have room for that.

    Where a thread cannot hold its tiles, and the multiprocessor has more registers than that many threads can have, the block
    gets twice the warps that were asked for.

    Where a kernel fits in no other way, shared arrays have their memory only where they are in use.

    Raises:
      OutOfResources: when the kernel does not fit at all.
    """
    try:
        return _fitted(kernel, options, target, Sharing.AREAS)
    except OutOfResources:
        with suppress(OutOfResources):
            return _fitted(kernel, options, target, Sharing.NESTED)
        raise


def _fitted(kernel: Kernel, options: Options, target: Target, most: Sharing) -> Plan:
    """The plan of a kernel whose arrays share their memory that much at most."""
    written, kernel = kernel, prepared(kernel, options, target)
    plain = _in_blocks(kernel, options, target, most)
    if plain.schedule.wants_more_warps:
        with suppress(OutOfResources):
            return _fitted(written, replace(options, num_warps=2 * options.num_warps), target, most)
    fewer = _with_fewer_moves(kernel, plain)
    if fewer is not kernel:
        kernel, plain = fewer, _in_blocks(fewer, options, target, most)
    early = _with_early_work(kernel, plain, options, target)
    if early is not kernel:
        check(early, "early_loads and early_products")
        found = _in_blocks(early, options, target, most)
        kernel, plain = (early, found) if serves(found.schedule, plain.schedule) else (kernel, plain)
    if not may_load_more(plain.kernel, plain.schedule):
        return plain
    more = _in_blocks(kernel, options, target, most, small_loads=True)
    return more if loads_more(more.schedule, plain.schedule) else plain


def _with_fewer_moves(kernel: Kernel, plain: Plan) -> Kernel:
    """The kernel with less that moves between threads than in its plan; the same object where nothing does."""
    for name, rewritten in (("second_loads", with_second_loads), ("narrow_moves", with_narrow_moves)):
        before, kernel = kernel, rewritten(kernel, plain.facts, plain.schedule)
        if kernel is not before:
            check(kernel, name)
    return kernel


def _with_early_work(kernel: Kernel, plain: Plan, options: Options, target: Target) -> Kernel:
    """The kernel with loads and products of its dots moved up; the same object where none moves."""
    if not any(True for _ in dot_statements(kernel)):
        return kernel
    dots = plan_dots(kernel, find_facts(kernel), options, target)  # by themselves, whatever loads ahead
    early = kernel if _takes_turns(plain) else with_early_loads(kernel, dots.staged)
    return with_early_products(early, lambda dot: id(dot) in dots.plans and dots.plans[id(dot)].runs_by_itself)


def _takes_turns(plan: Plan) -> bool:
    """Whether arrays share their memory."""
    return any(array.turn for array in plan.unit.dynamic_shared)


def _in_blocks(kernel: Kernel, options: Options, target: Target, most: Sharing, small_loads: bool = False) -> Plan:
    """The plan for as many blocks on a multiprocessor as pay and fit.

    Raises:
      OutOfResources: when the kernel does not fit at all.
    """
    found = _with_room(kernel, options, target, 1, small_loads, most)
    if found.schedule.wants_second_block:
        with suppress(OutOfResources):
            smaller = _with_room(kernel, options, half_of(target), 2, small_loads, most)
            return smaller if serves_two(smaller.schedule, found.schedule) else found
    if wants_more_blocks(found.schedule, found.unit.shared_bytes) and not _takes_turns(found):
        stages = _stages_of(found.schedule.rings)
        in_turns = _planned(kernel, options, target, 1, small_loads, Sharing.AREAS, stages)
        if isinstance(in_turns, Plan) and has_more_blocks(
            in_turns.schedule, in_turns.unit.shared_bytes, found.unit.shared_bytes
        ):
            return in_turns
    return found


@frozen
class _NoRoom:
    """A plan that does not fit: how many stages it has at most, 1 without rings, and what it lacks."""

    stages: int
    error: OutOfResources


def _with_room(
    kernel: Kernel, options: Options, target: Target, blocks: int, small_loads: bool, sharing: Sharing
) -> Plan:
    """The plan with as many stages in its rings as shared memory has room for.

    Where there is room for no ring, or not even for the kernel without one, arrays share their memory.

    Raises:
      OutOfResources: when the kernel does not fit even so.
    """
    most = max(options.num_stages, rings.MOST_STAGES)
    plan = partial(_planned, kernel, options, target, blocks, small_loads)
    if sharing is Sharing.AREAS:  # nested ones are for kernels for which even these have no room
        found = _with_most_stages(partial(plan, Sharing.NONE), rings.LEAST_STAGES, most)
        if isinstance(found, Plan):
            return found
    least = 1 if blocks == 1 else rings.LEAST_STAGES  # 1, without rings, where nothing else fits
    found = _with_most_stages(partial(plan, sharing), least, most)
    if isinstance(found, _NoRoom):
        raise found.error
    if any(ring.kind == "own" for ring in found.schedule.rings.rings):
        plain = plan(sharing, 1)  # accumulators come before what threads load ahead: they would be in local memory
        if isinstance(plain, Plan) and found.schedule.in_shared < plain.schedule.in_shared:
            return plain
    return found


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


def _planned(
    kernel: Kernel, options: Options, target: Target, blocks: int, small_loads: bool, sharing: Sharing, most_stages: int
) -> Plan | _NoRoom:
    """The plan with rings of at most so many stages."""
    not_ahead = frozenset[Variable]()
    while True:
        planned, chosen = rings.plan_rings(kernel, options, target, most_stages, small_loads, not_ahead)
        facts = find_facts(planned)
        schedule = decide(planned, facts, options, target, chosen, blocks)
        late = loads_in_turn(planned, facts, schedule)
        if not late:
            break
        not_ahead |= late
    if sharing is not Sharing.NONE:
        rest = without_copied_operands(schedule.rings, schedule.dots, schedule.staged)
        schedule = replace(schedule, rings=rest)
    try:
        return Plan(planned, facts, schedule, lower_kernel(planned, facts, schedule, sharing))
    except OutOfResources as error:
        return _NoRoom(_stages_of(chosen), error)


def _stages_of(chosen: Rings) -> int:
    """The most stages of a ring; 1 without rings.

    Beside the stages on their way, threads hold the tile that they use: such a ring is one stage deeper than it says.
    """
    return max((ring.stages + (ring.kind == "own") for ring in chosen.rings), default=1)
