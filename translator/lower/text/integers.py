"""Integers as C computes with them: what it widens or makes an int of, and what need not be written at all."""

from __future__ import annotations

from ...ir.c_operators import ATOM, UNARY
from ...ir.nodes import Call, Expr, Literal
from ...ir.symbols import AsFloat, Symbol
from ...ir.walk import MOVES
from ...language.dtypes import DType, Element, float32, float64
from .literals import plain_text
from .operators import OF_BOOLS, Text

# C widens the narrower operand of these.
WIDENING = frozenset(("add", "sub", "mul", "floordiv", "mod", "lt", "le", "gt", "ge", "eq", "ne"))
# C computes these in int: what overflows in fewer bits is cast; of those below, what comes out fits.
NARROW = frozenset(("add", "sub", "mul", "neg", "shl", "invert"))
AS_INT = frozenset(("floordiv", "mod", "and", "or", "xor", "shr", "maximum", "minimum"))
ITSELF = "({x})"  # the spelling of what does nothing, such as the absolute value of an unsigned number


def is_int_in_c(call: Call, spelling: str, text: Text, operands: list[Text]) -> bool:
    """Whether C makes an int of what an operation makes of integers narrower than that, without it being cast."""
    result = call.type.element
    if not isinstance(result, DType) or not result.is_int() or result.bits >= 32:
        return False
    if call.op == "where" or spelling == ITSELF:
        return any(one.is_int for one in operands)
    return call.op in AS_INT and text.operator not in OF_BOOLS


def is_widened(expr: Expr) -> bool:
    """Whether an expression is an integer that is cast to 64 bits, or a number."""
    while isinstance(expr, Call) and expr.op in MOVES:
        expr = expr.args[0]
    wanted = expr.type.element
    if isinstance(expr, Literal):
        return isinstance(wanted, DType) and wanted.short == "i64"
    if not isinstance(expr, Call) or expr.op != "cast" or expr.attribute("bitcast"):
        return False
    source = expr.args[0].type.element
    narrow = isinstance(source, DType) and source.is_int() and not source.is_bool() and source.bits <= 32
    return narrow and isinstance(wanted, DType) and wanted.short == "i64"


def is_integer(element: Element) -> bool:
    """Whether a type is one of integers, of which booleans are none."""
    return isinstance(element, DType) and element.is_int() and not element.is_bool()


def is_narrow(element: Element) -> bool:
    """Whether a type is one of integers narrower than int."""
    return isinstance(element, DType) and element.kind in ("signed", "unsigned") and element.bits < 32


def without_cast(number: Literal) -> Text | None:
    """A number without the cast to its type; None for one that has a name, or that its type turns into another."""
    value, dtype = int(number.value), number.type.dtype
    least = -(1 << dtype.bits - 1) if dtype.is_int_signed() else 0
    if number.symbol is not None or not least <= value < least + (1 << dtype.bits):
        return None
    return Text(plain_text(value, number.base), UNARY if value < 0 else ATOM)


def unchanged_operand(op: str, operands: list[Text]) -> int | None:
    """Which operand an operation on integers leaves as it is; None for anything else.

    Kernels are full of these once compile-time values are known: strides that are 1, blocks of one row, whose positions are 0.
    """
    match op, operands[0].number, operands[-1].number:
        case ("add", 0, _) | ("mul", 1, _):
            return 1
        case ("add" | "sub" | "shl" | "shr" | "or" | "xor", _, 0) | ("mul" | "floordiv", _, 1):
            return 0
    return None


def comes_to_nothing(op: str, operands: list[Text]) -> bool:
    """Whether an operation on integers is 0, whatever its other operand is."""
    first, second = operands[0].number, operands[-1].number
    return (op == "mul" and 0 in (first, second)) or (op == "mod" and second == 1) or (op == "floordiv" and first == 0)


def has_product(expr: Expr) -> bool:
    """Whether something is multiplied in an expression."""
    return isinstance(expr, Call) and (expr.op == "mul" or any(has_product(arg) for arg in expr.args))


def integer_as_float(expr: Expr) -> Symbol | None:
    """The name or expression of a compile-time integer that stands for a float; None for all else."""
    while isinstance(expr, Call) and expr.op in MOVES:
        expr = expr.args[0]
    symbol = expr.symbol if isinstance(expr, Literal) else None
    return symbol.integer if isinstance(symbol, AsFloat) and expr.type.element in (float32, float64) else None
