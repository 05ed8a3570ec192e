"""What an expression of a kernel can stand for while it is translated."""

from __future__ import annotations

from dataclasses import field, replace
from typing import Any

from ..diagnostics import Span
from ..frozen import frozen
from ..ir.nodes import Expr
from ..ir.symbols import OfTrips, Symbol
from ..language.constexpr import constexpr, plain


@frozen
class Const:
    """A compile-time value; `symbol` is what the text calls it, an expression of constexpr names, or None.

    `base` is 16 for an integer that the kernel writes so. `is_plain` marks what Triton has without a `constexpr` around it,
    such as an attribute of an object: its `.value` and `.type` are its own.
    """

    value: Any
    symbol: Symbol | None = None
    base: int = field(default=10, compare=False)
    is_plain: bool = field(default=False, compare=False)

    @property
    def is_number(self) -> bool:
        """True for int, float and bool."""
        return isinstance(self.value, (int, float))

    @property
    def trips(self) -> OfTrips | None:
        """What is known of the integer that it is in other trips of static loops, if it is another there."""
        return self.symbol.trips if self.symbol else None


@frozen
class Tuple:
    """A compile-time sequence of values; `fields` are the names of a namedtuple's.

    `is_wrapped` marks what Triton has within one `constexpr`: its `.type` says the values, not the types of the items.
    """

    items: tuple[Value, ...]
    fields: tuple[str, ...] = ()
    is_wrapped: bool = field(default=False, compare=False)


def known_value(value: Any, symbol: Symbol | None = None) -> Const | Tuple:
    """A value of Python's as a kernel sees it: sequences, also within others, by items, a scalar of NumPy as its number."""
    is_plain, value = not isinstance(value, constexpr), plain(value)
    if type(value) in (tuple, list):
        return Tuple(tuple(map(known_value, value)), is_wrapped=not is_plain)
    return Const(value, symbol, is_plain=is_plain)


def with_wrapper(value: Value, wrapped: bool) -> Value:
    """What a name stands for that is declared `tl.constexpr` (`wrapped`), or that a plain assignment binds."""
    if isinstance(value, Tuple):
        is_wrapped = wrapped and is_static(value)
        return replace(value, is_wrapped=is_wrapped) if value.is_wrapped != is_wrapped else value
    return replace(value, is_plain=not wrapped) if isinstance(value, Const) and value.is_plain == wrapped else value


@frozen
class BlockPointer:
    """`tl.make_block_ptr`: a block of a tensor in memory, of which only the scalars are known. All tuples are per axis.

    Elements lie at `base + sum(index * stride)`; the block starts at `offsets`.
    """

    base: Expr
    shape: tuple[Value, ...]
    strides: tuple[Value, ...]
    offsets: tuple[Value, ...]
    block_shape: tuple[int, ...]


@frozen
class Descriptor:
    """A tensor descriptor: a tensor in memory that is accessed by blocks of `block_shape`.

    `shape` holds int32 values, `strides` int64 values for every axis but the last, whose stride is 1. What lies outside is
    read as `padding`, "zero" or "nan". Loads may round fp32 to tf32.
    """

    base: Expr
    shape: tuple[Value, ...]
    strides: tuple[Value, ...]
    block_shape: tuple[int, ...]
    padding: str
    rounds_to_tf32: bool = False


@frozen
class Method:
    """A function of the language bound to its first argument."""

    builtin: Any
    self_value: Value


@frozen
class Undefined:
    """A name that only some ways through the program define; `span` is one definition."""

    span: Span
    why: str
    remedy: str = ""


Value = Const | Tuple | BlockPointer | Descriptor | Method | Expr


def is_static(value: Value) -> bool:
    """Whether a value is known at compile time."""
    return isinstance(value, Const) or (isinstance(value, Tuple) and all(is_static(item) for item in value.items))


class NotElementwiseError(Exception):
    """The function being tried as a device function of scalars does something to whole tiles."""
