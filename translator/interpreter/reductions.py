"""Reductions, all as one tree over neighbours.

The tree keeps the order of the operands, rounds after every step in the type of the tile, and takes a logarithmic number
of steps.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..diagnostics import ArgumentError, DTypeError
from ..kernel_function import KernelFunction
from ..language.constexpr import unwrap
from ..language.dtypes import DType, bfloat16, float32, int32
from ..language.hints import no_extremum
from ..language.tile_hints import (
    no_combine_function,
    no_common_shape,
    nothing_to_reduce,
    only_of_integers,
    other_number_of_results,
)
from ..ops.promotion import ordered_type, summed_type
from .arguments import Arguments, axis_of, constant, dtype_of
from .tile import AmbiguousTruthError, Tile, apply, as_tile, cast

State = tuple[Tile, ...]


def _tile(value: Any, name: str) -> tuple[Tile, DType]:
    """The tile to reduce and its element type."""
    tile = as_tile(value)
    if not tile.shape or not isinstance(tile.element, DType):
        cause, remedy = nothing_to_reduce(name, tile.type, bool(tile.shape))
        raise DTypeError(cause, None, remedy)
    return tile, tile.element


def _summable(tile: Tile, own: DType, name: str) -> tuple[Tile, DType]:
    """The same, if there is arithmetic on its elements."""
    if own.is_fp8():
        raise DTypeError(f"tl.{name} of {own} is not possible", None, "cast first, as x.to(tl.float32)")
    return tile, own


def _reduced(state: State, a: Arguments, combine: Callable[[State, State], State]) -> State:
    """Tiles of one shape without the axis that is reduced, or with it as a side of 1."""
    rank = len(state[0].shape)
    axis = None if unwrap(a["axis"]) is None else axis_of(a["axis"], rank)
    rows = tuple(t.like(t.values.reshape(-1) if axis is None else np.moveaxis(t.values, axis, 0)) for t in state)
    while rows[0].shape[0] > 1:
        pairs = rows[0].shape[0] // 2
        left = tuple(t.like(t.values[0 : 2 * pairs : 2]) for t in rows)
        right = tuple(t.like(t.values[1 : 2 * pairs : 2]) for t in rows)
        combined = combine(left, right)
        rows = tuple(
            new.like(np.concatenate([new.values, old.values[2 * pairs :]]))
            for new, old in zip(combined, rows, strict=True)
        )
    results = tuple(t.like(t.values[0]) for t in rows)
    if not constant(a["keep_dims"], "keep_dims"):
        return results
    axes = tuple(range(rank)) if axis is None else (axis,)
    return tuple(t.like(np.expand_dims(t.values, axes)) for t in results)


def _by_op(op: str) -> Callable[[State, State], State]:
    return lambda left, right: (apply(op, [left[0], right[0]]),)


def _sum(a: Arguments) -> Tile:
    tile, own = _tile(a["input"], "sum")
    wanted = summed_type(own) if unwrap(a["dtype"]) is None else dtype_of(a["dtype"])
    return _reduced((cast(tile, wanted),), a, _by_op("add"))[0]


def _bits(op: str, name: str) -> Callable[[Arguments], Tile]:
    def handler(a: Arguments) -> Tile:
        tile, own = _tile(a["input"], name)
        if not own.is_int():
            cause, remedy = only_of_integers(name, own)
            raise DTypeError(cause, None, remedy)
        return _reduced((tile,), a, _by_op(op))[0]

    return handler


def _ordered(name: str) -> Callable[[Arguments], Any]:
    def handler(a: Arguments) -> Any:
        tile, own = _tile(a["input"], name)
        axis = unwrap(a["axis"])
        if isinstance(axis, (Tile, float)):
            words = f"a value of type {axis.element}" if isinstance(axis, Tile) else f"the compile-time value {axis}"
            cause, remedy = no_extremum(name, words)
            raise ArgumentError(cause, None, remedy)
        if constant(a["return_indices"], "return_indices"):
            return _with_index(a, tile, own, name)
        return _reduced((cast(tile, ordered_type(own)),), a, _by_op(f"{name}imum"))[0]

    return handler


def _argument(name: str) -> Callable[[Arguments], Tile]:
    def handler(a: Arguments) -> Tile:
        tile, own = _tile(a["input"], f"arg{name}")
        return _with_index(a, tile, own, name)[1]

    return handler


def _with_index(a: Arguments, tile: Tile, own: DType, name: str) -> tuple[Tile, Tile]:
    """The extreme value and the lowest index that has it; a NaN loses to every number."""
    tile = cast(tile, float32 if own == bfloat16 or own.is_fp8() else own)
    index = np.arange(tile.numel, dtype=np.int32).reshape(tile.shape)
    if unwrap(a["axis"]) is not None:
        axis = axis_of(a["axis"], len(tile.shape))
        side = np.arange(tile.shape[axis], dtype=np.int32)
        index = np.broadcast_to(np.expand_dims(side, [k for k in range(len(tile.shape)) if k != axis]), tile.shape)
    comes_first = np.greater if name == "max" else np.less

    def combine(left: State, right: State) -> State:
        x, y = left[0].values, right[0].values
        with np.errstate(invalid="ignore"):
            take_right = comes_first(y, x) | ((x != x) & (y == y))
        return tuple(t.like(np.where(take_right, u.values, t.values)) for t, u in zip(left, right, strict=True))

    value, place = _reduced((tile, Tile(index, int32)), a, combine)
    return value, place


def _reduce(a: Arguments) -> Any:
    items = unwrap(a["input"])
    tiles = [_summable(*_tile(item, "reduce"), "reduce") for item in (items if isinstance(items, tuple) else (items,))]
    function = unwrap(a["combine_fn"])
    if not isinstance(function, KernelFunction):
        cause, remedy = no_combine_function(function)
        raise ArgumentError(cause, None, remedy)
    if len({tile.shape for tile, _ in tiles}) != 1:
        cause, remedy = no_common_shape(tile.shape for tile, _ in tiles)
        raise ArgumentError(cause, None, remedy)
    types = [own for _, own in tiles]
    results = _reduced(tuple(tile for tile, _ in tiles), a, lambda x, y: _combined(function, types, x, y))
    return results if isinstance(items, tuple) else results[0]


def _combined(function: Any, types: list[DType], left: State, right: State) -> State:
    """A combine function on whole tiles; element by element when it branches on them, as it may on scalars."""
    try:
        return _call(function, types, (*left, *right))
    except AmbiguousTruthError:
        flat = [tile.values.reshape(-1) for tile in (*left, *right)]
        elements = [dtype for dtype in (*types, *types)]
        columns = [
            _call(function, types, tuple(Tile(value, dtype) for value, dtype in zip(values, elements, strict=True)))
            for values in zip(*flat, strict=True)
        ]
        return tuple(
            Tile(np.asarray([column[k].values for column in columns]).reshape(left[k].shape), types[k])
            for k in range(len(types))
        )


def _call(function: Any, types: list[DType], operands: State) -> State:
    result = function(*operands)
    items = result if isinstance(result, tuple) else (result,)
    if len(items) != len(types):
        cause, remedy = other_number_of_results(function.__name__, len(types), len(items))
        raise ArgumentError(cause, None, remedy)
    for item, dtype in zip(items, types, strict=True):
        if isinstance(item, Tile) and item.element != dtype:
            cause = f"{function.__name__} combines values of {dtype}, but returns {item.element}"
            raise DTypeError(cause, None, f"cast what it returns, as result.to(tl.{dtype.name})")
    shape = operands[0].shape
    converted = (cast(as_tile(item), dtype) for item, dtype in zip(items, types, strict=True))
    return tuple(tile.like(np.broadcast_to(tile.values, shape)) for tile in converted)


def _softmax(a: Arguments) -> Tile:
    x = as_tile(a["x"])
    along = {"axis": 0 if unwrap(a["dim"]) is None else a["dim"], "keep_dims": True}
    largest = HANDLERS["max"]({"input": x, "return_indices": False, **along})
    numerator = apply("exp", [apply("sub", [x, largest])])
    return apply("fdiv", [numerator, HANDLERS["sum"]({"input": numerator, "dtype": None, **along})])


HANDLERS: dict[str, Callable[[Arguments], Any]] = {
    "sum": _sum,
    "max": _ordered("max"),
    "min": _ordered("min"),
    "argmax": _argument("max"),
    "argmin": _argument("min"),
    "xor_sum": _bits("xor", "xor_sum"),
    "reduce_or": _bits("or", "reduce_or"),
    "reduce": _reduce,
    "softmax": _softmax,
}
