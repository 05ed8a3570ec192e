"""What to write for a member or an item that a value does not have: said wherever a kernel is run."""

from __future__ import annotations

from collections.abc import Iterable
from types import ModuleType
from typing import Any

from ..absent import closest
from .builtin import Builtin
from .hints import NOTHING
from .missing import BY_OTHER_MEANS, TYPES

TILES_HAVE = "it has shape, dtype, type, T, to, and the functions of tl that take a tile first, as x.sum()"
NO_SUCH_ITEM = "the items of a tuple are counted from 0, or from -1 backwards"
NO_SUCH_KEY = "write one of the keys that it has"
FAILED = "it is a function of Python, and called while the kernel is translated: see what it takes"


def not_defined(name: str, known: Iterable[str], later: Iterable[str]) -> tuple[str, str]:
    """What is wrong with a name that nothing stands for, and what to do; what is assigned `later` is not misspelled."""
    meant = closest(name, known)
    misspelled = meant and len(name) > 1 and name not in later
    return f"{name} is not defined", f"did you mean {meant}?" if misspelled else "define it before this line"


def not_as_many(items: int | None, names: int) -> tuple[str, str]:
    """What is wrong with an assignment to `names` names, and what to do; `items` is None of what is no tuple."""
    found = "a single value" if items is None else f"{items} values"
    return f"cannot unpack {found} into {names} names", "write as many names as there are values"


def is_language(value: Any) -> bool:
    """Whether a value is a module of ours, whose own error says what there is in place of a missing member."""
    return isinstance(value, ModuleType) and value.__name__.partition(".")[0] == "tilewright"


def instead_of_member(value: Any, name: str) -> str:
    """Of a compile-time value."""
    from .. import language

    if is_language(value):
        return ""
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
    if name in TYPES:
        return f"write x.to(tl.{TYPES[name]})"
    if name in BY_OTHER_MEANS:
        return BY_OTHER_MEANS[name]
    if isinstance(vars(language).get(name), Builtin):
        return f"it is no method but a function: write tl.{name}(...)"
    meant = closest(name, ("shape", "dtype", "type", "to", "T", *language.METHODS))
    return f"did you mean {meant}?" if meant else TILES_HAVE
