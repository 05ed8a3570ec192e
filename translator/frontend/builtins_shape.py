"""Program index, tile creation, shapes, casts, hints, and functions made of operators."""

from __future__ import annotations

from dataclasses import replace

from ..diagnostics import ArgumentError, DTypeError, ShapeError, Span
from ..ir.nodes import Assign, Call, Expr, Use
from ..ir.reshapes import keeps_places
from ..ir.tiles import broadcast_to
from ..ir.types import Dim, ValueType
from ..language.dtypes import Element, float32, int32, int64
from ..language.hints import (
    check_arange,
    element_type,
    no_axis,
    no_grid_axis,
    no_permutation,
    no_two_axes,
    propagates_nan,
    shown,
)
from ..language.tile_hints import no_broadcast, no_reshape, no_squeeze
from .builder import Builder
from .operators import binary
from .ranges import is_nonnegative
from .shapes import cast_to, common_shape, elementwise, of_fair_size, placed, to_expr
from .values import Const, Tuple, Value

Arguments = dict[str, Value]


def dtype_argument(builder: Builder, value: Value, span: Span) -> Element:
    """An element type given as a type or by its name.

    Raises:
      DTypeError: for anything else.
    """
    try:
        return element_type(builder.constant(value, "dtype", span))
    except DTypeError as error:
        raise placed(error, span) from None


def axis_argument(builder: Builder, value: Value, rank: int, span: Span, added: int = 0) -> int:
    """An axis, negative ones counted from the end; `added` of `rank` are new.

    Raises:
      ArgumentError: when there is none such.
    """
    axis = builder.constant(value, "axis", span)
    if isinstance(axis, bool) or not isinstance(axis, int) or not -rank <= axis < rank:
        cause, remedy = no_axis(axis, rank, added)
        raise ArgumentError(cause, span, remedy, builder.calls)
    return axis % rank


def _program(op: str):  # type: ignore[no-untyped-def]
    def handler(builder: Builder, a: Arguments, span: Span) -> Value:
        builder.not_elementwise()
        axis = builder.constant(a["axis"], "axis", span)
        if axis not in (0, 1, 2):
            cause, remedy = no_grid_axis(op, axis)
            raise ArgumentError(cause, span, remedy, builder.calls)
        return Call(ValueType(int32), op, (), (("axis", int(axis)),), span=span)

    return handler


def _arange(builder: Builder, a: Arguments, span: Span) -> Value:
    builder.not_elementwise()
    start, end = (builder.constant(a[name], f"arange's argument {name}", span) for name in ("start", "end"))
    try:
        check_arange(start, end)
    except ArgumentError as error:
        raise placed(error, span) from None
    symbol = a["end"].symbol if start == 0 and isinstance(a["end"], Const) else None
    type_ = ValueType(int32, of_fair_size((Dim(end - start, symbol),), span))
    return Call(type_, "arange", (), (("start", int(start)), ("end", int(end))), span=span)


def _full(builder: Builder, a: Arguments, span: Span) -> Value:
    shape = builder.shape(a["shape"], span) if not _is_empty(a["shape"]) else ()
    if shape:
        builder.not_elementwise()
    dtype = dtype_argument(builder, a["dtype"], span)
    value = a.get("value", Const(0))
    expr = cast_to(to_expr(value, span, dtype if dtype.is_floating() else None), dtype, span)  # no float is in between
    if expr.type.is_tile:
        raise ShapeError("tl.full takes one value, not a tile", span, "use tl.broadcast_to", builder.calls)
    return broadcast_to(expr, shape, span)


def _is_empty(value: Value) -> bool:
    return isinstance(value, Tuple) and not value.items


def _zeros_like(builder: Builder, a: Arguments, span: Span) -> Value:
    type_ = to_expr(a["input"], span).type
    if type_.is_pointer:
        zero = cast_to(to_expr(Const(0), span, int64), type_.element, span)
    else:
        zero = to_expr(Const(False if type_.dtype.is_bool() else 0), span, type_.element)
    return broadcast_to(zero, type_.shape, span)


def _cast(builder: Builder, a: Arguments, span: Span) -> Value:
    dtype = dtype_argument(builder, a["dtype"], span)
    rounding = builder.constant(a["fp_downcast_rounding"], "fp_downcast_rounding", span)
    bitcast = bool(builder.constant(a["bitcast"], "bitcast", span))
    return cast_to(to_expr(a["input"], span), dtype, span, rounding, bitcast)


def _broadcast(builder: Builder, a: Arguments, span: Span) -> Value:
    one, other = to_expr(a["input"], span), to_expr(a["other"], span)
    shape = common_shape([one.type.shape, other.type.shape], span)
    return Tuple((broadcast_to(one, shape, span), broadcast_to(other, shape, span)))


def sides(builder: Builder, value: Value, span: Span) -> tuple[int, ...]:
    """`*shape`: sides one by one, or one tuple of them."""
    if isinstance(value, Tuple) and len(value.items) == 1 and isinstance(value.items[0], Tuple):
        value = value.items[0]
    return builder.shape(value, span)


