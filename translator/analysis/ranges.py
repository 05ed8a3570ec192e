"""Between which numbers the integers of an expression lie.

In: an expression and the definitions of variables that are assigned once. Out: (least, greatest), both included; what is
not known in more detail has the bounds of its type. `(packed >> shifts) & 15` is from 0 to 15.
"""

from __future__ import annotations

from collections.abc import Mapping

from ..ir.nodes import Call, Expr, Literal, Use, Variable
from ..ir.walk import MOVES
from ..language.dtypes import DType

Range = tuple[int, int]
DEEPEST = 16  # definitions that are looked into, one inside the other


def integer_range(expr: Expr, definitions: Mapping[Variable, Expr], depth: int = 0) -> Range:
    """The range of an expression of integers."""
    whole = _of_type(expr)
    found = whole
    match expr:
        case Literal(value=int() as value):
            found = (int(value), int(value))
        case Use(variable=variable) if variable in definitions and depth < DEEPEST:
            found = integer_range(definitions[variable], definitions, depth + 1)
        case Call(op="arange"):
            found = (expr.attribute("start"), expr.attribute("end") - 1)
        case Call(op=op, args=args) if args and all(_is_integer(arg) for arg in args):
            ranges = [integer_range(arg, definitions, depth) for arg in args]
            found = ranges[0] if op in MOVES or op == "cast" else _operation(op, ranges) or whole
    return found if whole[0] <= found[0] and found[1] <= whole[1] else whole  # what overflows can be anything


def fits(call: Call, definitions: Mapping[Variable, Expr]) -> bool:
    """Whether a cast or an operation of integers gives the number that it would give without a limit of bits."""
    if not call.args or not all(_is_integer(arg) for arg in (call, *call.args)):
        return False
    ranges = [integer_range(arg, definitions) for arg in call.args]
    found, whole = ranges[0] if call.op == "cast" else _operation(call.op, ranges), _of_type(call)
    return found is not None and whole[0] <= found[0] and found[1] <= whole[1]


def _is_integer(expr: Expr) -> bool:
    element = expr.type.element
    return isinstance(element, DType) and element.is_int()


def _of_type(expr: Expr) -> Range:
    element = expr.type.element
    if not isinstance(element, DType) or not element.is_int():
        raise TypeError(f"no integers: {expr.type}")
    if element.is_bool():
        return 0, 1
    if element.kind == "unsigned":
        return 0, (1 << element.bits) - 1
    return -(1 << element.bits - 1), (1 << element.bits - 1) - 1


def _operation(op: str, ranges: list[Range]) -> Range | None:
    """The range of an operation's result, before it wraps; None where no rule says more than its type does."""
    if len(ranges) == 1:
        return (-ranges[0][1], -ranges[0][0]) if op == "neg" else None
    (a, b), (c, d) = ranges[0], ranges[1]
    match op:
        case "add":
            return a + c, b + d
        case "sub":
            return a - d, b - c
        case "mul":
            products = (a * c, a * d, b * c, b * d)
            return min(products), max(products)
        case "and" if a >= 0 or c >= 0:
            return 0, min(limit for least, limit in ranges if least >= 0)
        case "or" | "xor" if a >= 0 and c >= 0:
            return 0, (1 << max(b, d).bit_length()) - 1
        case "shr" if a >= 0 and c >= 0:
            return 0, b >> min(c, 63)
        case "mod" if a >= 0 and c > 0:
            return 0, min(b, d - 1)
        case "minimum":
            return min(a, c), min(b, d)
        case "maximum":
            return max(a, c), max(b, d)
    return None
