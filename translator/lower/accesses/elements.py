"""Elements of tiles and scalars in memory, one by one: what is loaded, what is stored, under which condition.

Where a thread has many masked elements, the accesses are predicated instructions (`schedule/accesses/predicated.py`).
"""

from __future__ import annotations

from collections.abc import Callable

from ...ir.nodes import Assign, Expr, Literal, Variable
from ...ir.types import ValueType
from ...language.dtypes import DType, PointerType
from ...schedule.accesses.access import Access, load_operands
from ...schedule.accesses.predicated import is_predicated, may_be_predicated
from ..context import Context, ctype
from ..text.element import element_text, indexed
from ..text.literals import literal_text
from ..text.operators import Text
from ..text.point import Point
from ..text.unit import Assignment, Branch, Line, Node
from .conditions import all_tests
from .found_offsets import found_offsets


def loaded_element(context: Context, statement: Assign, access: Access) -> tuple[tuple[Node, ...], Callable[..., Text]]:
    """What must stand ahead of all, and what one element of a loaded tile is, at a point.

    It is in memory, or in the place that it was copied to, if there is one.
    """
    target = statement.target
    pointer, _, other = load_operands(statement)
    bools, ahead = pointee(pointer).is_bool(), target in context.ahead.own
    layout, here = context.schedule.layouts[target], context.facts.at(statement)
    predicated = not ahead and (
        is_for_next(context, target)
        or is_predicated(access, pointer, target.type, layout, here)
    )  # fmt: skip
    load = load_if(context, target.type) if predicated else ""
    plain = not (predicated or ahead or target in context.schedule.functions) and bool(access.tests)
    found = found_offsets(context, statement, target, pointer, layout) if plain else None

    def one(point: Point, place: str = "") -> Text:
        condition = all_tests(context, access, point, None if load else target)
        otherwise = fallback_text(context, other, target.type, point) if condition else Text("")
        if condition and load:
            return Text(f"{load}({context.speller.text(pointer, point)}, {condition.text}, {otherwise.text})")
        value = Text(place) if place else found[1](point) if found else element_text(context, pointer, point)
        if bools:
            value = Text(f"{value.within(9)} != 0", 9)
        if condition and target not in context.schedule.functions:
            return chosen(context, condition, value, other, target.type, point)
        return Text(f"{condition.within(4)} ? {value.within(4)} : {otherwise.within(3)}", 3) if condition else value

    return found[0] if found else (), one


def chosen(
    context: Context, condition: Text, value: Text, other: Expr | None, type_: ValueType, point: Point | None
) -> Text:
    """An element that is assigned if a condition holds, and what stands for it if not."""
    otherwise = _as_int(other, type_) or fallback_text(context, other, type_, point)
    return Text(f"{condition.within(4)} ? {value.within(4)} : {otherwise.within(3)}", 3)


def is_for_next(context: Context, target: Variable) -> bool:
    """Whether a load is one for the next iteration that stays in front of what it runs beside."""
    return target in context.schedule.rings.for_next and may_be_predicated(target.type)


def load_if(context: Context, type_: ValueType) -> str:
    """The helper that loads an element under a condition."""
    return context.needs.overload("load_if", ctype(type_), {})


def store_if(context: Context, type_: ValueType, modifier: str) -> str:
    """The helper that stores an element under a condition, with this cache hint."""
    name = "_".join(filter(None, ("store_if", modifier)))
    return context.needs.overload(name, ctype(type_), {"modifier": modifier}, "store_if")


def store_element(
    context: Context, pointer: Expr, value: Expr, access: Access, source: Variable | None, predicated: str
) -> Callable[[Point], tuple[Node, ...]]:
    """One element: of registers that hold the computed tile, or of the value itself; by a helper if one is named."""

    def one(point: Point) -> tuple[Node, ...]:
        if source is not None:
            spelled = Text(indexed(context, context.names.variable(source), source, point))
        else:
            spelled = context.speller.spell(value, point)
        condition = all_tests(context, access, point)
        if predicated and condition:
            return (Line(f"{predicated}({context.speller.text(pointer, point)}, {spelled.text}, {condition.text});"),)
        put = Assignment(element_text(context, pointer, point).text, memory_value(value.type, spelled))
        return guarded(condition, put)

    return one


def guarded(condition: Text | None, node: Node) -> tuple[Node, ...]:
    """A statement under a condition, if there is one."""
    return (node,) if condition is None else (Branch(condition.text, (node,)),)


def pointee(pointer: Expr) -> DType:
    """The type of what a pointer, or a tile of them, points to."""
    element = pointer.type.element
    if not isinstance(element, PointerType):
        raise TypeError("not a pointer")
    return element.element_ty


def memory_value(type_: ValueType, text: Text) -> str:
    """A value as it is written to memory; booleans become bytes."""
    return f"{text.within(4)} ? 1 : 0" if not type_.is_pointer and type_.dtype.is_bool() else text.text


def _as_int(other: Expr | None, type_: ValueType) -> Text | None:
    """A number that stands in place of an integer of 8 or 16 bits as an `int`, which the choice has then; None for others.

    ptxas puts two choices between shorter registers into one, and takes them apart again.
    """
    number = 0 if other is None else other.value if isinstance(other, Literal) else None
    short = not type_.is_pointer and type_.dtype.is_int() and 8 <= type_.dtype.bits < 32
    return Text(str(int(number))) if short and number is not None else None


def fallback_text(context: Context, other: Expr | None, type_: ValueType, point: Point | None) -> Text:
    """What stands for an element outside of the mask."""
    if other is None:
        return Text(literal_text(0, type_.dtype) if not type_.is_pointer else "nullptr")
    return context.speller.spell(other, point)
