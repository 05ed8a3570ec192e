"""Reductions, and `softmax`, which is made of them."""

from __future__ import annotations

from ..diagnostics import ArgumentError, DTypeError, ShapeError, Span
from ..ir.nodes import Call, CallFunction, Combine, Expr, Literal, Use
from ..ir.tiles import broadcast_to
from ..ir.types import ORDINALS, ValueType
from ..ir.walk import MOVES
from ..kernel_function import KernelFunction
from ..language.dtypes import bfloat16, float32, int32
from ..language.hints import no_extremum
from ..language.tile_hints import (
    no_combine_function,
    no_common_shape,
    no_single_number,
    nothing_to_reduce,
    only_of_integers,
)
from ..ops.promotion import ordered_type, summed_type
from ..ops.registry import OPS
from .builder import Builder
from .builtins_shape import axis_argument, divided, dtype_argument, reshaped
from .shapes import cast_to, describe, elementwise, to_expr
from .values import Const, Tuple, Value

Arguments = dict[str, Value]
ALONE = {"max": "largest", "min": "smallest"}  # instead of words that are functions of CUDA's
SIGNS = ("neg", "logical_not", "invert")
LONGEST_WORD = 9  # of several; beside a longer one the plain operation says as much


def _axis(builder: Builder, value: Value, expr: Expr, span: Span) -> int | None:
    if isinstance(value, Const) and value.value is None:
        return None
    return axis_argument(builder, value, expr.type.rank, span)


def reduce_tiles(
    builder: Builder,
    exprs: tuple[Expr, ...],
    axis: int | None,
    combine: Combine,
    keep_dims: bool,
    names: tuple[str, ...],
    span: Span,
) -> tuple[Expr, ...]:
    """The reduction of tiles of one shape along an axis, or along all."""
    shape = exprs[0].type.shape
    kept = () if axis is None else shape[:axis] + shape[axis + 1 :]
    types = tuple(ValueType(expr.type.element, kept) for expr in exprs)
    results = builder.structured_many("reduce", types, exprs, names, span, axis=axis, combine=combine)
    if not keep_dims:
        return results
    axes = range(len(shape)) if axis is None else (axis,)
    return tuple(_with_axes(result, tuple(axes), span) for result in results)


def _with_axes(expr: Expr, axes: tuple[int, ...], span: Span) -> Expr:
    if not expr.type.is_tile:
        return broadcast_to(expr, (1,) * len(axes), span)
    for axis in axes:
        shape = (*expr.type.shape[:axis], 1, *expr.type.shape[axis:])
        expr = Call(expr.type.with_shape(shape), "expand_dims", (expr,), (("axis", axis),), span=span)
    return expr


def _tile(builder: Builder, value: Value, name: str, span: Span) -> Expr:
    expr = to_expr(value, span)
    if not expr.type.is_tile or expr.type.is_pointer:
        cause, remedy = nothing_to_reduce(name, expr.type, expr.type.is_tile)
        raise DTypeError(cause, span, remedy, builder.calls)
    return expr


def _summable(builder: Builder, expr: Expr, name: str, span: Span) -> Expr:
    """The tile, if there is arithmetic on its elements."""
    if expr.type.dtype.is_fp8():
        raise DTypeError(
            f"tl.{name} of {expr.type.dtype} is not possible", span, "cast first, as x.to(tl.float32)", builder.calls
        )
    return expr


def _name(builder: Builder, expr: Expr, op: str) -> str:
    """A name for what is left of a tile: "x_sum", or what the operation finds where nothing names the tile."""
    word, alone = _word(expr), ALONE.get(op, op)
    if isinstance(expr, Use) or 0 < len(word) <= LONGEST_WORD:
        return f"{word}_{op}"
    return op if alone in builder.source.names else alone


