"""`tl.dot_scaled`: operands are widened to bf16 or fp16, times their scales, and multiplied."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..diagnostics import DTypeError
from ..language.constexpr import unwrap
from ..language.dtypes import DType, int8
from ..language.hints import shown
from ..language.tile_hints import no_scaled_operand
from ..ops.casts import numpy_type
from ..ops.scaled import FP4, FP4_MAGNITUDES, NAN_SCALE, computed_in, operand_type, scale_group
from .arguments import Arguments, constant, optional_tile
from .dots import HANDLERS as DOT
from .tile import Tile


def _dot_scaled(a: Arguments) -> Tile:
    formats = [constant(a[f"{name}_format"], f"{name}_format") for name in ("lhs", "rhs")]
    fast = bool(constant(a["fast_math"], "fast_math"))
    wide = computed_in(*formats)
    left = _widened(a, "lhs", formats[0], wide, fast, transposed=False)
    right = _widened(a, "rhs", formats[1], wide, fast, transposed=True)
    rest = dict.fromkeys(("input_precision", "allow_tf32", "max_num_imprecise_acc"))
    product: Tile = DOT["dot"](rest | {"input": left, "other": right, "acc": a["acc"], "out_dtype": a["out_dtype"]})
    return product


def _widened(a: Arguments, name: str, format_: object, wide: DType, fast: bool, transposed: bool) -> Tile:
    """An operand times its scales, as a tile of `wide`; computed with K as the last axis."""
    tile, scale = unwrap(a[name]), optional_tile(a[f"{name}_scale"])
    if not isinstance(tile, Tile) or len(tile.shape) < 2 or not isinstance(tile.element, DType):
        given = f"a value of type {tile.type}" if isinstance(tile, Tile) else shown(tile)
        cause, remedy = no_scaled_operand(name, given)
        raise DTypeError(cause, None, remedy)
    bits = operand_type(name, tile.element, format_)
    values = np.swapaxes(tile.values, -1, -2) if transposed else tile.values
    if format_ == FP4:
        values = _from_fp4(values, -1 if bool(constant(a[f"{name}_k_pack"], f"{name}_k_pack")) else -2)
    else:
        values = np.ascontiguousarray(values).view(numpy_type(bits))
    values = values.astype(np.float32).astype(numpy_type(wide))
    if scale is not None:
        group = scale_group(name, scale.shape, values.shape[-1], values.shape[-2], scale.element)
        numbers = scale.values.view(np.uint8) if scale.element == int8 else scale.values
        values = _scaled(values, np.repeat(numbers, group, axis=-1), fast)
    return Tile(np.swapaxes(values, -1, -2) if transposed else values, wide)


def _from_fp4(packed: Any, axis: int) -> Any:
    nibbles = np.stack([packed & 15, packed >> 4], axis=axis if axis == -1 else packed.ndim - 1)
    shape = list(packed.shape)
    shape[axis] *= 2
    magnitudes = np.asarray(FP4_MAGNITUDES, np.float32)[nibbles & 7]
    return np.where(nibbles & 8, -magnitudes, magnitudes).reshape(shape)


def _scaled(values: Any, scale: Any, fast: bool) -> Any:
    with np.errstate(all="ignore"):
        if scale.dtype != np.uint8:
            return values * scale.astype(np.float32).astype(values.dtype)
        power = np.where(scale == 0, np.float32(0), np.exp2(scale.astype(np.float64) - 127).astype(np.float32))
        product = values * power.astype(values.dtype)
    infinite = np.asarray(float("nan")).astype(values.dtype)
    return product if fast else np.where(scale == NAN_SCALE, infinite, product)


HANDLERS: dict[str, Callable[[Arguments], Any]] = {"dot_scaled": _dot_scaled}
