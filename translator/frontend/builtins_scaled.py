"""`tl.dot_scaled`: both operands are widened to bf16 or fp16 here, so that only a dot of those reaches the typed kernel."""

from __future__ import annotations

from ..diagnostics import CompilationError, DTypeError, Span
from ..frozen import frozen
from ..ir.nodes import Assign, Expr, Use
from ..ir.tiles import broadcast_to, joined
from ..language.dtypes import DType, bfloat16, float32, int8, uint8, uint16
from ..language.tile_hints import no_scaled_operand
from ..ops.scaled import FP4, FP4_BIAS, NAN_SCALE, computed_in, operand_type, scale_group, unpacked_shape
from .builder import Builder
from .builtins_dot import HANDLERS as DOT
from .builtins_memory import base_name
from .builtins_shape import permuted, reshaped
from .shapes import cast_to, describe, elementwise, placed, to_expr
from .values import Const, Value

Arguments = dict[str, Value]
NONE = Const(None)


@frozen
class Operand:
    """One side of the product. `k_axis` is the axis along K, `rows_axis` the other one; both count from the end."""

    name: str
    value: Expr
    scale: Expr | None
    format: object
    k_axis: int
    rows_axis: int
    packed_axis: int


def _dot_scaled(builder: Builder, a: Arguments, span: Span) -> Value:
    builder.not_elementwise()
    try:
        left, right = _operand(builder, a, "lhs", -1, -2, span), _operand(builder, a, "rhs", -2, -1, span)
        wide = computed_in(left.format, right.format)
        fast = bool(builder.constant(a["fast_math"], "fast_math", span))
        operands = [_widened(builder, one, wide, fast, span) for one in (left, right)]
    except CompilationError as error:
        raise error if error.span is not None else placed(error, span) from None
    rest = {name: NONE for name in ("input_precision", "allow_tf32", "max_num_imprecise_acc")}
    given = {"input": operands[0], "other": operands[1], "acc": a["acc"], "out_dtype": a["out_dtype"]}
    product: Value = DOT["dot"](builder, given | rest, span)
    return product


def _operand(builder: Builder, a: Arguments, name: str, k_axis: int, rows_axis: int, span: Span) -> Operand:
    value, scale = a[name], a[f"{name}_scale"]
    if not isinstance(value, Expr) or value.type.rank < 2 or value.type.is_pointer:
        cause, remedy = no_scaled_operand(name, describe(value))
        raise DTypeError(cause, span, remedy, builder.calls)
    format_ = builder.constant(a[f"{name}_format"], f"{name}_format", span)
    packed_along_k = bool(builder.constant(a[f"{name}_k_pack"], f"{name}_k_pack", span))
    no_scale = isinstance(scale, Const) and scale.value is None
    packed_axis = k_axis if packed_along_k else rows_axis
    return Operand(
        name, value, None if no_scale else to_expr(scale, span), format_, k_axis, rows_axis, packed_axis
    )  # fmt: skip


def _named(builder: Builder, expr: Expr, name: str) -> Expr:
    """A step of the computation as a variable, so that the text shows it on its own."""
    variable = builder.variable(name, expr.type)
    builder.statements.append(Assign(builder.here, (variable,), expr))
    return Use(variable.type, variable, span=expr.span)


