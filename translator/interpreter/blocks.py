"""Block pointers and tensor descriptors: values that know where blocks of a tensor lie."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from ..diagnostics import ArgumentError, DTypeError, ShapeError
from ..language.constexpr import plain
from ..language.descriptors import BLOCK_POINTER_METHODS, METHODS
from ..language.dtypes import DType, int1, int32, int64
from ..language.hints import no_integer, shown
from ..language.values import tensor_descriptor
from ..ops.blocks import (
    check_descriptor,
    check_order,
    check_padding,
    check_ranks,
    check_rows,
    checked_axes,
    pointee_of,
)
from ..ops.casts import numpy_type
from ..ops.tf32 import round_to_tf32
from . import accesses
from .arguments import Arguments, constant, shape_of
from .tile import Tile, as_tile, type_of


@dataclass(frozen=True)
class BlockPointer:
    """`tl.make_block_ptr`: elements lie at `base + sum(index * strides)`; the block starts at `offsets`."""

    base: Tile
    sides: tuple[int, ...]
    steps: tuple[int, ...]
    offsets: tuple[int, ...]
    block_shape: tuple[int, ...]

    @property
    def dtype(self) -> Any:
        """The type of the pointer to the tensor's elements."""
        return self.base.element

    @property
    def type(self) -> Any:
        """The same."""
        return self.base.element

    def __getattr__(self, name: str) -> Any:
        from .. import language

        if name in BLOCK_POINTER_METHODS:
            return partial(language.METHODS[name], self)
        raise AttributeError(f"a block pointer has no attribute {name!r}")


class Descriptor(tensor_descriptor):
    """A tensor descriptor; `sides` and `steps` are the tensor's shape and strides as Python integers."""

    def __init__(
        self,
        base: Tile,
        sides: tuple[int, ...],
        steps: tuple[int, ...],
        block_shape: tuple[int, ...],
        padding: str,
        rounds_to_tf32: bool = False,
    ) -> None:
        """See the class; `padding` is "zero" or "nan"; loads of fp32 may round to tf32."""
        self.rounds_to_tf32 = rounds_to_tf32
        self.base, self.sides, self.steps, self.block_shape, self.padding = base, sides, steps, block_shape, padding

    @property
    def dtype(self) -> DType:
        """The type of the tensor's elements."""
        return pointee_of(self.base.element, "tensor_descriptor")

    @property
    def shape(self) -> tuple[Tile, ...]:
        """The tensor's sides, int32."""
        return tuple(Tile(np.int32(side), int32) for side in self.sides)

    @property
    def strides(self) -> tuple[Tile, ...]:
        """The tensor's strides, int64."""
        return tuple(Tile(np.int64(step), int64) for step in self.steps)

    def __getattr__(self, name: str) -> Any:
        if name in METHODS:
            return partial(METHODS[name], self)
        raise AttributeError(f"a tensor descriptor has no attribute {name!r}")


def _integers(value: Any, what: str, allowed: tuple[str, ...] = ()) -> tuple[int, ...]:
    value = plain(value)
    items = [as_tile(item) for item in (value if isinstance(value, (tuple, list)) else (value,))]
    for item in items:
        if item.shape or not isinstance(item.element, DType) or not item.element.is_int():
            cause, remedy = no_integer(what, f"a value of type {item.element}")
            raise DTypeError(cause, None, remedy)
        if allowed and item.element.short not in allowed:
            raise DTypeError(
                f"offsets of a tensor descriptor are int32, not {item.element}", None, "cast with .to(tl.int32)"
            )
    return tuple(int(item.number()) for item in items)


def _base(value: Any, name: str) -> Tile:
    value = plain(value)
    given = f"a value of type {value.type}" if isinstance(value, Tile) else f"the compile-time value {shown(value)}"
    pointee_of(value.element if isinstance(value, Tile) and not value.shape else None, name, given)
    tile: Tile = value
    return tile


# ------------------------------------------------------------------------------------------------------ block pointers


