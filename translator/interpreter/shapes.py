"""Functions of the language that make tiles or move their elements."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..diagnostics import ArgumentError, DTypeError, ShapeError
from ..language.constexpr import plain
from ..language.dtypes import DType, int32
from ..language.hints import check_arange, check_size, no_grid_axis, no_permutation, no_two_axes
from ..language.tile_hints import no_broadcast, no_reshape, no_single_number, no_squeeze
from ..ops.casts import numpy_type
from .arguments import Arguments, axis_of, constant, dtype_of, shape_of
from .program import running
from .tile import Tile, apply, as_tile, broadcast, cast, number_tile, type_of


def _program(a: Arguments, indices: Callable[[], tuple[int, int, int]], name: str) -> Tile:
    axis = constant(a["axis"], "axis")
    if axis not in (0, 1, 2):
        cause, remedy = no_grid_axis(name, axis)
        raise ArgumentError(cause, None, remedy)
    return Tile(np.int32(indices()[axis]), int32)


def _arange(a: Arguments) -> Tile:
    start, end = (constant(a[name], f"arange's argument {name}") for name in ("start", "end"))
    check_arange(start, end)
    check_size((end - start,))
    return Tile(np.arange(start, end, dtype=np.int32), int32)


def _full(a: Arguments) -> Tile:
    shape = shape_of(a["shape"]) if constant(a["shape"], "the shape") != () else ()
    given, dtype = plain(a.get("value", 0)), dtype_of(a["dtype"])
    if isinstance(given, (int, float)) and isinstance(dtype, DType) and dtype.is_floating():
        value = number_tile(given, dtype)  # without passing through the type of its own
    else:
        value = cast(as_tile(given), dtype)
    if value.shape:
        raise ShapeError("tl.full takes one value, not a tile", None, "use tl.broadcast_to")
    return value.like(np.full(shape, value.values))


def _zeros_like(a: Arguments) -> Tile:
    tile = as_tile(a["input"])
    dtype = tile.element
    kind = numpy_type(dtype) if isinstance(dtype, DType) else np.dtype(np.int64)
    return Tile(np.zeros(tile.shape, kind), dtype)


def _cast(a: Arguments) -> Tile:
    rounding = constant(a["fp_downcast_rounding"], "fp_downcast_rounding")
    bitcast = bool(constant(a["bitcast"], "bitcast"))
    return cast(as_tile(a["input"]), dtype_of(a["dtype"]), rounding, bitcast)


def _item(a: Arguments) -> Tile:
    tile = as_tile(a["input"])
    if tile.numel != 1 or not isinstance(tile.element, DType):
        cause, remedy = no_single_number(tile.type)
        raise ShapeError(cause, None, remedy)
    return tile.like(tile.values.reshape(()))


def _broadcast_to(a: Arguments) -> Tile:
    tile, shape = as_tile(a["input"]), shape_of(a["shape"])
    fits = not tile.shape or (
        len(tile.shape) == len(shape)
        and all(side in (1, wanted) for side, wanted in zip(tile.shape, shape, strict=True))
    )
    if not fits:
        cause, remedy = no_broadcast(tile.type, shape)
        raise ShapeError(cause, None, remedy)
    return tile.like(np.broadcast_to(tile.values, shape))


def _expand_dims(a: Arguments, tile: str = "input", axis: str = "axis") -> Tile:
    result, axes = as_tile(a[tile]), constant(a[axis], "axis")
    axes = axes if isinstance(axes, tuple) else (axes,)
    rank = len(result.shape) + len(axes)
    return result.like(np.expand_dims(result.values, tuple(axis_of(one, rank, len(axes)) for one in axes)))


def _permute(a: Arguments) -> Tile:
    tile, dims = as_tile(a["input"]), constant(a["dims"], "the order of axes")
    if len(dims) == 1 and isinstance(dims[0], tuple):
        dims = dims[0]
    rank = len(tile.shape)
    if not dims and rank < 2:
        cause, remedy = no_two_axes(type_of(tile))
        raise ShapeError(cause, None, remedy)
    order = dims or (*range(rank - 2), rank - 1, rank - 2)
    if sorted(axis_of(axis, rank) for axis in order) != list(range(rank)):
        cause, remedy = no_permutation(list(tile.shape), order, rank)
        raise ShapeError(cause, None, remedy)
    return tile.like(np.transpose(tile.values, order))


def reshaped(tile: Tile, shape: tuple[int, ...]) -> Tile:
    """The elements in row-major order in another shape.

    Raises:
      ShapeError: when it has another number of elements.
    """
    if np.prod(shape, dtype=np.int64) != tile.numel:
        cause, remedy = no_reshape(tile.type, tile.numel, shape)
        raise ShapeError(cause, None, remedy)
    return tile.like(tile.values.reshape(shape))


def _squeeze(a: Arguments) -> Tile:
    tile = as_tile(a["x"])
    axis = axis_of(a["dim"], len(tile.shape))
    if tile.shape[axis] != 1:
        cause, remedy = no_squeeze(axis, tile.type)
        raise ShapeError(cause, None, remedy)
    return tile.like(np.squeeze(tile.values, axis))


def _swizzle(a: Arguments) -> tuple[Any, Any]:
    i, j, size_i, size_j, size_g = (plain(a[name]) for name in ("i", "j", "size_i", "size_j", "size_g"))
    row_major = i * size_j + j
    group = size_g * size_j
    first = row_major // group * size_g
    rows = apply("minimum", [size_i - first, size_g])
    within = row_major % group
    return first + within % rows, within // rows


def _pair(a: Arguments, names: tuple[str, str]) -> list[Tile]:
    """Two tiles of one type in their common shape."""
    pair = broadcast([as_tile(a[name]) for name in names])
    if pair[0].element != pair[1].element:
        raise DTypeError(
            f"both tiles must have the same type, got {type_of(pair[0])} and {type_of(pair[1])}",
            None,
            "cast one of them, as y.to(x.dtype)",
        )
    return pair


def _joined(pair: list[Tile], axis: int) -> Tile:
    return pair[0].like(np.stack([tile.values for tile in pair], axis))


def _interleave(a: Arguments) -> Tile:
    both = _joined(_pair(a, ("a", "b")), -1)
    return both if len(both.shape) == 1 else both.like(both.values.reshape(*both.shape[:-2], -1))


def _cat(a: Arguments) -> Tile:
    pair = _pair(a, ("input", "other"))
    rank = len(pair[0].shape)
    if not rank:
        raise ShapeError("tl.cat takes tiles, not scalars", None, "use tl.join")
    if constant(a["can_reorder"], "can_reorder") and rank != 1:
        raise ArgumentError("tl.cat with can_reorder takes tiles of one axis", None, "drop can_reorder")
    return pair[0].like(np.concatenate([tile.values for tile in pair], axis_of(a["dim"], rank)))


def _split(a: Arguments) -> tuple[Tile, Tile]:
    tile = as_tile(a["a"])
    if not tile.shape or tile.shape[-1] != 2:
        raise ShapeError(
            f"tl.split takes a tile whose last side is 2, not {type_of(tile)}",
            None,
            "reshape it to (..., 2), or transpose it",
        )
    return tile.like(np.asarray(tile.values[..., 0])), tile.like(np.asarray(tile.values[..., 1]))


HANDLERS: dict[str, Callable[[Arguments], Any]] = {
    "join": lambda a: _joined(_pair(a, ("a", "b")), -1),
    "split": _split,
    "interleave": _interleave,
    "cat": _cat,
    "program_id": lambda a: _program(a, lambda: running.get().memory.program, "program_id"),
    "num_programs": lambda a: _program(a, lambda: running.get().grid, "num_programs"),
    "arange": _arange,
    "full": _full,
    "zeros": _full,
    "zeros_like": _zeros_like,
    "to_tensor": lambda a: as_tile(a["x"]),
    "cast": _cast,
    "broadcast": lambda a: tuple(broadcast([as_tile(a["input"]), as_tile(a["other"])])),
    "broadcast_to": _broadcast_to,
    "expand_dims": _expand_dims,
    "permute": _permute,
    "trans": _permute,
    "reshape": lambda a: reshaped(as_tile(a["input"]), shape_of(a["shape"])),
    "view": lambda a: reshaped(as_tile(a["input"]), shape_of(a["shape"])),
    "ravel": lambda a: reshaped(as_tile(a["x"]), (as_tile(a["x"]).numel,)),
    "item": _item,
    "squeeze": _squeeze,
    "unsqueeze": lambda a: _expand_dims(a, "x", "dim"),
    "swizzle2d": _swizzle,
}
