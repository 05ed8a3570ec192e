"""Matrix products."""

from __future__ import annotations

import math

from ..diagnostics import CompilationError, DTypeError, ShapeError, Span
from ..ir.nodes import Expr
from ..ir.types import ValueType
from ..language.dtypes import DType
from ..language.tile_hints import other_accumulator
from ..ops.dots import DotTypes, dot_shape, dot_types
from .builder import Builder
from .builtins_shape import dtype_argument, reshaped
from .shapes import describe, elementwise, placed
from .values import Const, Value

Arguments = dict[str, Value]


def _operand(builder: Builder, value: Value, name: str, span: Span) -> Expr:
    if isinstance(value, Expr) and value.type.is_tile and not value.type.is_pointer:
        return value
    raise DTypeError(
        f"{name} of tl.dot must be a tile of numbers, not {describe(value)}",
        span,
        "load it as [M, K] or [K, N]",
        builder.calls,
    )


def _dot(builder: Builder, a: Arguments, span: Span) -> Value:
    left, right = _operand(builder, a["input"], "input", span), _operand(builder, a["other"], "other", span)
    no_acc = isinstance(a["acc"], Const) and a["acc"].value is None
    acc = None if no_acc else _operand(builder, a["acc"], "acc", span)
    try:
        shape = dot_shape(left.type.shape, right.type.shape)
        types = _types(builder, a, left, right, acc, span)
    except CompilationError as error:
        raise placed(error, span) from None
    if acc is not None and acc.type.shape != shape:
        cause, remedy = other_accumulator(acc.type, shape)
        raise ShapeError(cause, span, remedy, builder.calls)
    if acc is not None and types.max_num_imprecise_acc is not None:
        product = _product(builder, types, shape, (left, right), span)
        return elementwise("add", [product, acc], span)
    return _product(builder, types, shape, (left, right, acc) if acc is not None else (left, right), span)


def _product(builder: Builder, types: DotTypes, shape: tuple[int, ...], operands: tuple[Expr, ...], span: Span) -> Expr:
    """The dot, of which the typed kernel knows one batch axis at most."""
    if len(shape) <= 3:
        return _structured(builder, types, shape, operands, span)
    flat = tuple(_one_batch_axis(builder, operand, span) for operand in operands)
    product = _structured(builder, types, dot_shape(flat[0].type.shape, flat[1].type.shape), flat, span)
    return reshaped(builder, product, shape, span)


def _types(builder: Builder, a: Arguments, left: Expr, right: Expr, acc: Expr | None, span: Span) -> DotTypes:
    out_dtype = None
    if not (isinstance(a["out_dtype"], Const) and a["out_dtype"].value is None):
        out_dtype = dtype_argument(builder, a["out_dtype"], span)
    return dot_types(
        left.type.dtype,
        right.type.dtype,
        left.type.shape[-1],
        acc.type.dtype if acc is not None else None,
        builder.constant(a["input_precision"], "input_precision", span),
        builder.constant(a["allow_tf32"], "allow_tf32", span),
        builder.constant(a["max_num_imprecise_acc"], "max_num_imprecise_acc", span),
        out_dtype if isinstance(out_dtype, DType) else None,
        builder.options.default_dot_input_precision,
    )


def _structured(
    builder: Builder, types: DotTypes, shape: tuple[int, ...], operands: tuple[Expr, ...], span: Span
) -> Expr:
    return builder.structured(
        "dot",
        ValueType(types.result, shape),
        operands,
        "product",
        span,
        input_precision=types.input_precision,
        max_num_imprecise_acc=types.max_num_imprecise_acc,
    )


def _one_batch_axis(builder: Builder, operand: Expr, span: Span) -> Expr:
    shape = operand.type.shape
    return reshaped(builder, operand, (math.prod(shape[:-2]), *shape[-2:]), span)


HANDLERS = {"dot": _dot}
