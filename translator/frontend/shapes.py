"""Making shapes and types explicit: broadcasts, casts, and the operands of elementwise operations."""

from __future__ import annotations

import operator

from ..diagnostics import CompilationError, DTypeError, ShapeError, Span, warn_at
from ..ir.nodes import Call, Expr, Literal
from ..ir.tiles import broadcast_to
from ..ir.types import ValueType, symbol_of
from ..language.dtypes import DType, Element, float32
from ..language.hints import check_size, described, instead_of
from ..language.tile_hints import no_common_sides
from ..ops.casts import check_cast, rounded
from ..ops.promotion import literal_type
from ..ops.registry import OPS, Operand
from .named_numbers import called_as
from .values import Const, Tuple, Value

EXACT = {"add": operator.add, "sub": operator.sub, "mul": operator.mul}
LEAST_NORMAL = 2.0**-126  # of fp32


def to_expr(value: Value, span: Span, dtype: Element | None = None) -> Expr:
    """A run-time value, or a number as a literal of `dtype` (of its own type when that is None).

    Raises:
      DTypeError: for anything else.
    """
    if isinstance(value, Expr):
        return value
    if isinstance(value, Const) and value.is_number:
        try:
            own = dtype or literal_type(value.value)
        except DTypeError as error:
            raise placed(error, span) from None
        number = float(value.value) if isinstance(own, DType) and own.is_floating() else value.value
        if isinstance(own, DType) and own.is_int() and not own.is_bool():
            number = int(number)
        symbol = called_as(value.symbol, value.value, own) if isinstance(own, DType) else None
        return Literal(ValueType(own), number, symbol=symbol, base=value.base, span=span)
    remedy = instead_of(value.value if isinstance(value, Const) else () if isinstance(value, Tuple) else value)
    raise DTypeError(f"expected a number or a tile, got {describe(value)}", span, remedy)


def describe(value: Value) -> str:
    """A value in words, for messages."""
    if isinstance(value, Expr):
        return f"a value of type {value.type}"
    return described(value.value if isinstance(value, Const) else value)


def placed(error: CompilationError, span: Span) -> CompilationError:
    """The same error with a place."""
    return type(error)(error.cause, error.span or span, error.remedy)


def common_shape(shapes: list[tuple[int, ...]], span: Span) -> tuple[int, ...]:
    """NumPy's broadcast of shapes; sides keep their names.

    Raises:
      ShapeError: when they do not fit.
    """
    rank = max((len(shape) for shape in shapes), default=0)
    result: list[int] = [1] * rank
    for shape in shapes:
        for axis, side in enumerate(shape, rank - len(shape)):
            if side == 1:
                continue
            if result[axis] not in (1, side):
                cause, remedy = no_common_sides(shapes)
                raise ShapeError(cause, span, remedy)
            if result[axis] == 1 or symbol_of(side):
                result[axis] = side
    return of_fair_size(tuple(result), span)


def of_fair_size(shape: tuple[int, ...], span: Span) -> tuple[int, ...]:
    """The shape itself.

    Raises:
      ShapeError: when tiles do not have so many elements.
    """
    try:
        check_size(shape)
    except ShapeError as error:
        raise placed(error, span) from None
    return shape


def cast_to(expr: Expr, element: Element, span: Span, rounding: str | None = None, bitcast: bool = False) -> Expr:
    """`expr` converted to another element type.

    Raises:
      DTypeError: when there is no such conversion.
    """
    if expr.type.element == element:
        return expr
    try:
        check_cast(expr.type.element, element, rounding, bitcast)
    except DTypeError as error:
        raise placed(error, span) from None
    is_plain = not bitcast and rounding != "rtz"
    if is_plain and isinstance(expr, Literal) and isinstance(element, DType) and not element.is_bool():
        return _cast_literal(expr, element, span)
    attributes = tuple(
        (name, value) for name, value in (("rounding", rounding), ("bitcast", bitcast)) if value
    )  # fmt: skip
    return Call(expr.type.with_element(element), "cast", (expr,), attributes, span=span)


