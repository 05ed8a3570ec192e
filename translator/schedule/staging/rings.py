"""Which loops load ahead, and how.

In: a typed kernel with prepared dots. Out: the kernel in which such loads say where their elements lie in terms of the
loop's variable alone, so that any iteration's loads can be started from any other, and a `Ring` per loop:

- "tma": one thread of a warpgroup of its own starts tensor copies of whole boxes; the others wait for bytes, not threads.
  For loads that are boxes of a tensor (analysis/boxes.py), however the program spells them; on sm_90 with wgmma.
- "cp_async": every thread starts its share of the copies, `stages - 1` iterations ahead; of rows that are not aligned as
  they lie in memory (row_copies.py).
- "own": no tile of the loop is for a dot; every thread starts copies of what it will hold itself, `stages` ahead.

Tiles that are used in registers are loaded ahead too: beside tensor copies by these where they are large (`box_reads.py`),
otherwise by their threads (`own_loads.py`), or an iteration ahead into registers where no copy takes them (`next_loads.py`).
Loads may find their addresses by numbers from memory (`read_ahead.py`). A load that depends on anything else that an iteration
computes is in no ring: it is made where it stands.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache, partial

from ...analysis.boxes import Box, NotABox
from ...analysis.facts import Facts, find_facts
from ...analysis.induction import closed_forms
from ...analysis.outliving import Outside, Reads, find_reads
from ...analysis.ranges import number_of
from ...analysis.settled import settled_scalars
from ...artifact import Options, Target
from ...frozen import frozen
from ...hardware import WARP_SIZE
from ...ir.nodes import (
    Assign,
    For,
    If,
    Inlined,
    Kernel,
    Literal,
    Statement,
    Use,
    Variable,
    While,
)
from ...ir.rewrite import with_replaced
from ...ir.structured import assigns
from ...ir.walk import (
    assigned_variables,
    expressions,
    next_key,
    read_variables,
    statements,
    top_statements,
    used_variables,
    where_from,
)
from ..accesses.pointers import pointer_sources, read_only_pointers, roots_of
from ..accesses.waiting import polls, waits_for_grids
from ..products.computed_operands import read_boxes
from ..products.dot_plan import Dots
from ..products.dots import dot_statements, plan_dots
from .box_reads import multiply_where_it_lies, read_box, read_large_tiles
from .joined_trips import join, joined_trips
from .lone_thread import find_lone_thread
from .next_loads import load_into_registers, load_recurrence, may_be_recurrence
from .own_loads import large_loads, may_load_ahead, own_loads, several_products
from .own_stages import evenly_shared_blocks, own_stages
from .persistence import axes_of_programs, is_for_one_tile
from .read_ahead import Found, load_in_any_trip, take, totals_of, without_numbers
from .ring_plan import ALIGNED_STAGES, Ring, RingFacts, RingKind, RingPlan, Rings, RingWishes
from .row_copies import row_load
from .running_totals import RunningTotal, assigned_for, keep_totals, knowing, running_totals
from .shared_rings import share_rings
from .tensor_copies import box_load, boxed_tile, copy_stores, find_any_box, why_not_copied
from .useful_programs import without_conditions

MOST_STAGES = 8  # of tensor copies: more do not hide more latency
JOINED_STAGES = MOST_STAGES // 2  # of several trips
LEAST_STAGES = 2  # with fewer nothing is loaded ahead


def plan_rings(kernel: Kernel, options: Options, target: Target, wishes: RingWishes) -> tuple[Kernel, Rings]:
    """See the module docstring."""
    loops = list(_loops(kernel.body, False))
    dots = any(True for _ in dot_statements(kernel))
    may_pay = dots or any(may_load_ahead(loop) or may_be_recurrence(loop) for loop, _ in loops)
    if not loops or wishes.most_stages < LEAST_STAGES or not may_pay:
        return kernel, Rings()
    facts = find_facts(kernel)
    given = RingFacts(
        kernel=kernel,
        facts=facts,
        induction=closed_forms(kernel, facts),
        options=options,
        target=target,
        sources=pointer_sources(kernel),
        read_only=read_only_pointers(kernel),
        thread=find_lone_thread(kernel),
        settled=settled_scalars(kernel, facts),
        top={loop: tuple(top_statements(loop.body)) for loop, _ in loops},
        blocks=cache(partial(evenly_shared_blocks, kernel, facts, options.num_warps * WARP_SIZE, target)),
        wishes=wishes,
    )
    plan = RingPlan(given, plan_dots(kernel, facts, options, target), next_key(kernel))
    reads = find_reads(kernel, facts)
    for loop, nested in loops:
        _plan_loop(plan, loop, nested, reads)
    if any(ring.kind == "tma" for ring in plan.rings):
        copy_stores(plan)
    repeated = sum(ring.kind == "tma" for ring in plan.rings) > 1
    axes, useful = axes_of_programs(plan, loops)
    rings = tuple(
        replace(ring, counted=ring.counted or repeated or axes > 0) for ring in share_rings(plan.rings, plan.replaced)
    )
    body = with_replaced(without_conditions(kernel.body, useful), plan.replaced, plan.added)
    replaced = [s for s in statements(kernel.body) if s in plan.replaced]
    folded = where_from(kernel.body, {variable for s in replaced for variable in read_variables(s)})
    repeats = any(nested for loop, nested in loops if any(ring.loop is loop.variable for ring in rings))
    return replace(kernel, body=body), Rings(
        rings=rings,
        maps=tuple(plan.maps.values()),
        guards=tuple(plan.guards),
        reasons=tuple(plan.reasons),
        program_axes=axes,
        useful=useful,
        once=not axes and not repeats,
        folded=folded,
        teams=wishes.teams,
        for_next=frozenset(plan.for_next),
    )


def with_stages(dots: Dots, rings: Rings) -> Dots:
    """The dots with as many stages of every staged tile as its ring has."""
    stages = {tile: ring.stages for ring in rings.rings for tile in ring.tiles}
    stages |= {tile: ALIGNED_STAGES for ring in rings.rings for tile in ring.rows}
    staged = {v: replace(tile, stages=stages.get(v, 1)) for v, tile in dots.staged.items()}
    return replace(dots, staged=staged)


def _loops(block: tuple[Statement, ...], inside: bool) -> Iterator[tuple[For, bool]]:
    for statement in block:
        match statement:
            case For():
                yield statement, inside
                yield from _loops(statement.body, True)
            case While():
                yield from _loops(statement.body, True)
            case If():
                yield from _loops(statement.then, inside)
                yield from _loops(statement.otherwise, inside)
            case Inlined():
                yield from _loops(statement.body, inside)


def _plan_loop(plan: RingPlan, loop: For, nested: bool, reads: Reads) -> None:
    outside = reads.outside(loop)
    if loop.variable in outside:
        return
    if any(waits_for_grids(statement) or polls(statement) for statement in statements(loop.body)):
        return  # what others write must not be loaded ahead of the wait for it
    top = plan.given.top[loop]
    loads = [s for s in top if isinstance(s, Assign) and _is_staged_load(plan, s) and s.target not in outside]
    most_stages = plan.given.wishes.most_stages
    plain = isinstance(loop.start, Literal) and loop.start.value == 0
    plain = plain and isinstance(loop.step, Literal) and loop.step.value == 1
    mixed = [s for s in top if assigns(s, "load") and s.target in plan.dots.mixed and s.target not in outside]
    boxes = _boxes_with_mixed(plan, loop, loads, mixed) or (_boxes(plan, loop, loads) if loads else None)
    if boxes is not None:
        plan.rings.append(_box_ring(plan, loop, boxes, nested or not plain, outside))
        return
    moved: list[Found] = []
    rows = []
    for statement in loads:
        if not roots_of(statement.value.args[0], plan.given.sources) <= plan.given.read_only:  # type: ignore[attr-defined]
            continue  # an earlier trip may store what this one loads
        by_rows = row_load(plan, statement, loop)
        if by_rows is not None:
            moved.append(Found(statement, replace(statement, value=by_rows)))
            rows.append(statement.target)
        elif (found := load_in_any_trip(plan, statement, loop)) is not None:
            moved.append(found)
    ahead, tiles = take(plan, moved), tuple(one.statement.target for one in moved)
    if moved:
        load_into_registers(plan, loop)
    own = [one for one in own_loads(plan, loop) if one.statement not in plan.replaced]
    own = without_numbers(plan, own, moved)
    held = tuple(one.statement.target for one in own)
    refilled = plan.given.wishes.refilled
    stages = _of_use(plan.given.facts, loop, min(_asked_for(plan.given.options, bool(rows)), most_stages)) - refilled
    stages = max(stages, LEAST_STAGES)
    if held and not moved:
        stages = _of_use(plan.given.facts, loop, min(own_stages(plan, loop, held), most_stages - 1))
    if (moved or held) and stages:
        ahead += take(plan, own)
        kind: RingKind = "cp_async" if moved else "own"
        overlapped = bool(moved) and _all_wgmma(plan, loads) and _overlapped(plan, loop, tiles)
        totals = totals_of([*moved, *own])
        keep_totals(plan, loop, totals)
        running = assigned_for(totals)
        ring = Ring(loop.variable, kind, tiles, stages, not plain, overlapped, tuple(rows), held, ahead, running)
        plan.rings.append(replace(ring, refilled=refilled))
    else:
        load_recurrence(plan, loop)


def _box_ring(plan: RingPlan, loop: For, boxes: _Boxes, counted: bool, outside: Outside) -> Ring:
    """The ring of a loop whose loads are all tensor copies."""
    brought = tuple(statement.target for statement, _ in boxes.of_loads)
    by_load: Mapping[Assign, Box] = dict(boxes.of_loads)
    joined = joined_trips(plan, loop, by_load, outside) if _overlapped(plan, loop, brought) else None
    trips = joined.trips if joined else 1
    by_load = joined.boxes if joined else by_load
    wider = join(plan, loop, by_load, trips) if joined else {}
    for statement, box in by_load.items():
        target = wider.get(statement.target, statement.target)
        tile = boxed_tile(plan, target, box)
        if statement.target in plan.dots.mixed:
            multiply_where_it_lies(plan, statement, read_box(plan, statement, (box, tile), loop))
        else:
            plan.replaced[statement] = box_load(plan, statement, box, tile, loop.variable, target)
    computes = read_boxes(plan, loop)
    read_large_tiles(plan, loop, _still_own(plan, loop))
    planned = (plan.replaced.get(s, s) for s in plan.given.top[loop])
    tiles = tuple(s.target for s in planned if assigns(s, "box_load"))
    load_into_registers(plan, loop)
    own = without_numbers(plan, _still_own(plan, loop), [])
    small = plan.given.wishes.small_loads and (computes or several_products(plan.given.top[loop]))
    own = own if small else large_loads(own)
    ahead = take(plan, own)
    held = tuple(one.statement.target for one in own)
    keep_totals(plan, loop, [*boxes.totals, *totals_of(own)])
    running = assigned_for(totals_of(own))
    stages = min(_wanted_stages(plan, loop, tiles, trips), plan.given.wishes.most_stages)
    overlapped = _overlapped(plan, loop, (*tiles, *brought))
    counted = counted or trips > 1
    return Ring(
        loop.variable, "tma", tiles, stages, counted, overlapped,
        own=held, ahead=ahead, running=running, trips=trips,
    )  # fmt: skip


def _still_own(plan: RingPlan, loop: For) -> list[Found]:
    """The loads of a loop that threads can make ahead, but for those that something else has taken the place of.

    Nor do those remain whose addresses are found by such a load: a tensor copy brings these numbers when their trip comes.
    """
    return [
        one for one in own_loads(plan, loop)
        if not any(load in plan.replaced for load in (one.statement, *(load for load, _ in one.numbers)))
    ]  # fmt: skip


def _is_staged_load(plan: RingPlan, statement: Statement) -> bool:
    if not isinstance(statement, Assign) or statement.targets[0] not in plan.dots.staged:
        return False
    if statement.targets[0] in plan.given.facts.unused:
        return False
    return assigns(statement, "load")


def _of_use(facts: Facts, loop: For, stages: int) -> int:
    """As many stages, but no more than the loop has trips where numbers say it."""
    start, stop, step = (number_of(bound, facts.definitions) for bound in (loop.start, loop.stop, loop.step))
    return stages if start is None or stop is None or not step else min(stages, len(range(start, stop, step)))


def _asked_for(options: Options, has_rows: bool) -> int:
    """Stages that threads copy into: those that were asked for, or as many as hide anything where blocks are alone.

    Rows that are shifted gain nothing by more: the shifting takes as long as the copies.
    """
    return max(options.num_stages, MOST_STAGES) if options.few_programs and not has_rows else options.num_stages


def _wanted_stages(plan: RingPlan, loop: For, tiles: tuple[Variable, ...], trips: int) -> int:
    """As many stages as shared memory has room for, up to what hides its latency, and at least as many as asked for.

    Large sums leave no registers for a second block; for small tiles a deep ring does what two blocks would. Stages of several
    `trips` are larger, and fewer of them leave other blocks the room that they had before. Teams and few programs leave none,
    nor does a block that a user has take one tile after another: there is one for each multiprocessor.
    """
    stage = sum(plan.dots.staged[tile].stage_bytes for tile in tiles)
    asked, most = -(-plan.given.options.num_stages // trips), MOST_STAGES
    is_alone = plan.given.wishes.teams > 1 or plan.given.options.few_programs or is_for_one_tile(plan.given, loop)
    if trips > 1 and not is_alone:
        most = JOINED_STAGES
    return max(asked, LEAST_STAGES, min(most, plan.given.target.max_dynamic_shared_bytes // stage))


@frozen
class _Boxes:
    """A loop's loads with their boxes, and the totals of irregular steps that these begin by."""

    of_loads: tuple[tuple[Assign, Box], ...]
    totals: tuple[RunningTotal, ...]


