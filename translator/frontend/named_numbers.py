"""What compile-time integers are called that were computed from named ones, such as `BLOCK_M / 2` and `WIDTH - 4`.

Numbers that are added to a name one after the other become one number: of `i + WIDTH - 1`, with i = -3, `WIDTH - 4` is left.
"""

from __future__ import annotations

import operator
from math import gcd
from typing import Any

from ..ir.symbols import AsFloat, Number, OfTrips, Operation, Opposite, Symbol
from ..language.dtypes import DType
from .values import Const

PYTHON = {"+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.floordiv, "%": operator.mod}
SHIFTS = {"<<": operator.lshift, ">>": operator.rshift}
BITS = ("&", "|", "^", *SHIFTS)  # of numbers below zero, and of names of the user's, they are not followed
OTHER_SIGN = {"+": "-", "-": "+"}
ROUNDED = ("fp16", "bf16")  # what C converts an integer to by way of float
EXACT_IN_FLOAT = 1 << 24
LARGEST_SHIFT = 30  # by which 1 is one of C's `int`


def named(left: Const, sign: str, right: Const, value: Any) -> Symbol | None:
    """The expression of `value`, which is `left sign right`; None where no name is in it, or C would compute it otherwise."""
    if not sign or not (left.symbol or right.symbol) or not all(map(is_c_int, (left.value, right.value, value))):
        return None
    if left.trips or right.trips:
        return _of_trips(left, sign, right)
    if sign in BITS:
        return None
    if sign in ("+", "-"):
        return _sum(left, sign, right, value)
    if sign == "*":
        if 1 in (left.value, right.value):  # such as a stride that is folded
            return left.symbol if right.value == 1 else right.symbol
        return Operation("*", _called(left), _called(right)) if value else None
    return Operation(sign, _called(left), _called(right)) if min(left.value, right.value) > 0 else None


def _called(value: Const) -> Symbol:
    return value.symbol or Number(value.value)


def _of_trips(left: Const, sign: str, right: Const) -> Symbol | None:
    """The expression of numbers of which trips have different ones: all trips have it in the same words."""
    (least, most, divisor), (low, high, other_divisor) = _known(left), _known(right)
    if sign in BITS:
        return _bits_of_trips(left, sign, right)
    if sign in ("/", "%") and (least < 0 or low <= 0):
        return None
    ends = [PYTHON[sign](one, other) for one in (least, most) for other in (low, high)]
    reach = (0, high - 1) if sign == "%" else (min(ends), max(ends))
    divides = {"*": divisor * other_divisor, "+": gcd(divisor, other_divisor), "-": gcd(divisor, other_divisor)}.get(
        sign, 1
    )
    return (
        _operation(_called(left), sign, _called(right), OfTrips(reach, divides)) if all(map(is_c_int, reach)) else None
    )


def _bits_of_trips(left: Const, sign: str, right: Const) -> Symbol | None:
    """The same of bits: `corner & 1` is 0 or 1 in all trips."""
    (least, most, divisor), (low, high, _) = _known(left), _known(right)
    if least < 0 or low < 0 or (sign in SHIFTS and high > LARGEST_SHIFT):
        return None
    if sign in SHIFTS:
        ends = [SHIFTS[sign](one, other) for one in (least, most) for other in (low, high)]
        trips = OfTrips((min(ends), max(ends)), divisor << low if sign == "<<" else 1)
    else:
        trips = OfTrips((0, min(most, high) if sign == "&" else (1 << max(most, high).bit_length()) - 1), 1)
    return Operation(sign, _called(left), _called(right), trips=trips) if is_c_int(trips.reach[1]) else None


def _operation(left: Symbol, sign: str, right: Symbol, trips: OfTrips) -> Symbol:
    """An operation; what leaves the other operand as it is in all trips is not written."""
    zero, one = Number(0), Number(1)
    if (sign in ("+", "-") and right == zero) or (sign == "*" and right == one):
        return left
    if (sign, left) in (("+", zero), ("*", one)):
        return right
    if sign in OTHER_SIGN and isinstance(right, Number) and right.value < 0:
        sign, right = OTHER_SIGN[sign], Number(-right.value)
    return Operation(sign, left, right, trips=trips)


def _known(value: Const) -> tuple[int, int, int]:
    """The least value in any trip, the greatest, and a divisor of all."""
    if value.trips:
        return (*value.trips.reach, value.trips.divisor)
    return value.value, value.value, abs(value.value)


def opposite(value: Const) -> Symbol:
    """The expression of the opposite of a number that has a name."""
    if value.trips is None:
        return Opposite(_called(value))
    least, most = value.trips.reach
    return Opposite(_called(value), trips=OfTrips((-most, -least), value.trips.divisor))


def called_as(symbol: Symbol | None, value: Any, element: DType) -> Symbol | None:
    """What a number that is called `symbol` is called as one of another type; None where that takes a number.

    An integer's name stands for the float that it becomes, and for the integer that this becomes again. A float's is that of
    no integer: C would divide by a float.
    """
    if isinstance(symbol, AsFloat):
        symbol, value = symbol.integer, int(value)
    if symbol is None or isinstance(value, float):
        return symbol if element.is_floating() else None
    if element.is_int():
        return symbol
    is_exact = symbol.trips is not None and max(map(abs, symbol.trips.reach)) <= EXACT_IN_FLOAT
    has_name = element.name in ("fp32", "fp64") or (element.name in ROUNDED and is_exact)
    return AsFloat(symbol, trips=symbol.trips) if has_name and type(value) is int else None


def is_c_int(number: Any) -> bool:
    """Whether a number is one of C's `int`."""
    return type(number) is int and -(1 << 31) <= number < 1 << 31


def _sum(left: Const, sign: str, right: Const, value: int) -> Symbol | None:
    (first, number), (second, further) = _terms(left), _terms(right)
    number += further if sign == "+" else -further
    if not is_c_int(value - number):  # what stands in front of the number overflows
        return None
    if first and second:
        base: Symbol | None = Operation(sign, first, second)
    elif first or sign == "+":
        base = first or second
    else:
        return Operation("-", Number(number), second) if second else None
    return Operation("+" if number > 0 else "-", base, Number(abs(number))) if number and base else base


def _terms(value: Const) -> tuple[Symbol | None, int]:
    """What a value is the sum of: an expression and the number at its end."""
    match value.symbol:
        case None:
            return None, value.value
        case Operation(operator="+", left=base, right=Number(value=number)):
            return base, number
        case Operation(operator="-", left=base, right=Number(value=number)):
            return base, -number
    return value.symbol, 0
