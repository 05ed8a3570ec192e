"""What a compile-time number is called in the text: an expression of the kernel's constants and of numbers of trips.

Values carry it beside the number: `Const` of the frontend, `Literal` and `Dim` of the tree. It is a value of its own, so that
whoever decides something looks at what it is made of, and `spelled` alone knows where C++ needs parentheses.

Example, what a kernel with `BLOCK: tl.constexpr` calls `BLOCK // 2 - 1`:
  Operation("-", Operation("/", Name("BLOCK"), Number(2)), Number(1)), spelled "BLOCK / 2 - 1"
"""

from __future__ import annotations

from dataclasses import field, replace

from ..frozen import frozen
from .c_operators import ATOM, PRECEDENCE, UNARY


@frozen
class OfTrips:
    """What is known of an integer that other trips of a static loop have another value of: it holds in all of them.

    `reach` are the least and the greatest value, and `divisor` divides all.
    """

    reach: tuple[int, int]
    divisor: int


@frozen
class Symbol:
    """Base of the expressions; `trips` is None where the value is the same in all trips."""

    trips: OfTrips | None = field(default=None, kw_only=True, compare=False)


@frozen
class Name(Symbol):
    """A word: a constant of the file, or what a trip of a static loop calls its own number."""

    word: str


@frozen
class Number(Symbol):
    """An integer within a larger expression."""

    value: int


@frozen
class Opposite(Symbol):
    """`-operand`."""

    operand: Symbol


@frozen
class Operation(Symbol):
    """`left operator right`: +, -, *, and /, % and what works on bits as C has them."""

    operator: str
    left: Symbol
    right: Symbol


@frozen
class AsFloat(Symbol):
    """An integer as a number of a floating-point type, which is that of the value so called."""

    integer: Symbol


def precedence(symbol: Symbol) -> int:
    """How tightly the outermost operator of an expression binds in C++."""
    match symbol:
        case Operation(operator=operator):
            return PRECEDENCE[operator]
        case Opposite():
            return UNARY
        case Number(value=value) if value < 0:
            return UNARY
    return ATOM


def spelled(symbol: Symbol) -> str:
    """An expression in C++. How a float is made of an integer is the business of whoever knows the type."""
    match symbol:
        case Name(word=word):
            return word
        case Number(value=value):
            return str(value)
        case Opposite(operand=operand):
            return f"-{_within(operand, ATOM)}"
        case Operation(operator=operator, left=left, right=right):
            first, second = _least_of_operands(symbol)
            return f"{_within(left, first)} {operator} {_within(right, second)}"
        case AsFloat(integer=integer):
            return f"float({spelled(integer)})"
    raise ValueError(f"{symbol} is no expression")


def mentions(symbol: Symbol | None, name: Name) -> bool:
    """Whether a name stands in an expression."""
    return symbol is not None and renamed(symbol, name, replace(name, word=f"not {name.word}")) != symbol


def renamed(symbol: Symbol, one: Name, other: Name) -> Symbol:
    """The expression with another name in place of one."""
    match symbol:
        case Name():
            return other if symbol == one else symbol
        case Operation(left=left, right=right):
            return replace(symbol, left=renamed(left, one, other), right=renamed(right, one, other))
        case Opposite(operand=operand):
            return replace(symbol, operand=renamed(operand, one, other))
    return symbol


def _least_of_operands(operation: Operation) -> tuple[int, int]:
    """How tightly operands must bind to stand without parentheses."""
    own = PRECEDENCE[operation.operator]
    if own < PRECEDENCE["+"]:
        return ATOM, ATOM  # of bits: compilers warn of mixtures
    is_sum = operation.operator in ("+", "-")
    return own, own + 1 if is_sum else ATOM


def _within(symbol: Symbol, least: int) -> str:
    """An operand; one that begins with a sign stands in parentheses wherever a sum would."""
    own = PRECEDENCE["+"] if precedence(symbol) == UNARY else precedence(symbol)
    return spelled(symbol) if own >= least else f"({spelled(symbol)})"
