"""With the option `debug`, sums, differences and products of integers are checked to fit in their type, as in Triton."""

from __future__ import annotations

from ..diagnostics import Span
from ..ir.nodes import Call, Expr
from ..language.dtypes import int64
from ..ops.overflow import is_checked, overflow_message
from .builder import Builder
from .shapes import cast_to, elementwise
from .values import Const


def checked(builder: Builder, result: Expr, span: Span) -> Expr:
    """The result of an operator, behind an assertion that 64 bits give the same, where the options ask for one."""
    options = builder.options
    if not options.debug or not options.sanitize_overflow or not isinstance(result, Call):
        return result
    if not is_checked(result.op, result.type.element):
        return result
    dtype = result.type.dtype
    wide = elementwise(result.op, [cast_to(arg, int64, span) for arg in result.args], span)
    bounds = (("ge", dtype.get_int_min_value()), ("le", dtype.get_int_max_value()))
    tests = [elementwise(test, [wide, Const(bound)], span) for test, bound in bounds]
    fits = elementwise("logical_and", list(tests), span)
    builder.effect("device_assert", (fits,), span, message=overflow_message(result.op, dtype))
    return result
