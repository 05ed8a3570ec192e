"""Branches and loops: what their bodies leave behind for each other, and which loops load ahead.

A loop's own previous trip may make barriers necessary, so that a body is lowered until nothing more is found (`repeated`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ..ir.nodes import For, If, Note, Return, Statement, While
from ..ir.walk import used_variables
from ..schedule.accesses.unrolled import is_written_out, unroll_factor
from ..schedule.staging.ring_plan import Ring
from .accesses.windows import lower_windows
from .blocks import lower_block, lower_untagged
from .context import Context, ctype
from .products.running_products import dots_behind, wait_for_all
from .products.staggered import lower_staggered_loop
from .staging.arrivals import arrival
from .staging.loop_bounds import Bounds, find_bounds, for_header, loop_stop, trips_of
from .staging.own_stages import lower_own_loop
from .staging.ring_copies import lower_copying_loop
from .staging.ring_loop import RingLoop
from .staging.rings import lower_consumer_loop, lower_producer_loop
from .state import Accesses, LoopBounds
from .text.operators import Text, inverse, is_word
from .text.tags import part, tag
from .text.unit import Assignment, Branch, Line, Loop, Node, const


def lower_if(context: Context, statement: If) -> tuple[Node, ...]:
    """A branch: each of its two ways begins with what is under way before it, and what either leaves is open behind it."""
    condition = context.speller.text(statement.condition)
    before, stored, skipped = set(context.shared.being_read), context.order.snapshot(), context.order.skipped
    then = _own_copies(context, statement.then)
    context.progress.copied = {}
    after_then, stored_then = set(context.shared.being_read), context.order.snapshot()
    context.shared.being_read = set(before)
    context.order.restore(stored)
    context.order.skipped = skipped
    otherwise = _own_copies(context, statement.otherwise)
    context.order.skipped = None  # a loop in one of them says nothing of those behind
    if statement.else_origin is not None:
        otherwise = (*tag(statement.else_origin, part(context, statement.else_origin), False), *otherwise)
    if _returns(statement.otherwise):
        context.shared.being_read = after_then
        context.order.restore(stored_then)
    elif not _returns(statement.then):
        context.shared.being_read |= after_then
        context.order.merge(stored_then)
    if not then and not otherwise:
        return ()
    return (Branch(condition, then, otherwise),)


def _own_copies(context: Context, block: tuple[Statement, ...]) -> tuple[Node, ...]:
    """A block inside of another one: at its end, the tiles whose copies it has started have arrived, and others may not have."""
    outside, context.progress.arriving = context.progress.arriving, {}
    under_way = context.around.copies_under_way or any(outside.values())
    with context.inside(replace(context.around, may_arrive_later=True, copies_under_way=under_way)):
        nodes = (*lower_block(context, block), *arrival(context))
    context.progress.arriving = outside
    return nodes


def _returns(block: tuple[Statement, ...]) -> bool:
    """Whether nothing behind a block runs after it."""
    last = next((statement for statement in reversed(block) if not isinstance(statement, Note)), None)
    return isinstance(last, Return) or (isinstance(last, If) and _returns(last.then) and _returns(last.otherwise))


def repeated(
    context: Context, loop: For | While | None, blocks: Callable[[], tuple[Node, ...]], ordered: bool = False,
    meet: bool = False, bounds: LoopBounds | None = None, part: tuple[Statement, ...] | None = None,
) -> tuple[Node, ...]:  # fmt: skip
    """The body of a loop, with the barriers that its own previous trip makes necessary.

    Trips that are `ordered` need none for what they load and store; where all threads `meet` before the body, nobody reads
    shared memory any more. `bounds` tell whether there is a trip, where the body is all of the loop.

    What a trip leaves is known from then on, of all of the loop or of a `part`: a loop within others, which are repeated too,
    is not repeated in each of their turns.
    """
    reading = context.shared.left_by.setdefault((context.role.name, loop if part is None else part), set())
    entry, before = context.shared.being_read | reading, context.order.snapshot()
    first = context.order.in_a_trip(bounds, before)
    last = context.order.left_by.get(loop, Accesses())
    while True:
        context.shared.being_read, context.progress.copied = set() if meet else set(entry), {}
        context.order.skipped = None
        context.order.restore(first)
        context.order.merge(last)
        nodes = blocks()
        reading |= context.shared.being_read
        unordered = None if ordered else loop
        left = context.order.carried(context.order.places.trips(unordered)) if unordered else Accesses()
        only_before = before.without(context.order.snapshot())
        context.order.merge(before)  # there may be no trip, and no barrier
        context.order.skipped = (bounds, only_before) if bounds else None
        if context.shared.being_read <= entry and left.within(last):
            context.shared.being_read = set(entry)
            return nodes
        entry |= context.shared.being_read
        last = context.order.left_by[loop] = last.together(left)  # ever more, so that this comes to an end


def _loop_bounds(context: Context, loop: For) -> LoopBounds:
    """What tells whether a loop has a trip."""
    bounds = loop.start, loop.stop, loop.step
    return bounds, tuple(context.order.assigned[variable] for bound in bounds for variable in used_variables(bound))


def _trip(context: Context, block: tuple[Statement, ...]) -> tuple[Node, ...]:
    """The body of a loop: at its end, all products are complete."""
    next_dots = {**context.around.next_dots, **dots_behind(context, block)}
    with context.inside(replace(context.around, next_dots=next_dots, may_run_on=True)):
        return (*_own_copies(context, block), *wait_for_all(context))


def lower_for(context: Context, statement: For) -> tuple[Node, ...]:
    """A loop over a range: with what it loads ahead, and with its variable's last value where that is read behind it."""
    variable = statement.variable
    name = context.names.variable(variable)
    windows = lower_windows(context, statement)
    nodes, bounds = find_bounds(context, statement)
    ring = context.schedule.rings.of(variable)
    if ring is not None and not (ring.kind != "tma" and context.role.name == "producer"):
        return (*nodes, *_lower_ring(context, statement, ring, bounds))
    body = repeated(context, statement, lambda: _trip(context, statement.body), bounds=_loop_bounds(context, statement))
    counter = name
    if variable in context.scopes.outliving:
        counter = context.names.variable(context.beside(statement, variable, "next"))
        if statement.previous is not None:
            kept = context.speller.text(statement.previous)
            nodes.append(Assignment(name, kept, comment="stays so if there is no iteration"))
        body = (Assignment(name, counter), *body)
    schedule = context.schedule
    factor = unroll_factor(statement, context.facts, schedule.layouts, schedule.rings.for_next)
    header = for_header(statement, counter, bounds)
    if windows:
        return (*windows, *nodes, Loop(header, body, unroll=True))
    return (*nodes, trips_of(context, statement, header, body, factor))


