"""The methods of tensor descriptors and block pointers: signatures and documentation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .builtin import Builtin

PREFIX = "tensor_descriptor."
METHODS: dict[str, Builtin] = {}
BLOCK_POINTER_METHODS = ("advance", "store")  # functions of the language that a block pointer has as methods


def _method(stub: Callable[..., Any]) -> Builtin:
    found = Builtin(PREFIX + stub.__name__, stub, stub.__doc__ or "")
    METHODS[stub.__name__] = found
    return found


@_method
def load(desc: Any, offsets: Any) -> Any:
    """The block that starts at `offsets`, int32 scalars; what lies outside the tensor is the descriptor's padding."""


@_method
def store(desc: Any, offsets: Any, value: Any) -> Any:
    """Writes a block at `offsets`, except for what lies outside the tensor."""


@_method
def gather(desc: Any, x_offsets: Any, y_offset: Any) -> Any:
    """The rows `x_offsets` of a matrix, from the column `y_offset` on; the descriptor's blocks have one row."""


@_method
def scatter(desc: Any, value: Any, x_offsets: Any, y_offset: Any) -> Any:
    """Writes the rows `x_offsets` of a matrix, from the column `y_offset` on; the descriptor's blocks have one row."""


@_method
def atomic_add(desc: Any, offsets: Any, value: Any) -> Any:
    """Adds a block atomically."""


@_method
def atomic_min(desc: Any, offsets: Any, value: Any) -> Any:
    """Keeps the smaller elements, atomically."""


@_method
def atomic_max(desc: Any, offsets: Any, value: Any) -> Any:
    """Keeps the larger elements, atomically."""


@_method
def atomic_and(desc: Any, offsets: Any, value: Any) -> Any:
    """Bitwise and, atomically."""


@_method
def atomic_or(desc: Any, offsets: Any, value: Any) -> Any:
    """Bitwise or, atomically."""


@_method
def atomic_xor(desc: Any, offsets: Any, value: Any) -> Any:
    """Bitwise exclusive or, atomically."""
