"""One reduction: what it reduces, which of its levels are a warp's and which the block's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...frozen import frozen
from ...ir.nodes import Expr, Use
from ...ir.types import padded
from ...schedule.accesses.access import inside_test
from ...schedule.tiles.layout import Layout
from ..context import Context
from ..text.operators import Text
from ..text.point import Index, Point, point_of
from ..text.unit import Assignment, Declaration, Node, unrolled
from .combine import Combination


@frozen
class Reduction:
    """One reduction: its operands, layouts, and which thread bits of the reduced axes are lanes and warps."""

    operands: tuple[Expr, ...]
    source: Layout
    axes: tuple[int, ...]
    kept: Layout
    lane_bits: tuple[int, ...]
    warp_bits: tuple[int, ...]
    combination: Combination

    @property
    def over_block(self) -> bool:
        """Whether every thread of the block, and nothing else, is reduced: the helper `block_reduce` does that."""
        return self._every_thread and not any(self.kept.axes)

    @property
    def over_block_by_rows(self) -> bool:
        """The same where each thread keeps an array of elements: the helper `block_reduce_rows`."""
        return self._every_thread and len(self.kept.array_axes()) == 1

    @property
    def _every_thread(self) -> bool:
        every_bit = len(self.lane_bits) + len(self.warp_bits) == self.source.thread_bits
        return every_bit and bool(self.warp_bits)


def first_value(plan: Reduction, result: str, value: str, declares: bool) -> Declaration | Assignment:
    """What a result begins with, in a declaration where this is the first that is heard of it."""
    return Declaration(plan.combination.state, result, value) if declares else Assignment(result, value)


def source_point(plan: Reduction, kept: Point, indices: Mapping[int, Index]) -> Point:
    """The element of the source at a kept element and at given registers along the reduced axes."""
    chosen: list[Index] = []
    position = 0
    for axis in range(plan.source.rank):
        if axis in plan.axes:
            chosen.append(indices[axis])
        else:
            chosen.append(kept.indices[position])
            position += 1
    return point_of(plan.source, tuple(chosen))


def is_array(context: Context, operand: Expr) -> bool:
    """Whether a thread reads the elements of an operand from an array, and computes none of them where it reads it."""
    return isinstance(operand, Use) and operand.variable not in context.facts.absorbed | context.facts.index


def has_padding(plan: Reduction) -> bool:
    """Whether some elements along the reduced axes are no part of the tile."""
    shape = plan.operands[0].type.shape
    return any(padded(shape[axis]) != shape[axis] for axis in plan.axes)


def inside_tests(context: Context, plan: Reduction, point: Point) -> list[Text]:
    """What holds of an element that is no padding along the reduced axes."""
    shape = plan.operands[0].type.shape
    padded_axes = (axis for axis in plan.axes if padded(shape[axis]) != shape[axis])
    return [context.speller.spell(inside_test(shape, axis), point) for axis in padded_axes]


def masked(context: Context, plan: Reduction, point: Point, value: Text, identity: str | None) -> Text:
    """The value of an element, or the identity where the coordinate is padding."""
    for test in inside_tests(context, plan, point):
        value = Text(f"{test.within(4)} ? {value.within(4)} : {identity}", 3)
    return value


def in_register_loops(context: Context, plan: Reduction, names: Sequence[str], node: Node, taken: bool = True) -> Node:
    """`node` in loops over the registers along the reduced axes, behind the line that has `taken` the first element.

    A single loop begins at the second then; of several, each begins at 0, and `node` has to pass over the first or to bear it
    twice.
    """
    looped = [axis for axis in plan.axes if plan.source.registers(axis) > 1]
    begin = "1" if taken and len(looped) == 1 else "0"
    for axis in reversed(looped):
        count = context.count(plan.source.axes[axis])
        node = unrolled(names[axis], count, (node,), start=begin)
    return node


def loop_names(plan: Reduction, kept: Point, names: Sequence[str]) -> list[str]:
    """Names for loops over the source's axes: a reduced one has another name than what the kept element is called by."""
    taken = {index.text for index in kept.indices}
    return [f"{name}{name}" if axis in plan.axes and name in taken else name for axis, name in enumerate(names)]
