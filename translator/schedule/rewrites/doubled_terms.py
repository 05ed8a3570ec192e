"""Sums with twice a number are one instruction, as those with any other product are.

In: a typed kernel. Out: the same kernel, in which `a - 2.0 * x` of floats is `fma(-2.0, x, a)`, which rounds the same number
once: twice a number is exact. NVRTC makes `x + x` of a product with 2 before it looks for products that a sum could take in; not
so beside a number, as in `2.0 * x - 1.0`.
"""

from __future__ import annotations

from dataclasses import replace

from ...ir.nodes import Call, CallFunction, Expr, Kernel, Literal
from ...ir.rewrite import mapped_in, with_operands
from ...language.dtypes import float32, float64


def with_doubled_terms(kernel: Kernel) -> Kernel:
    """See the module docstring."""
    body = mapped_in(kernel.body, _taken_in)
    return kernel if body is kernel.body else replace(kernel, body=body)


def _taken_in(expr: Expr) -> Expr:
    """The expression with an `fma` for each sum of twice a number and something that is neither a product nor a number."""
    if not isinstance(expr, (Call, CallFunction)):
        return expr
    expr = with_operands(expr, tuple(map(_taken_in, expr.args)))
    if not isinstance(expr, Call) or expr.op not in ("add", "sub") or expr.type.dtype not in (float32, float64):
        return expr
    left, right = expr.args
    if (twice := _twice(right)) and _is_plain(left):
        factor = _negative(twice[0]) if expr.op == "sub" else twice[0]
        return Call(expr.type, "fma", (factor, twice[1], left), span=expr.span)
    if (twice := _twice(left)) and _is_plain(right):
        addend = Call(expr.type, "neg", (right,), span=expr.span) if expr.op == "sub" else right
        return Call(expr.type, "fma", (*twice, addend), span=expr.span)
    return expr


def _twice(expr: Expr) -> tuple[Literal, Expr] | None:
    """Of a product with 2 or -2 that number, and what it multiplies."""
    if isinstance(expr, Call) and expr.op == "mul":
        for factor, other in (expr.args, expr.args[::-1]):
            if isinstance(factor, Literal) and factor.symbol is None and abs(factor.value) == 2:
                return factor, other
    return None


def _is_plain(expr: Expr) -> bool:
    """Whether a term keeps the compiler from making one instruction of the sum by itself."""
    return not isinstance(expr, Literal) and not (isinstance(expr, Call) and expr.op == "mul")


def _negative(factor: Literal) -> Literal:
    return replace(factor, value=-factor.value)
