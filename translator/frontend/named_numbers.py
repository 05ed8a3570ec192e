"""C expressions of compile-time integers that were computed from named ones, such as `BLOCK_M / 2` and `WIDTH - 4`.

Numbers that are added to a name one after the other become one number: of `i + WIDTH - 1`, with i = -3, `WIDTH - 4` is left.
"""

from __future__ import annotations

import operator
import re
from math import gcd
from typing import Any

from ..ir.static_loops import OfTrips
from .values import Const

PYTHON = {"+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.floordiv, "%": operator.mod}


class Sum(str):
    """The text of a sum with a number at its end: `base` is what stands in front of it, `number` what is added."""

    base: str
    number: int

    def __new__(cls, base: str, number: int) -> Sum:
        """Of a number that is not 0."""
        made = super().__new__(cls, f"{base} {'+' if number > 0 else '-'} {abs(number)}")
        made.base, made.number = base, number
        return made


def named(left: Const, sign: str, right: Const, value: Any) -> str | None:
    """The expression of `value`, which is `left sign right`; None where no name is in it, or C would compute it otherwise."""
    if not sign or not (left.symbol or right.symbol) or not all(map(is_c_int, (left.value, right.value, value))):
        return None
    if isinstance(left.symbol, OfTrips) or isinstance(right.symbol, OfTrips):
        return _of_trips(left, sign, right)
    if sign in ("+", "-"):
        return _sum(left, sign, right, value)
    if sign == "*":
        if 1 in (left.value, right.value):  # such as a stride that is folded
            return left.symbol if right.value == 1 else right.symbol
        return f"{operand(left)} * {operand(right)}" if value else None
    return f"{operand(left)} {sign} {operand(right)}" if min(left.value, right.value) > 0 else None


def _of_trips(left: Const, sign: str, right: Const) -> OfTrips | None:
    """The expression of numbers of which trips have different ones: all trips have it in the same words."""
    (least, most, divisor), (low, high, other_divisor) = _known(left), _known(right)
    if sign not in PYTHON or (sign in ("/", "%") and (least < 0 or low <= 0)):
        return None
    ends = [PYTHON[sign](one, other) for one in (least, most) for other in (low, high)]
    reach = (0, high - 1) if sign == "%" else (min(ends), max(ends))
    divides = {"*": divisor * other_divisor, "+": gcd(divisor, other_divisor), "-": gcd(divisor, other_divisor)}.get(
        sign, 1
    )
    return OfTrips(_spelled(left, sign, right), reach, divides) if all(map(is_c_int, reach)) else None


def _spelled(left: Const, sign: str, right: Const) -> str:
    """An operation in C; what leaves the other operand as it is in all trips is not written."""
    first, second = left.symbol or str(left.value), right.symbol or str(right.value)
    if (sign in ("+", "-") and second == "0") or (sign == "*" and second == "1"):
        return first
    if (sign, first) in (("+", "0"), ("*", "1")):
        return second
    if sign not in ("+", "-"):
        return f"{f'({first})' if _is_sum(first) else first} {sign} {operand(right)}"
    if second.startswith("-") and second[1:].isdigit():
        return f"{first} {'-' if sign == '+' else '+'} {second[1:]}"
    return f"{first} {sign} {f'({second})' if _is_sum(second) else second}"


def _is_sum(text: str) -> bool:
    """Whether an expression is a sum, or has a sign, outside of all brackets."""
    while (shorter := re.sub(r"\([^()]*\)", "", text)) != text:
        text = shorter
    return re.search(r"^-| [-+] ", text) is not None


def _known(value: Const) -> tuple[int, int, int]:
    """The least value in any trip, the greatest, and a divisor of all."""
    if isinstance(value.symbol, OfTrips):
        return (*value.symbol.reach, value.symbol.divisor)
    return value.value, value.value, abs(value.value)


def opposite(value: Const) -> str:
    """The expression of the opposite of a number that has a name."""
    text = f"-{operand(value)}"
    if not isinstance(value.symbol, OfTrips):
        return text
    least, most = value.symbol.reach
    return OfTrips(text, (-most, -least), value.symbol.divisor)


def is_c_int(number: Any) -> bool:
    """Whether a number is one of C's `int`."""
    return type(number) is int and -(1 << 31) <= number < 1 << 31


def operand(value: Const | str) -> str:
    """A value as an operand of an operator that binds tightly."""
    text = value if isinstance(value, str) else value.symbol or str(value.value)
    return text if text.isidentifier() or text.isdigit() else f"({text})"


def _sum(left: Const, sign: str, right: Const, value: int) -> str | None:
    (first, number), (second, further) = _terms(left), _terms(right)
    number += further if sign == "+" else -further
    if not is_c_int(value - number):  # what stands in front of the number overflows
        return None
    if first and second:
        base = f"{first} {sign} {operand(second)}"
    elif first or sign == "+":
        base = first or second
    else:
        return f"{number} - {operand(second)}"
    return Sum(base, number) if number else base


def _terms(value: Const) -> tuple[str, int]:
    """The text and the number of which a value is the sum."""
    if isinstance(value.symbol, Sum):
        return value.symbol.base, value.symbol.number
    return (value.symbol, 0) if value.symbol else ("", value.value)
