"""Loads, stores and atomics."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..diagnostics import ArgumentError, DTypeError
from ..language.constexpr import unwrap
from ..language.limits import (
    ATOMIC_TYPES,
    EVICTION_POLICIES,
    LOAD_MODIFIERS,
    MEMORY_ORDERS,
    SCOPES,
    STORE_MODIFIERS,
)
from .arguments import Arguments, check_option, mask_of
from .memory import pointee
from .program import running
from .tile import Tile, as_tile, cast


def _pointer(value: Any, what: str, writes: bool = True) -> Tile:
    tile = as_tile(value)
    pointee(tile, what)
    if writes and tile.element.is_const():
        raise DTypeError("Cannot store to a constant pointer", None, "drop the annotation tl.const")
    return tile


def _check_hints(a: Arguments, modifiers: tuple[str, ...]) -> None:
    check_option(a["cache_modifier"], "cache_modifier", modifiers)
    check_option(a["eviction_policy"], "eviction_policy", EVICTION_POLICIES)


def _load(a: Arguments) -> Tile:
    pointer, mask = _pointer(a["pointer"], "load", writes=False), mask_of(a["mask"])
    _check_hints(a, LOAD_MODIFIERS)
    other = None
    if unwrap(a["other"]) is not None:
        if mask is None:
            raise ArgumentError("`other` cannot be provided without `mask`", None, "pass mask= as well")
        other = cast(as_tile(a["other"]), pointee(pointer, "load"))
    return running.get().memory.load(pointer, mask, other)


def _store(a: Arguments) -> None:
    pointer = _pointer(a["pointer"], "store")
    _check_hints(a, STORE_MODIFIERS)
    running.get().memory.store(pointer, as_tile(a["value"]), mask_of(a["mask"]))


def _atomic(kind: str, new_value: Callable[..., Any], names: tuple[str, ...] = ("val",)) -> Callable[[Arguments], Tile]:
    def handler(a: Arguments) -> Tile:
        pointer = _pointer(a["pointer"], f"atomic_{kind}")
        dtype = pointee(pointer, f"atomic_{kind}")
        if dtype.short not in ATOMIC_TYPES[kind]:
            raise DTypeError(
                f"atomic_{kind} does not support {dtype.word}", None, f"it takes {', '.join(ATOMIC_TYPES[kind])}"
            )
        check_option(a["sem"], "sem", MEMORY_ORDERS)
        check_option(a["scope"], "scope", SCOPES)
        operands = [as_tile(a[name]) for name in names]
        return running.get().memory.change(pointer, operands, mask_of(a.get("mask")), new_value)

    return handler


def _greater(x: Any, y: Any) -> bool:
    """Whether x > y in the order of bit patterns that float atomics follow: -0.0 < 0.0, and NaN beyond the infinities."""
    if not isinstance(x, np.integer):
        x, y = (_ordered_bits(value) for value in (x, y))
    return bool(x > y)


def _ordered_bits(value: Any) -> int:
    bits = int(value.view(f"int{value.dtype.itemsize * 8}"))
    return bits if bits >= 0 else -1 - (bits & np.iinfo(f"int{value.dtype.itemsize * 8}").max)


HANDLERS: dict[str, Callable[[Arguments], Any]] = {
    "load": _load,
    "store": _store,
    "atomic_add": _atomic("add", lambda old, value: old + value),
    "atomic_max": _atomic("max", lambda old, value: value if _greater(value, old) else old),
    "atomic_min": _atomic("min", lambda old, value: value if _greater(old, value) else old),
    "atomic_and": _atomic("and", lambda old, value: old & value),
    "atomic_or": _atomic("or", lambda old, value: old | value),
    "atomic_xor": _atomic("xor", lambda old, value: old ^ value),
    "atomic_xchg": _atomic("xchg", lambda old, value: value),
    "atomic_cas": _atomic(
        "cas", lambda old, expected, value: value if old.tobytes() == expected.tobytes() else old, ("cmp", "val")
    ),
}
