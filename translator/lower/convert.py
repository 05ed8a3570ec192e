"""Moves a tile from one layout to another through shared memory."""

from __future__ import annotations

import math

from ..ir.nodes import Statement, Variable
from ..schedule.layout import Layout, padded
from ..schedule.plan import Conversion
from .context import Context, ctype
from .memory import copies_guard, indexed
from .point import Point
from .shared import dimensions, place
from .unit import Branch, Comment, Line, Node, Shared


def lower_conversions(
    context: Context, statement: Statement
) -> tuple[tuple[Node, ...], dict[tuple[Variable, Layout], str]]:
    """The text that brings tiles into the layouts that a statement needs, and the names it gives them."""
    nodes: list[Node] = []
    names: dict[tuple[Variable, Layout], str] = {}
    for number, conversion in enumerate(context.schedule.conversions.get(id(statement), ())):
        variable = conversion.variable
        copy = context.temporary(id(statement), f"{variable.name}_moved{'_too' * number}", variable.type)
        name = context.names.variable(copy)
        names[variable, conversion.layout] = name
        nodes += _convert(context, statement, conversion, name, number)
    return tuple(nodes), names


def _convert(context: Context, statement: Statement, conversion: Conversion, name: str, number: int) -> list[Node]:
    variable, wanted = conversion.variable, conversion.layout
    held = context.schedule.layouts[variable]
    shape = variable.type.shape
    purpose = f"convert{number}"
    shared = context.scratch_name(id(statement), purpose, f"{variable.name}_shared")
    itemsize = 8 if variable.type.is_pointer else variable.type.dtype.itemsize
    size = math.prod(padded(side) for side in shape) * itemsize
    comment = f"{variable.name}, on its way to other threads"
    array = Shared(shared, ctype(variable.type), dimensions(context, shape), size, comment)
    context.scratch(id(statement), purpose, array)
    source = context.names.variable(variable)

    def write(point: Point) -> tuple[Node, ...]:
        value = indexed(context, source, variable, point)
        return (Line(f"{shared}{place(context, point, shape)} = {value};"),)

    def read(point: Point) -> tuple[Node, ...]:
        return (Line(f"{indexed(context, name, variable, point)} = {shared}{place(context, point, shape)};"),)

    writes = context.each_register(held, write)
    if guard := copies_guard(context, held):
        writes = (Branch(guard, writes),)
    nodes: list[Node] = [
        Comment(
            f"{variable.name} changes hands through shared memory: from here on each thread has what it uses below."
        ),
        *context.before_write(shared),
        *writes,
        *context.barrier(f"all of {variable.name} is in shared memory"),
        Line(f"{context.declaration(variable, wanted, name)};"),
        *context.each_register(wanted, read),
    ]
    context.pending_reads.add(shared)
    return nodes
