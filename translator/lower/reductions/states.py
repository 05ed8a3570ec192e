"""Reductions of several tiles together, such as a value and its index: they travel as one state with several fields."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ...ir.nodes import Assign, Combine, Effect, Use, Variable
from ...ir.types import padded
from ...ir.walk import statements
from ...schedule.accesses.access import inside_test
from ..accesses.vectors import moved_from
from ..context import Context
from ..shared.convert import Move, moved
from ..text.element import indexed
from ..text.point import FIRST, Point, register
from ..text.register_loops import axis_indices, each_register
from ..text.unit import Assignment, Branch, Declaration, Node
from .combine_struct import in_braces
from .levels import over_lanes, over_warps
from .reduction import Reduction, first_value, in_register_loops, loop_names, source_point


def reduce_states(context: Context, statement: Assign, plan: Reduction) -> tuple[Node, ...]:
    """The same levels for several tiles that are combined together: one state per kept element."""
    combine: Combine = statement.value.attribute("combine")  # type: ignore[attr-defined]
    purpose = combine.name if combine.parts else f"{statement.targets[0].name}_state"
    state = context.temporary(statement, purpose, statement.targets[0].type)
    name = context.names.variable(state)
    layout = plan.kept if plan.kept.rank else None
    single = layout is None or not layout.array_axes()
    nodes: list[Node] = [] if single else [Declaration(plan.combination.state, name, sides=context.dimensions(layout))]

    def fields(point: Point) -> str:
        texts = [context.speller.spell(operand, point) for operand in plan.operands]
        values = [in_braces(text, one.type.dtype.cuda) for text, one in zip(texts, plan.operands, strict=True)]
        if len(plan.combination.fields) > len(values):
            shape = plan.operands[0].type.shape
            tests = [
                context.speller.text(inside_test(shape, axis), point)
                for axis in plan.axes
                if padded(shape[axis]) != shape[axis]
            ]
            values.append(" && ".join(tests))
        return f"{{{', '.join(values)}}}"

    def one_kept(point: Point) -> tuple[Node, ...]:
        result = indexed(context, name, state, point)
        own = _states_over_registers(context, plan, point, result, fields, single)
        return over_lanes(context, plan, result, own)

    nodes += each_register(context, plan.kept, one_kept)
    if plan.warp_bits:
        nodes += over_warps(context, statement, plan, name)
    for number, target in enumerate(statement.targets):
        field = plan.combination.fields[number][1]
        if combine.parts and _stays_a_field(context, statement, plan, target):
            context.instead.fields[target] = name, field
        elif target not in context.facts.unused:
            nodes += _unpack(context, statement, plan, target, name, field)
    return tuple(nodes)


def _stays_a_field(context: Context, statement: Assign, plan: Reduction, target: Variable) -> bool:
    """Whether a sum that was reduced with others is read where it lies, as `sums[r].x_sum`, and nothing is a copy of it."""
    apart = context.schedule.in_shared | context.schedule.functions
    converted = (one.variable for group in context.schedule.conversions.values() for one in group)
    named = context.names.bearers(context.names.variable(target))
    if not context.declares(statement, target) or target in apart or target in converted or named & context.given:
        return False
    if not target.type.is_tile:
        return True
    return context.schedule.layouts[target] == plan.kept and not _goes_to_memory(context, target)


def _goes_to_memory(context: Context, target: Variable) -> bool:
    """Whether a statement stores a tile as it is: by vectors, perhaps, for which it must be an array."""
    effects = (s.call for s in statements(context.kernel.body) if isinstance(s, Effect))
    values = (moved_from(arg) for call in effects for arg in call.args[1:2])
    return any(isinstance(value, Use) and value.variable is target for value in values)


def _states_over_registers(
    context: Context, plan: Reduction, kept: Point, result: str, fields: Callable[[Point], str], declares: bool
) -> tuple[Node, ...]:
    names = loop_names(plan, kept, axis_indices(context, plan.source))
    looped = [axis for axis in plan.axes if plan.source.registers(axis) > 1]
    zero = dict.fromkeys(plan.axes, FIRST)
    first = first_value(plan, result, fields(source_point(plan, kept, zero)), declares)
    if not looped:
        return (first,)
    point = source_point(plan, kept, zero | {a: register(names[a]) for a in looped})
    struct = plan.combination.struct
    node: Node = Assignment(result, f"{struct}::combine({result}, {fields(point)})")
    if len(looped) > 1:  # the very first element is the start
        node = Branch(" || ".join(f"{names[axis]} > 0" for axis in looped), (node,))
    return (first, in_register_loops(context, plan, names, node))


def _unpack(
    context: Context, statement: Assign, plan: Reduction, target: Variable, state: str, field: str
) -> tuple[Node, ...]:
    name = context.names.variable(target)
    layout = context.schedule.layouts[target] if target.type.is_tile else None
    combine: Combine = statement.value.attribute("combine")  # type: ignore[attr-defined]
    of_floats = combine.op in ("argmax", "argmin") and plan.operands[0].type.dtype.is_floating()

    # Of two NaN, lanes may keep either's index: of nothing but NaN, every lane would have another one.
    settled = of_floats and field == "index"
    comment = "0 where all are NaN" if settled else ""

    def found(state: str) -> str:
        return f"{state}.value == {state}.value ? {state}.index : 0" if settled else f"{state}.{field}"

    def one(point: Point) -> tuple[Node, ...]:
        left, right = indexed(context, name, target, point), indexed(context, state, target, point)
        return (Assignment(left, found(right), comment=comment),)

    if layout is None:
        return context.bind_scalar(statement, target, found(state), comment)
    if layout == plan.kept:
        declare, values = context.declare(statement, target, layout), each_register(context, plan.kept, one)
        if declare and layout.register_shape() == (1,) * layout.rank:
            return (context.defined(target, layout, found(state), comment=comment),)
        return (*declare, *values)
    own = context.beside(statement, target, "reduced")
    name = context.names.variable(own)
    move = Move(target, name, plan.kept, layout, context.names.variable(target))
    declaration = context.declaration(own, plan.kept)
    if not plan.kept.array_axes():
        whole = replace(declaration, value=found(state), constant=True, comment=comment)
        unpacked: tuple[Node, ...] = (whole,)
    else:
        unpacked = (declaration, *each_register(context, plan.kept, one))
    return (
        *unpacked,
        *context.declare(statement, target, layout),
        *moved(context, statement, move, f"result_{field}", declares=False),
    )