def _broadcast_to(builder: Builder, a: Arguments, span: Span) -> Value:
    builder.not_elementwise()
    expr, shape = to_expr(a["input"], span), sides(builder, a["shape"], span)
    if expr.type.is_tile and (expr.type.rank != len(shape) or common_shape([expr.type.shape, shape], span) != shape):
        cause, remedy = no_broadcast(expr.type, shape)
        raise ShapeError(cause, span, remedy, builder.calls)
    return broadcast_to(expr, shape, span)


def _expand_dims(builder: Builder, a: Arguments, span: Span) -> Value:
    builder.not_elementwise()
    expr = to_expr(a["input"], span)
    axes = builder.constant(a["axis"], "axis", span)
    axes = axes if isinstance(axes, tuple) else (axes,)
    rank = expr.type.rank + len(axes)
    for axis in sorted(axis_argument(builder, Const(one), rank, span, len(axes)) for one in axes):
        shape = (*expr.type.shape[:axis], 1, *expr.type.shape[axis:])
        expr = Call(expr.type.with_shape(shape), "expand_dims", (expr,), (("axis", axis),), span=span)
    return expr


def permuted(builder: Builder, expr: Expr, order: tuple[int, ...], span: Span) -> Expr:
    """`expr` with its axes in another order."""
    builder.not_elementwise()
    if any(type(axis) is not int for axis in order) or sorted(order) != list(range(expr.type.rank)):
        cause, remedy = no_permutation(expr.type, order, expr.type.rank)
        raise ShapeError(cause, span, remedy, builder.calls)
    shape = tuple(expr.type.shape[axis] for axis in order)
    return Call(expr.type.with_shape(shape), "permute", (expr,), (("order", order),), span=span)


def reversed_axes(builder: Builder, expr: Expr, span: Span) -> Expr:
    """`expr.T`."""
    return permuted(builder, expr, tuple(reversed(range(_rank_of_transposed(builder, expr, span)))), span)


def _rank_of_transposed(builder: Builder, expr: Expr, span: Span) -> int:
    if expr.type.rank < 2:
        cause, remedy = no_two_axes(expr.type)
        raise ShapeError(cause, span, remedy, builder.calls)
    return expr.type.rank


def _permute(builder: Builder, a: Arguments, span: Span) -> Value:
    builder.not_elementwise()
    expr = to_expr(a["input"], span)
    dims = a["dims"]
    if isinstance(dims, Tuple) and len(dims.items) == 1 and isinstance(dims.items[0], Tuple):
        dims = dims.items[0]
    order = tuple(builder.constant(dims, "the order of axes", span))
    rank = expr.type.rank
    if not order:
        last = _rank_of_transposed(builder, expr, span) - 1
        order = (*range(last - 1), last, last - 1)
    return permuted(builder, expr, tuple(axis_argument(builder, Const(axis), rank, span) for axis in order), span)


def reshaped(builder: Builder, expr: Expr, shape: tuple[int, ...], span: Span) -> Expr:
    """`expr` in another shape of as many elements."""
    builder.not_elementwise()
    type_ = expr.type.with_shape(shape)
    if type_.numel != expr.type.numel:
        cause, remedy = no_reshape(expr.type, expr.type.numel, shape)
        raise ShapeError(cause, span, remedy, builder.calls)
    while isinstance(expr, Call) and expr.op == "reshape":  # one after another is one
        (expr,) = expr.args
    if type_ == expr.type:
        return expr
    if not keeps_places(expr.type.shape, shape):
        return builder.structured("repack", type_, (expr,), "reshaped", span)
    return Call(type_, "reshape", (expr,), span=span)


def _reshape(builder: Builder, a: Arguments, span: Span) -> Value:
    return reshaped(builder, to_expr(a["input"], span), sides(builder, a["shape"], span), span)


def _ravel(builder: Builder, a: Arguments, span: Span) -> Value:
    expr = to_expr(a["x"], span)
    return reshaped(builder, expr, (expr.type.numel,), span)


def _squeeze(builder: Builder, a: Arguments, span: Span) -> Value:
    expr = to_expr(a["x"], span)
    axis = axis_argument(builder, a["dim"], expr.type.rank, span)
    if expr.type.shape[axis] != 1:
        cause, remedy = no_squeeze(axis, expr.type)
        raise ShapeError(cause, span, remedy, builder.calls)
    return reshaped(builder, expr, expr.type.shape[:axis] + expr.type.shape[axis + 1 :], span)


def _unsqueeze(builder: Builder, a: Arguments, span: Span) -> Value:
    return _expand_dims(builder, {"input": a["x"], "axis": a["dim"]}, span)


