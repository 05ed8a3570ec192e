"""One element: in memory, as a reader expects it (`x_ptr[offset]` rather than `*(x_ptr + offset)`), and in registers."""

from __future__ import annotations

from dataclasses import replace

from ...analysis.ranges import sums_fit
from ...ir.c_operators import ATOM, UNARY
from ...ir.nodes import Call, Expr, Use, Variable
from ...ir.walk import MOVES
from ...language.dtypes import DType
from ..context import Context
from .operators import Text, added
from .point import Point


def element_text(context: Context, pointer: Expr, point: Point | None) -> Text:
    """The element that a pointer points to: `x_ptr[offset]`, or `*(…)` where no one index leads to it."""
    offsets: list[tuple[Expr, Text]] = []
    base, at = _resolve(context, pointer), point
    while isinstance(base, Call) and base.op in ("ptr_add", *MOVES):
        below = [at and at.operand(base, arg) if arg.type.is_tile else None for arg in base.args]
        if base.op == "ptr_add" and (offset := context.speller.offset(base.args[1], below[1])).number != 0:
            offsets.insert(0, (base.args[1], offset))
        base, at = _resolve(context, base.args[0]), below[0]
    start = context.speller.spell(base, at)
    # A pointer moves by 64 bits at each step; a sum of two offsets in 32 bits might not hold what they come to.
    one_index = len(offsets) == 1 or any(text.wide or _is_long(offset) for offset, text in offsets[:2])
    added_up = tuple(one for one, _ in offsets)
    one_index = one_index or added_up in context.schedule.small_offsets.sums
    one_index = one_index or sums_fit(added_up, context.facts.definitions)
    for place, (moved_by, text) in enumerate(offsets[:2] if not one_index else ()):
        if text.text.removeprefix("-").isdecimal():  # row + 1LL: the sum has 64 bits
            offsets[place], one_index = (moved_by, replace(text, text=f"{text.text}LL")), True
    if offsets and one_index and start.precedence == ATOM:
        terms = [text.within(12, "+") for _, text in offsets] if len(offsets) > 1 else [offsets[0][1].text]
        return Text(f"{start.text}[{added(terms)}]")
    address = context.speller.spell(pointer, point)
    return Text(f"*{address.within(UNARY)}" if not address.operator else f"*({address.text})", UNARY)


def _resolve(context: Context, pointer: Expr) -> Expr:
    while isinstance(pointer, Use) and pointer.variable in context.facts.absorbed:
        pointer = context.facts.definitions[pointer.variable]
    return pointer


def _is_long(offset: Expr) -> bool:
    """Whether an offset has 64 bits by its type."""
    return isinstance(offset.type.element, DType) and offset.type.element.bits == 64


def run_at(element: str) -> str:
    """The run of registers that starts at an element: "x[r]" rather than "&x[r][0]"."""
    return element.removesuffix("[0]") if element.endswith("[0]") else f"&{element}"


def indexed(context: Context, name: str, variable: Variable, point: Point) -> str:
    """The register of a tile at a point of its own layout."""
    subscripts = (f"[{point.indices[axis].text}]" for axis in point.layout.array_axes())
    return name + "".join(subscripts) + context.column(variable, name)
