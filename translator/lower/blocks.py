"""Blocks of statements in source order, each source statement under its tag.

What a statement itself becomes is in `statements.py`.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import zip_longest

from ..ir.nodes import Assign, Effect, For, Note, Origin, Statement
from ..ir.static_loops import StaticLoop, Trip
from ..ir.structured import assigns
from ..ir.walk import assigned_variables, statements
from ..schedule.tiles.layout import Layout
from .accesses.at_once import taken_at_once
from .accesses.vectors import access_of
from .accesses.windows import lower_windows
from .context import Context
from .staging.arrivals import arrival
from .text.tags import again, is_elsewhere, is_repeated, is_second_part, remark, same_source, source_of, tag
from .text.unit import LINES, Blank, Lambda, Loop, Mark, Node


def lower_program(context: Context, block: tuple[Statement, ...]) -> tuple[Node, ...]:
    """What a program does, or what one role does of it."""
    context.order.skipped = None  # another role's loops say nothing of this one's
    with context.inside(replace(context.around, may_arrive_later=True)):
        return (*lower_block(context, block), *arrival(context))


def lower_block(context: Context, block: tuple[Statement, ...]) -> tuple[Node, ...]:
    """All statements of a block, each source statement under its tag.

    The first trip of a static loop finds nobody reading the loop's shared arrays, while later ones may find the trip before: it
    waits as they do, since trips with one text become a loop. So a block is lowered again until its first trips know of that.
    """
    before, order, progress = set(context.shared.being_read), context.order.snapshot(), replace(context.progress)
    read: dict[StaticLoop, set[str]] = {}  # by the trip before, from the second on
    while True:
        known = {loop: set(arrays) for loop, arrays in read.items()}
        with context.masks.block():
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
        quoting, context.remarks.quoting = context.remarks.quoting, context.remarks.quoting and tagged
        waits, code = _lower_group(context, group)
        context.remarks.quoting = quoting
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
    loops = [place for place, node in enumerate(code) if isinstance(node, (Loop, Lambda))]
    alone = loops[1:] and all(isinstance(node, LINES) for node in code[loops[-1] + 1 :])
    return (code[: loops[-1]], code[loops[-1] :]) if alone else ([], code)


def _lower_group(context: Context, group: list[Statement]) -> tuple[tuple[Node, ...], list[Node]]:
    """(What the first one waits for, the statements that one source statement became).

    They share what they bring into another layout.
    """
    from .statements import lower_statement

    first: tuple[Node, ...] = ()
    code: list[Node] = []
    context.instead.moved = {}
    for statement, following in zip_longest(group, group[1:]):
        declarations = _declarations(context, statement)
        context.instead.at_once = taken_at_once(context, statement, following)
        waits, own = lower_statement(context, statement)
        if statement is group[0]:
            first, waits = waits, ()
        code += [*waits, *declarations, *own]
        context.order.assigned.update(assigned_variables(statement))
        changed = set(statement.targets) if isinstance(statement, Assign) else set()
        shared = context.instead.moved if isinstance(statement, (Assign, Effect)) else {}
        context.instead.moved = {key: name for key, name in shared.items() if key[0] not in changed}
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
    without_declaration = context.facts.absorbed | context.unread | context.schedule.in_shared
    for variable in context.scopes.before.get(statement, ()):
        if variable in without_declaration:
            continue
        layouts: tuple[Layout | None, ...] = (context.schedule.layouts.get(variable),)
        if variable in context.facts.index:
            known = context.schedule.index_layouts.get(variable, ())
            layouts = tuple(layout for layout in known if not context.counts_registers(variable, layout))
        for layout in layouts:
            name = context.array_name(variable, layout) if layout is not None else None
            nodes.append(context.declaration(variable, layout, name))
    return nodes


def lower_untagged(context: Context, block: tuple[Statement, ...]) -> tuple[Node, ...]:
    """Statements whose source line the loop's own tag already shows."""
    from .statements import lower_statement

    nodes: list[Node] = []
    for statement in block:
        waits, code = lower_statement(context, statement)
        nodes += [*waits, *_declarations(context, statement), *code]
    return tuple(nodes)
