"""C expressions of compile-time integers that were computed from named ones, such as `BLOCK_M / 2` and `WIDTH - 4`.

Numbers that are added to a name one after the other become one number: of `i + WIDTH - 1`, with i = -3, `WIDTH - 4` is left.
"""

from __future__ import annotations

from typing import Any

from .values import Const


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
    if sign in ("+", "-"):
        return _sum(left, sign, right, value)
    if sign == "*":
        if 1 in (left.value, right.value):  # such as a stride that is folded
            return left.symbol if right.value == 1 else right.symbol
        return f"{operand(left)} * {operand(right)}" if value else None
    return f"{operand(left)} {sign} {operand(right)}" if min(left.value, right.value) > 0 else None


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
