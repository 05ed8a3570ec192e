"""Two tiles that lie between each other as one of twice as many elements: of `2 * i` and `2 * i + 1` that is `0, 1, 2, …`.

In: two expressions of indices, pointers or masks, and what the variables in them stand for. Out: the expression of the tile whose
elements along the last axis are theirs, in turns, or None. Where one counts the even numbers and the other the odd ones, the tile
counts all; what both have alike it has twice: `i < n` becomes `i / 2 < n`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeGuard

from ..frozen import frozen
from ..ir.nodes import Call, Expr, Kernel, Literal, Use, Variable
from ..ir.structured import is_elementwise
from ..ir.tiles import broadcast_to, grown
from ..ir.types import ValueType
from ..ir.walk import MOVES, REARRANGES, assignment_counts, only_values, subexpressions
from ..language.dtypes import DType, Element, int32

MOST_PARTS = 16  # of a sum: names may build upon each other
MOST_STEPS = 200  # through an expression, for the same reason


@frozen
class Count:
    """Numbers or addresses along the last axis: `number`, plus all `parts`, plus `step` times the position.

    The parts are scalars, and tiles whose last side is 1.
    """

    step: int = 0
    number: int = 0
    parts: tuple[Expr, ...] = ()


class Doubling:
    """Reads the expressions of a kernel, and writes those of tiles of twice as many elements."""

    def __init__(self, kernel: Kernel) -> None:
        times = assignment_counts(kernel.body)

        def lasts(value: Expr) -> bool:
            return all(times[part.variable] <= 1 for part in subexpressions(value) if isinstance(part, Use))

        values = only_values(kernel.body).items()
        self._values = {variable: value for variable, value in values if is_elementwise(value) and lasts(value)}
        self._counts: dict[Variable, Count | None] = {}
        self._steps = 0

    def count(self, expr: Expr) -> Count | None:
        """How an expression counts along its last axis; None where it does not, or nothing here tells."""
        found = self._count(expr) if _is_plain(expr.type) else None
        return found if found is not None and len(found.parts) <= MOST_PARTS else None

    def _count(self, expr: Expr) -> Count | None:
        if not _varies(expr) or isinstance(expr, Literal):
            return _constant(expr)
        match expr:
            case Use(variable=variable):
                if variable not in self._counts:
                    value = self._values.get(variable)
                    self._counts[variable] = None if value is None else self.count(value)
                return self._counts[variable]
            case Call(op="arange"):
                return Count(1, expr.attribute("start"))
            case Call(op="hint" | "broadcast", args=(inner,)):
                return self.count(inner)
            case Call(op="expand_dims", args=(inner,)):
                axis = expr.attribute("axis")
                return _changed(self.count(inner), lambda part: grown(part, axis) if part.type.is_tile else part)
            case Call(op="cast", args=(inner,)):  # to another type of plain integers
                return _changed(self.count(inner), lambda part: _as(part, expr.type.element))
            case Call(op="add" | "ptr_add", args=(left, right)):
                return _added(self.count(left), self.count(right))
            case Call(op="sub", args=(left, right)) if (taken := _number(right)) is not None:
                number = replace(taken, type=taken.type.with_shape(()))
                return _added(self.count(left), _constant(Call(number.type, "neg", (number,))))
            case Call(op="mul", args=(left, right)):
                factor, other = (left, right) if _number(left) is not None else (right, left)
                return _multiplied(self.count(other), _number(factor))
        return None

    def doubled(self, even: Expr, odd: Expr) -> Expr | None:
        """The tile with the elements of both in turns, the `even` one's first; None where it has no expression of its own."""
        self._steps = MOST_STEPS
        return self._doubled(even, odd)

    def _doubled(self, even: Expr, odd: Expr) -> Expr | None:
        one, other = self.count(even), self.count(odd)
        if one is not None and other == replace(one, number=one.number + 1) and one.step == 2:
            return _counted(one, even.type)
        self._steps -= 1
        if even == odd or not self._steps:
            return self._twice(even) if even == odd else None
        even, odd = self._value(even), self._value(odd)
        if not (_is_spread(even) and _is_spread(odd)) or replace(even, args=()) != replace(odd, args=()):
            return None
        return _made(even, [self._doubled(a, b) for a, b in zip(even.args, odd.args, strict=True)])

    def _twice(self, expr: Expr) -> Expr | None:
        """The tile with each element of another one twice."""
        self._steps -= 1
        expr = self._value(expr)
        if not _varies(expr):
            return expr
        if isinstance(expr, Literal):
            return replace(expr, type=_twice_as_long(expr.type))
        if isinstance(expr, Call) and expr.op == "arange" and expr.attribute("start") == 0:
            numbers = _numbers(expr.type)
            return Call(numbers.type, "floordiv", (numbers, Literal(numbers.type, 2)))
        return _made(expr, [self._twice(arg) for arg in expr.args]) if _is_spread(expr) and self._steps > 0 else None

    def _value(self, expr: Expr) -> Expr:
        """What a tile's name stands for."""
        known = isinstance(expr, Use) and _varies(expr) and expr.variable in self._values
        return self._values[expr.variable] if known else expr  # type: ignore[attr-defined]


