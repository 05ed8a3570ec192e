"""Loads that every thread makes ahead for itself: asynchronous copies to places that no other thread touches.

A place holds one access of one thread, those of neighbouring threads lie side by side: no two lanes meet in a bank, and
neither the copies nor the reads need a barrier. `schedule/staging/own_loads.py` decides which loads these are, and
`schedule/staging/warp_copies.py` where a lane copies for another one of its warp. What all threads copy for one another
(`schedule/staging/block_copies.py`) goes the same way, in loops that have a barrier in every iteration.
"""

from __future__ import annotations

import math

from ...frozen import frozen
from ...hardware import CHUNK_BYTES, LANE_BITS
from ...ir.nodes import Assign, For
from ...ir.structured import assigns
from ...ir.walk import top_statements
from ...schedule.accesses.access import load_operands
from ...schedule.staging.own_stages import is_copied_whole
from ...schedule.staging.ring_plan import Ring
from ..accesses.conditions import copies_guard, scalar_test, uniform_test, valid_count
from ..accesses.memory_order import note_load
from ..accesses.vectors import (
    access_of,
    copy_helper,
    vectors,
    width_name,
)
from ..context import Context, ctype
from ..products.operand import shared_array
from ..shared.convert import conversions_before
from ..text.operators import Text
from ..text.point import Point
from ..text.tags import tag
from ..text.unit import Branch, Comment, Declaration, Lambda, Line, Loop, Node, Shared, const
from .copies import tile_comment
from .loop_bounds import compared, for_header, if_any_trip, steps_on, surely_runs, trips_of
from .names_ahead import named_elements, names_ahead
from .own_places import place_in_tile, place_of_own, place_of_scalar, places_of_all, slot_filled
from .read_ahead import read_ahead, read_values, running_totals
from .ring_loop import RingLoop

AHEAD = "its copies, made ahead"  # what is said of a load's line where the other part of its code stands


def stage_word(context: Context, ring: Ring) -> str:
    """What the stage is called that a loop is at: a loop within another's body reads the tiles of both.

    It is first asked for at the beginning of the loop, in each role.
    """
    key = context.role.name, ring.loop
    if key not in context.ahead.stage_words:
        inner = context.around.rings > 0
        names = context.names
        word = names.once("inner_stage", ("stage", ring.loop)) if inner else names.shared_index("stage")
        context.ahead.stage_words[key] = word
    return context.ahead.stage_words[key]


def own_of(context: Context, loop: RingLoop) -> list[Assign]:
    """The loads of a loop that threads make ahead for themselves: those that `cp.async` can take."""
    own = {*loop.ring.own} - context.facts.unused  # the last one in its turn starts the copies of a later trip
    loads = [s for s in top_statements(loop.statement.body) if assigns(s, "load") and s.targets[0] in own]
    layouts, by_all = context.schedule.layouts, context.schedule.block_copies
    return [s for s in loads if s.target in by_all or is_copied_whole(s, layouts, context.facts)]


def declare_own(context: Context, load: Assign, ring: Ring, stages: str) -> str:
    """Asks for the places of a load's elements, and has the load read them there: the name of the array."""
    target = load.target
    name = context.shared.of_tile(context.names.once(f"{target.stem}_ahead", ("ahead", target)), target)
    context.ahead.own[target] = f"{name}[{stage_word(context, ring)}]" if ring.stages > 1 else name
    if target in context.schedule.block_copies:
        tile = context.schedule.block_copies[target].tile
        shared_array(context, target, "own", name, target, tile, f"{target.stem} on its way, {tile_comment(tile)}")
        return name
    counts, elements = _counts(context, load) if target.type.is_tile else ((), 1)
    copy = context.schedule.warp_copies.get(target)
    threads = context.schedule.num_threads >> (LANE_BITS - copy.lane_bits if copy else 0)
    sides = " * ".join([*counts, places_of_all(context, target).text])
    size = elements * threads * target.type.dtype.itemsize * ring.stages
    comment = f"{target.stem} on its way, each {'warp' if copy else 'thread'}'s own"
    outer = f"[{stages}]" if ring.stages > 1 else ""
    align = CHUNK_BYTES if target.type.is_tile else None
    array = Shared(name, ctype(target.type), f"{outer}[{sides}]", size, comment, align)
    context.shared.scratch(target, "own", array)
    return name


def _counts(context: Context, load: Assign) -> tuple[tuple[str, ...], int]:
    """How many elements of a tile a thread loads: along each axis, as text, and together."""
    layout, repeats = context.schedule.layouts[load.target], dict(access_of(context, load).repeats)
    counts = (
        f"({context.count(layout.axes[axis])} / {repeats[axis]})"
        if axis in repeats
        else context.count(layout.axes[axis])
        for axis in layout.array_axes()
    )
    return tuple(counts), layout.num_registers // math.prod(repeats.values())