def _make_block_ptr(a: Arguments) -> BlockPointer:
    base = _base(a["base"], "make_block_ptr")
    shape, strides, offsets = (_integers(a[name], f"an entry of {name}") for name in ("shape", "strides", "offsets"))
    block_shape = shape_of(a["block_shape"])
    rank = check_ranks("make_block_ptr", shape=shape, strides=strides, offsets=offsets, block_shape=block_shape)
    check_order(constant(a["order"], "order"), rank)
    return BlockPointer(base, shape, strides, offsets, block_shape)


def _advance(a: Arguments) -> BlockPointer:
    pointer = plain(a["base"])
    if not isinstance(pointer, BlockPointer):
        raise ArgumentError("tl.advance moves block pointers only", None, "add to a pointer with +")
    steps = _integers(a["offsets"], "an offset")
    check_ranks("advance", offsets=steps, block_shape=pointer.block_shape)
    return replace(pointer, offsets=tuple(x + y for x, y in zip(pointer.offsets, steps, strict=True)))


def _through_blocks(name: str) -> Callable[[Arguments], Any]:
    """`tl.load` and `tl.store`, of which the first argument may be a block pointer."""

    def handler(a: Arguments) -> Any:
        pointer = plain(a["pointer"])
        words = [word for word in ("boundary_check", "padding_option") if word in a]
        if not isinstance(pointer, BlockPointer):
            if any(constant(a[word], word) for word in words):
                raise ArgumentError(
                    f"boundary_check and padding_option of tl.{name} need a block pointer",
                    None,
                    "pass mask= and other=, or make a block pointer with tl.make_block_ptr",
                )
            return accesses.HANDLERS[name](a)
        if any(plain(a.get(word)) is not None for word in ("mask", "other")):
            raise ArgumentError(
                f"mask and other of tl.{name} cannot be given with a block pointer",
                None,
                "use boundary_check and padding_option",
            )
        axes = checked_axes(constant(a["boundary_check"], "boundary_check") or (), len(pointer.sides))
        dtype = pointee_of(pointer.base.element, name)
        padding = ""
        if name == "load":
            padding = check_padding(constant(a["padding_option"], "padding_option"), dtype, ("", "zero", "nan"))
        indices = _indices(pointer.offsets, pointer.block_shape)
        pointers, mask = _places(pointer.base, pointer.sides, pointer.steps, indices, axes)
        return accesses.HANDLERS[name](
            {**a, "pointer": pointers, "mask": mask, "other": _padding(padding, dtype) if axes else None}
        )

    return handler


def _indices(offsets: Sequence[int], block_shape: Sequence[int]) -> list[Any]:
    rank = len(block_shape)
    found = []
    for axis, (offset, side) in enumerate(zip(offsets, block_shape, strict=True)):
        steps = offset + np.arange(side, dtype=np.int64)
        found.append(steps.reshape([side if axis == one else 1 for one in range(rank)]))
    return found


def _places(
    base: Tile, sides: Sequence[int], steps: Sequence[int], indices: Sequence[Any], axes: Sequence[int]
) -> tuple[Tile, Tile]:
    """Pointers to the elements at `indices`, and whether they lie in the tensor along `axes`."""
    shape = np.broadcast_shapes(*(index.shape for index in indices))
    size = pointee_of(base.element, "load").itemsize
    addresses = base.values + sum((index * step * size for index, step in zip(indices, steps, strict=True)), start=0)
    mask = np.ones(shape, bool)
    for axis in axes:
        mask = mask & (indices[axis] >= 0) & (indices[axis] < sides[axis])
    return base.like(np.broadcast_to(addresses, shape)), Tile(mask, int1)


def _padding(word: str, dtype: DType) -> Tile | None:
    if not word:
        return None
    return Tile(np.asarray(float("nan") if word == "nan" else 0).astype(numpy_type(dtype)), dtype)


# --------------------------------------------------------------------------------------------------------- descriptors


