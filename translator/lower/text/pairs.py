"""Elementwise arithmetic of 16-bit floats, two elements at a time: what one register holds, one instruction computes.

A pair are two elements side by side in a thread's array. Products, sums and differences of pairs, and conversions of small
integers to pairs, have instructions; whatever else stands in the expression is computed for each of the two.
"""

from __future__ import annotations

from dataclasses import replace

from ...analysis.ranges import integer_range
from ...ir.nodes import Assign, Call, Expr, Use
from ...ir.walk import MOVES
from ...language.dtypes import DType
from ...schedule.products.dot_plan import HeldOperand
from ...schedule.tiles.layout import Layout
from ..context import Context
from .element import indexed
from .fields import find_fields
from .operators import Text
from .pair_types import PAIR_TYPES, rounds_floats
from .point import FIRST, Point, point_of, register
from .register_loops import axis_indices
from .unit import Assignment, Node, const, unrolled

OPERATORS = {"add": ("+", 12), "sub": ("-", 12), "mul": ("*", 13)}
SIGN = 0x8000
BYTE = 8  # bits


def lower_by_pairs(context: Context, statement: Assign, layout: Layout, name: str) -> tuple[Node, ...]:
    """An elementwise assignment, two elements at a time; nothing where that has no advantage."""
    target, value = statement.target, statement.value
    axes = layout.array_axes()
    fast, apart = next(
        ((held.k_axis, held.apart) for held in _held(context) if held.layout == layout), (axes[-1] if axes else 0, 1)
    )
    if not axes or layout.run(fast) < 2 * apart or not _pays(context, value):
        return ()
    names = axis_indices(context, layout)
    other = context.names.shared_index("next")
    indices = [register(names[axis]) if layout.registers(axis) > 1 else FIRST for axis in range(layout.rank)]
    one = point_of(layout, tuple(indices))
    two = point_of(layout, tuple(register(other) if axis == fast else index for axis, index in enumerate(indices)))
    two = replace(two, apart=apart.bit_length() - 1)
    words = PAIR_TYPES[target.type.dtype.name]
    pair = context.names.shared_index("pair")
    count = context.count(layout.axes[fast])
    word = names[fast]
    nodes: tuple[Node, ...] = (
        const("int", other, f"{word} + {apart}"),
        const(words.name, pair, _pair(context, value, one, two).text),
        Assignment(indexed(context, name, target, one), f"{pair}.x"),
        Assignment(indexed(context, name, target, two), f"{pair}.y"),
    )
    if apart > 1:  # registers whose bit of the pair is 0
        turn = context.names.shared_index("turn")
        first = const("int", word, f"{turn} / {apart} * {2 * apart} + {turn} % {apart}")
        nodes = (unrolled(turn, f"{count} / 2", (first, *nodes)),)
    else:
        nodes = (unrolled(word, count, nodes, step=2),)
    for axis in reversed(range(layout.rank)):
        if axis != fast and layout.registers(axis) > 1:
            limit = context.count(layout.axes[axis])
            nodes = (unrolled(names[axis], limit, nodes),)
    return nodes


def _held(context: Context) -> list[HeldOperand]:
    """The operands of dots that stay in registers, whose pairs an instruction takes as they are."""
    return [plan.held for plan in context.schedule.dots.values() if plan.held]


def _pays(context: Context, value: Expr) -> bool:
    """Whether an expression is one of 16-bit floats, at whose top there is something that pairs have an instruction for."""
    element = value.type.element
    if not isinstance(element, DType) or element.name not in PAIR_TYPES or not isinstance(value, Call):
        return False
    if value.op in MOVES:
        return _pays(context, value.args[0])
    return value.op in OPERATORS or _least(context, value) is not None or _of_bytes(value) or _of_fp8(value)


def _least(context: Context, value: Call) -> int | None:
    """The least of the small integers that are converted; None where an expression is no such conversion."""
    source, wanted = value.args[0].type.element if value.args else None, value.type.element
    integers = isinstance(source, DType) and source.is_int() and not source.is_bool()
    if value.op != "cast" or not integers or not isinstance(wanted, DType) or value.attribute("bitcast"):
        return None
    least, greatest = integer_range(value.args[0], context.facts.definitions)
    least, many = min(least, 0), PAIR_TYPES[wanted.name].many
    return least if -many <= least and greatest - least < many else None


def _of_bytes(value: Expr) -> bool:
    """Whether an expression converts integers of 8 bits to a type whose numbers of unit 1 are half as many."""
    if not isinstance(value, Call) or value.op != "cast" or value.attribute("bitcast"):
        return False
    source, wanted = value.args[0].type.element, value.type.element
    integers = isinstance(source, DType) and source.is_int() and not source.is_bool() and source.bits == BYTE
    return (
        integers
        and isinstance(wanted, DType)
        and wanted.name in PAIR_TYPES
        and PAIR_TYPES[wanted.name].room == BYTE - 1
    )


