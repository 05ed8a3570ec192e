"""Tiles and run-time scalars while a kernel runs in Python: NumPy arrays with an element type of the language.

Operators go through the op table, so types promote, integers wrap and 16-bit floats round as they do on the device.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from ..diagnostics import DTypeError, NotConstexprError, ShapeError, UnsupportedLanguageConstruct
from ..language.constexpr import plain
from ..language.dtypes import DType, Element, PointerType, int1, int64
from ..language.hints import (
    KNOWN_INDEX,
    check_size,
    described,
    instead_of,
    no_assignment,
    no_form,
    no_item,
    no_order,
    no_power,
    no_two_axes,
    too_few_axes,
)
from ..language.tile_hints import ambiguous_truth, no_common_sides
from ..language.values import block_type, tensor
from ..ops.casts import check_cast, numpy_cast, numpy_type, rounded
from ..ops.promotion import literal_type
from ..ops.registry import OPS, Operand
from .overflow import check_overflow
from .places import warn


class AmbiguousTruthError(DTypeError):
    """The truth of a tile of several elements was asked for."""


ANYWHERE = "anywhere"  # the origin of pointers that were made of integers


class Tile(tensor):
    """`values` holds numbers of `element`'s NumPy type, or addresses (int64) for pointers; a scalar has the shape ().

    `origin` is the array that a pointer was derived from and may not leave, None where that is not known, or `ANYWHERE`.
    """

    __slots__ = ("element", "origin", "values")
    __array_ufunc__ = None  # a scalar of NumPy on the left leaves its operators to a tile on the right

    def __init__(self, values: Any, element: Element, origin: Any = None) -> None:
        """Wraps an array."""
        self.values, self.element, self.origin = np.asarray(values), element, origin

    def like(self, values: Any) -> Tile:
        """Other values of the same type."""
        return Tile(values, self.element, self.origin)

    @property
    def shape(self) -> tuple[int, ...]:
        """The sides."""
        return self.values.shape

    @property
    def dtype(self) -> Element:
        """The element type."""
        return self.element

    @property
    def type(self) -> Element | block_type:
        """The element type of a scalar, or the type of a tile."""
        return block_type(self.element, self.shape) if self.shape else self.element

    @property
    def numel(self) -> int:
        """How many elements."""
        return self.values.size

    @property
    def T(self) -> Tile:
        """The axes in reverse.

        Raises:
          ShapeError: when there are not two.
        """
        if len(self.shape) < 2:
            cause, remedy = no_two_axes(type_of(self))
            raise ShapeError(cause, None, remedy)
        return self.like(self.values.T)

    def to(self, *args: Any, **kwargs: Any) -> Tile:
        """Converts; see `tl.cast`, which checks the arguments."""
        converted: Tile = self.cast(*args, **kwargs)
        return converted

    def number(self) -> bool | int | float:
        """A scalar as a Python number; for the interpreter itself."""
        number: bool | int | float = self.values.reshape(()).item()
        return number

    def __getitem__(self, key: Any) -> Tile:
        keys = key if isinstance(key, tuple) else (key,)
        whole = [isinstance(k, slice) and k == slice(None) for k in keys]
        axis, values = 0, self.values
        for key in keys:
            if key is None and axis > values.ndim:
                cause, remedy = too_few_axes(self.element, self.shape)
                raise ShapeError(cause, None, remedy)
            values = np.expand_dims(values, axis) if key is None else values
            axis += key is None or self.shape != ()  # of a scalar, : stands for no axis
        if not all(k is None or full for k, full in zip(keys, whole, strict=True)):
            raise ShapeError(
                "unsupported tensor index",
                None,
                no_item(isinstance(self.element, PointerType)),
            )
        return self.like(values)

    def __setitem__(self, key: Any, value: Any) -> None:
        remedy = no_assignment(isinstance(self.element, PointerType))
        raise UnsupportedLanguageConstruct("assignment to an item", None, remedy)

    def __pow__(self, exponent: Any) -> Any:
        cause, remedy = no_power(plain(exponent) if not isinstance(exponent, Tile) else None)
        raise UnsupportedLanguageConstruct(cause, None, remedy)

    def __rpow__(self, base: Any) -> Any:
        return self.__pow__(self)

    def __matmul__(self, other: Any) -> Any:
        cause, remedy = no_form("MatrixMultiply")
        raise UnsupportedLanguageConstruct(cause, None, remedy)

    def __rmatmul__(self, other: Any) -> Any:
        return self.__matmul__(other)

    def __iter__(self) -> Any:
        raise DTypeError("a single value cannot be taken apart", None, "only tuples have items")

    def __bool__(self) -> bool:
        if self.values.size != 1:
            cause, remedy = ambiguous_truth(type_of(self))
            raise AmbiguousTruthError(cause, None, remedy)
        return bool(self.values.reshape(()) != 0)

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

    def __index__(self) -> int:
        """Of a tuple, in whose brackets a tile stands.

        Raises:
          NotConstexprError: always.
        """
        cause = f"an index must be known when the kernel is translated, but it is a value of type {type_of(self)}"
        raise NotConstexprError(cause, None, KNOWN_INDEX)

    def __getattr__(self, name: str) -> Any:
        from .. import language

        if name in language.METHODS:
            return partial(language.METHODS[name], self)
        later = " yet" if name in language.NOT_YET else ""
        raise AttributeError(f"a value of type {type_of(self)} has no attribute {name}{later}")


class Known(Tile):
    """A scalar in a tuple, which functions that need a compile-time value take as one."""

    __slots__ = ("known",)

    def __init__(self, value: Any) -> None:
        """A number, in the type of its own."""
        self.known = plain(value)
        tile = as_tile(value)
        super().__init__(tile.values, tile.element)

    def __index__(self) -> int:
        return self.known.__index__()  # type: ignore[no-any-return]


def type_of(tile: Tile) -> str:
    """The type of a tile in words, with its shape."""
    return f"{tile.element}{list(tile.shape) or ''}"


def as_tile(value: Any) -> Tile:
    """A value as a tile; numbers get the type that they have on their own.

    Raises:
      DTypeError: for anything that is no number.
    """
    value = plain(value)
    if isinstance(value, Tile):
        return value
    if isinstance(value, (bool, int, float)):
        return number_tile(value, literal_type(value))
    raise DTypeError(f"expected a number or a tile, got {described(value)}", None, instead_of(value))


def cast(tile: Tile, element: Element, rounding: str | None = None, bitcast: bool = False) -> Tile:
    """The tile converted to another element type.

    Raises:
      DTypeError: when there is no such conversion.
    """
    if tile.element == element:
        return tile
    check_cast(tile.element, element, rounding, bitcast)
    if isinstance(tile.element, PointerType) or isinstance(element, PointerType):
        if element == int1:
            return Tile(tile.values != 0, int1)
        if not isinstance(element, PointerType):
            return Tile(tile.values.astype(numpy_type(element)), element)
        origin = tile.origin if isinstance(tile.element, PointerType) else ANYWHERE
        return Tile(tile.values.astype(np.int64), element, origin)
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
        cause, remedy = no_common_sides(tile.shape for tile in tiles)
        raise ShapeError(cause, None, remedy) from None
    check_size(arrays[0].shape)
    return [tile.like(array) for array, tile in zip(arrays, tiles, strict=True)]


def apply(op_name: str, values: list[Any], wraps: bool = True) -> Tile:
    """An operation of the op table; `wraps` but for operators, whose overflow is an error with the option `debug`.

    Raises:
      DTypeError, ShapeError: when the operands do not fit.
    """
    op = OPS[op_name]
    values = [plain(value) for value in values]
    operands = [
        Operand(value.element) if isinstance(value, Tile) else Operand(as_tile(value).element, value)
        for value in values
    ]
    resolved = op.rule(tuple(operands))
    if resolved.warning:
        warn(resolved.warning)
    number = _adapted if resolved.literals_adapt else _typed
    tiles = [number(value, element) for value, element in zip(values, resolved.operands, strict=True)]
    tiles = broadcast(tiles)
    with np.errstate(all="ignore"):
        result = np.asarray(op.numpy(*(tile.values for tile in tiles)))
    if isinstance(resolved.result, DType):
        if not wraps:
            check_overflow(op_name, resolved.result, [tile.values for tile in tiles], result)
        return Tile(result.astype(numpy_type(resolved.result), copy=False), resolved.result)
    origins = {id(tile.origin): tile.origin for tile in tiles if isinstance(tile.element, PointerType)}
    origin = next(iter(origins.values())) if len(origins) == 1 else ANYWHERE if id(ANYWHERE) in origins else None
    return Tile(result, resolved.result, origin)


def _typed(value: Any, element: Element) -> Tile:
    """A tile or a number, of which a number passes through the type of its own."""
    return cast(as_tile(value), element)


def _adapted(value: Any, element: Element) -> Tile:
    """A tile cast to `element`; a number takes the type directly, without passing through the one of its own."""
    if isinstance(value, Tile) or not isinstance(element, DType) or element.is_bool():
        return _typed(value, element)
    return number_tile(value, element)


def number_tile(value: int | float, dtype: DType) -> Tile:
    """A number as a scalar of a type that can hold it."""
    number = rounded(value, dtype) if dtype.is_floating() else value
    return Tile(np.asarray(number).astype(numpy_type(dtype)), dtype)


def binary(op_name: str, left: Any, right: Any, wraps: bool = False) -> Tile:
    """`left <operator> right`, pointers included; see `apply`.

    Raises:
      DTypeError, ShapeError: when the operands do not fit.
    """
    left, right = plain(left), plain(right)
    pointers = [isinstance(value, Tile) and isinstance(value.element, PointerType) for value in (left, right)]
    if not any(pointers):
        return apply(op_name, [left, right], wraps)
    pointer, offset = (left, right) if pointers[0] else (right, left)
    number = as_tile(offset)
    if all(pointers) or op_name not in ("add", "sub") or (op_name == "sub" and not pointers[0]):
        words = (
            f"a value of type {type_of(one)}" if isinstance(one, Tile) else described(one) for one in (left, right)
        )
        cause = f"invalid operands: {' and '.join(words)}"
        raise DTypeError(cause, None, "a pointer takes only + and - with an integer; did you forget tl.load?")
    if not number.element.is_int():
        raise DTypeError(f"a pointer moves by integers, not by {type_of(number)}", None, "cast the offset")
    if op_name == "sub":
        number = apply("neg", [number])
    base, steps = broadcast([as_tile(pointer), cast(number, int64)])
    with np.errstate(all="ignore"):
        return base.like(base.values + steps.values * base.element.element_ty.itemsize)


_COMPARED = ("eq", "ne", "lt", "le", "gt", "ge")


def _operator(op_name: str, swap: bool = False) -> Callable[[Tile, Any], Any]:
    def method(self: Tile, other: Any) -> Any:
        other = plain(other)
        if op_name in _COMPARED and (other is None or isinstance(other, (str, DType, PointerType))):
            if op_name in ("eq", "ne"):
                return NotImplemented  # a tile is never equal to None, a string or a type
            cause, remedy = no_order(f"a value of type {self.type}", described(other), other is None)
            raise DTypeError(cause, None, remedy)
        return binary(op_name, other, self) if swap else binary(op_name, self, other)

    return method


for _symbol, _op in (
    ("add", "add"), ("sub", "sub"), ("mul", "mul"), ("truediv", "div"), ("floordiv", "floordiv"), ("mod", "mod"),
    ("and", "and"), ("or", "or"), ("xor", "xor"), ("lshift", "shl"), ("rshift", "shr"),
):  # fmt: skip
    setattr(Tile, f"__{_symbol}__", _operator(_op))
    setattr(Tile, f"__r{_symbol}__", _operator(_op, swap=True))
for _symbol in _COMPARED:
    setattr(Tile, f"__{_symbol}__", _operator(_symbol))
setattr(Tile, "__pos__", lambda self: self)
setattr(Tile, "__neg__", lambda self: apply("neg", [self], wraps=False))
setattr(Tile, "__invert__", lambda self: apply("invert", [self]))
