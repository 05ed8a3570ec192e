"""Operands of `tl.dot_scaled`: number formats, scales per group of elements, and the checks on both."""

from __future__ import annotations

from ..diagnostics import ArgumentError, DTypeError, ShapeError
from ..language.dtypes import DType, Element, bfloat16, float8e4nv, float8e5, float16, int8, uint8, uint16
from ..language.hints import shown

# The element type behind each format; two e2m1 numbers stand in one uint8, the first in its low bits.
FORMATS = {"e2m1": uint8, "e4m3": float8e4nv, "e5m2": float8e5, "bf16": bfloat16, "fp16": float16}
FP4 = "e2m1"
FP4_BIAS = 1  # of its exponent
FP4_MAGNITUDES = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)
GROUPS = (16, 32)  # elements of K that share a scale
NAN_SCALE = 0xFF


def computed_in(left_format: object, right_format: object) -> DType:
    """The type that both operands are widened to."""
    return float16 if "fp16" in (left_format, right_format) else bfloat16


def operand_type(name: str, dtype: DType, format_: object) -> DType:
    """The type that an operand's bits are read as.

    Raises:
      ArgumentError, DTypeError: for another format, or a type that does not hold it.
    """
    if not isinstance(format_, str) or format_ not in FORMATS:
        raise ArgumentError(
            f"{name}_format must be one of {', '.join(FORMATS)}, not {shown(format_)}",
            None,
            f'write {name}_format="e4m3"',
        )
    wanted = FORMATS[format_]
    if dtype not in (wanted, uint8 if wanted.bits == 8 else uint16):
        raise DTypeError(
            f"{name} of format {format_} must be of type {wanted}, or unsigned bits of it, not {dtype}",
            None,
            f"cast it, as x.to(tl.{wanted.word}, bitcast=True)",
        )
    return wanted


def unpacked_shape(shape: tuple[int, ...], format_: object, axis: int) -> tuple[int, ...]:
    """An operand's shape in numbers; `axis` is the one along which e2m1 numbers are packed."""
    if format_ != FP4:
        return shape
    return tuple(2 * side if number == axis % len(shape) else side for number, side in enumerate(shape))


def scale_group(name: str, shape: tuple[int, ...], depth: int, rows: int, scale: Element) -> int:
    """How many elements along K share a scale; `shape` is the scale's, `[rows, depth / group]`.

    Raises:
      ShapeError, DTypeError: when it does not fit.
    """
    if scale not in (uint8, int8, float8e4nv):  # of int8 the bits count
        raise DTypeError(
            f"{name}_scale must be uint8 (e8m0) or float8e4nv, not {scale}", None, "load bytes of e8m0, or pass None"
        )
    groups = [group for group in GROUPS if len(shape) >= 2 and shape[-1] * group == depth]
    if not groups or shape[-2] != rows:
        raise ShapeError(
            f"{name}_scale has the shape {[int(side) for side in shape]}; [{int(rows)}, {int(depth)} / 32] is expected",
            None,
            "a scale is for 32 elements along K, which is its last axis, for both operands",
        )
    return groups[0]