def _word(expr: Expr) -> str:
    """What names a tile in an expression: x, or "exp" of `tl.exp(x - m)`, "x_y" of `x * y`; "" where there is no such word."""
    while isinstance(expr, Call) and expr.op in (*MOVES, "cast"):
        expr = expr.args[0]
    if isinstance(expr, Use):
        return expr.variable.name
    if isinstance(expr, CallFunction):
        return expr.function.name
    if not isinstance(expr, Call):
        return ""
    if expr.op == "where" and isinstance(expr.args[2], Literal):  # some of the elements
        return _word(expr.args[1])
    if expr.op == "mul":
        left, right = map(_word, expr.args)
        return f"{left}_squared" if left == right and left else f"{left}_{right}" if left and right else ""
    is_function = len(expr.args) == 1 and expr.op in OPS and expr.op not in SIGNS
    return expr.op.rpartition(".")[2] if is_function else ""


def _sum(builder: Builder, a: Arguments, span: Span) -> Value:
    expr = _tile(builder, a["input"], "sum", span)
    wanted = a["dtype"]
    given = None if isinstance(wanted, Const) and wanted.value is None else dtype_argument(builder, wanted, span)
    expr = _summable(builder, cast_to(expr, given or summed_type(expr.type.dtype), span), "sum", span)
    return _simple(builder, a, expr, "sum", "sum", span)


def only_element(builder: Builder, expr: Expr, span: Span) -> Expr:
    """The element of a tile that has one, as a scalar; a scalar is its own."""
    if not expr.type.is_tile:
        return expr
    return reduce_tiles(builder, (expr,), None, Combine("sum", "sum"), False, (_name(builder, expr, "item"),), span)[0]


def _item(builder: Builder, a: Arguments, span: Span) -> Value:
    expr = to_expr(a["input"], span)
    if expr.type.numel != 1 or expr.type.is_pointer:
        cause, remedy = no_single_number(expr.type)
        raise ShapeError(cause, span, remedy, builder.calls)
    return only_element(builder, expr, span)


def _simple(builder: Builder, a: Arguments, expr: Expr, op: str, word: str, span: Span) -> Value:
    keep = bool(builder.constant(a["keep_dims"], "keep_dims", span))
    names = (_name(builder, to_expr(a["input"], span), word),)
    axis = _axis(builder, a["axis"], expr, span)
    return reduce_tiles(builder, (expr,), axis, Combine(op, op), keep, names, span)[0]


def _bits(op: str, word: str):  # type: ignore[no-untyped-def]
    def handler(builder: Builder, a: Arguments, span: Span) -> Value:
        expr = _tile(builder, a["input"], word, span)
        if not expr.type.dtype.is_int():
            cause, remedy = only_of_integers(word, expr.type.dtype)
            raise DTypeError(cause, span, remedy, builder.calls)
        return _simple(builder, a, expr, op, word, span)

    return handler


def _ordered(op: str):  # type: ignore[no-untyped-def]
    def handler(builder: Builder, a: Arguments, span: Span) -> Value:
        expr = _tile(builder, a["input"], op, span)
        axis = a["axis"]
        if isinstance(axis, Expr) or (isinstance(axis, Const) and isinstance(axis.value, float)):
            cause, remedy = no_extremum(op, describe(axis))
            raise ArgumentError(cause, span, remedy, builder.calls)
        if builder.constant(a["return_indices"], "return_indices", span):
            builder.constant(a["return_indices_tie_break_left"], "return_indices_tie_break_left", span)
            return Tuple(_with_indices(builder, a, expr, op, span))
        return _simple(builder, a, cast_to(expr, ordered_type(expr.type.dtype), span), op, op, span)

    return handler


def _argument(op: str):  # type: ignore[no-untyped-def]
    def handler(builder: Builder, a: Arguments, span: Span) -> Value:
        expr = _tile(builder, a["input"], f"arg{op}", span)
        builder.constant(a["tie_break_left"], "tie_break_left", span)
        return _with_indices(builder, a, expr, op, span)[1]

    return handler


