"""Which integers are certainly not negative: what block pointers and descriptors need not test."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..ir.nodes import Call, Expr, Literal, Use
from ..language.dtypes import DType
from .values import Const, Value

if TYPE_CHECKING:
    from .builder import Builder

ALL = frozenset(
    ("add", "mul", "minimum", "and", "or", "floordiv", "broadcast", "expand_dims", "hint", "permute", "reshape")
)
FIRST = frozenset(("mod", "shr"))  # these follow the sign of their first operand


def is_nonnegative(builder: Builder, value: Value) -> bool:
    """Whether every element of an integer value is at least 0, provided that the arithmetic does not overflow."""
    if isinstance(value, Const):
        return value.is_number and value.value >= 0
    if not isinstance(value, Expr) or value.type.is_pointer or not value.type.dtype.is_int():
        return False
    if isinstance(value, Literal):
        return value.value >= 0
    if isinstance(value, Use):
        return value.variable in builder.nonnegative
    return isinstance(value, Call) and (value.type.dtype.is_int_unsigned() or _call(builder, value))


def _call(builder: Builder, call: Call) -> bool:
    if call.op in ("program_id", "num_programs"):
        return True
    if call.op == "arange":
        return bool(call.attribute("start") >= 0)
    if call.op == "cast":
        source = call.args[0].type.element
        fits = isinstance(source, DType) and source.bits + source.is_int_unsigned() <= call.type.dtype.bits
        return fits and not call.attribute("bitcast") and is_nonnegative(builder, call.args[0])
    if call.op == "maximum":
        return any(is_nonnegative(builder, arg) for arg in call.args)
    if call.op == "where":
        return all(is_nonnegative(builder, arg) for arg in call.args[1:])
    if call.op in FIRST:
        return is_nonnegative(builder, call.args[0])
    return call.op in ALL and all(is_nonnegative(builder, arg) for arg in call.args)
