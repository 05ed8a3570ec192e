"""The memory that an interpreted kernel may touch, checked access by access."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..diagnostics import KernelFaultError
from ..language.dtypes import DType, PointerType
from ..ops.casts import numpy_type
from .tile import Tile, broadcast, cast


@dataclass(frozen=True, slots=True)
class Buffer:
    """An array of the caller: name, address, and its bytes."""

    name: str
    address: int
    content: np.ndarray


def buffer_at(name: str, address: int, size: int) -> Buffer:
    """The bytes at an address."""
    raw = (ctypes.c_ubyte * size).from_address(address) if size else (ctypes.c_ubyte * 0)()
    return Buffer(name, address, np.ctypeslib.as_array(raw))


class Memory:
    """All arrays of a launch. `program` is the index of the running program, for messages."""

    def __init__(self, buffers: list[Buffer], file: str) -> None:
        """`file` is the kernel's, to find the line of a fault."""
        self.buffers, self.file = buffers, file
        self.program = (0, 0, 0)

    def load(self, pointer: Tile, mask: Tile | None, other: Tile | None) -> Tile:
        """The elements; 0 (or `other`) where the mask is false."""
        dtype = _pointee(pointer)
        tiles = broadcast([pointer, *(tile for tile in (mask, other) if tile is not None)])
        addresses = tiles[0].values
        inside = tiles[1].values if mask is not None else np.ones(addresses.shape, bool)
        result = np.zeros(addresses.shape, _memory_type(dtype))
        if other is not None:
            result[...] = cast(tiles[-1], dtype).values
        if inside.any():
            result[inside] = self._gather(addresses[inside], dtype, "read")
        return Tile(result != 0 if dtype.is_bool() else result, dtype)

    def store(self, pointer: Tile, value: Tile, mask: Tile | None) -> None:
        """Writes the elements where the mask holds."""
        dtype = _pointee(pointer)
        tiles = broadcast([pointer, cast(value, dtype), *([mask] if mask is not None else [])])
        inside = tiles[2].values if mask is not None else np.ones(tiles[0].shape, bool)
        if inside.any():
            self._scatter(tiles[0].values[inside], tiles[1].values[inside], dtype)

    def change(self, pointer: Tile, operands: list[Tile], mask: Tile | None, new_value: Callable[..., Any]) -> Tile:
        """An atomic: element by element, the old ones are returned."""
        dtype = _pointee(pointer)
        tiles = broadcast([pointer, *(cast(o, dtype) for o in operands), *([mask] if mask is not None else [])])
        arrays = [tile.values.reshape(-1) for tile in tiles]
        old = np.zeros(arrays[0].shape, numpy_type(dtype))
        for number in range(arrays[0].size):
            if mask is not None and not arrays[-1][number]:
                continue
            address = arrays[0][number : number + 1]
            old[number : number + 1] = self._gather(address, dtype, "change")
            inputs = [array[number : number + 1] for array in arrays[1 : 1 + len(operands)]]
            with np.errstate(all="ignore"):
                changed = np.asarray(new_value(old[number : number + 1], *inputs)).astype(old.dtype)
            self._scatter(address, changed, dtype)
        return Tile(old.reshape(tiles[0].shape), dtype)

    def _gather(self, addresses: Any, dtype: DType, what: str) -> Any:
        result = np.zeros(addresses.shape, _memory_type(dtype))
        for buffer, here in self._places(addresses, dtype, what):
            index = (addresses[here] - buffer.address)[:, None] + np.arange(dtype.itemsize)
            result[here] = np.ascontiguousarray(buffer.content[index]).view(_memory_type(dtype))[:, 0]
        return result

    def _scatter(self, addresses: Any, values: Any, dtype: DType) -> None:
        for buffer, here in self._places(addresses, dtype, "write"):
            index = (addresses[here] - buffer.address)[:, None] + np.arange(dtype.itemsize)
            typed = np.ascontiguousarray(values[here].astype(_memory_type(dtype), copy=False))
            buffer.content[index] = typed[:, None].view(np.uint8)

    def _places(self, addresses: Any, dtype: DType, what: str):  # type: ignore[no-untyped-def]
        """(buffer, which of the addresses lie in it).

        Raises:
          KernelFaultError: when one lies in none.
        """
        missing = np.ones(addresses.shape, bool)
        found = []
        for buffer in self.buffers:
            end = buffer.address + buffer.content.size - dtype.itemsize
            here = missing & (addresses >= buffer.address) & (addresses <= end)
            if here.any():
                found.append((buffer, here))
                missing &= ~here
        if missing.any():
            raise KernelFaultError(self._fault(int(addresses[missing][0]), dtype, what))
        return found

    def _fault(self, address: int, dtype: DType, what: str) -> str:
        line = self._line()
        if not self.buffers:
            return f"out of bounds {what} at {line}, program {self.program}: the kernel was given no arrays"
        nearest = min(
            self.buffers, key=lambda b: min(abs(address - b.address), abs(address - b.address - b.content.size))
        )
        index = (address - nearest.address) / dtype.itemsize
        count = nearest.content.size // dtype.itemsize
        shown = int(index) if index == int(index) else index
        return f"out of bounds {what} at {line}, program {self.program}: element {shown} of {nearest.name}, which has {count}"

    def _line(self) -> str:
        frame = sys._getframe()
        while frame is not None:
            if frame.f_code.co_filename == self.file:
                return f"{self.file}:{frame.f_lineno}"
            frame = frame.f_back  # type: ignore[assignment]
        return self.file


def _pointee(pointer: Tile) -> DType:
    if not isinstance(pointer.element, PointerType):
        from ..diagnostics import DTypeError

        raise DTypeError(
            f"Unsupported ptr type: {pointer.element}; the first argument is a pointer, as x_ptr + offsets"
        )
    return pointer.element.element_ty


def _memory_type(dtype: DType) -> Any:
    return np.dtype("uint8") if dtype.is_bool() else numpy_type(dtype)