def _make_tensor_descriptor(a: Arguments) -> Descriptor:
    base = _base(a["base"], "make_tensor_descriptor")
    shape, strides = (_integers(a[name], f"an entry of {name}") for name in ("shape", "strides"))
    last = plain(list(plain(a["strides"]))[-1])
    block_shape = shape_of(a["block_shape"])
    check_ranks("make_tensor_descriptor", shape=shape, strides=strides, block_shape=block_shape)
    dtype = pointee_of(base.element, "make_tensor_descriptor")
    check_descriptor(last if isinstance(last, int) else None, block_shape, dtype)
    padding = check_padding(constant(a["padding_option"], "padding_option"), dtype, ("zero", "nan"))
    return Descriptor(base, shape, strides, block_shape, padding)


def _descriptor(value: Any) -> Descriptor:
    value = plain(value)
    if not isinstance(value, Descriptor):
        raise DTypeError(
            f"expected a tensor descriptor, got {value!r}",
            None,
            "make one with tl.make_tensor_descriptor, or pass a TensorDescriptor to the kernel",
        )
    return value


_OFFSETS = ("i1", "i8", "i16", "i32", "u8", "u16")


def _block_of(a: Arguments) -> Arguments:
    desc = _descriptor(a["desc"])
    offsets = _integers(a["offsets"], "an offset of a block", _OFFSETS)
    check_ranks("tensor_descriptor", offsets=offsets, block_shape=desc.block_shape)
    indices = _indices(offsets, desc.block_shape)
    return _access(desc, indices)


def _rows_of(a: Arguments) -> Arguments:
    desc, rows = _descriptor(a["desc"]), as_tile(a["x_offsets"])
    check_rows(desc.block_shape, rows.element if isinstance(rows.element, DType) else None, len(rows.shape))
    (column,) = _integers(a["y_offset"], "an offset of a block", _OFFSETS)
    steps = column + np.arange(desc.block_shape[1], dtype=np.int64)
    return _access(desc, [rows.values.astype(np.int64)[:, None], steps[None, :]])


def _access(desc: Descriptor, indices: Sequence[Any]) -> Arguments:
    pointers, mask = _places(desc.base, desc.sides, desc.steps, indices, range(len(indices)))
    return {"pointer": pointers, "mask": mask, "other": _padding(desc.padding, desc.dtype)}


_HINTS = {"cache_modifier": "", "eviction_policy": "", "volatile": False, "sem": None, "scope": None}


def _method(name: str, rows: bool = False) -> Callable[[Arguments], Any]:
    def handler(a: Arguments) -> Any:
        access: Arguments = _HINTS | (_rows_of(a) if rows else _block_of(a))
        if name == "load":
            block = accesses.HANDLERS["load"](access)
            return block.like(round_to_tf32(block.values)) if plain(a["desc"]).rounds_to_tf32 else block
        value, shape = as_tile(a["value"]), access["pointer"].shape
        if value.shape not in ((), shape):
            raise ShapeError(
                f"the value has the type {type_of(value)}, the descriptor's blocks the shape {list(shape)}",
                None,
                "reshape it, or make a descriptor with another block_shape",
            )
        accesses.HANDLERS[name](access | {"value": value, "val": value})
        return None

    return handler


_ATOMICS = ("atomic_add", "atomic_min", "atomic_max", "atomic_and", "atomic_or", "atomic_xor")
HANDLERS: dict[str, Callable[[Arguments], Any]] = {
    "load": _through_blocks("load"),
    "store": _through_blocks("store"),
    "make_block_ptr": _make_block_ptr,
    "advance": _advance,
    "make_tensor_descriptor": _make_tensor_descriptor,
    "load_tensor_descriptor": _method("load"),
    "store_tensor_descriptor": _method("store"),
    "tensor_descriptor.load": _method("load"),
    "tensor_descriptor.store": _method("store"),
    "tensor_descriptor.gather": _method("load", rows=True),
    "tensor_descriptor.scatter": _method("store", rows=True),
    **{f"tensor_descriptor.{name}": _method(name) for name in _ATOMICS},
}
