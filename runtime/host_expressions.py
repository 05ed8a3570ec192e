"""The arithmetic of tensor maps and guards, evaluated with the arguments of a launch.

In: text such as "(M + 127) % 128 == 0" or "stride_am * 2" and the integer arguments by name. Out: an integer. The text
is made of names, integers, `+ - * // %`, parentheses and comparisons, in Python's meaning; nothing else is allowed.
"""

from __future__ import annotations

import ast
import functools
import operator
from collections.abc import Callable, Mapping

from tilewright.diagnostics import HostExpressionError

_ARITHMETIC: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Mod: operator.mod,
    ast.FloorDiv: operator.floordiv,
}
_COMPARISONS: dict[type[ast.cmpop], Callable[[int, int], bool]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}


def evaluate(text: str, values: Mapping[str, int]) -> int:
    """The value of `text`; a comparison gives 0 or 1.

    Raises:
      HostExpressionError: for anything but the arithmetic above, an unknown name or a division by zero.
    """
    try:
        return _value(_parsed(text), values)
    except ZeroDivisionError:
        raise HostExpressionError(f"{text!r} divides by zero with {dict(values)}") from None
    except _Unsupported as reason:
        raise HostExpressionError(
            f"{text!r} cannot be evaluated at launch: {reason}; it may have integers, names of integer arguments "
            f"({', '.join(sorted(values)) or 'there are none'}), + - * // %, parentheses and comparisons"
        ) from None


class _Unsupported(Exception):  # noqa: N818 (never leaves this file)
    """Why an expression is not one of ours."""


@functools.lru_cache(maxsize=4096)
def _parsed(text: str) -> ast.expr:
    try:
        return ast.parse(text.strip(), mode="eval").body
    except SyntaxError as error:
        raise _Unsupported(f"it does not parse ({error.msg})") from None


def _value(node: ast.expr, values: Mapping[str, int]) -> int:
    match node:
        case ast.Constant(value=int() as number):
            return int(number)
        case ast.Name(id=name):
            if name not in values:
                raise _Unsupported(f"{name} is no integer argument")
            return int(values[name])
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_value(operand, values)
        case ast.BinOp(left=left, op=sign, right=right) if type(sign) in _ARITHMETIC:
            return _ARITHMETIC[type(sign)](_value(left, values), _value(right, values))
        case ast.Compare(left=left, ops=[sign], comparators=[right]) if type(sign) in _COMPARISONS:
            return int(_COMPARISONS[type(sign)](_value(left, values), _value(right, values)))
    raise _Unsupported(f"{ast.unparse(node)} is no such arithmetic")
