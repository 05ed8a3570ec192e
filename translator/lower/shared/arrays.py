"""Shared arrays in the shape of tiles: their dimensions, and the place of an element, as text."""

from __future__ import annotations

from ...ir.symbols import Name
from ...ir.types import padded, symbol_of
from ...schedule.tiles.layout import Layout
from ..context import Context
from ..text.operators import Text, multiplied
from ..text.point import FIRST, Point, coordinate, point_of
from ..text.spell import symbol_text


def dimensions(context: Context, shape: tuple[int, ...], leading: str = "") -> str:
    """The dimensions of an array with one slot per element, sides of 1 left out: "[BLOCK_M][BLOCK_N]"."""
    sides = [side_text(context, side).text for side in shape if padded(side) > 1]
    return "".join(f"[{side}]" for side in filter(None, (leading, *sides))) or "[1]"


def side_text(context: Context, side: int) -> Text:
    """A side, padded to a power of two, by the name that the user gave it where it has one."""
    symbol, number = symbol_of(side), padded(side)
    if symbol and number == side:
        return symbol_text(symbol)
    if isinstance(symbol, Name):
        return Text(
            context.constants.large(f"PADDED_{symbol.word}", number, f"{symbol.word}, padded to a power of two")
        )
    return Text(context.constants.large("TILE_SIDE", number, "a side of a tile in shared memory"))


def size_text(context: Context, shape: tuple[int, ...]) -> Text:
    """The product of the sides of a tile in shared memory."""
    return multiplied([side_text(context, side) for side in shape if padded(side) > 1])


def place(context: Context, point: Point, shape: tuple[int, ...]) -> str:
    """The subscripts of an element in such an array."""
    subscripts = []
    for axis, side in enumerate(shape):
        if padded(side) > 1:
            one = Point(point.layout, point.indices, (point.axes[axis],))
            subscripts.append(f"[{coordinate(one, 0, context.axis_names).text}]")
    return "".join(subscripts) or "[0]"


def thread_number(context: Context, bits: tuple[int, ...], thread_bits: int) -> Text:
    """The number that some bits of the thread's index spell."""
    layout = Layout((bits,), thread_bits)
    return coordinate(point_of(layout, (FIRST,)), 0, context.axis_names)
