"""Compile-time values that are numbers, as constants of the file under their own names."""

from __future__ import annotations

from typing import Any

from ...ir.c_names import can_be_global
from ...ir.nodes import NO_COMMENTS, Kernel, Literal
from ...ir.symbols import Name, Operation
from ...ir.types import symbol_of
from ...ir.walk import all_expressions
from ...language.dtypes import float32, float64, int32
from ...ops.promotion import literal_type
from ..context import Context
from .header import declared
from .literals import literal_text
from .unit import COMMENT_ROOM, Constant


def named_values(kernel: Kernel) -> dict[str, Any]:
    """The compile-time values that have names in the text."""
    return {**kernel.numbers, **kernel.constants}


def doubles(kernel: Kernel) -> frozenset[str]:
    """Compile-time floats that are computed with in fp64."""
    literals = (part for part in all_expressions(kernel) if isinstance(part, Literal) and part.type.element == float64)
    names = {one.symbol.word for one in literals if isinstance(one.symbol, Name)}
    return frozenset(name for name in names if isinstance(named_values(kernel).get(name), float))


def user_constants(context: Context, mentioned: frozenset[str]) -> list[Constant]:
    """Constexpr parameters that are numbers, under their own names: sides of tiles first, strides that are 1 last.

    `mentioned` are the names in the kernel's text. Where the user says what a parameter is, that stands for our own words.
    """
    constants, sides, shown = [], {}, declared(context, mentioned)
    above: tuple[str, ...] = ()
    for name, value in named_values(context.kernel).items():
        users = context.kernel.parameter_comments.get(name, NO_COMMENTS)
        above += users.above
        spelled = _spelled_constant(value, name in context.speller.arithmetic.doubles)
        if spelled is None or not can_be_global(name):
            continue  # its value is written out
        sides[name] = _sides(context, name, mentioned)
        text, ctype = spelled
        constants.append(Constant(name, text, users.beside or sides[name], ctype, "user", above))
        if name in shown:  # what stands above several is said at the first that is declared
            above = ()
    return sorted(constants, key=lambda constant: (not sides[constant.name], constant.value == "1"))


def _spelled_constant(value: Any, as_double: bool) -> tuple[str, str] | None:
    """(text, C++ type) of a compile-time value; None for one that is no number."""
    if isinstance(value, bool):
        return "true" if value else "false", "bool"
    if isinstance(value, int) and -(1 << 63) <= value < 1 << 64:
        dtype = literal_type(value)
        return str(value) if dtype == int32 else literal_text(value, dtype), dtype.cuda
    if isinstance(value, float):
        dtype = float64 if as_double else float32
        return literal_text(value, dtype), dtype.cuda
    return None


def _sides(context: Context, constant: str, mentioned: frozenset[str]) -> str:
    """Of which tiles a constant is a side, as far as there is room to say it: "rows of a, columns of b".

    Of tiles that several trips bring at once it is a side of what one brings.
    """
    found: dict[str, list[str]] = {}
    joined, in_trip = context.schedule.rings.joined, False
    for variable in (*context.schedule.staged, *context.schedule.layouts):
        shape = variable.type.shape
        for axis, side in enumerate(shape):
            symbol = symbol_of(side)
            several = variable in joined and isinstance(symbol, Operation) and symbol.right == Name(constant)
            if several or symbol == Name(constant):
                in_trip |= several
                noun = ("elements",) if len(shape) == 1 else ("planes", "rows", "columns")[3 - len(shape) :]
                names = found.setdefault(noun[axis] if axis < len(noun) else "elements", [])
                if variable.stem not in names and variable.name in mentioned:
                    names.append(variable.stem)
    parts = [f"{noun} of {names[0]}" for noun, names in found.items() if names]
    parts += ["in a trip"] * in_trip
    return ", ".join(parts) if len(", ".join(parts)) <= COMMENT_ROOM else "".join(parts[:1])