def _of_fp8(value: Expr) -> bool:
    """Whether an expression widens floats of 8 bits, of which the target converts two at once."""
    if not isinstance(value, Call) or value.op != "cast" or value.attribute("bitcast"):
        return False
    source, wanted = value.args[0].type.element, value.type.element
    return isinstance(source, DType) and source.is_fp8() and isinstance(wanted, DType) and wanted.name in PAIR_TYPES


def _pair(context: Context, expr: Expr, one: Point | None, two: Point | None) -> Text:
    """The text of an expression at two points at once."""
    element = expr.type.element
    words = PAIR_TYPES[element.name]  # type: ignore[union-attr]
    if isinstance(expr, Call) and expr.op in (MOVES | OPERATORS.keys() | {"cast"}):
        below = [_below(expr, arg, one, two) for arg in expr.args]
        if expr.op in MOVES:
            return _pair(context, expr.args[0], *below[0])
        if expr.op in OPERATORS:
            operator, precedence = OPERATORS[expr.op]
            left, right = (_pair(context, arg, *points) for arg, points in zip(expr.args, below, strict=True))
            text = f"{left.within(precedence, operator)} {operator} {right.within(precedence + 1, operator)}"
            return Text(text, precedence, operator)
        if (least := _least(context, expr)) is not None:
            return _small(context, expr, least, *below[0])
        if _of_bytes(expr):
            source, name = expr.args[0], words.name.removeprefix("__nv_")
            signed = source.type.dtype.kind == "signed"
            values = {"type": expr.type.dtype.cuda, "pair": words.name, "unit": words.unit, "signed": signed}
            helper = context.use_helper("byte_pair", f"{source.type.dtype.short}_{name}", **values)
            return Text(f"{helper}({', '.join(context.speller.text(source, point) for point in below[0])})")
        if _of_fp8(expr):
            source, name = expr.args[0], words.name.removeprefix("__nv_")
            narrow = source.type.dtype.cuda
            values = {"type": expr.type.dtype.cuda, "pair": words.name, "of_floats": words.of_floats, "narrow": narrow}
            helper = context.use_helper("fp8_pair", f"{narrow.removeprefix('__nv_fp8_')}_{name}", **values)
            return Text(f"{helper}({', '.join(context.speller.text(source, point) for point in below[0])})")
        if rounds_floats(expr):
            floats = (context.speller.text(expr.args[0], point) for point in below[0])
            return Text(f"{words.of_floats}({', '.join(floats)})")
    first, second = context.speller.text(expr, one), context.speller.text(expr, two)
    return Text(f"{words.of_one}({first})" if first == second else f"{words.of_two}({first}, {second})")


def _small(context: Context, expr: Call, least: int, one: Point | None, two: Point | None) -> Text:
    """Two small integers as floats: together where they are fields of one word, else one beside the other."""
    element = expr.type.element
    words = PAIR_TYPES[element.name]  # type: ignore[union-attr]
    name = words.name.removeprefix("__nv_")
    values = {
        "type": element.cuda,  # type: ignore[union-attr]
        "pair": words.name,
        "unit": words.unit,
        "first": f"0x{words.first:04x}",
        "many": words.many,
    }
    fields = find_fields(context, expr.args[0], one, two, words.room) if one and two else None
    if fields is not None and -words.many <= fields.offset <= 0:
        numbers = {"one": f"0x{words.one:04x}", "least": f"0x{words.first | SIGN:04x}", "room": words.room}
        helper = context.use_helper("field_pair", f"fields_{name}", **values, **numbers)
        word, shift = (
            context.speller.text(part, point)
            for part, point in zip((fields.word, fields.shift), fields.points, strict=True)
        )
        return Text(f"{helper}<{fields.offset}, {fields.mask:#x}, {fields.step}>({word}, {shift})")
    helper = context.use_helper("small_pair", f"small_{name}", **values)
    source, spell = expr.args[0], context.speller
    while isinstance(source, Use) and source.variable in context.facts.absorbed:
        source = context.facts.definitions[source.variable]
    first, second = ((spell.as_int(source, point) or spell.spell(source, point)).text for point in (one, two))
    return Text(f"{helper}<{least}>({first}, {second})")


def _below(call: Call, arg: Expr, one: Point | None, two: Point | None) -> tuple[Point | None, Point | None]:
    if one is None or two is None or not arg.type.is_tile:
        return None, None
    return one.operand(call, arg), two.operand(call, arg)
