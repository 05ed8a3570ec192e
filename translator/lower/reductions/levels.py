"""The levels of a reduction beyond a thread: each warp by shuffles, the block through shared memory.

The partial results of the warps meet in a shared array with one slot per warp along the axis and per kept element.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

from ...hardware import LANE_BITS
from ...ir.nodes import Assign
from ...ir.types import padded
from ...schedule.tiles.layout import Layout
from ..accesses.conditions import copies_guard
from ..context import Context
from ..shared.arrays import dimensions, place, thread_number
from ..text.element import indexed
from ..text.operators import Text, infix
from ..text.point import Point
from ..text.register_loops import each_register
from ..text.unit import Assignment, Branch, Declaration, Line, Node, Shared, unrolled
from .reduction import Reduction

LEAST_BY_LANES = 2  # bits of warps whose parts lanes combine
PAIR = 2


Part = Declaration | Assignment | tuple[Node, ...]  # of a result: one element, or several lines that make it


def over_lanes(context: Context, plan: Reduction, result: str, own: Part) -> tuple[Node, ...]:
    """The thread's `own` part and the warp's, by shuffles: one line for each run of consecutive lane bits."""
    if plan.over_block or plan.over_block_by_rows:
        return _lines_of(own)
    return _by_shuffles(context, plan, plan.lane_bits, result, own, everywhere=not plan.warp_bits)


def _by_shuffles(
    context: Context, plan: Reduction, bits: tuple[int, ...], result: str, own: Part, everywhere: bool
) -> tuple[Node, ...]:
    """The same over some bits of the lanes; unless every lane needs the result, the first one's is enough."""
    if not bits:
        return _lines_of(own)
    nodes = list(own) if isinstance(own, tuple) else []
    helper = _warp_helper(context, plan, everywhere)
    runs = _runs(bits)
    for first, last in reversed(runs) if plan.combination.commutes else runs:
        if last - first == LANE_BITS - 1:
            _ask_for_whole_warps(context, plan)
        reduce = f"{helper}<{plan.combination.struct}, {1 << last}, {1 << first}>"
        before = Assignment(result, result) if nodes or isinstance(own, tuple) else own
        nodes.append(replace(before, value=f"{reduce}({before.value})"))
    return tuple(nodes)


def _lines_of(part: Part) -> tuple[Node, ...]:
    return part if isinstance(part, tuple) else (part,)


def _warp_helper(context: Context, plan: Reduction, everywhere: bool) -> str:
    """The helper that combines over lanes; of warps that meet in shared memory, the first lane writes what it has."""
    context.use_helper("shuffle_xor")
    if plan.combination.commutes:
        return context.use_helper("warp_reduce")
    context.use_helper("reduce_to_first_lane")
    return context.use_helper("warp_reduce_in_order") if everywhere else "reduce_to_first_lane"


def _ask_for_whole_warps(context: Context, plan: Reduction) -> None:
    """Has the file have what combines all lanes of a warp at once, where there is such an instruction."""
    combination = plan.combination
    if combination.over_warp:
        values = {"struct": combination.struct, "state": combination.state, "function": combination.over_warp}
        context.use_helper("whole_warp", f"warp_reduce of {combination.struct}", **values)


def _runs(bits: tuple[int, ...]) -> list[tuple[int, int]]:
    """Consecutive thread bits as (lowest, highest)."""
    runs: list[tuple[int, int]] = []
    for bit in bits:
        if runs and bit == runs[-1][1] + 1:
            runs[-1] = (runs[-1][0], bit)
        else:
            runs.append((bit, bit))
    return runs


def over_warps(context: Context, statement: Assign, plan: Reduction, name: str) -> tuple[Node, ...]:
    """Through shared memory: a slot per warp along the axis and per kept element."""
    warps = 1 << len(plan.warp_bits)
    kept = _kept_shape(plan)
    shared_name = context.shared.scratch_name(statement, "partial", f"{name}_partial")
    state = plan.combination.state
    size = warps * math.prod(padded(side) for side in kept) * context.needs.size_of(state)
    comment = "partial results by warp"
    leading = _warps_text(context, plan, name)
    array = Shared(shared_name, state, dimensions(context, kept, leading), size, comment)
    context.shared.scratch(statement, "partial", array)
    before = context.before_write(shared_name)
    if plan.over_block or plan.over_block_by_rows:
        helper = "block_reduce" if plan.over_block else "block_reduce_rows"
        for needed in ("shuffle_xor", *_within_warps(plan)):
            context.use_helper(needed)
        _ask_for_whole_warps(context, plan)
        in_order = "" if plan.combination.commutes else "_in_order"
        helper = context.use_helper(helper, helper + in_order, barrier=context.block_barrier(), in_order=in_order)
        text, comment = f"{helper}<{plan.combination.struct}>({name}, {shared_name})", "a barrier inside"
        node = Assignment(name, text, comment=comment) if plan.over_block else Line(f"{text};", comment)
        context.after_barrier()
        context.shared.being_read.add(shared_name)
        return (*before, node)
    nodes = _exchange(context, plan, statement, name, shared_name)
    context.shared.being_read.add(shared_name)
    return (*before, *nodes)


