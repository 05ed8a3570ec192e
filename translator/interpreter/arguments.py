"""Arguments of the language's functions as the interpreter needs them, with the errors for those that do not fit."""

from __future__ import annotations

from typing import Any

from ..diagnostics import ArgumentError, DTypeError, NotConstexprError
from ..language.constexpr import plain
from ..language.dtypes import Element
from ..language.hints import MAKE_CONSTANT, check_size, element_type, no_axis, no_condition, no_mask, no_side, shown
from .tile import Known, Tile, as_tile, type_of

Arguments = dict[str, Any]


def constant(value: Any, what: str) -> Any:
    """A compile-time value, tuples item by item.

    Raises:
      NotConstexprError: for a run-time value.
    """
    value = plain(value)
    if isinstance(value, Known):
        return value.known
    if isinstance(value, Tile):
        raise NotConstexprError(
            f"{what} must be known when the kernel is translated, but it is a value of type {type_of(value)}",
            None,
            MAKE_CONSTANT,
        )
    return tuple(constant(item, what) for item in value) if isinstance(value, (tuple, list)) else value


def dtype_of(value: Any) -> Element:
    """An element type given as a type or by its name.

    Raises:
      DTypeError: for anything else.
    """
    return element_type(constant(value, "dtype"))


def shape_of(value: Any) -> tuple[int, ...]:
    """A shape: a tuple of sides, a tuple that holds such a tuple, or one side.

    Raises:
      DTypeError: for sides that are no positive integers.
    """
    sides = constant(value, "a side of the shape")
    if isinstance(sides, tuple) and len(sides) == 1 and isinstance(sides[0], tuple):
        sides = sides[0]
    sides = sides if isinstance(sides, tuple) else (sides,)
    for side in sides:
        if isinstance(side, bool) or not isinstance(side, int) or side < 1:
            cause, remedy = no_side("a side of the shape", side)
            raise DTypeError(cause, None, remedy)
    check_size(sides)
    return sides


def axis_of(value: Any, rank: int, added: int = 0) -> int:
    """An axis, negative ones counted from the end; `added` of `rank` are new.

    Raises:
      ArgumentError: when there is none such.
    """
    axis = constant(value, "axis")
    if isinstance(axis, bool) or not isinstance(axis, int) or not -rank <= axis < rank:
        cause, remedy = no_axis(axis, rank, added)
        raise ArgumentError(cause, None, remedy)
    return axis % rank


def optional_tile(value: Any) -> Tile | None:
    """A tile, or None for None."""
    return None if plain(value) is None else as_tile(value)


def mask_of(value: Any) -> Tile | None:
    """A mask, or None for None.

    Raises:
      DTypeError: unless it is boolean.
    """
    value = plain(value)
    if value is None:
        return None
    if not isinstance(value, (Tile, int)):
        cause, remedy = no_condition(value, isinstance(value, tuple))
        raise DTypeError(cause, None, remedy)
    tile = value if isinstance(value, Tile) else as_tile(bool(value))
    if not tile.element.is_bool():
        cause, remedy = no_mask(type_of(tile))
        raise DTypeError(cause, None, remedy)
    return tile


def check_option(value: Any, name: str, allowed: tuple[str, ...]) -> None:
    """Rejects a word that an option does not take.

    Raises:
      ArgumentError: says which it takes.
    """
    option = constant(value, name) or ""
    if option not in allowed:
        choices = ", ".join(repr(choice) for choice in allowed if choice)
        raise ArgumentError(f"{name} {shown(option)} not supported", None, f"one of {choices}")
