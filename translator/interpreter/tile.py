"""Tiles and run-time scalars while a kernel runs in Python: NumPy arrays with an element type of the language.

Operators go through the op table, so types promote, integers wrap and 16-bit floats round as they do on the device.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..diagnostics import DTypeError, ShapeError
from ..language.constexpr import unwrap
from ..language.dtypes import DType, Element, PointerType, int64
from ..ops.casts import check_cast, numpy_cast, numpy_type
from ..ops.promotion import literal_type
from ..ops.registry import OPS, Operand


class Tile:
    """`values` holds numbers of `element`'s NumPy type, or addresses (int64) for pointers; a scalar has the shape ()."""

    __slots__ = ("element", "values")

    def __init__(self, values: Any, element: Element) -> None:
        """Wraps an array."""
        self.values, self.element = np.asarray(values), element

    @property
    def shape(self) -> tuple[int, ...]:
        """The sides."""
        return self.values.shape

    @property
    def dtype(self) -> Element:
        """The element type."""
        return self.element

    @property
    def type(self) -> Any:
        """The element type, or for tiles itself: it answers `.element_ty`, `.shape`, `.scalar`."""
        return self.element if not self.shape else self

    @property
    def element_ty(self) -> Element:
        """The element type of a tile's type."""
        return self.element

    scalar = element_ty

    @property
    def numel(self) -> int:
        """How many elements."""
        return self.values.size

    @property
    def T(self) -> Tile:
        """The axes in reverse."""
        return Tile(self.values.T, self.element)

    def to(self, dtype: Any, fp_downcast_rounding: Any = None, bitcast: bool = False) -> Tile:
        """Converts; see `tl.cast`."""
        return cast(self, unwrap(dtype), unwrap(fp_downcast_rounding), bool(unwrap(bitcast)))

    def __getitem__(self, key: Any) -> Tile:
        keys = key if isinstance(key, tuple) else (key,)
        if not all(k is None or (isinstance(k, slice) and k == slice(None)) for k in keys):
            raise ShapeError("only : and None can index a tile, as in x[:, None]")
        return Tile(self.values[tuple(keys)], self.element)

    def __bool__(self) -> bool:
        if self.values.size != 1:
            raise DTypeError("the truth of a tile is ambiguous; use tl.where, or reduce the tile first")
        return bool(self.values.reshape(()) != 0)

    def __index__(self) -> int:
        return int(self.values.reshape(()))

    def __float__(self) -> float:
        return float(self.values.reshape(()))

    __int__ = __index__

    def __hash__(self) -> int:
        return id(self)

    def __repr__(self) -> str:
        return f"{self.element}{list(self.shape)} {self.values}"

    def logical_and(self, other: Any) -> Tile:
        """Both."""
        return apply("logical_and", [self, other])

    def logical_or(self, other: Any) -> Tile:
        """Either."""
        return apply("logical_or", [self, other])

    def __getattr__(self, name: str) -> Any:
        from .. import language

        if name in language.METHODS:
            builtin = language.METHODS[name]
            return lambda *args, **kwargs: builtin(self, *args, **kwargs)
        raise AttributeError(f"a value of type {self.element} has no attribute {name!r}")


def as_tile(value: Any) -> Tile:
    """A value as a tile; numbers get the type that they have on their own.

    Raises:
      DTypeError: for anything that is no number.
    """
    value = unwrap(value)
    if isinstance(value, Tile):
        return value
    if isinstance(value, (bool, int, float)):
        dtype = literal_type(value)
        return Tile(np.asarray(value).astype(numpy_type(dtype)), dtype)
    raise DTypeError(f"expected a number or a tile, got {value!r}")


def cast(tile: Tile, element: Element, rounding: str | None = None, bitcast: bool = False) -> Tile:
    """The tile converted to another element type."""
    if tile.element == element:
        return tile
    check_cast(tile.element, element, rounding, bitcast)
    if isinstance(tile.element, PointerType) or isinstance(element, PointerType):
        return Tile(tile.values.astype(np.int64), element)
    with np.errstate(all="ignore"):
        return Tile(numpy_cast(tile.values, tile.element, element, rounding, bitcast), element)


def broadcast(tiles: list[Tile]) -> list[Tile]:
    """Tiles in their common shape.

    Raises:
      ShapeError: when they have none.
    """
    try:
        arrays = np.broadcast_arrays(*(tile.values for tile in tiles))
    except ValueError:
        shown = " and ".join(str(list(tile.shape)) for tile in tiles)
        raise ShapeError(f"Cannot make shapes compatible: {shown}") from None
    return [Tile(array, tile.element) for array, tile in zip(arrays, tiles, strict=True)]


def apply(op_name: str, values: list[Any]) -> Tile:
    """An operation of the op table."""
    op = OPS[op_name]
    values = [unwrap(value) for value in values]
    operands = []
    for value in values:
        if isinstance(value, Tile):
            operands.append(Operand(value.element))
        else:
            operands.append(Operand(as_tile(value).element, value))
    resolved = op.rule(tuple(operands))
    tiles = []
    for value, element in zip(values, resolved.operands, strict=True):
        if not isinstance(value, Tile) and isinstance(element, DType) and not element.is_bool():
            tiles.append(Tile(np.asarray(value).astype(numpy_type(element)), element))
        else:
            tiles.append(cast(as_tile(value), element))
    tiles = broadcast(tiles)
    with np.errstate(all="ignore"):
        result = np.asarray(op.numpy(*(tile.values for tile in tiles)))
    if isinstance(resolved.result, DType):
        result = result.astype(numpy_type(resolved.result), copy=False)
    return Tile(result, resolved.result)


def _binary(op_name: str, swap: bool = False) -> Callable[[Tile, Any], Any]:
    def method(self: Tile, other: Any) -> Any:
        other = unwrap(other)
        if other is None or isinstance(other, (str, DType)):
            return NotImplemented
        left, right = (other, self) if swap else (self, other)
        pointer = pointer_sum(op_name, left, right)
        return pointer if pointer is not None else apply(op_name, [left, right])

    return method


def pointer_sum(op_name: str, left: Any, right: Any) -> Tile | None:
    """`pointer + integer` and its like; None when no pointer is involved."""
    pointers = [isinstance(v, Tile) and isinstance(v.element, PointerType) for v in (left, right)]
    if not any(pointers):
        return None
    pointer, offset = (left, right) if pointers[0] else (right, left)
    if all(pointers) or op_name not in ("add", "sub") or (op_name == "sub" and not pointers[0]):
        raise DTypeError("a pointer takes only + and - with an integer")
    number = as_tile(offset)
    if op_name == "sub":
        number = apply("neg", [number])
    steps = cast(number, int64).values
    with np.errstate(all="ignore"):
        addresses = pointer.values + steps * pointer.element.element_ty.itemsize
    return Tile(addresses, pointer.element)


for _symbol, _op in (
    ("add", "add"), ("sub", "sub"), ("mul", "mul"), ("truediv", "div"), ("floordiv", "floordiv"), ("mod", "mod"),
    ("and", "and"), ("or", "or"), ("xor", "xor"), ("lshift", "shl"), ("rshift", "shr"),
):  # fmt: skip
    setattr(Tile, f"__{_symbol}__", _binary(_op))
    setattr(Tile, f"__r{_symbol}__", _binary(_op, swap=True))
for _symbol in ("eq", "ne", "lt", "le", "gt", "ge"):
    setattr(Tile, f"__{_symbol}__", _binary(_symbol))
setattr(Tile, "__neg__", lambda self: apply("neg", [self]))
setattr(Tile, "__invert__", lambda self: apply("invert", [self]))