def _swizzle(builder: Builder, a: Arguments, span: Span) -> Value:
    def op(word: str, left: Value, right: Value) -> Value:
        return binary(builder, word, left, right, span)

    def step(name: str, value: Value) -> Value:
        """A step as a variable: the next ones read it several times."""
        if not isinstance(value, Expr):
            return value
        variable = builder.variable(name, value.type)
        builder.statements.append(Assign(builder.here, (variable,), value))
        if is_nonnegative(builder, value):
            builder.nonnegative.add(variable)
        return Use(variable.type, variable, span=span)

    number = step("row_major", op("Add", op("Multiply", a["i"], a["size_j"]), a["j"]))
    group_size = step("group_size", op("Multiply", a["size_g"], a["size_j"]))
    first = step("group_first", op("Multiply", op("FloorDivide", number, group_size), a["size_g"]))
    left = op("Subtract", a["size_i"], first)
    rows = step("group_rows", elementwise("minimum", [left, a["size_g"]], span))
    within = step("within_group", op("Modulo", number, group_size))
    return Tuple((op("Add", first, op("Modulo", within, rows)), op("FloorDivide", within, rows)))


def _cdiv(builder: Builder, a: Arguments, span: Span) -> Value:
    less = binary(builder, "Subtract", a["div"], Const(1), span)
    return binary(builder, "FloorDivide", binary(builder, "Add", a["x"], less, span), a["div"], span)


def _hint(kind: str):  # type: ignore[no-untyped-def]
    def handler(builder: Builder, a: Arguments, span: Span) -> Value:
        expr = to_expr(a["input"], span)
        values = builder.constant(a["values"], f"the values of {kind}", span)
        values = tuple(values) if isinstance(values, (tuple, list)) else (values,)
        if not all(isinstance(value, int) and value > 0 for value in values):
            cause, remedy = (
                f"{kind} takes positive integers, got {shown(values)}",
                f"write how many, as tl.{kind}(x, 16)",
            )
            raise ArgumentError(cause, span, remedy, builder.calls)
        return Call(expr.type, "hint", (expr,), (("kind", kind), ("values", values)), span=span)

    return handler


def _operator(word: str):  # type: ignore[no-untyped-def]
    def handler(builder: Builder, a: Arguments, span: Span) -> Value:
        is_checked = builder.constant(a["sanitize_overflow"], "sanitize_overflow", span)
        return binary(builder, word, a["x"], a["y"], span, wraps=not is_checked)

    return handler


def _propagates(builder: Builder, a: Arguments, span: Span) -> bool:
    try:
        return propagates_nan(builder.constant(a["propagate_nan"], "propagate_nan", span))
    except ArgumentError as error:
        raise placed(error, span) from None


def _extremum(op: str):  # type: ignore[no-untyped-def]
    def handler(builder: Builder, a: Arguments, span: Span) -> Value:
        name = f"{op}_nan" if _propagates(builder, a, span) else op
        expr = elementwise(name, [a["x"], a["y"]], span)
        return elementwise(op, [a["x"], a["y"]], span) if expr.type.dtype.is_int() else expr

    return handler


def _clamp(builder: Builder, a: Arguments, span: Span) -> Value:
    return elementwise("clamp_nan" if _propagates(builder, a, span) else "clamp", [a["x"], a["min"], a["max"]], span)


def divided(builder: Builder, x: Value, y: Value, ieee_rounding: Value, span: Span) -> Expr:
    """The quotient of floats; with `ieee_rounding` the float nearest to it, which fp64 always gives."""
    quotient = elementwise("fdiv", [x, y], span)
    exact = builder.constant(ieee_rounding, "ieee_rounding", span)
    if exact and isinstance(quotient, Call) and quotient.type.dtype == float32:
        return replace(quotient, op="div_rn")
    return quotient


def _fdiv(builder: Builder, a: Arguments, span: Span) -> Value:
    return divided(builder, a["x"], a["y"], a["ieee_rounding"], span)


def _to_tensor(builder: Builder, a: Arguments, span: Span) -> Value:
    return to_expr(a["x"], span)


HANDLERS = {
    "program_id": _program("program_id"),
    "num_programs": _program("num_programs"),
    "arange": _arange,
    "full": _full,
    "zeros": _full,
    "zeros_like": _zeros_like,
    "to_tensor": _to_tensor,
    "cast": _cast,
    "broadcast": _broadcast,
    "broadcast_to": _broadcast_to,
    "expand_dims": _expand_dims,
    "permute": _permute,
    "trans": _permute,
    "reshape": _reshape,
    "view": _reshape,
    "ravel": _ravel,
    "squeeze": _squeeze,
    "unsqueeze": _unsqueeze,
    "swizzle2d": _swizzle,
    "cdiv": _cdiv,
    "multiple_of": _hint("multiple_of"),
    "max_contiguous": _hint("max_contiguous"),
    "max_constancy": _hint("max_constancy"),
    "add": _operator("Add"),
    "sub": _operator("Subtract"),
    "mul": _operator("Multiply"),
    "fdiv": _fdiv,
    "minimum": _extremum("minimum"),
    "maximum": _extremum("maximum"),
    "clamp": _clamp,
}