def _cast_literal(expr: Literal, element: DType, span: Span) -> Expr:
    type_, source = expr.type.with_element(element), expr.type.dtype
    held = rounded(expr.value, source) if source.is_floating() else expr.value
    if element.is_floating():
        same = rounded(float(expr.value), element) == rounded(float(held), element)
        number = float(expr.value if same else held)  # as it was written, where that comes to the same
        symbol = None if source.is_floating() else called_as(expr.symbol, expr.value, element)
        return Literal(type_, number, symbol=symbol, span=span)
    if isinstance(held, float) and not held.is_integer():
        return Call(type_, "cast", (expr,), (), span=span)
    value = int(held) & ((1 << element.bits) - 1)
    if element.is_int_signed() and value >> (element.bits - 1):
        value -= 1 << element.bits
    if isinstance(held, float) and value != held:
        return Call(type_, "cast", (expr,), (), span=span)  # out of range: the machine says what comes of it
    symbol = called_as(expr.symbol, expr.value, element) if value == expr.value else None
    return Literal(type_, value, symbol=symbol, base=expr.base, span=span)


def elementwise(op_name: str, values: list[Value], span: Span) -> Expr:
    """An operation of the op table on values: promoted, cast and broadcast.

    Raises:
      DTypeError, ShapeError: when the operands do not fit.
    """
    op = OPS[op_name]
    operands = []
    for value in values:
        if isinstance(value, Const) and value.is_number:
            operands.append(Operand(literal_or_error(value, span), value.value))
        else:
            operands.append(Operand(to_expr(value, span).type.element))
    try:
        resolved = op.rule(tuple(operands))
    except CompilationError as error:
        raise placed(error, span) from None
    if resolved.warning and span is not None:
        warn_at(span.file, span.line, resolved.warning)
    exprs = []
    for value, element in zip(values, resolved.operands, strict=True):
        adapts = isinstance(value, Const) and resolved.literals_adapt and not _is_bool(element)
        expr = to_expr(value, span, element if adapts else None)
        exprs.append(as_bool(expr, span) if _is_bool(element) else cast_to(expr, element, span))
    shape = common_shape([expr.type.shape for expr in exprs], span)
    args = tuple(broadcast_to(expr, shape, span) for expr in exprs)
    made = Call(ValueType(resolved.computed or resolved.result, shape), op_name, args, span=span)
    known = _computed(made)
    return cast_to(known if known is not None else made, resolved.result, span)


def _computed(call: Call) -> Literal | None:
    """What a sum, difference or product of floats is, as in `tl.zeros(...) - float("inf")`; None where the machine says it.

    IEEE 754 says what it is, apart from the bits of a NaN, and a double is long enough that rounding it is rounding once.
    What is denormal may count as zero, and what has a name keeps it.
    """
    numbers = [arg.value for arg in call.args if isinstance(arg, Literal) and arg.symbol is None]
    if call.op not in EXACT or call.type.element != float32 or len(numbers) != len(call.args):
        return None
    left, right = (rounded(float(number), float32) for number in numbers)
    result = rounded(EXACT[call.op](left, right), float32)
    is_plain = all(number == 0 or abs(number) >= LEAST_NORMAL for number in (left, right, result))
    return Literal(call.type, result, span=call.span) if is_plain and result == result else None


def _is_bool(element: Element) -> bool:
    return isinstance(element, DType) and element.is_bool()


def literal_or_error(value: Const, span: Span) -> DType:
    """The own type of a number, with a place on errors."""
    try:
        return literal_type(value.value)
    except DTypeError as error:
        raise placed(error, span) from None


def as_bool(expr: Expr, span: Span) -> Expr:
    """`expr` as int1: itself, or whether it differs from zero; of a pointer, whether it points to anything."""
    from ..language.dtypes import int1

    if expr.type.element == int1:
        return expr
    if isinstance(expr, Literal):
        return Literal(expr.type.with_element(int1), bool(expr.value), span=span)
    return Call(expr.type.with_element(int1), "cast", (expr,), (), span=span)
