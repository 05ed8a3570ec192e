"""Matrix products."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..diagnostics import DTypeError, ShapeError
from ..language.constexpr import plain
from ..language.dtypes import DType
from ..language.tile_hints import other_accumulator
from ..ops.dots import dot_shape, dot_types, numpy_dot
from .arguments import Arguments, constant, dtype_of, optional_tile
from .program import running
from .tile import Tile


def _operand(value: Any, name: str) -> tuple[Tile, DType]:
    value = plain(value)
    if not isinstance(value, Tile) or not isinstance(value.element, DType) or not value.shape:
        raise DTypeError(
            f"{name} of tl.dot must be a tile of numbers, not {value!r}", None, "load it as [M, K] or [K, N]"
        )
    return value, value.element


def _dot(a: Arguments) -> Tile:
    (left, left_type), (right, right_type) = _operand(a["input"], "input"), _operand(a["other"], "other")
    acc = optional_tile(a["acc"])
    shape = dot_shape(left.shape, right.shape)
    if acc is not None and acc.shape != shape:
        cause, remedy = other_accumulator(acc.type, shape)
        raise ShapeError(cause, None, remedy)
    types = dot_types(
        left_type,
        right_type,
        left.shape[-1],
        None if acc is None else _operand(acc, "acc")[1],
        constant(a["input_precision"], "input_precision"),
        constant(a["allow_tf32"], "allow_tf32"),
        constant(a["max_num_imprecise_acc"], "max_num_imprecise_acc"),
        _out_type(a["out_dtype"]),
        running.get().options.default_dot_input_precision,
    )
    values = numpy_dot(left.values, right.values, None if acc is None else acc.values, (left_type, right_type), types)
    return Tile(values, types.result)


def _out_type(value: Any) -> DType | None:
    dtype = None if plain(value) is None else dtype_of(value)
    return dtype if isinstance(dtype, DType) else None


HANDLERS: dict[str, Callable[[Arguments], Any]] = {"dot": _dot}
