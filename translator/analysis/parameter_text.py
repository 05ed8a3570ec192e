"""Conditions and sizes for the launcher: text that means the same in Python and, with `/` for `//`, in C++."""

from __future__ import annotations

from ..artifact import GRID_SIDES
from ..ir.nodes import Call, Expr, Literal, Use

OPERATORS = {"mul": ("*", 3), "mod": ("%", 3), "floordiv": ("//", 3), "add": ("+", 2), "sub": ("-", 2),
             "lt": ("<", 1), "le": ("<=", 1), "gt": (">", 1), "ge": (">=", 1), "eq": ("==", 1), "ne": ("!=", 1)}  # fmt: skip


def parameter_text(expr: Expr) -> str:
    """A scalar over parameters, sides of the grid and numbers as text that means the same in Python and in C++ (see `TensorMap`).

    Raises:
      TypeError: for any other expression.
    """
    return _text(expr, 0)


def _text(expr: Expr, within: int) -> str:
    match expr:
        case Literal(value=value):
            return str(int(value)) if value >= 0 else f"({int(value)})"
        case Use(variable=variable):
            return variable.name
        case Call(op="cast", args=(arg,)):
            return _text(arg, within)
        case Call(op="num_programs"):
            return GRID_SIDES[expr.attribute("axis")]
        case Call(op="neg", args=(arg,)):
            return f"(-{_text(arg, 4)})"
        case Call(op=op, args=(left, right)) if op in OPERATORS:
            sign, precedence = OPERATORS[op]
            text = f"{_text(left, precedence)} {sign} {_text(right, precedence + 1)}"
            return f"({text})" if precedence < within else text
    raise TypeError(f"{expr} is no arithmetic in parameters")
