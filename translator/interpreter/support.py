"""What rewritten kernels call: assignment, logic, loops. See `rewrite.py`."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ..language import control
from ..language.constexpr import constexpr, unwrap
from ..language.dtypes import int32, int64
from .tile import Tile, apply, as_tile


def assigned(value: Any) -> Any:
    """What a plain assignment binds: numbers become typed scalars, in tuples too."""
    plain = unwrap(value)
    if isinstance(plain, (bool, int, float)):
        return as_tile(plain)
    if type(plain) in (tuple, list):
        return tuple(assigned(item) for item in plain)
    return plain


def compile_time(value: Any) -> Any:
    """What `x: tl.constexpr = value` binds."""
    return value if isinstance(value, constexpr) else constexpr(value)


def boolean(word: str, *operands: Callable[[], Any]) -> Any:
    """`and`, `or`: short-circuit on compile-time values, element by element on tiles."""
    result = operands[0]()
    for operand in operands[1:]:
        if not isinstance(result, Tile):
            if bool(unwrap(result)) != (word == "and"):
                return result
            result = operand()
            continue
        other = operand()
        other = other if isinstance(other, Tile) else bool(unwrap(other))
        result = apply("logical_and" if word == "and" else "logical_or", [result, other])
    return result


def negated(value: Any) -> Any:
    """`not`."""
    return apply("logical_not", [value]) if isinstance(value, Tile) else not unwrap(value)


def _extremum(op: str, plain: Callable[..., Any]) -> Callable[..., Any]:
    def function(*values: Any) -> Any:
        items = [unwrap(v) for v in (values if len(values) > 1 else unwrap(values[0]))]
        if not any(isinstance(item, Tile) for item in items):
            return constexpr(plain(items))
        result = items[0]
        for item in items[1:]:
            result = apply(op, [result, item])
        return result

    return function


smaller = _extremum("minimum", builtins.min)
larger = _extremum("maximum", builtins.max)


def length(value: Any) -> Any:
    """`len`."""
    return constexpr(len(unwrap(value)))


def loop_range(*bounds: Any) -> control.range:
    """`range` of the language."""
    values = [unwrap(bound) for bound in bounds]
    return control.range(*values)


def loop(iterable: Any) -> Iterator[Any]:
    """The indices of a loop: typed scalars, or compile-time values for `tl.static_range`."""
    if isinstance(iterable, control.static_range):
        yield from (constexpr(index) for index in iterable)
    elif isinstance(iterable, control.range):
        wide = any(isinstance(b, Tile) and b.element == int64 for b in (iterable.start, iterable.stop, iterable.step))
        dtype, array = (int64, np.int64) if wide else (int32, np.int32)
        yield from (Tile(np.asarray(index, array), dtype) for index in iterable)
    else:
        yield from iterable


def asserted(condition: Any, message: Any) -> None:
    """`assert` in a kernel."""
    from .builtins import device_assert

    device_assert({"cond": condition, "msg": message, "mask": None})
