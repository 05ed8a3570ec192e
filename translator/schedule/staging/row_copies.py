"""Loads of boxes whose rows start at no multiple of 16 bytes: copied as they lie in memory, aligned in shared memory.

Neither a tensor copy nor a 16-byte `cp.async` can start at any element. But every row can be copied from the 16-byte
boundary at or before its first element, with one chunk more than it has; once it is in shared memory, threads shift it
into the format that tensor cores read. Nothing need be known of strides, of sizes or of where the box starts.

In: a load of a loop. Out: the `row_load` that takes its place.
"""

from __future__ import annotations

import math

from ...analysis.box_dimensions import BoxDim, BoxKind
from ...analysis.boxes import Box, find_box
from ...analysis.parameter_text import parameter_text
from ...hardware import CHUNK_BYTES, WARP_SIZE, WORD_BYTES
from ...ir.nodes import Assign, Call, Expr, For, Literal, Use
from ...ir.types import ValueType, symbol_of
from ...ir.walk import used_variables
from ...language.dtypes import int32, int64
from .ring_plan import RingPlan

MOST_REGISTERS = 160  # of a thread, for sums and for what it copies word by word


def row_load(plan: RingPlan, statement: Assign, loop: For) -> Call | None:
    """The copy of rows that takes the place of a load, in terms of the loop's variable and of what the loop does not change.

    None where the load is no box, where threads can copy it in whole chunks as it is, and where they can copy it in words, for
    which `cp.async` wants an address each.
    """
    call = statement.value
    tile = plan.dots.staged[statement.target]
    if not isinstance(call, Call) or len(tile.shape) != 2:
        return None
    at_once = _bytes_at_once(plan, statement, call)
    if at_once >= CHUNK_BYTES or (at_once >= WORD_BYTES and _has_few(plan, at_once)):
        return None
    box = find_box(statement, plan.given.kernel, plan.given.facts, plan.given.induction, BoxKind(mapped=False))
    if not isinstance(box, Box) or box.dims[0].axis != tile.fast or (box.guards and not plan.given.options.guards):
        return None
    changed = plan.given.induction.changed[loop] - {loop.variable}
    if any(v in changed or v.type.is_tile for dim in box.dims for v in used_variables(dim.start)):
        return None
    first: Expr = Use(box.base.type, box.base)
    for dim in sorted(box.dims, key=lambda dim: dim is box.dims[0]):  # the offset within the row last
        if dim.start != Literal(dim.start.type, 0):
            offset = dim.start if dim is box.dims[0] else _product(dim.start, dim.stride)
            first = Call(first.type, "ptr_add", (first, offset))
    by_axis = {dim.axis: dim for dim in box.dims}
    rows, row = by_axis[tile.slow], by_axis[tile.fast]
    if any(_is_long(expr) for dim in (rows, row) for expr in (dim.start, dim.size) if expr is not None):
        return None
    for guard in box.guards:
        plan.guards.setdefault(parameter_text(guard))
    args = (first, rows.stride, _inside(rows), _inside(row))
    return Call(statement.target.type, "row_load", args, (("fast", tile.fast),), span=call.span)


def _bytes_at_once(plan: RingPlan, statement: Assign, call: Call) -> int:
    """How many bytes of a row always lie at a multiple of as many."""
    tile = plan.dots.staged[statement.target]
    pointer = plan.given.induction.value_at(call.args[0], statement) or call.args[0]
    info = plan.given.facts.at(statement).info(pointer)
    return max(min(info.contiguity[tile.fast] * tile.itemsize, info.divisibility[tile.fast]), tile.itemsize)


def _has_few(plan: RingPlan, at_once: int) -> bool:
    """Whether threads have registers for the places of all pieces of so many bytes that they copy, beside their sums."""
    threads = plan.given.options.num_warps * WARP_SIZE
    copied = sum(math.prod(tile.shape) * tile.itemsize for tile in plan.dots.staged.values()) // at_once // threads
    sums = max((one.layout.num_registers for one in plan.dots.plans.values()), default=0)
    return copied + sums <= MOST_REGISTERS


def _product(start: Expr, stride: Expr) -> Expr:
    """How far the first element is from that at coordinate 0, in elements."""
    type_ = ValueType(int64) if _is_long(start) or _is_long(stride) else start.type
    return Call(type_, "mul", tuple(x if x.type == type_ else Call(type_, "cast", (x,)) for x in (start, stride)))


def _is_long(expr: Expr) -> bool:
    return expr.type.dtype != int32


def _inside(dim: BoxDim) -> Expr:
    """How many indices of a dimension, from the box's start on, are inside of the tensor; perhaps more than the box has."""
    if dim.size is None:
        return Literal(dim.start.type, int(dim.side), symbol=symbol_of(dim.side))
    if dim.start == Literal(dim.start.type, 0):
        return dim.size
    return Call(dim.size.type, "sub", (dim.size, dim.start))
