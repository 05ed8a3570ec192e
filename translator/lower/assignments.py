"""Elementwise assignments: scalars, and tiles register by register."""

from __future__ import annotations

import math
from dataclasses import replace

from ..ir.nodes import Assign, Call, Expr, Literal, Use, Variable
from ..ir.structured import is_promise_alone
from ..ir.walk import REARRANGES, subexpressions
from ..schedule.tiles.layout import Layout
from ..schedule.tiles.layout_problem import tile_uses
from .accesses.index_tiles import index_tile
from .accesses.recompute import function_of_index
from .accesses.vector_starts import is_one_value
from .context import Context
from .crossed_tiles import unless_all_hold
from .text.element import indexed
from .text.operators import without_outer_parentheses
from .text.pairs import lower_by_pairs
from .text.point import FIRST, Point, point_of
from .text.register_loops import each_register
from .text.rounding import is_rounded_by_pairs, round_by_pairs
from .text.unit import Assignment, Node

EQUAL = "equal for all of a thread's elements"


def lower_assign(context: Context, statement: Assign) -> tuple[Node, ...]:
    """`target = value`: a scalar, the arrays of an index tile, or a register tile."""
    target, value = statement.target, statement.value
    if target in context.role.program_variables.values() or target in context.given or is_promise_alone(statement):
        return ()
    if not target.type.is_tile:
        text = context.speller.spell(value).assigned
        if target in context.schedule.held_starts:
            text = f"{context.use_helper('start_at', 'start_at')}({text})"
        update = None if context.declares(statement, target) else _update(context.names.variable(target), value, text)
        return (update,) if update else context.bind_scalar(statement, target, text)
    if target in context.facts.absorbed:
        return context.masks.definition(context, target)
    if target in context.facts.index:
        arrays: list[Node] = []
        for layout in context.schedule.index_layouts.get(target, ()):
            if context.counts_registers(target, layout):
                continue
            name = context.array_name(target, layout)
            whole = tuple(_fill(context, statement, layout, name))
            once = context.declares(statement, target) and context.assigned_once(target)
            equal = is_one_value(context.axis_names, context.facts, target, layout)
            said = EQUAL if equal else "this thread's first"
            arrays += index_tile(context, target, value, layout, name, whole, said) if once else whole
        return tuple(arrays)
    if target in context.schedule.functions:
        return function_of_index(context, target, lambda point: context.speller.spell(value, point))
    layout = context.schedule.layouts[target]
    name = context.names.variable(target)
    nodes = tuple(_fill(context, statement, layout, name))
    once = context.declares(statement, target) and context.assigned_once(target)
    if (
        once
        and target not in context.schedule.in_shared
        and is_one_value(context.axis_names, context.facts, target, layout)
    ):
        return index_tile(context, target, value, layout, name, nodes, EQUAL)
    return unless_all_hold(context, statement, layout, nodes)


def _fill(context: Context, statement: Assign, layout: Layout, name: str) -> list[Node]:
    """One register tile, element by element."""
    target, value = statement.target, statement.value
    declares = context.declares(statement, target) and target not in context.schedule.in_shared
    declaration = context.declaration(target, layout, name)
    single = layout.num_registers == 1
    if declares and not single and _is_zero(value):
        return [replace(declaration, value="{}")]
    if reads_elsewhere(context, target, value):
        return fill_by_copy(context, statement, layout, name, value)
    if declares and single:
        at = point_of(layout, (FIRST,) * layout.rank)
        return [context.defined(target, layout, context.speller.spell(value, at).assigned, name)]
    declare: list[Node] = [declaration] if declares else []
    if isinstance(value, Call) and is_rounded_by_pairs(value, layout) and target not in context.schedule.in_shared:
        return [*declare, *round_by_pairs(context, name, target, value, layout)]
    if pairs := lower_by_pairs(context, statement, layout, name):
        return [*declare, *pairs]
    return [*declare, *each_register(context, layout, lambda at: store_element(context, name, target, value, at))]


def fill_by_copy(context: Context, statement: Assign, layout: Layout, name: str, value: Expr) -> list[Node]:
    """A register tile that is computed from other elements of itself: all of them before the first one changes."""
    target = statement.target
    copy = context.beside(statement, target, "next")
    fresh = context.names.variable(copy)
    return [
        context.declaration(copy, layout, fresh),
        *each_register(context, layout, lambda at: store_element(context, fresh, target, value, at)),
        *each_register(
            context,
            layout,
            lambda at: (Assignment(indexed(context, name, target, at), indexed(context, fresh, copy, at)),),
        ),
    ]


def store_element(context: Context, name: str, target: Variable, value: Expr, point: Point) -> tuple[Node, ...]:
    """Assigns one element of a tile that is called `name`."""
    place = indexed(context, name, target, point)
    text = context.speller.text(value, point)
    return (_update(place, value, text) or Assignment(place, text),)


def _update(place: str, value: Expr, text: str) -> Assignment | None:
    """`place += …` for a value that is the target's own and something more."""
    for op, sign in (("add", "+"), ("ptr_add", "+"), ("sub", "-"), ("mul", "*")):
        first = value.args[0] if isinstance(value, Call) and value.op == op else None
        if isinstance(first, Use) and text.startswith(f"{place} {sign} "):
            return Assignment(place, without_outer_parentheses(text[len(place) + 3 :]), sign)
    return None


def _is_zero(value: Expr) -> bool:
    return isinstance(value, Literal) and value.value == 0 and math.copysign(1, value.value) > 0


def reads_elsewhere(context: Context, target: Variable, value: Expr) -> bool:
    """Whether the value reads other elements of the target than the one it is assigned to."""
    if not any(isinstance(part, Use) and part.variable is target for part in subexpressions(value)):
        return False
    for variable, path in tile_uses(value, context.facts):
        moved = any(isinstance(call, Call) and call.op in REARRANGES for call, _ in path)
        if variable is target and moved:
            return True
    return False
