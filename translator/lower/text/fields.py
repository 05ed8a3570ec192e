"""Pairs of bit fields of one word: `(word >> shift) & mask` at two elements whose shifts are 16 apart.

One shift and one mask give both, each in its half of a register. What must be true is proved, not assumed: both elements
are loaded from the same word (the access repeats it), and their shifts are numbers known element by element. Where they
depend on registers alone, several fields share a shift: what is less than `step` bits is left to the fields' conversion.
"""

from __future__ import annotations

from typing import Any

from ...analysis.fixed_tiles import fixed_tile
from ...analysis.ranges import integer_range
from ...frozen import frozen
from ...ir.nodes import Call, Expr, Literal, Use, Variable
from ...ir.structured import assigns
from ...ir.walk import MOVES, statements
from ...language.dtypes import DType
from ..accesses.vectors import access_of
from ..context import Context
from .point import Point

HALF = 16  # bits from a half of a register to the other
STEPS = (8, 4, 2)  # by whose multiples words are shifted, if the fields between need no shift of their own


@frozen
class Fields:
    """`(word >> shift & mask) + offset` at `point`, and the second element's field 16 bits further up in the same word.

    `step` is the power of two by whose multiples the word is shifted: its fields still fit where numbers have room for them.
    """

    word: Expr
    shift: Expr
    points: tuple[Point, Point]  # of the word and of the shift
    mask: int
    offset: int
    step: int


def find_fields(context: Context, expr: Expr, one: Point, two: Point, room: int, offset: int = 0) -> Fields | None:
    """The fields of at most `room` bits that integers at two points are; None where that cannot be shown."""
    definitions = context.facts.definitions
    if isinstance(expr, Use) and expr.variable in context.facts.absorbed:
        return find_fields(context, definitions[expr.variable], one, two, room, offset)
    if not isinstance(expr, Call) or not expr.args:
        return None
    below = [_below(expr, arg, one, two) for arg in expr.args]
    if expr.op in MOVES and below[0]:
        return find_fields(context, expr.args[0], *below[0], room, offset)
    if expr.op == "cast" and below[0] and _fits(context, expr):
        return find_fields(context, expr.args[0], *below[0], room, offset)
    last = expr.args[-1]
    if not isinstance(last, Literal) or not isinstance(last.value, int) or below[0] is None:
        return None
    if expr.op in ("add", "sub"):
        moved = int(last.value) if expr.op == "add" else -int(last.value)
        return find_fields(context, expr.args[0], *below[0], room, offset + moved)
    whole = expr.args[0].type.element
    if (
        expr.op != "and"
        or not isinstance(whole, DType)
        or whole.bits != 32
        or not 0 < last.value < 1 << min(HALF, room)
    ):
        return None
    return _of_one_word(context, expr.args[0], *below[0], int(last.value), room, offset)


def _below(call: Call, arg: Expr, one: Point, two: Point) -> tuple[Point, Point] | None:
    first, second = one.operand(call, arg), two.operand(call, arg)
    return None if first is None or second is None else (first, second)


def _fits(context: Context, cast: Call) -> bool:
    """Whether a conversion of integers changes no value."""
    wanted = cast.type.element
    if not isinstance(wanted, DType) or not wanted.is_int() or wanted.is_bool() or not cast.args[0].type.dtype.is_int():
        return False
    least, greatest = integer_range(cast.args[0], context.facts.definitions)
    first = -(1 << wanted.bits - 1) if wanted.kind == "signed" else 0
    return first <= least and greatest < first + (1 << wanted.bits)


def _of_one_word(
    context: Context, shifted: Expr, one: Point, two: Point, mask: int, room: int, offset: int
) -> Fields | None:
    """The fields of a word that is shifted, the same word at both points, by 16 more at the second."""
    if not isinstance(shifted, Call) or shifted.op != "shr" or not isinstance(shifted.args[0], Use):
        return None
    word, shift = shifted.args
    at_word, at_shift = _below(shifted, word, one, two), _below(shifted, shift, one, two)
    if at_word is None or at_shift is None or not _is_repeated(context, word.variable, *at_word):  # type: ignore[attr-defined]
        return None
    tile = fixed_tile(shift, context.facts.definitions, context.facts.known)
    place = _difference(*at_shift)
    if tile is None or place is None or (tile < 0).any() or (tile >= 2 * HALF).any():
        return None
    first, second = _halves(tile, *place)
    if (second - first != HALF).any():
        return None
    if word.type.dtype.kind == "signed" and second.max() + mask.bit_length() > word.type.dtype.bits:
        return None  # shifted to the right, such a word has copies of its sign above
    step = 1
    if all(_is_same(tile, axis, bit) for axis, bit in _thread_places(at_shift[0])):
        fits = (step for step in STEPS if (mask << int((first % step).max())) < 1 << room)
        step = next(fits, 1)
    return Fields(word, shift, (at_word[0], at_shift[0]), mask, offset, step)


def _halves(tile: Any, axis: int, bit: int) -> tuple[Any, Any]:
    """The elements whose coordinate along an axis has 0 as its bit `bit`, and those that have 1."""
    moved = tile.swapaxes(0, axis)
    moved = moved.reshape(-1, 2, 1 << bit, *moved.shape[1:])
    return moved[:, 0], moved[:, 1]


def _is_same(tile: Any, axis: int, bit: int) -> bool:
    """Whether elements are the same whatever bit `bit` of their coordinate along an axis is."""
    first, second = _halves(tile, axis, bit)
    return bool((first == second).all())


def _thread_places(point: Point) -> list[tuple[int, int]]:
    """The (axis, bit) of coordinates that threads choose."""
    return [
        (axis, bit)
        for axis, bits in enumerate(point.axes)
        for bit, source in enumerate(bits)
        if isinstance(source, int)
    ]


def _difference(one: Point, two: Point) -> tuple[int, int] | None:
    """(axis, bit of the coordinate) in which two points differ that are neighbours by one register bit."""
    changed = [
        axis for axis in range(one.layout.rank) if one.indices[axis] != two.indices[axis] and one.layout == two.layout
    ]
    if len(changed) != 1 or two.apart is None:
        return None
    for axis, bits in enumerate(one.axes):
        for position, bit in enumerate(bits):
            if bit == (changed[0], two.apart):
                return axis, position
    return None


def _is_repeated(context: Context, variable: Variable, one: Point, two: Point) -> bool:
    """Whether a loaded tile has the same element of memory at both points."""
    place = _difference(one, two)
    load = next(
        (
            s for s in statements(context.kernel.body)
            if assigns(s, "load") and s.targets[0] is variable
        ),
        None,
    )  # fmt: skip
    if load is None or place is None or context.facts.assignments[variable] != 1:
        return False
    return dict(access_of(context, load).repeats).get(place[0], 1) > 1 << place[1]
