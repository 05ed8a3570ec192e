"""The memory that an interpreted kernel may touch, checked access by access."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np

from ..diagnostics import ArgumentKindError, DTypeError, KernelFaultError, ShapeError
from ..frozen import frozen
from ..language.dtypes import DType, PointerType
from ..language.tile_hints import narrow_pointer
from ..ops.casts import numpy_type
from .mapped import first_without_memory
from .places import user_line
from .tile import ANYWHERE, Tile, broadcast, cast, type_of


@frozen(eq=False)
class Buffer:
    """An array of the caller: name, address, and its bytes."""

    name: str
    address: int
    content: np.ndarray


def buffer_at(name: str, address: int, size: int, writable: bool = True) -> Buffer:
    """The `size` bytes at an address."""
    raw = (ctypes.c_ubyte * size).from_address(address) if size else (ctypes.c_ubyte * 0)()
    content = np.ctypeslib.as_array(raw)
    content.flags.writeable = writable
    return Buffer(name, address, content)


FIRST_PAGE = 4096  # bytes from address 0 on that no array has


class Memory:
    """All arrays of a launch. `program` is the index of the running program, for messages."""

    def __init__(self, buffers: list[Buffer]) -> None:
        """Starts at program (0, 0, 0)."""
        self.buffers = buffers
        self.program = (0, 0, 0)

    def load(self, pointer: Tile, mask: Tile | None, other: Tile | None) -> Tile:
        """The elements; 0 (or `other`) where the mask is false. A mask of more axes widens the pointer."""
        dtype = pointee(pointer, "load")
        tiles = broadcast([pointer, *([mask] if mask is not None else [])])
        addresses = tiles[0].values
        inside = tiles[1].values if mask is not None else np.ones(addresses.shape, bool)
        result = np.zeros(addresses.shape, _memory_type(dtype))
        if other is not None:
            result[...] = _fitted(other, addresses.shape, "`other`").values
        if inside.any():
            result[inside] = self._gather(addresses[inside], pointer.origin, dtype, "read")
        return Tile(result != 0 if dtype.is_bool() else result, dtype)

    def store(self, pointer: Tile, value: Tile, mask: Tile | None) -> None:
        """Writes the elements where the mask holds."""
        dtype = pointee(pointer, "store")
        values = _fitted(cast(value, dtype), pointer.shape, "the value").values
        inside = np.ones(pointer.shape, bool) if mask is None else _fitted(mask, pointer.shape, "the mask").values
        if inside.any():
            self._scatter(pointer.values[inside], pointer.origin, values[inside], dtype)

    def change(self, pointer: Tile, operands: list[Tile], mask: Tile | None, new_value: Callable[..., Any]) -> Tile:
        """An atomic: `new_value(old, *operands)` element by element; the old elements are returned, 0 where masked off."""
        dtype = pointee(pointer, "an atomic")
        inputs = [_fitted(cast(operand, dtype), pointer.shape, "the value").values for operand in operands]
        inside = np.ones(pointer.shape, bool) if mask is None else _fitted(mask, pointer.shape, "the mask").values
        result = np.zeros(pointer.shape, numpy_type(dtype))
        addresses, places = np.unique(pointer.values[inside], return_inverse=True)
        if addresses.size:
            content = self._gather(addresses, pointer.origin, dtype, "change")
            old = np.zeros(places.shape, content.dtype)
            chosen = [array[inside] for array in inputs]
            with np.errstate(all="ignore"):
                for number, place in enumerate(places):
                    old[number] = content[place]
                    content[place] = new_value(content[place], *(array[number] for array in chosen))
            self._scatter(addresses, pointer.origin, content, dtype)
            result[inside] = old
        return Tile(result, dtype)

    def _gather(self, addresses: Any, origin: Any, dtype: DType, what: str) -> Any:
        result = np.zeros(addresses.shape, _memory_type(dtype))
        for buffer, here in self._places(addresses, origin, dtype, what):
            index = (addresses[here] - buffer.address)[:, None] + np.arange(dtype.itemsize)
            result[here] = np.ascontiguousarray(buffer.content[index]).view(_memory_type(dtype))[:, 0]
        return result

    def _scatter(self, addresses: Any, origin: Any, values: Any, dtype: DType) -> None:
        for buffer, here in self._places(addresses, origin, dtype, "write"):
            index = (addresses[here] - buffer.address)[:, None] + np.arange(dtype.itemsize)
            if not buffer.content.flags.writeable:
                raise ArgumentKindError(
                    f"argument {buffer.name} is written at {user_line()}, but the array is read-only; pass a copy, "
                    "or, of arrays of JAX, have tilewright.jax.call make the result"
                )
            typed = np.ascontiguousarray(values[here].astype(_memory_type(dtype), copy=False))
            buffer.content[index] = typed[:, None].view(np.uint8)

    def _places(self, addresses: Any, origin: Any, dtype: DType, what: str) -> list[tuple[Buffer, Any]]:
        """Pairs of a buffer and which of the addresses lie in it.

        Addresses that the kernel has made of integers are taken at their word where they lie in no array.

        Raises:
          KernelFaultError: when one lies in none that the pointer may reach.
        """
        reachable = self.buffers if origin is None or origin == ANYWHERE else [origin]
        missing = np.ones(addresses.shape, bool)
        found = []
        for buffer in reachable:
            end = buffer.address + buffer.content.size - dtype.itemsize
            here = missing & (addresses >= buffer.address) & (addresses <= end)
            found.append((buffer, here))
            missing = missing & ~here
        if origin == ANYWHERE and missing.any() and addresses[missing].min() >= FIRST_PAGE:
            if (wild := first_without_memory(addresses[missing], dtype.itemsize)) is not None:
                place = f"{what} at {user_line()}, program {self.program}"
                raise KernelFaultError(f"{place}: address {wild:#x}, where no memory is: a pointer has left its array")
            first, last = (int(end(addresses[missing])) for end in (np.min, np.max))
            found.append((buffer_at("memory", first, last - first + dtype.itemsize), missing))
        elif missing.any():
            raise KernelFaultError(self._fault(int(addresses[missing][0]), reachable, dtype, what))
        return [(buffer, here) for buffer, here in found if here.any()]

    def _fault(self, address: int, reachable: list[Buffer], dtype: DType, what: str) -> str:
        place = f"out of bounds {what} at {user_line()}, program {self.program}"
        if not reachable:
            return f"{place}: the kernel was given no arrays"
        nearest = min(reachable, key=lambda b: min(abs(address - b.address), abs(address - b.address - b.content.size)))
        index, rest = divmod(address - nearest.address, dtype.itemsize)
        count = nearest.content.size // dtype.itemsize
        within = f" and {rest} bytes" if rest else ""
        return f"{place}: element {index}{within} of {nearest.name}, which has {count}"


def pointee(pointer: Tile, what: str) -> DType:
    """The type that a pointer points to.

    Raises:
      DTypeError: for a tile of numbers.
    """
    if not isinstance(pointer.element, PointerType):
        raise DTypeError(
            f"Unsupported ptr type in tl.{what}: a value of type {type_of(pointer)}",
            None,
            "the first argument is a pointer, as x_ptr + offsets",
        )
    return pointer.element.element_ty


def _fitted(tile: Tile, shape: tuple[int, ...], what: str) -> Tile:
    """A tile in the pointer's shape, which it may not widen."""
    (_, fitted) = broadcast([Tile(np.empty(shape, bool), tile.element), tile])
    if fitted.shape != shape:
        cause, remedy = narrow_pointer(fitted.shape, what, shape)
        raise ShapeError(cause, None, remedy)
    return fitted


def _memory_type(dtype: DType) -> Any:
    return np.dtype("uint8") if dtype.is_bool() else numpy_type(dtype)
