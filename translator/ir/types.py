"""The type of a value: an element type and a shape. Scalars have the shape ()."""

from __future__ import annotations

import math

from ..frozen import frozen
from ..language.dtypes import DType, Element, PointerType
from .symbols import Symbol

# What tells apart the parts of a tuple, and tiles that are reduced together, of which there can be so many.
ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth")


class Dim(int):
    """A side of a tile: an int that remembers what the text calls it, such as the name BLOCK_SIZE.

    Equal to, and hashed as, the plain int; arithmetic gives plain ints.
    """

    symbol: Symbol | None

    def __new__(cls, value: int, symbol: Symbol | None = None) -> Dim:
        """Makes a side of `value` elements, called `symbol` in the generated text."""
        dim = super().__new__(cls, value)
        dim.symbol = symbol
        return dim


def symbol_of(side: int) -> Symbol | None:
    """What the text calls a side, if more than a number."""
    return side.symbol if isinstance(side, Dim) else None


def padded(side: int) -> int:
    """The smallest power of two not below a side: what registers and shared memory hold of an axis."""
    return 1 << max(side - 1, 0).bit_length()


@frozen
class ValueType:
    """`element` says what one element is, `shape` how many there are along each axis; `()` for a scalar."""

    element: Element
    shape: tuple[int, ...] = ()

    @property
    def is_tile(self) -> bool:
        """True unless the value is a scalar."""
        return bool(self.shape)

    @property
    def rank(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @property
    def numel(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    @property
    def is_pointer(self) -> bool:
        """True for pointers and tiles of pointers."""
        return isinstance(self.element, PointerType)

    @property
    def dtype(self) -> DType:
        """The element type of a tile of numbers.

        Raises:
          TypeError: for pointers.
        """
        if isinstance(self.element, PointerType):
            raise TypeError(f"{self} is a pointer")
        return self.element

    def with_shape(self, shape: tuple[int, ...]) -> ValueType:
        """The same elements in another shape."""
        return ValueType(self.element, shape)

    def with_element(self, element: Element) -> ValueType:
        """The same shape with other elements."""
        return ValueType(element, self.shape)

    def __str__(self) -> str:
        if not self.shape:
            return str(self.element)
        return f"{self.element}[{', '.join(str(int(side)) for side in self.shape)}]"