def _boxes_with_mixed(plan: RingPlan, loop: For, loads: list[Assign], mixed: list[Assign]) -> _Boxes | None:
    """The boxes of all loads for dots, those that others read too among them; None where one is not."""
    if not mixed:
        return None
    reasons, dots = dict(plan.reasons), plan.dots
    tiles = {load.target: dots.mixed[load.target] for load in mixed}
    plan.dots = replace(dots, staged=dots.staged | tiles)
    found = _boxes(plan, loop, sorted((*loads, *mixed), key=plan.given.top[loop].index))
    if found is None:  # they are loaded as if nothing had been tried
        plan.reasons, plan.dots = reasons, dots
    return found


def _boxes(plan: RingPlan, loop: For, loads: list[Assign]) -> _Boxes | None:
    """The boxes of all loads of a loop; None, with the reason noted, when one is not."""
    if not plan.given.target.has_wgmma:
        return None
    if not _all_wgmma(plan, loads):
        names = ", ".join(statement.target.name for statement in loads)
        plan.reasons.setdefault(f"{names}: TMA is used only for operands of wgmma")
        return None
    if any(
        isinstance(s, For) and any(_is_staged_load(plan, inner) for inner in plan.given.top[s])
        for s in statements(loop.body)
    ):
        # The inner loop would wait for tiles that are loaded after it, or the other way round.
        plan.reasons.setdefault(f"{loads[0].target.name}: the loop around its load holds another one that loads ahead")
        return None
    boxes: list[Box] = []
    totals: list[RunningTotal] = []
    for statement in loads:
        box = find_any_box(plan, statement, loop)
        sums = running_totals(plan, loop) if isinstance(box, NotABox) else ()
        if sums and isinstance(
            other := find_any_box(plan, statement, loop, induction=knowing(plan.given.induction, sums)), Box
        ):
            box = other
        if isinstance(box, Box):
            starts = (*(dim.start for dim in box.dims), *(Use(v.type, v) for v in box.made_of))
            used = [one for one in sums if any(one.variable in used_variables(start) for start in starts)]
            totals += used
            starts += tuple(expr for one in used for s in one.statements for expr in expressions(s))
            reason = why_not_copied(
                plan, box, plan.dots.staged[statement.target], boxed_tile(plan, statement.target, box)
            )
            if not plan.given.thread.comes_to(loop, starts):
                reason = "its place depends on what the block computes together"
            box = NotABox(reason) if reason else box
        if isinstance(box, NotABox):
            plan.reasons.setdefault(f"{statement.target.name}: {box.reason}")
            return None
        boxes.append(box)
    return _Boxes(tuple(zip(loads, boxes, strict=True)), tuple(totals))