def _widened(builder: Builder, operand: Operand, wide: DType, fast: bool, span: Span) -> Expr:
    """An operand times its scales, as a tile of `wide`."""
    bits = operand_type(operand.name, operand.value.type.dtype, operand.format)
    name = base_name(operand.value, operand.name, "")
    if operand.format == FP4:
        unpacked = _named(builder, _unpacked(builder, operand.value, operand.packed_axis, span), f"{name}_unpacked")
        value = _from_bits(_named(builder, _bits_of_fp4(unpacked, wide, span), f"{name}_bits"), wide, span)
    else:
        value = cast_to(cast_to(operand.value, bits, span, bitcast=True), wide, span)
    if operand.scale is None:
        return value
    shape = unpacked_shape(operand.value.type.shape, operand.format, operand.packed_axis)
    scale = operand.scale
    if scale.type.element == int8:
        scale = cast_to(scale, uint8, span, bitcast=True)
    group = scale_group(
        operand.name, scale.type.shape, shape[operand.k_axis], shape[operand.rows_axis], scale.type.element
    )  # fmt: skip
    factors = cast_to(scale, wide, span) if scale.type.dtype != uint8 else _from_e8m0(scale, wide, fast, span)
    factors = _named(builder, factors, f"{name}_factor")
    spread = _spread(builder, operand, factors, group, shape, span)
    return _named(builder, elementwise("mul", [value, spread], span), f"{name}_scaled")


def _spread(
    builder: Builder, operand: Operand, scale: Expr, group: int, shape: tuple[int, ...], span: Span
) -> Expr:  # fmt: skip
    """Scales `[rows, K / group]` repeated along K and laid out as the operand is."""
    grouped = (*scale.type.shape, 1)
    wide = broadcast_to(reshaped(builder, scale, grouped, span), (*scale.type.shape, group), span)
    rows_first = reshaped(builder, wide, (*shape[:-2], shape[operand.rows_axis], shape[operand.k_axis]), span)
    if operand.k_axis == -1:
        return rows_first
    rank = len(shape)
    return permuted(builder, rows_first, (*range(rank - 2), rank - 1, rank - 2), span)


def _unpacked(builder: Builder, packed: Expr, axis: int, span: Span) -> Expr:
    """The 4-bit numbers of bytes, the low one first, as uint8: twice as many along `axis`."""
    shape = packed.type.shape
    axis %= len(shape)
    halves = elementwise("and", [packed, Const(15)], span), elementwise("shr", [packed, Const(4)], span)
    others = range(axis + 1, len(shape))
    pairs = permuted(builder, joined(*halves, span), (*range(axis + 1), len(shape), *others), span)
    return reshaped(builder, pairs, (*shape[:axis], 2 * shape[axis], *shape[axis + 1 :]), span)


def _bits_of_fp4(nibbles: Expr, wide: DType, span: Span) -> Expr:
    """The bits of e2m1 numbers, sign, 2 of exponent and 1 of mantissa, where `wide` has its own."""
    bits = cast_to(nibbles, uint16, span)
    magnitude = elementwise("shl", [elementwise("and", [bits, Const(7)], span), Const(wide.mantissa_bits - 1)], span)
    sign = elementwise("shl", [elementwise("and", [bits, Const(8)], span), Const(12)], span)
    return elementwise("or", [magnitude, sign], span)


def _from_bits(bits: Expr, wide: DType, span: Span) -> Expr:
    """The numbers of which `_bits_of_fp4` has the bits.

    As numbers of `wide` they are as much too small as the two exponents' biases differ, 0.5 too, which is subnormal in either,
    and a product with a power of two puts that right.
    """
    small = cast_to(bits, wide, span, bitcast=True)
    return elementwise("mul", [small, Const(2.0 ** (wide.exponent_bias - FP4_BIAS))], span)


def _from_e8m0(scale: Expr, wide: DType, fast: bool, span: Span) -> Expr:
    """Powers of two `2 ** (scale - 127)`, by the bits of bf16; 0 gives 0, and 255 NaN unless `fast`."""
    bits = elementwise("shl", [cast_to(scale, uint16, span), Const(bfloat16.mantissa_bits)], span)
    power = cast_to(bits, bfloat16, span, bitcast=True)
    power = power if wide == bfloat16 else cast_to(cast_to(power, float32, span), wide, span)
    if fast:
        return power
    nan = cast_to(to_expr(Const(float("nan")), span), wide, span)
    return elementwise("where", [elementwise("eq", [scale, Const(NAN_SCALE)], span), nan, power], span)


HANDLERS = {"dot_scaled": _dot_scaled}
