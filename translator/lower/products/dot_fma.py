"""Dots without tensor cores: both operands in shared memory, one multiplication per element and step of K."""

from __future__ import annotations

import math

from ...ir.nodes import Assign, Call, Variable
from ...ir.types import padded
from ...ops.casts import cuda_cast
from ...schedule.products.dot_plan import DotPlan, Operand
from ..accesses.conditions import copies_guard
from ..context import Context, ctype
from ..shared.arrays import dimensions, place, side_text
from ..text.element import indexed
from ..text.point import Point, coordinate
from ..text.register_loops import each_register
from ..text.unit import Assignment, Branch, Line, Loop, Node, Shared


def lower_fma(context: Context, statement: Assign, plan: DotPlan) -> tuple[tuple[Node, ...], tuple[Node, ...]]:
    """The operands' way to shared memory, and `target[m][n] += a[m][k] * b[k][n]`, K outermost."""
    target, call = statement.target, statement.value
    if not isinstance(call, Call):
        raise TypeError("not a dot")
    copies: list[Node] = []
    arrays = []
    for operand, purpose in ((plan.a, "a"), (plan.b, "b")):
        code, array = _operand(context, statement, operand, purpose)
        copies += code
        arrays.append(array)
    copies += context.barrier("both operands are in shared memory")
    k = context.names.shared_index("k")
    side = call.args[0].type.shape[-1]
    factors = [cuda_cast(arg.type.element, target.type.element, None, False) for arg in call.args[:2]]

    def one(point: Point) -> tuple[Node, ...]:
        batch, (row, column) = [], [coordinate(_axis(point, axis), 0, context.axis_names).text for axis in (-2, -1)]
        if target.type.rank == 3 and padded(target.type.shape[0]) > 1:
            batch = [coordinate(_axis(point, 0), 0, context.axis_names).text]
        left = _element(plan.a, arrays[0], batch, row, k)
        right = _element(plan.b, arrays[1], batch, k, column)
        left, right = (factor.replace("{x}", text) for factor, text in zip(factors, (left, right), strict=True))
        return (Line(f"{indexed(context, context.names.variable(target), target, point)} += {left} * {right};"),)

    body = each_register(context, plan.layout, one)
    context.shared.being_read.update(arrays)
    return tuple(copies), (Loop(f"for (int {k} = 0; {k} < {side_of(context, side)}; ++{k})", body),)


def side_of(context: Context, side: int) -> str:
    """A side by its name, unpadded."""
    return str(int(side)) if padded(side) != side else side_text(context, side).text


def _axis(point: Point, axis: int) -> Point:
    return Point(point.layout, point.indices, (point.axes[axis],))


def _element(operand: Operand, array: str, batch: list[str], row: str, column: str) -> str:
    """An element of an operand by its coordinates in the dot; sides of 1 have no subscript."""
    subscripts = [row, column] if not operand.swapped else [column, row]
    shape = operand.variable.type.shape
    kept = [text for text, side in zip(subscripts, shape[-2:], strict=True) if padded(side) > 1]
    return array + "".join(f"[{text}]" for text in (*batch, *kept)) if batch or kept else f"{array}[0]"


def _operand(context: Context, statement: Assign, operand: Operand, purpose: str) -> tuple[tuple[Node, ...], str]:
    variable: Variable = operand.variable
    layout = context.schedule.layouts[variable]
    shape = variable.type.shape
    name = context.shared.scratch_name(statement, purpose, f"{variable.name}_shared")
    size = math.prod(padded(side) for side in shape) * variable.type.dtype.itemsize
    array = Shared(name, ctype(variable.type), dimensions(context, shape), size, f"{variable.name}, for the dot")
    context.shared.scratch(statement, purpose, array)
    source = context.names.variable(variable)

    def write(point: Point) -> tuple[Node, ...]:
        return (Assignment(f"{name}{place(context, point, shape)}", indexed(context, source, variable, point)),)

    nodes = each_register(context, layout, write)
    if guard := copies_guard(context, layout):
        nodes = (Branch(guard, nodes),)
    return (*context.before_write(name), *nodes), name
