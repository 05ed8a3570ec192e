"""Reshapes between sides that are no powers of two: elements change places, through shared memory in row-major order."""

from __future__ import annotations

from ...ir.c_operators import ATOM
from ...ir.nodes import Assign, Call
from ...ir.types import padded
from ..accesses.conditions import copies_guard
from ..context import Context
from ..text.element import indexed
from ..text.operators import Text, sum_text
from ..text.point import Point, coordinate
from ..text.register_loops import each_register
from ..text.unit import Assignment, Branch, Comment, Node, Shared


def lower_repack(context: Context, statement: Assign) -> tuple[Node, ...]:
    """`target = repack(operand)`: the operand's elements one after the other, read in the target's shape."""
    call, target = statement.value, statement.target
    if not isinstance(call, Call):
        raise TypeError("not a reshape")
    (operand,) = call.args
    source, layout = context.schedule.statement_layouts[statement], context.schedule.layouts[target]
    name = context.names.variable(target)
    shared = context.shared.scratch_name(statement, "repack", f"{target.name}_elements")
    itemsize = 8 if target.type.is_pointer else target.type.dtype.itemsize
    numel = int(target.type.numel)
    array = Shared(
        shared, context.element_ctype(target), f"[{numel}]", numel * itemsize, f"{target.name} in row-major order"
    )
    context.shared.scratch(statement, "repack", array)

    def write(point: Point) -> tuple[Node, ...]:
        value = context.speller.text(operand, point)
        line = Assignment(f"{shared}[{_place(context, point, operand.type.shape)}]", value)
        inside = _inside(context, point, operand.type.shape)
        return (Branch(inside, (line,)),) if inside else (line,)

    def read(point: Point) -> tuple[Node, ...]:
        place, inside = _place(context, point, target.type.shape), _inside(context, point, target.type.shape)
        place = f"{inside} ? {place} : 0" if inside else place  # padding has no element, any will do
        return (Assignment(indexed(context, name, target, point), f"{shared}[{place}]"),)

    writes = each_register(context, source, write)
    if guard := copies_guard(context, source):
        writes = (Branch(guard, writes),)
    nodes: list[Node] = [
        Comment("The rows of both shapes lie differently: the elements change hands through shared memory."),
        *context.before_write(shared),
        *writes,
        *context.barrier("all elements are in shared memory"),
        *context.declare(statement, target, layout),
        *each_register(context, layout, read),
    ]
    context.shared.being_read.add(shared)
    return tuple(nodes)


def _coordinates(context: Context, point: Point) -> list[Text]:
    return [coordinate(Point(point.layout, point.indices, (bits,)), 0, context.axis_names) for bits in point.axes]


def _place(context: Context, point: Point, shape: tuple[int, ...]) -> str:
    """An element's number in row-major order."""
    terms, stride = [], 1
    for text, side in zip(reversed(_coordinates(context, point)), reversed(shape), strict=True):
        if text.text != "0":
            terms.append(f"{text.within(ATOM)} * {stride}" if stride > 1 else text.text)
        stride *= int(side)
    return sum_text(*reversed(terms))


def _inside(context: Context, point: Point, shape: tuple[int, ...]) -> str:
    """Whether a point is an element, not padding; "" where there is no padding."""
    coordinates = zip(_coordinates(context, point), shape, strict=True)
    return " && ".join(f"{text.text} < {int(side)}" for text, side in coordinates if padded(side) != side)
