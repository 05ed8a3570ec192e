"""Dots: the accumulator's first value, the operands' way to shared memory, and the instructions."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from ...ir.nodes import Assign, Call, Literal, Use
from ...schedule.products.dot_plan import DotPlan
from ...schedule.tiles.layout import REGISTER
from ..assignments import fill_by_copy, reads_elsewhere, store_element
from ..context import Context
from ..text.element import indexed
from ..text.literals import literal_text
from ..text.point import Point
from ..text.register_loops import each_register
from ..text.unit import Assignment, Node
from .dot_fma import lower_fma
from .dot_held import lower_held
from .dot_mma import lower_mma
from .dot_parts import lower_wgmma_parts, write_parts
from .dot_wgmma import fragments_of, lower_wgmma, start_products, write_fragments
from .lasting_operands import copied_operands, operands_are_there
from .operand import OperandPlace, operand_place


def lower_dot(context: Context, statement: Assign) -> tuple[Node, ...]:
    """`target = dot(a, b, acc)`: sums into the target's registers, in place."""
    if statement in context.schedule.rings.started_ahead:
        return ()
    plan = context.schedule.dots[statement]
    first = _first_value(context, statement, plan)
    if statement in context.schedule.rings.postponed:
        if not plan.rows_in_registers:
            return first
        return (*first, write_fragments(context, plan, fragments_of(context, statement, plan)))
    copies, sums = _copies_and_sums(context, statement, plan)
    if statement.target in (plan.a.variable, plan.b.variable):  # the registers hold the operand until it is copied
        return (*copies, *first, *sums)
    return (*first, *copies, *sums)


def start_dot(context: Context, statement: Assign, from_zero: bool) -> tuple[Node, ...]:
    """The instructions of a dot with wgmma apart from the rest of it: nothing waits for them.

    The target is declared already, and holds what the sum starts from, unless that is zero.
    """
    plan, target = context.schedule.dots[statement], statement.target
    zero, name = literal_text(0, target.type.dtype), context.names.variable(target)

    def one(point: Point) -> tuple[Node, ...]:
        return (Assignment(indexed(context, name, target, point), zero),)

    nodes = each_register(context, plan.layout, one) if from_zero else ()
    copied = context.progress.copied.items()  # the function that does it has descriptors of its own
    context.progress.copied = {key: name for key, name in copied if not isinstance(key[1], str)}
    places: list[OperandPlace] = []
    for operand in copied_operands(plan):
        code, place = operand_place(context, statement, operand, plan.instruction)
        nodes += code
        places.append(place)
    _note_reads(context, places)
    a = None if plan.rows_in_registers else places[0]
    return (*nodes, *start_products(context, statement, plan, a, places[-1]))


def _note_reads(context: Context, places: Iterable[OperandPlace]) -> None:
    """Remembers which arrays are not to be written before everyone has read them."""
    for place in places:
        array = place.base.split("[")[0]
        if place.variable not in context.ahead.stage_of or array != context.names.variable(place.variable):
            context.shared.being_read.add(array)  # a ring has a protocol of its own


def _copies_and_sums(context: Context, statement: Assign, plan: DotPlan) -> tuple[tuple[Node, ...], tuple[Node, ...]]:
    """What brings operands from registers to shared memory, and the instructions that add products to the target."""
    if plan.instruction.kind == "fma":
        return lower_fma(context, statement, plan)
    places: list[OperandPlace] = []
    copies: list[Node] = []
    for operand in copied_operands(plan):
        code, place = operand_place(context, statement, operand, plan.instruction)
        copies += code
        places.append(place)
    parts: list[tuple[OperandPlace, ...]] = []
    ahead = context.around.parts_ahead
    if ahead and ahead.dot is not statement:
        ahead = None
    if plan.instruction.kind == "wgmma" and plan.instruction.split:
        for place in places:
            code, written = write_parts(context, statement, plan, place, ahead.count if ahead else "")
            copies += () if ahead else code
            parts.append(written)
    copies += _copies_for_next(context, statement)
    if copies:
        copies += operands_are_there(context, {plan.instruction.kind})
    _note_reads(context, (*places, *(place for written in parts for place in written if not ahead)))
    if parts:
        return tuple(copies), lower_wgmma_parts(
            context, statement, plan, parts[0], parts[1], (ahead.next,) if ahead else ()
        )
    if plan.held:
        return tuple(copies), lower_held(context, statement, plan, places[0])
    if plan.instruction.kind == "wgmma":
        return tuple(copies), lower_wgmma(
            context, statement, plan, None if plan.rows_in_registers else places[0], places[-1]
        )
    return tuple(copies), lower_mma(context, statement, plan, places[0], places[1])


def _copies_for_next(context: Context, statement: Assign) -> tuple[Node, ...]:
    """The copies of operands of the dots right behind one, so that a single barrier serves all."""
    if context.shared.in_turns:
        return ()
    nodes: tuple[Node, ...] = ()
    for dot in context.around.next_dots.get(statement, ()):
        plan = context.schedule.dots[dot]
        for operand in copied_operands(plan):
            if operand.variable not in context.schedule.staged:
                nodes += operand_place(context, dot, operand, plan.instruction)[0]
    return nodes


def _first_value(context: Context, statement: Assign, plan: DotPlan) -> tuple[Node, ...]:
    """What the sum starts from; nothing where it starts from what the target holds."""
    target, layout = statement.target, plan.layout
    call = statement.value
    accumulators = call.args[2:] if isinstance(call, Call) else ()
    if accumulators and isinstance(accumulators[0], Use) and accumulators[0].variable is target:
        return ()
    name = context.names.variable(target)
    declare = context.declare(statement, target, layout)
    value = accumulators[0] if accumulators else Literal(target.type, 0)
    zero = isinstance(value, Literal) and value.value == 0
    if zero and declare and REGISTER in {bit for axis in layout.axes for bit in axis}:
        return (replace(context.declaration(target, layout), value="{}"),)
    if reads_elsewhere(context, target, value):
        return (*declare, *fill_by_copy(context, statement, layout, name, value))
    return (*declare, *each_register(context, layout, lambda at: store_element(context, name, target, value, at)))