def _lower_ring(context: Context, statement: For, ring: Ring, bounds: Bounds) -> tuple[Node, ...]:
    """A loop that loads ahead: its text depends on how it loads, and on who executes it."""
    nodes: list[Node] = []
    stop = bounds.stop.text
    if ring.loop in context.role.loop_stops:
        stop = context.role.loop_stops[ring.loop]
    elif not is_word(stop):
        limit = loop_stop(context, statement)
        nodes.append(const(ctype(statement.variable.type), limit, stop))
        stop = limit
    bounds = replace(bounds, stop=Text(stop))

    def body(block: tuple[Statement, ...]) -> tuple[Node, ...]:
        waits = ring.kind == "cp_async"  # it begins with a barrier
        return repeated(context, statement, lambda: _trip(context, block), ordered=waits, meet=waits, part=block)

    if ring.kind == "own":
        lower = lower_own_loop
    elif ring.kind == "cp_async":
        lower = lower_copying_loop
    elif context.role.name == "producer":
        lower = lower_producer_loop
    else:
        lower = lower_consumer_loop if ring.stagger is None else lower_staggered_loop
    return (*nodes, *lower(context, RingLoop(statement, ring, bounds, body)))


def lower_while(context: Context, statement: While) -> tuple[Node, ...]:
    """A loop under a condition; `while (true)` with a way out where statements stand ahead of the test."""
    if not statement.prelude:
        condition = context.speller.text(statement.condition)
        body = repeated(context, statement, lambda: _trip(context, statement.body))
        return (Loop(f"while ({condition})", body, unroll=is_written_out(statement, context.schedule.layouts)),)

    def blocks() -> tuple[Node, ...]:
        prelude = lower_untagged(context, statement.prelude)
        test = context.speller.spell(statement.condition)
        return (*prelude, Branch(inverse(test), (Line("break;"),)), *_trip(context, statement.body))

    return (Loop("while (true)", repeated(context, statement, blocks)),)
