"""Where a thread finds, and leaves, what is copied ahead of the iteration that uses it.

In: a load that is made ahead (`own_stages.py`). Out: the text of a place in shared memory: one of the thread's own, or of the
lane that copies for it (`schedule/staging/warp_copies.py`), or where the element lies in a tile that all threads copy for one
another (`schedule/staging/block_copies.py`).
"""

from __future__ import annotations

from ...hardware import LANE_BITS
from ...ir.nodes import Assign, Variable
from ...schedule.staging.warp_copies import WarpCopy
from ...schedule.tiles.layout import REGISTER
from ..accesses.vectors import access_of, vectors_name, width_name
from ..context import Context
from ..products.operand import element_place, place_line
from ..text.operators import Text, exclusive_or, infix, summed
from ..text.point import Point
from ..text.unit import Node


def place_in_tile(context: Context, target: Variable, point: Point, width: int) -> tuple[tuple[Node, ...], str]:
    """Where `width` elements lie in a tile that all threads copy for one another: (the line that names it, its text)."""
    tile = context.schedule.block_copies[target].tile
    several = point.layout.num_registers > width
    naming, place = place_line(context, element_place(context, tile, target, point), f"{target.stem}_ahead", several)
    return naming, f"{context.ahead.own[target]}[{place}]"


def place_read(context: Context, statement: Assign, point: Point) -> tuple[tuple[Node, ...], str]:
    """Where this thread finds a vector, or an element, of a load made ahead: (the line that names it, its text)."""
    target = statement.target
    if target in context.schedule.block_copies:
        return place_in_tile(context, target, point, access_of(context, statement).width)
    return (), place_of_own(context, statement, point, _slot_read(context, target))


def place_of_own(context: Context, statement: Assign, point: Point, slot: str) -> str:
    """The place of a vector, or an element, that was copied ahead for the thread with this `slot` among all places."""
    target = statement.target
    layout, access = context.schedule.layouts[target], access_of(context, statement)
    number: Text | None = None
    for axis in layout.array_axes():
        index, repeat = point.indices[axis], dict(access.repeats).get(axis, 1)
        count = Text(vectors_name(context, layout, access) if axis == access.axis else context.count(layout.axes[axis]))
        own = index.vector or index.whole
        if own.text == "0":
            continue  # the only one
        if repeat > 1:
            count, own = (infix(one, "/", Text(str(repeat))) for one in (count, own))
        number = summed([infix(number, "*", count), own]) if number else own
    place = Text(slot)
    if number:
        place = summed([infix(number, "*", places_of_all(context, target)), place])
    if access.width > 1:
        place = infix(place, "*", Text(width_name(context, layout, access)))
    return f"{context.ahead.own[target]}[{place.text}]"


def _slot_read(context: Context, target: Variable) -> str:
    """Which of the places of all threads holds what this one takes of a tile: the one of the thread that copied it."""
    copy = context.schedule.warp_copies.get(target)
    if copy is None:
        return context.axis_names.tid
    comment = "where this lane finds its part of what is copied ahead"
    return context.constants.place(
        "slot_read", _swizzled(context, copy.copiers, copy), comment, others=(f"{target.stem}_slot_read",)
    )


def slot_filled(context: Context, target: Variable) -> str:
    """Which of them this thread copies to."""
    copy = context.schedule.warp_copies.get(target)
    if copy is None or (not copy.swizzle.pairs and copy.lane_bits == LANE_BITS):
        return context.axis_names.tid
    bits = (*range(copy.lane_bits), *range(LANE_BITS, LANE_BITS + len(copy.copiers) - copy.lane_bits))
    text = _swizzled(context, bits, copy)
    if text == _swizzled(context, copy.copiers, copy):
        return _slot_read(context, target)  # a lane that copies does so to the place that it reads
    order = ", so that reads meet different banks" if copy.swizzle.pairs else "; a lane copies for several"
    comment = f"where this lane's copies go{order}"
    return context.constants.place("slot_filled", text, comment, others=(f"{target.stem}_slot_filled",))


def places_of_all(context: Context, target: Variable) -> Text:
    """How many places a register, or a vector, of all threads takes."""
    copy = context.schedule.warp_copies.get(target)
    shared = LANE_BITS - copy.lane_bits if copy else 0
    threads = Text("NUM_THREADS")
    return infix(threads, "/", Text(str(1 << shared))) if shared else threads


def _swizzled(context: Context, bits: tuple[int, ...], copy: WarpCopy) -> str:
    """The place of the thread whose number is chosen by these bits of this thread's number."""
    whole = bits == tuple(range(context.schedule.num_threads.bit_length() - 1))
    terms = [Text(context.axis_names.tid) if whole else context.axis_names.thread_text(bits)]
    for term in copy.swizzle.terms(0):
        sources = tuple(bits[term[bit][1]] if bit in term else REGISTER for bit in range(max(term) + 1))
        terms.append(context.axis_names.thread_text(sources))
    return exclusive_or(terms).text


def place_of_scalar(context: Context, target: Variable) -> str:
    """The place of a scalar that this thread has copied ahead for itself."""
    return f"{context.ahead.own[target]}[{context.axis_names.tid}]"