def _scalar_copy(context: Context, load: Assign) -> tuple[Node, ...]:
    """This thread's copy of a scalar."""
    pointer, mask, _ = load_operands(load)
    note_load(context, pointer, None)
    size = load.target.type.dtype.itemsize
    helper = copy_helper(context, load, size)
    test = scalar_test(context, mask)
    valid = f"{test.within(4)} ? {size} : 0" if test is not None else str(size)
    return (Line(f"{helper}(&{place_of_scalar(context, load.target)}, {context.speller.text(pointer)}, {valid});"),)


def own_copies(context: Context, load: Assign) -> tuple[Node, ...]:
    """This thread's copies of a tile or a scalar to `stage`: of what it will hold, or another lane of its warp."""
    target = load.target
    if not target.type.is_tile:
        return _scalar_copy(context, load)
    copy, by_all = context.schedule.warp_copies.get(target), context.schedule.block_copies.get(target)
    layout = by_all.layout if by_all else copy.layout if copy else context.schedule.layouts[target]
    access, slot = access_of(context, load, layout), slot_filled(context, target)
    pointer, _, _ = load_operands(load)
    note_load(context, pointer, layout)
    size = access.width * target.type.dtype.itemsize
    helper = copy_helper(context, load, size)

    def one(point: Point) -> tuple[Node, ...]:
        test, count = uniform_test(context, access, point), valid_count(context, access, point)
        valid = str(size)
        if count is not None:
            context.use_helper("valid_bytes")
            valid = f"valid_bytes<{target.type.dtype.itemsize}, {width_name(context, layout, access)}>({count.text})"
        if test is not None:
            valid = f"{test.within(4)} ? {valid} : 0"
        source = context.speller.text(pointer, point)
        naming: tuple[Node, ...] = ()
        if by_all:
            naming, place = place_in_tile(context, target, point, access.width)
        else:
            place = place_of_own(context, load, point, slot)
        return (*naming, Line(f"{helper}(&{place}, {source}, {valid});"))

    in_loop = layout.num_registers > access.width * math.prod(dict(access.repeats).values())
    nodes = vectors(context, layout, access, lambda point: named_elements(context, point, one, in_loop))
    if by_all and (guard := copies_guard(context, layout)):
        return (Branch(guard, nodes, comment="the other threads would copy the same"),)
    if copy is None or copy.lane_bits == LANE_BITS:
        return nodes
    return (
        Branch(f"{context.axis_names.lane()} < {1 << copy.lane_bits}", nodes, comment="the other lanes want the same"),
    )


@frozen
class OwnCopies:
    """The text of what threads load ahead for themselves in a loop.

    Attributes:
      functions: the function that starts the copies of an iteration, before the loop.
      first: the copies of the first iterations.
      arrival: the wait at the top of an iteration.
      arrays: those that take turns with others, which wait until they are read no more.
    """

    functions: tuple[Node, ...] = ()
    first: tuple[Node, ...] = ()
    arrival: tuple[Node, ...] = ()
    arrays: tuple[str, ...] = ()


def copies_ahead(context: Context, loop: RingLoop, stages: str, position: str = "") -> OwnCopies:
    """The copies of a loop whose threads, having read their elements of an iteration, start those of a later one.

    `stages` is the constant that counts the ring's stages ("" for a single one), and `position` the count of
    stages with which the loop begins, where that is not 0.
    """
    loads = own_of(context, loop)
    if not loads:
        return OwnCopies()
    statement, ring, bounds, once = loop.statement, loop.ring, loop.bounds, context.names.once
    name, several = context.names.variable(ring.loop), bool(stages)
    ahead, load_tiles = once("ahead", ("ahead", ring.loop)), once("load_tiles", ("load", ring.loop))
    for helper in ("cp_async_commit", "cp_async_wait"):
        context.use_helper(helper)
    copies: list[Node] = []
    arrays: list[str] = []
    reading, values = read_ahead(context, loop, loads), read_values(context, loop, loads)
    prepare, names = conversions_before(context, loads)
    with names_ahead(context, statement, loads) as scalars, context.instead.conversions(names):
        for load in loads:
            arrays.append(declare_own(context, load, ring, stages))
            copies += [*tag(load.origin, AHEAD, bool(copies), again=True), *own_copies(context, load)]
    copies = [*scalars, *copies]
    copies += [*running_totals(context, loop), *reading.behind_copies(name)]
    kind = ctype(statement.variable.type)
    word = stage_word(context, ring)
    parameters, stage = f"{kind} {name}{f', int {word}' if several else ''}", f", {word}" if several else ""
    functions = [
        *prepare,
        *(node for array in arrays for node in context.before_write(array)),
        *reading.before,
        *values.before,
        Comment(f"Starts the loads of the iteration at `{name}`{' into a stage' if several else ''}."),
        Lambda(load_tiles, parameters, tuple(copies)),
    ]
    more = (
        const(kind, ahead, steps_on(Text(name), Text(stages or "1"), bounds.step).text),
        Branch(compared(statement, Text(ahead), bounds.stop), (Line(f"{load_tiles}({ahead}{stage});"),)),
        Line("cp_async_commit();", "possibly of nothing: one group per iteration"),
    )
    free, arrival = _around_reads(context, loads, stages)
    context.notes.after[loads[-1]] = (*free, *more)
    count = context.names.shared_index("trip" if position else "stage")
    first = _first_copies(loop, _Words(ahead, load_tiles, stages, position, count))
    in_turns = tuple(filter(context.shared.takes_turns, arrays))
    return OwnCopies(tuple(functions), (*reading.at_first(), *values.at_first(), *first), arrival, in_turns)


