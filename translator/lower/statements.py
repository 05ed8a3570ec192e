"""Statements in source order: tags and control flow; assignments and structured operations lie in files of their own."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from itertools import zip_longest

from ..ir.nodes import (
    Assign,
    Call,
    Effect,
    Expr,
    For,
    If,
    Inlined,
    Note,
    Origin,
    Return,
    Statement,
    Variable,
    While,
)
from ..ir.static_loops import StaticLoop, Trip
from ..ir.structured import assigns
from ..ir.walk import assigned_variables, bodies, statements, used_variables
from ..schedule.accesses.unrolled import is_written_out, unroll_factor
from ..schedule.staging.ring_plan import Ring
from ..schedule.tiles.layout import Layout
from .accesses.at_once import taken_at_once
from .accesses.atomics import FUNCTIONS, lower_atomic
from .accesses.memory import lower_load, lower_store
from .accesses.recompute import forget_tiles
from .accesses.vectors import access_of
from .accesses.windows import lower_windows
from .assignments import lower_assign
from .context import Context, ctype
from .debug import lower_assert, lower_print
from .products.dot import lower_dot
from .products.lasting_operands import copies_before_loop
from .products.running_products import dots_behind, wait_before, wait_for_all
from .products.staggered import lower_staggered_loop
from .reductions.reduce import lower_reduce
from .shared.convert import lower_conversions
from .shared.repack import lower_repack
from .staging.arrivals import arrival, wait_for_tiles
from .staging.box_read import lower_box_read
from .staging.box_store import lower_box_store
from .staging.loop_bounds import Bounds, find_bounds, for_header, loop_stop, trips_of
from .staging.made_maps import lower_make_map
from .staging.own_stages import lower_own_loop
from .staging.read_ahead import take_value
from .staging.ring_copies import lower_copying_loop
from .staging.rings import lower_box_load, lower_consumer_loop, lower_producer_loop
from .staging.row_copies import lower_row_load
from .state import Accesses, LoopBounds
from .text.operators import Text, inverse
from .text.tags import again, is_elsewhere, is_repeated, is_second_part, part, remark, same_source, source_of, tag
from .text.unit import Blank, Branch, Comment, Line, Loop, Mark, Node


def _lower_barrier(context: Context, statement: Statement) -> tuple[Node, ...]:
    return context.barrier("asked for by the kernel")


def _lower_grid_wait(context: Context, statement: Statement) -> tuple[Node, ...]:
    context.use_helper("grid_wait")
    return (Line("grid_wait();"),)


def _lower_grid_release(context: Context, statement: Statement) -> tuple[Node, ...]:
    context.use_helper("grid_release_dependents")
    return (Line("grid_release_dependents();"),)


def _lower_assume(context: Context, statement: Statement) -> tuple[Node, ...]:
    return ()


Lowering = Callable[..., tuple[Node, ...]]
ATOMICS: dict[str, Lowering] = dict.fromkeys(FUNCTIONS, lower_atomic)
STRUCTURED: dict[str, Lowering] = {
    "load": lower_load,
    "store": lower_store,
    "reduce": lower_reduce,
    "repack": lower_repack,
    "dot": lower_dot,
    "box_load": lower_box_load,
    "box_read": lower_box_read,
    "row_load": lower_row_load,
    "box_store": lower_box_store,
    "make_map": lower_make_map,
    "barrier": _lower_barrier,
    "gdc_wait": _lower_grid_wait,
    "gdc_launch_dependents": _lower_grid_release,
    "assume": _lower_assume,
    "device_print": lower_print,
    "device_assert": lower_assert,
    **ATOMICS,
}


def lower_block(context: Context, block: tuple[Statement, ...]) -> tuple[Node, ...]:
    """All statements of a block, each source statement under its tag.

    In static loops, of whose arrays the first trip finds nobody reading any, it waits as the later ones do: trips with one text
    become a loop.
    """
    before, order, progress = set(context.shared.being_read), context.order.snapshot(), replace(context.progress)
    read: dict[StaticLoop, set[str]] = {}  # by the trip before, from the second on
    while True:
        known = {loop: set(arrays) for loop, arrays in read.items()}
        nodes = _lower_once(context, block, read)
        if read == known:
            return nodes
        context.order.restore(order)
        context.shared.being_read, context.progress = set(before), replace(progress)


def _lower_once(context: Context, block: tuple[Statement, ...], read: dict[StaticLoop, set[str]]) -> tuple[Node, ...]:
    """The block, where first trips find the arrays that later ones were found to read; adds to these."""
    nodes: list[Node] = []
    shown: list[list[Statement]] = []  # what the other role has shown, since `caption`
    caption = 0
    quoted: Origin | None = None  # of the line that stands above the last code
    loads, has_trips = 0, any(isinstance(statement, Note) and statement.trip for statement in block)
    for group in by_source(block):
        loads += sum(_loads(context, statement) for statement in statements(tuple(group))) if has_trips else 0
        if (trip := _trip_of(group)) is not None:
            nodes += tag(group[0].origin, "", bool(nodes)) if trip.number == 0 else ()
            nodes += lower_windows(context, group[0])
            nodes.append(Mark(trip, loads))
            _note_readers(context, trip, read)
            continue
        tagged = not (is_repeated(context, group) or is_elsewhere(context, group))
        quoting, context.quoting = context.quoting, context.quoting and tagged
        waits, code = _lower_group(context, group)
        context.quoting = quoting
        nodes += waits
        origin = group[0].origin
        if not code and quoted is not None and origin.span is quoted.span and origin.text == quoted.text:
            continue  # the rest of the line above: names for what that has computed
        if quoting and tagged:
            shown, quoted = [], origin if code else None
            ahead, code = split_at_loop(code) if isinstance(group[0], For) else ([], code)
            nodes += [*([Blank(), *source_of(group, False), *ahead] if ahead else [])]
            nodes += tag(group[0].origin, remark(context, group, code), bool(nodes), is_second_part(context, group))
        elif quoting and code:
            caption = caption if shown else len(nodes)
            nodes[caption : caption + bool(shown)] = [again([*shown, group])]
            shown.append(group)
        nodes += [*source_of(group, quoting and tagged), *code]
    return tuple(nodes)


def _note_readers(context: Context, trip: Trip, read: dict[StaticLoop, set[str]]) -> None:
    """Where a trip begins: which arrays of all trips the one before has left to be read."""
    being_read = context.shared.being_read
    if trip.number == 0:
        being_read |= read.get(trip.loop, set())
    elif trip.number < trip.loop.trips and (left := being_read & context.shared.of_all_trips):
        read.setdefault(trip.loop, set()).update(left)


def _loads(context: Context, statement: Statement) -> int:
    """How often a thread asks memory in a statement."""
    if not isinstance(statement, Assign) or not assigns(statement, "load"):
        return 0
    layout = context.schedule.layouts.get(statement.target)
    if statement in (taken := context.schedule.windows.taken) and layout is not None:
        window = taken[statement][0]
        return window.accesses(layout) if statement is window.load else 0
    return layout.num_registers // access_of(context, statement).width if layout is not None else 1


def _trip_of(group: list[Statement]) -> Trip | None:
    return group[0].trip if isinstance(group[0], Note) else None


def split_at_loop(code: list[Node]) -> tuple[list[Node], list[Node]]:
    """(The functions and first loads of a loop that loads ahead, the loop itself); a plain loop has nothing in front."""
    loops = [place for place, node in enumerate(code) if isinstance(node, Loop)]
    alone = loops[1:] and all(isinstance(node, Line) for node in code[loops[-1] + 1 :])
    return (code[: loops[-1]], code[loops[-1] :]) if alone else ([], code)


def _lower_group(context: Context, group: list[Statement]) -> tuple[tuple[Node, ...], list[Node]]:
    """(What the first one waits for, the statements that one source statement became).

    They share what they bring into another layout.
    """
    first: tuple[Node, ...] = ()
    code: list[Node] = []
    context.moved = {}
    for statement, following in zip_longest(group, group[1:]):
        declarations = _declarations(context, statement)
        context.at_once = taken_at_once(context, statement, following)
        waits, own = lower_statement(context, statement)
        if statement is group[0]:
            first, waits = waits, ()
        code += [*waits, *declarations, *own]
        context.order.assigned.update(assigned_variables(statement))
        changed = set(statement.targets) if isinstance(statement, Assign) else set()
        shared = context.moved if isinstance(statement, (Assign, Effect)) else {}
        context.moved = {key: name for key, name in shared.items() if key[0] not in changed}
    return first, code


def by_source(block: tuple[Statement, ...]) -> list[list[Statement]]:
    """The statements of a block, those of one source statement together."""
    groups: list[list[Statement]] = []
    for statement in block:
        apart = _trip_of([statement]) is not None or (groups and _trip_of(groups[-1]) is not None)
        if groups and not apart and same_source(groups[-1][0].origin, statement.origin):
            groups[-1].append(statement)
        else:
            groups.append([statement])
    return groups


def _declarations(context: Context, statement: Statement) -> list[Node]:
    """Variables that must be declared before this statement because several blocks share them."""
    nodes: list[Node] = []
    without_declaration = context.facts.absorbed | _unread(context) | context.schedule.in_shared
    for variable in context.scopes.before.get(statement, ()):
        if variable in without_declaration:
            continue
        layouts: tuple[Layout | None, ...] = (context.schedule.layouts.get(variable),)
        if variable in context.facts.index:
            known = context.schedule.index_layouts.get(variable, ())
            layouts = tuple(layout for layout in known if not context.counts_registers(variable, layout))
        for layout in layouts:
            name = context.array_name(variable, layout) if layout is not None else None
            nodes.append(Line(f"{context.declaration(variable, layout, name)};"))
    return nodes


def _unread(context: Context) -> frozenset[Variable]:
    """The variables whose values no text needs."""
    return context.facts.unused | context.schedule.windows.unread


def lower_statement(context: Context, statement: Statement) -> tuple[tuple[Node, ...], tuple[Node, ...]]:
    """(What a statement waits for, its code), without its tag, with what the loop around it wants before and behind it."""
    parts = bodies(statement) and not isinstance(statement, Inlined)
    context.progress.copied = {} if parts else context.progress.copied
    waits = wait_for_all(context) if parts or isinstance(statement, Return) else ()
    waits += () if isinstance(statement, Inlined) else wait_for_tiles(context, statement)
    running, barriers = context.progress.running, context.shared.barriers
    around = context.around
    if parts:  # what a branch or a loop starts, it waits for itself
        around = replace(around, may_arrive_later=False, may_run_on=False)
    with context.inside(around):
        code = context.notes.before.get(statement, ())
        code += _lower_alone(context, statement)
        code += context.notes.after.get(statement, ())
    if not isinstance(statement, Inlined):
        waits += wait_before(context, statement, running, context.shared.barriers > barriers)
    changed = set(assigned_variables(statement))
    copied = {key: name for key, name in context.progress.copied.items() if key[0] not in changed}
    context.progress.copied = {} if parts else copied
    return waits, code


def _lower_alone(context: Context, statement: Statement) -> tuple[Node, ...]:
    match statement:
        case Assign():
            if all(target in _unread(context) for target in statement.targets):
                return ()
            if statement.targets[0] in context.ahead.read_ahead or statement in context.notes.behind_copies:
                return ()  # the loop around it reads it, in another iteration
            if statement.targets[0] in context.ahead.values:
                return take_value(context, statement)
            started = statement.targets[0] in context.ahead.stage_of or statement.targets[0] in context.ahead.own
            prepare, names = ((), {}) if started else lower_conversions(context, statement)
            prepare = (*prepare, *forget_tiles(context, statement))
            with context.conversions(names), context.speller.assigning(statement):
                if isinstance(statement.value, Call) and statement.value.op in STRUCTURED:
                    return (*prepare, *STRUCTURED[statement.value.op](context, statement))
                return (*prepare, *lower_assign(context, statement))
        case Effect():
            prepare, names = lower_conversions(context, statement)
            prepare = (*prepare, *forget_tiles(context, statement))
            with context.conversions(names):
                return (*prepare, *STRUCTURED[statement.call.op](context, statement))
        case If():
            return _lower_if(context, statement)
        case For() | While():
            copies, lasting = copies_before_loop(context, statement)
            with context.inside(replace(context.around, lasting={**context.around.lasting, **lasting})):
                loop = (
                    _lower_for(context, statement) if isinstance(statement, For) else _lower_while(context, statement)
                )
            return (*copies, *loop)
        case Return(value=None):
            left = Line("cp_async_wait<0>();", "no copy is left behind")
            waits = (left,) if context.around.copies_under_way else ()
            return (*context.role.before_return, *waits, Line("return;"))
        case Return(value=Expr() as value):
            return (Line(f"return {context.speller.text(value)};"),)
        case Inlined():
            caption = (Comment(f"{statement.caption}, inlined:"),) if context.quoting else ()
            return (*caption, *lower_block(context, statement.body))
        case Note():
            return ()
    raise TypeError(f"no lowering for {type(statement).__name__}")


# ------------------------------------------------------------------------------------------------- control flow


def _lower_if(context: Context, statement: If) -> tuple[Node, ...]:
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
    meet: bool = False, bounds: LoopBounds | None = None,
) -> tuple[Node, ...]:  # fmt: skip
    """The body of a loop, with the barriers that its own previous trip makes necessary.

    Trips that are `ordered` need none for what they load and store; where all threads `meet` before the body, nobody reads
    shared memory any more. `bounds` tell whether there is a trip, where the body is all of the loop.
    """
    entry, before = set(context.shared.being_read), context.order.snapshot()
    first = context.order.in_a_trip(bounds, before)
    last = context.order.left_by.get(loop, Accesses())
    while True:
        context.shared.being_read, context.progress.copied = set() if meet else set(entry), {}
        context.order.skipped = None
        context.order.restore(first)
        context.order.merge(last)
        nodes = blocks()
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


def lower_program(context: Context, block: tuple[Statement, ...]) -> tuple[Node, ...]:
    """What a program does, or what one role does of it."""
    context.order.skipped = None  # another role's loops say nothing of this one's
    with context.inside(replace(context.around, may_arrive_later=True)):
        return (*lower_block(context, block), *arrival(context))


def _trip(context: Context, block: tuple[Statement, ...]) -> tuple[Node, ...]:
    """The body of a loop: at its end, all products are complete."""
    next_dots = {**context.around.next_dots, **dots_behind(context, block)}
    with context.inside(replace(context.around, next_dots=next_dots, may_run_on=True)):
        return (*_own_copies(context, block), *wait_for_all(context))


def _lower_for(context: Context, statement: For) -> tuple[Node, ...]:
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
            nodes.append(Line(f"{name} = {kept};", "stays so if there is no iteration"))
        body = (Line(f"{name} = {counter};"), *body)
    factor = unroll_factor(statement, context.facts, context.schedule.layouts)
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
    elif not re.fullmatch(r"\w+", stop):
        limit = loop_stop(context, statement)
        nodes.append(Line(f"const {ctype(statement.variable.type)} {limit} = {stop};"))
        stop = limit
    bounds = replace(bounds, stop=Text(stop))

    def body(block: tuple[Statement, ...]) -> tuple[Node, ...]:
        begins_with_barrier = ring.kind == "cp_async"
        return repeated(
            context, statement, lambda: _trip(context, block), ordered=begins_with_barrier, meet=begins_with_barrier
        )

    if ring.kind == "own":
        return (*nodes, *lower_own_loop(context, statement, ring, bounds, body))
    if ring.kind == "cp_async":
        return (*nodes, *lower_copying_loop(context, statement, ring, bounds, body))
    lower = lower_producer_loop if context.role.name == "producer" else lower_consumer_loop
    if ring.stagger is not None and context.role.name != "producer":
        lower = lower_staggered_loop
    return (*nodes, *lower(context, statement, ring, bounds, body))


def _lower_while(context: Context, statement: While) -> tuple[Node, ...]:
    if not statement.prelude:
        condition = context.speller.text(statement.condition)
        body = repeated(context, statement, lambda: _trip(context, statement.body))
        return (Loop(f"while ({condition})", body, unroll=is_written_out(statement, context.schedule.layouts)),)

    def blocks() -> tuple[Node, ...]:
        prelude = _untagged(context, statement.prelude)
        test = context.speller.spell(statement.condition)
        return (*prelude, Branch(inverse(test), (Line("break;"),)), *_trip(context, statement.body))

    return (Loop("while (true)", repeated(context, statement, blocks)),)


def _untagged(context: Context, block: tuple[Statement, ...]) -> tuple[Node, ...]:
    """Statements whose source line the loop's own tag already shows."""
    nodes: list[Node] = []
    for statement in block:
        waits, code = lower_statement(context, statement)
        nodes += [*waits, *_declarations(context, statement), *code]
    return tuple(nodes)