def _with_indices(builder: Builder, a: Arguments, expr: Expr, op: str, span: Span) -> tuple[Expr, Expr]:
    """The extreme value and its index along the axis (in the flattened tile for None), the lowest of equal ones.

    It is the lowest whether ties are to be broken so or not: were any to do, every thread would have found another one.
    """
    axis = _axis(builder, a["axis"], expr, span)
    keep = bool(builder.constant(a["keep_dims"], "keep_dims", span))
    name = _name(builder, expr, op)
    index_name = _name(builder, expr, f"arg{op}")
    if expr.type.dtype == bfloat16 or expr.type.dtype.is_fp8():
        expr = cast_to(expr, float32, span)
    rank = expr.type.rank
    flat = axis is None and rank > 1
    if flat:
        expr = reshaped(builder, expr, (expr.type.numel,), span)
    along = 0 if axis is None else axis
    side = expr.type.shape[along]
    index: Expr = Call(ValueType(int32, (side,)), "arange", (), (("start", 0), ("end", int(side))), span=span)
    for other in range(expr.type.rank):
        if other != along:
            shape = (*index.type.shape[:other], 1, *index.type.shape[other:])
            index = Call(index.type.with_shape(shape), "expand_dims", (index,), (("axis", other),), span=span)
    index = broadcast_to(index, expr.type.shape, span)
    combine = Combine(f"arg{op}", f"arg{op}")
    results = reduce_tiles(builder, (expr, index), along, combine, keep and not flat, (name, index_name), span)
    if keep and flat:
        return _with_axes(results[0], tuple(range(rank)), span), _with_axes(results[1], tuple(range(rank)), span)
    return results[0], results[1]


def _reduce(builder: Builder, a: Arguments, span: Span) -> Value:
    from .calls import reduce_function

    many = isinstance(a["input"], Tuple)
    items = a["input"].items if isinstance(a["input"], Tuple) else (a["input"],)
    exprs = tuple(_summable(builder, _tile(builder, item, "reduce", span), "reduce", span) for item in items)
    function = builder.constant(a["combine_fn"], "combine_fn", span)
    if not isinstance(function, KernelFunction):
        cause, remedy = no_combine_function(function)
        raise ArgumentError(cause, span, remedy, builder.calls)
    if len(exprs) > len(ORDINALS):
        cause = f"tl.reduce takes at most {len(ORDINALS)} tiles at once, not {len(exprs)}"
        raise ArgumentError(cause, span, "reduce them in two calls", builder.calls)
    if len({expr.type.shape for expr in exprs}) != 1:
        cause, remedy = no_common_shape(expr.type.shape for expr in exprs)
        raise ArgumentError(cause, span, remedy, builder.calls)
    dtypes = [expr.type.dtype for expr in exprs]
    left, right, results, body = reduce_function(builder, function, dtypes, span)
    combine = Combine(None, function.__name__, left, right, results, body)
    axis = _axis(builder, a["axis"], exprs[0], span)
    keep = bool(builder.constant(a["keep_dims"], "keep_dims", span))
    names = tuple(_name(builder, expr, "reduced") for expr in exprs)
    reduced = reduce_tiles(builder, exprs, axis, combine, keep, names, span)
    return Tuple(reduced) if many else reduced[0]


def _softmax(builder: Builder, a: Arguments, span: Span) -> Value:
    x = _tile(builder, a["x"], "softmax", span)
    axis = (
        0
        if isinstance(a["dim"], Const) and a["dim"].value is None
        else axis_argument(builder, a["dim"], x.type.rank, span)
    )
    largest = reduce_tiles(
        builder,
        (cast_to(x, ordered_type(x.type.dtype), span),),
        axis,
        Combine("max", "max"),
        True,
        (_name(builder, x, "max"),),
        span,
    )[0]
    numerator = elementwise("exp", [elementwise("sub", [x, largest], span)], span)
    total = reduce_tiles(builder, (numerator,), axis, Combine("sum", "sum"), True, (_name(builder, x, "sum"),), span)[0]
    return divided(builder, numerator, total, a["ieee_rounding"], span)


HANDLERS = {
    "sum": _sum,
    "max": _ordered("max"),
    "min": _ordered("min"),
    "argmax": _argument("max"),
    "argmin": _argument("min"),
    "xor_sum": _bits("xor", "xor_sum"),
    "reduce_or": _bits("or", "reduce_or"),
    "reduce": _reduce,
    "softmax": _softmax,
    "item": _item,
}