def _varies(expr: Expr) -> bool:
    """Whether an expression may have several elements along its last axis."""
    return expr.type.is_tile and expr.type.shape[-1] > 1


def _is_plain(type_: ValueType) -> bool:
    """Whether arithmetic in this type is that of integers, because overflow is undefined, or of addresses."""
    element = type_.element
    return type_.is_pointer or (isinstance(element, DType) and element.is_int_signed() and element.bits >= 32)


def _is_spread(expr: Expr) -> TypeGuard[Call]:
    """Whether an operation has its operands' elements where they are."""
    return isinstance(expr, Call) and is_elementwise(expr) and expr.op not in (*REARRANGES, "arange")


def _twice_as_long(type_: ValueType) -> ValueType:
    return type_.with_shape((*type_.shape[:-1], 2 * type_.shape[-1]))


def _numbers(type_: ValueType) -> Expr:
    """0, 1, 2, … for a tile of twice as many elements as one of a type has."""
    side = 2 * type_.shape[-1]
    return Call(ValueType(int32, (side,)), "arange", (), (("start", 0), ("end", side)))


def _made(expr: Call, args: list[Expr | None]) -> Expr | None:
    """A call with other operands, of a tile twice as long."""
    known = tuple(arg for arg in args if arg is not None)
    return replace(expr, type=_twice_as_long(expr.type), args=known) if len(known) == len(args) else None


# ---------------------------------------------------------------------------------------------------------- counts


def _constant(expr: Expr) -> Count:
    """What is the same along the last axis: numbers without a name are added up, all else stands for itself."""
    if isinstance(expr, Literal):
        scalar = replace(expr, type=expr.type.with_shape(()))
        return Count(parts=(scalar,)) if expr.symbol is not None else Count(number=int(expr.value))
    if isinstance(expr, Call) and expr.op == "neg" and (number := known_number(expr)) is not None:
        return Count(number=number) if expr.args[0].symbol is None else Count(parts=(expr,))  # type: ignore[attr-defined]
    if isinstance(expr, Call) and expr.op in ("add", "ptr_add"):
        found = _added(*map(_constant, expr.args))
        return found if found is not None and found.number else Count(parts=(expr,))
    return Count(parts=(expr,))


def _added(one: Count | None, other: Count | None) -> Count | None:
    if one is None or other is None:
        return None
    return Count(one.step + other.step, one.number + other.number, (*one.parts, *other.parts))


def known_number(expr: Expr) -> int | None:
    """The integer that a scalar is, or the opposite of one that it names, where it is one in every trip of a static loop."""
    match expr:
        case Literal(value=int(value), trips=None):
            return int(value)
        case Call(op="neg", args=(Literal(value=int(value), trips=None),)):
            return -int(value)
    return None


def _number(expr: Expr) -> Literal | None:
    """The number that all elements are, if it is one in every trip of a static loop."""
    while isinstance(expr, Call) and expr.op in MOVES:
        expr = expr.args[0]
    return expr if isinstance(expr, Literal) and expr.trips is None else None


def _multiplied(count: Count | None, factor: Literal | None) -> Count | None:
    """A count that is multiplied with a number."""
    if count is None or factor is None:
        return None
    times = int(factor.value)
    parts = (Call(p.type, "mul", (p, replace(factor, type=p.type))) for p in count.parts)
    return Count(times * count.step, times * count.number, tuple(parts))


def _changed(count: Count | None, change: Callable[[Expr], Expr]) -> Count | None:
    return None if count is None else replace(count, parts=tuple(map(change, count.parts)))


def _as(expr: Expr, element: Element) -> Expr:
    """An integer as one of another type."""
    wanted = expr.type.with_element(element)
    if isinstance(expr, Literal):
        return replace(expr, type=wanted)
    return expr if expr.type == wanted else Call(wanted, "cast", (expr,))


def _counted(count: Count, type_: ValueType) -> Expr:
    """The tile of twice as many elements as one of a type has, that counts by ones from where `count` does."""
    whole = _twice_as_long(type_)
    op, element = ("ptr_add", int32) if type_.is_pointer else ("add", type_.element)
    numbers = (Literal(ValueType(element), count.number),) if count.number else ()
    # The pointer first, and what is the same for all in front of what rows have of their own.
    parts = sorted((*count.parts, *numbers), key=lambda part: (not part.type.is_pointer, part.type.is_tile))
    total: Expr | None = None
    for part in (*parts, _as(_numbers(type_), element)):
        part = part if type_.is_pointer else _as(part, element)
        shape = whole.shape if _varies(part) else _wider(total, part)
        total = part if total is None else Call(
            type_.with_shape(shape), op, (broadcast_to(total, shape), broadcast_to(part, shape))
        )  # fmt: skip
    return broadcast_to(total, whole.shape) if total is not None else _numbers(type_)


def _wider(total: Expr | None, part: Expr) -> tuple[int, ...]:
    """The shape of the sum of two expressions, each a scalar or a tile."""
    shapes = [expr.type.shape for expr in (total, part) if expr is not None and expr.type.is_tile]
    return tuple(map(max, zip(*shapes, strict=True))) if shapes else ()
