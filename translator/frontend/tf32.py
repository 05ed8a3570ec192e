"""Rounding of fp32 to the numbers that tensor cores multiply, by the bits: to nearest, ties to even."""

from __future__ import annotations

from ..diagnostics import Span
from ..ir.nodes import Expr
from ..language.dtypes import float32, uint32
from ..ops.tf32 import DROPPED_BITS, EXPONENT, HALF, KEPT
from .shapes import cast_to, elementwise
from .values import Const


def rounded_to_tf32(value: Expr, span: Span) -> Expr:
    """A tile of fp32, rounded; infinities and NaN stay what they are."""
    bits = cast_to(value, uint32, span, bitcast=True)
    is_odd = elementwise("and", [elementwise("shr", [bits, Const(DROPPED_BITS)], span), Const(1)], span)
    raised = elementwise("add", [elementwise("add", [bits, Const(HALF - 1)], span), is_odd], span)
    rounded = cast_to(elementwise("and", [raised, Const(KEPT)], span), float32, span, bitcast=True)
    exponent = elementwise("and", [bits, Const(EXPONENT)], span)
    return elementwise("where", [elementwise("ne", [exponent, Const(EXPONENT)], span), rounded, value], span)
