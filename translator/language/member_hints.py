"""What to write for a member or an item that a value does not have: said wherever a kernel is run."""

from __future__ import annotations

from typing import Any

from ..absent import closest
from .builtin import Builtin
from .hints import NOTHING

TILES_HAVE = "it has shape, dtype, type, T, to, and the functions of tl that take a tile first, as x.sum()"
NO_SUCH_ITEM = "the items of a tuple are counted from 0, or from -1 backwards"


def instead_of_member(value: Any, name: str) -> str:
    """Of a compile-time value."""
    from .. import language

    if value is None:
        return NOTHING
    if name == "to" or name in language.METHODS:
        return f"tiles have it, and compile-time values do not: write tl.to_tensor(x).{name}"
    if name in vars(language):
        return f"write tl.{name}"
    meant = closest(name, dir(value))
    return f"did you mean {meant}?" if meant else ""


def instead_of_tiles_member(name: str) -> str:
    """Of a tile or a scalar."""
    from .. import language

    if name in language.NOT_YET:
        return language.NOT_YET[name]
    if isinstance(vars(language).get(name), Builtin):
        return f"it is no method but a function: write tl.{name}(...)"
    meant = closest(name, ("shape", "dtype", "type", "to", "T", *language.METHODS))
    return f"did you mean {meant}?" if meant else TILES_HAVE