def _all_wgmma(plan: RingPlan, loads: list[Assign]) -> bool:
    """Whether nothing else multiplies what some loads bring."""
    loaded = {statement.target for statement in loads}
    plans = (dot for dot in plan.dots.plans.values() if any(operand.variable in loaded for operand in dot.operands))
    return all(dot.instruction.kind == "wgmma" for dot in plans)


def _overlapped(plan: RingPlan, loop: For, tiles: tuple[Variable, ...]) -> bool:
    """Whether nothing in the loop but its dots touches their sums, and all operands are loaded by the ring."""
    dots = [(s, s.value.args[2:]) for s in statements(loop.body) if assigns(s, "dot")]  # type: ignore[attr-defined]
    sums = {statement.target for statement, _ in dots}
    own = {statement for statement, _ in dots}
    if not own <= set(plan.given.top[loop]):
        return False
    for dot in own:
        if plan.dots.plans[dot].instruction.split is not None:
            return False  # threads write the parts, and add the sums of a tile
        if any(operand.variable not in tiles for operand in plan.dots.plans[dot].operands):
            return False
    for dot, added in dots:  # a copy from sum to sum would read what is on its way
        if not added or not isinstance(added[0], Use) or added[0].variable is not dot.target:
            return False
    for statement in statements(loop.body):
        if statement in own:
            continue
        read = set(read_variables(statement))
        if sums & (read | set(assigned_variables(statement))):
            return False
    return True