def _around_reads(context: Context, loads: list[Assign], stages: str) -> tuple[tuple[Node, ...], tuple[Node, ...]]:
    """(What an iteration does when all `loads` have been read, what it waits for before that)."""
    for_others = any(load.target in context.schedule.warp_copies for load in loads)
    free = (Line("__syncwarp();", "every lane has read what is overwritten next"),) if for_others else ()
    oldest = Line(f"cp_async_wait<{stages} - 1>();", "the oldest group has arrived: this thread's copies")
    arrival = (
        oldest if stages else Line("cp_async_wait<0>();", "this thread's copies have arrived"),
        *((Line("__syncwarp();", "and so have those that other lanes made for it"),) if for_others else ()),
    )
    return free, arrival


def lower_own_loop(context: Context, loop: RingLoop) -> tuple[Node, ...]:
    """A loop in which threads load for themselves alone."""
    statement, ring = loop.statement, loop.ring
    header = for_header(statement, context.names.variable(ring.loop), loop.bounds)
    if not own_of(context, loop):
        return (trips_of(context, statement, header, loop.body(statement.body)),)
    several = ring.stages > 1
    stages = ""
    if several:
        stages = context.constants.named("NUM_STAGES", ring.stages, "tiles in shared memory at once", topic="stages")
    name = context.names.variable(ring.loop)
    used = context.names.once("used", ("position", ring.loop, "")) if several and ring.counted else ""
    copies = copies_ahead(context, loop, stages)
    trip = [
        *copies.arrival,
        *((const("int", stage_word(context, ring), f"{used or name} % {stages}"),) if several else ()),
        *loop.lowered(context, statement.body),
        *((Line(f"++{used};"),) if used else ()),
    ]
    count = (Declaration("int", used, "0", comment="stages so far"),) if used else ()
    context.shared.being_read.update(copies.arrays)
    return (*copies.functions, *copies.first, *count, trips_of(context, statement, header, tuple(trip)))


@frozen
class _Words:
    """The words for the copies of a loop.

    Attributes:
      ahead: the iteration whose copies are started.
      load_tiles: the function that starts them.
      stages: the constant that counts the ring's stages; "" for a single one.
      position: the count of stages with which the loop begins; "" for 0.
      count: what counts the first iterations.
    """

    ahead: str
    load_tiles: str
    stages: str
    position: str
    count: str


def _first_copies(loop: RingLoop, words: _Words) -> tuple[Node, ...]:
    """The copies of the first iterations, as many as there are stages."""
    statement, bounds, count = loop.statement, loop.bounds, words.count
    commit = Line("cp_async_commit();")
    if not words.stages:
        return (*if_any_trip(statement, bounds, (Line(f"{words.load_tiles}({bounds.start.text});"),)), commit)
    naming, iteration = named_iteration(statement, words.ahead, steps_on(bounds.start, Text(count), bounds.step))
    stage = f"({words.position} + {count}) % {words.stages}" if words.position else count
    some: Node = Line(f"{words.load_tiles}({iteration.text}, {stage});")
    if not surely_runs(statement, loop.ring.stages):
        some = Branch(compared(statement, iteration, bounds.stop), (some,))
    return (Loop(f"for (int {count} = 0; {count} < {words.stages}; ++{count})", (*naming, some, commit)),)


def named_iteration(loop: For, name: str, iteration: Text) -> tuple[tuple[Node, ...], Text]:
    """Gives an iteration a name where it is a sum: (the line that does so, the name)."""
    if iteration.operator not in ("+", "-"):
        return (), iteration
    return (const(ctype(loop.variable.type), name, iteration.text),), Text(name)
