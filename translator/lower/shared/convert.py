"""Moves a tile from one layout to another: by shuffles within warps, or through shared memory."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from ...frozen import frozen
from ...hardware import LANE_BITS, WORD_BYTES
from ...ir.nodes import Statement, Variable
from ...ir.types import ORDINALS, padded
from ...schedule.accesses.access import Access
from ...schedule.tiles.exchange import Swizzle, lane_swaps, passage, shuffles
from ...schedule.tiles.layout import REGISTER, Layout
from ..accesses.conditions import copies_guard
from ..accesses.vectors import vectors, width_name
from ..context import Context
from ..text.element import indexed, run_at
from ..text.operators import ZERO, Text, exclusive_or, infix
from ..text.point import KNOWN, Point, PointBit, coordinate, parted, register_index
from ..text.register_loops import axis_indices, each_register
from ..text.unit import Assignment, Branch, Comment, Line, Node, Shared, unrolled
from .arrays import dimensions


@frozen
class Move:
    """A tile on its way from the registers `source`, in the layout `held`, to the registers `name`, in `wanted`.

    `variable` has its type and its name in comments.
    """

    variable: Variable
    source: str
    held: Layout
    wanted: Layout
    name: str


def lower_conversions(
    context: Context, statement: Statement
) -> tuple[tuple[Node, ...], dict[tuple[Variable, Layout], str]]:
    """The text that brings tiles into the layouts that a statement needs, and the names it gives them."""
    nodes: list[Node] = []
    exchanges: list[_Exchange] = []
    names: dict[tuple[Variable, Layout], str] = {}
    for number, conversion in enumerate(context.schedule.conversions.get(statement, ())):
        variable = conversion.variable
        if (variable, conversion.layout) in context.instead.moved:
            names[variable, conversion.layout] = context.instead.moved[variable, conversion.layout]
            continue
        again = sum(variable is other for other, _ in names)
        copy = context.beside(statement, variable, f"moved_{ORDINALS[again]}" if again else "moved")
        name = context.names.variable(copy)
        names[variable, conversion.layout] = name
        move = Move(
            variable, context.names.variable(variable), context.schedule.layouts[variable], conversion.layout, name
        )
        if within_warps := _within_warps(context, move, declares=True):
            nodes += within_warps
        else:
            exchanges.append(_exchange(context, statement, move, f"convert{number}", declares=True))
    context.instead.moved = {**context.instead.moved, **names}
    return (*nodes, *_together(context, exchanges)), names


def conversions_before(
    context: Context, loads: Sequence[Statement]
) -> tuple[tuple[Node, ...], dict[tuple[Variable, Layout], str]]:
    """The same for loads that a loop starts ahead: the tiles are brought once, before the loop."""
    needed = [lower_conversions(context, load) for load in loads]
    names = {key: name for _, found in needed for key, name in found.items()}
    return tuple(node for nodes, _ in needed for node in nodes), names


def moved(context: Context, statement: Statement, move: Move, purpose: str, declares: bool) -> list[Node]:
    """The text of a move; `purpose` tells the moves of one statement apart, `declares` is whether the result is new."""
    within_warps = _within_warps(context, move, declares)
    return within_warps or _together(context, [_exchange(context, statement, move, purpose, declares)])


def _within_warps(context: Context, move: Move, declares: bool) -> list[Node]:
    """The text of a move that needs no shared memory; empty for others."""
    if shuffles(move.held, move.wanted) and _can_be_shuffled(context, move.variable):
        return _shuffle(context, move, declares)
    if _can_be_shuffled(context, move.variable) and (swaps := _swaps_of_runs(move)):
        return _swap(context, move, swaps, declares)
    return []


def _can_be_shuffled(context: Context, variable: Variable) -> bool:
    """Whether CUDA has shuffles of the elements, and they are in registers."""
    numbers = not variable.type.is_pointer and not variable.type.dtype.is_fp8()
    return numbers and variable not in context.schedule.in_shared


# ------------------------------------------------------------------------------------------------------- shuffles


def _shuffle(context: Context, move: Move, declares: bool) -> list[Node]:
    variable, held, wanted = move.variable, move.held, move.wanted

    def one(point: Point) -> tuple[Node, ...]:
        registers = tuple(
            tuple(bit for bit, before in zip(bits, axis, strict=True) if before == REGISTER)
            for bits, axis in zip(point.axes, held.axes, strict=True)
        )
        kept = Point(point.layout, point.indices, registers)
        index = "".join(f"[{register_index(kept, axis)}]" for axis in held.array_axes())
        text = f"__shfl_sync(ALL_LANES, {move.source}{index}, {_source_lane(context, point, held)})"
        if at_once:
            return (declaration.with_value(text),)
        return (Assignment(indexed(context, move.name, variable, point), text),)

    declaration = context.declaration(variable, wanted, move.name)
    at_once = declares and wanted.num_registers == 1
    return [
        Comment(f"{variable.name} moves within each warp to the lanes that use it below."),
        *([declaration] if declares and not at_once else []),
        *each_register(context, wanted, one),
    ]


def _swaps_of_runs(move: Move) -> tuple[tuple[int, int, int], ...]:
    """Exchanges between lanes of the registers of a row, words at a time, that make the move; none if others are needed."""
    swaps = lane_swaps(move.held, move.wanted)
    arrays = [layout.array_axes() for layout in (move.held, move.wanted)]
    item = move.variable.type.dtype.itemsize
    rows = all(axis == arrays[0][-1] and item << place >= WORD_BYTES for axis, _, place in swaps)
    return swaps if arrays[0] == arrays[1] and item <= WORD_BYTES and rows else ()


def _swap(context: Context, move: Move, swaps: tuple[tuple[int, int, int], ...], declares: bool) -> list[Node]:
    helper, lane = context.use_helper("swap_with_lane"), context.axis_names.lane()
    outer, names = move.wanted.array_axes()[:-1], axis_indices(context, move.wanted)
    index = "".join(f"[{names[axis]}]" for axis in outer)
    nodes: tuple[Node, ...] = tuple(
        Line(f"{helper}<{1 << place}, {1 << bit}>({move.name}{index}, {source}{index}, {lane});")
        for source, (_, bit, place) in zip((move.source, *[move.name] * len(swaps)), swaps, strict=False)
    )
    for axis in reversed(outer):
        count, name = context.count(move.wanted.axes[axis]), names[axis]
        nodes = (unrolled(name, count, nodes),)
    longer = move.wanted.run(move.wanted.rank - 1) > move.held.run(move.held.rank - 1)
    why = "so that each has a longer run of it" if longer else "to those that compute with it"
    return [
        Comment(f"{move.variable.name} moves between neighbouring lanes, {why}."),
        *([context.declaration(move.variable, move.wanted, move.name)] if declares else []),
        *nodes,
    ]


def _source_lane(context: Context, point: Point, held: Layout) -> str:
    """The lane that holds the element at a point of the wanted layout."""
    bits: list[PointBit] = [(KNOWN, 0)] * LANE_BITS
    for axis, sources in enumerate(held.axes):
        for bit, source in enumerate(sources):
            if 0 <= source < LANE_BITS:
                bits[source] = point.axes[axis][bit]
    return coordinate(Point(point.layout, point.indices, (tuple(bits),)), 0, context.axis_names).text


# -------------------------------------------------------------------------------------------------- shared memory


@frozen
class _Exchange:
    """A move through the array `shared`: its two halves, between which all threads meet."""

    variable: Variable
    shared: str
    swizzled: bool
    writes: tuple[Node, ...]
    reads: tuple[Node, ...]


def _together(context: Context, exchanges: list[_Exchange]) -> list[Node]:
    """Moves that share one barrier; none for no moves."""
    if not exchanges:
        return []
    names = list(dict.fromkeys(exchange.variable.name for exchange in exchanges))
    several = len(names) > 1
    both = f"{', '.join(names[:-1])} and {names[-1]}" if several else names[0]
    said = f"{both} {'move' if several else 'moves'} through shared memory to the threads that use"
    said += f" {'them' if several else 'it'} below"
    swizzled = any(exchange.swizzled for exchange in exchanges)
    said += "; the exclusive or spreads a warp's accesses over the banks." if swizzled else "."
    meeting = context.barrier(f"{both} are in shared memory" if several else f"all of {both} is in shared memory")
    context.shared.being_read.update(exchange.shared for exchange in exchanges)
    return [
        Comment(said),
        *(node for exchange in exchanges for node in exchange.writes),
        *meeting,
        *(node for exchange in exchanges for node in exchange.reads),
    ]


def _exchange(context: Context, statement: Statement, move: Move, purpose: str, declares: bool) -> _Exchange:
    variable, held, wanted = move.variable, move.held, move.wanted
    shape = variable.type.shape
    itemsize = 8 if variable.type.is_pointer else variable.type.dtype.itemsize
    way = passage(held, wanted, itemsize)
    written, read = (
        1
        if context.column(variable, name)
        else width  # elements of one thread do not lie side by side in shared memory
        for name, width in ((move.source, way.written), (move.name, way.read))
    )
    align = max(written, read) * itemsize if max(written, read) > 1 else None
    shared = context.shared.exchange_name(statement, purpose, variable, align or 0)
    size = math.prod(padded(side) for side in shape) * itemsize
    comment = f"{variable.name} on its way to other threads"
    array = Shared(shared, context.element_ctype(variable), dimensions(context, shape), size, comment, align)
    context.shared.exchange(statement, purpose, variable, array)

    declaration = context.declaration(variable, wanted, move.name)
    at_once = declares and wanted.num_registers == 1
    store, load = (
        context.use_helper(helper, helper, kind="", modifier="", bools=False) if width > 1 else ""
        for helper, width in (("store_vec", written), ("load_vec", read))
    )

    def put(element: str, place: str, count: str) -> Node:
        return Line(f"{store}<{count}>(&{place}, {run_at(element)});") if count else Assignment(place, element)

    def get(element: str, place: str, count: str) -> Node:
        if count:
            return Line(f"{load}<{count}>({run_at(element)}, &{place});")
        return declaration.with_value(place) if at_once else Assignment(element, place)

    def accesses(name: str, layout: Layout, width: int, one: Callable[[str, str, str], Node]) -> tuple[Node, ...]:
        """Loops over the accesses of a thread to the array; `one` is that of an element, or of so many."""
        access = Access(way.axis, width, (), ())

        def spelled(point: Point) -> tuple[Node, ...]:
            place = f"{shared}{_place(context, point, shape, way.swizzle)}"
            count = width_name(context, layout, access) if width > 1 else ""
            return (one(indexed(context, name, variable, point), place, count),)

        if width == 1:
            return each_register(context, layout, spelled)
        context.needs.packets.add(width * itemsize)
        return vectors(context, layout, access, spelled)

    writes = accesses(move.source, held, written, put)
    if guard := copies_guard(context, held):
        writes = (Branch(guard, writes),)
    reads = accesses(move.name, wanted, read, get)
    return _Exchange(
        variable,
        shared,
        bool(way.swizzle.pairs),
        writes=(*context.before_write(shared), *writes),
        reads=(*([declaration] if declares and not at_once else []), *reads),
    )


def _place(context: Context, point: Point, shape: tuple[int, ...], swizzle: Swizzle) -> str:
    """The subscripts of an element's place."""
    subscripts = []
    for axis, side in enumerate(shape):
        if padded(side) == 1:
            continue
        terms = list(swizzle.terms(axis))
        if not terms:
            subscripts.append(coordinate(point, axis, context.axis_names).text)
            continue
        above, below = parted(point, axis, context.axis_names, max(bit + 1 for term in terms for bit in term))
        texts = [below]
        for term in terms:
            bits = tuple(
                point.axes[term[bit][0]][term[bit][1]] if bit in term else (KNOWN, 0) for bit in range(max(term) + 1)
            )
            texts.append(_text(context, point, bits))
        mixed = exclusive_or([text for text in texts if text != ZERO])
        subscripts.append((infix(above, "+", mixed) if above != ZERO else mixed).text)
    return "".join(f"[{text}]" for text in subscripts) or "[0]"


def _text(context: Context, point: Point, bits: tuple[PointBit, ...]) -> Text:
    return coordinate(Point(point.layout, point.indices, (bits,)), 0, context.axis_names)