def _within_warps(plan: Reduction) -> tuple[str, ...]:
    """What the helpers that reduce a block call."""
    last = "combine_warps" if plan.over_block_by_rows else "warp_reduce_in_order"
    if plan.combination.commutes:
        return ("warp_reduce", last) if plan.over_block_by_rows else ("warp_reduce",)
    return "reduce_to_first_lane", last


def _kept_shape(plan: Reduction) -> tuple[int, ...]:
    shape = plan.operands[0].type.shape
    return tuple(side for axis, side in enumerate(shape) if axis not in plan.axes)


def _warps_text(context: Context, plan: Reduction, name: str) -> str:
    """How many warps share the reduced axes, by name."""
    warps = 1 << len(plan.warp_bits)
    if len(plan.warp_bits) == plan.source.thread_bits - LANE_BITS:
        return "NUM_WARPS"
    comment, others = "warps that have parts of the same result", (f"{name.upper()}_SHARING_WARPS",)
    return context.constants.named("SHARING_WARPS", warps, comment, others=others)


def _exchange(context: Context, plan: Reduction, statement: Assign, name: str, shared: str) -> tuple[Node, ...]:
    target = statement.targets[0]
    kept = _kept_shape(plan)
    leading, warps = _warps_text(context, plan, name), 1 << len(plan.warp_bits)
    warp = thread_number(context, plan.warp_bits, plan.source.thread_bits).text
    warp = f"{warp.removesuffix(f'% {warps}')}% {leading}" if warp.endswith(f"% {warps}") else warp
    index = context.names.shared_index("w")
    kept_sides = [side for side in kept if padded(side) > 1]
    lanes = _lanes_for_warps(plan)
    share = 1 << len(plan.warp_bits) - len(lanes)
    start = _first_part(context, thread_number(context, lanes, plan.source.thread_bits), share) if lanes else "0"

    def slot(point: Point) -> str:
        return place(context, point, kept) if math.prod(kept) > 1 else ""

    def write(point: Point) -> tuple[Node, ...]:
        return (Assignment(f"{shared}[{warp}]{slot(point)}", indexed(context, name, target, point)),)

    def read(point: Point) -> tuple[Node, ...]:
        result = indexed(context, name, target, point)
        if len(kept_sides) == 1 and not lanes:
            context.use_helper("combine_warps")
            place_text = slot(point)[1:-1]
            text = f"combine_warps<{plan.combination.struct}>({shared}, {place_text})"
            return (Assignment(result, text),)
        struct = plan.combination.struct
        expression = plan.combination.expression or (lambda left, right: f"{struct}::combine({left}, {right})")
        count = str(share) if lanes else leading
        behind = index if share > PAIR else "1"  # of a pair, what is left is no loop
        other = Text(f"{shared}[{f'{start} + ' if lanes else ''}{behind}]{slot(point)}")
        more: Node = combined(expression, result, other)
        if share > PAIR:
            more = unrolled(index, count, (more,), start=1)
        first = Assignment(result, f"{shared}[{start}]{slot(point)}")
        own: Part = (first, more) if share > 1 else first
        return _by_shuffles(context, plan, lanes, result, own, everywhere=True)

    writers = Layout((*plan.kept.axes, plan.warp_bits), plan.source.thread_bits)
    nodes = each_register(context, plan.kept, write)
    if guard := copies_guard(context, writers):
        nodes = (Branch(guard, nodes),)
    barrier = context.barrier("every warp has written its partial results")
    return (*nodes, *barrier, *each_register(context, plan.kept, read))


def _first_part(context: Context, lane: Text, share: int) -> str:
    """Where a lane begins to read partial results, of which each lane of a group reads a share."""
    if share == 1:
        return lane.text
    comment = "the first of the partial results that this lane combines"
    return context.constants.place(
        "first_part", infix(lane, "*", Text(str(share))).text, comment, others=("first_own_part",)
    )


def _lanes_for_warps(plan: Reduction) -> tuple[int, ...]:
    """The bits of lanes that hold the same element, no more than there are of warps: each lane reads its share of the parts.

    () where a few warps' parts are combined as fast one after the other.
    """
    return plan.lane_bits[: len(plan.warp_bits)] if len(plan.warp_bits) >= LEAST_BY_LANES else ()


def combined(expression: Callable[[str, str], str], result: str, value: Text) -> Assignment:
    """The line that combines a value into a result, with C's own shorthand where there is one."""
    text = expression(result, value.text)
    if text.endswith(f"({result}, {value.text})"):  # arguments of a function need no parentheses of their own
        return Assignment(result, text)
    operand = value.within(13)
    text = expression(result, operand)
    for operator in ("+", "^", "|", "&"):
        if text == f"{result} {operator} {operand}":
            return Assignment(result, value.text, operator)
    return Assignment(result, text)
