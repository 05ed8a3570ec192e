"""`@frozen`: a dataclass with slots whose objects nobody changes.

Python's own `@dataclass(frozen=True, slots=True)` writes and compiles six methods for every class, which takes 0.3 ms: for the
150 classes of a translation a tenth of a kernel's first call. `@frozen` leaves dataclass `__init__` alone to write. Equality,
hash and text are the functions below for all classes. That nobody assigns to a field is what mypy checks, and in Python's
development mode (`python -X dev`) Python does, too.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from operator import attrgetter
from typing import TYPE_CHECKING, Any, TypeVar, overload

if TYPE_CHECKING:
    from typing_extensions import dataclass_transform
else:

    def dataclass_transform(**_: Any) -> Any:
        """Says something to type checkers only; in the standard library from Python 3.11 on."""
        return lambda function: function


Class = TypeVar("Class", bound=type)


@overload
def frozen(made: Class, /) -> Class: ...


@overload
def frozen(*, eq: bool) -> Callable[[Class], Class]: ...


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def frozen(made: Any = None, /, *, eq: bool = True) -> Any:
    """Makes a dataclass of a class; methods of its own stay.

    Objects are equal when their classes are the same and all fields that are compared are equal; without `eq` each is equal to
    itself only.
    """
    if made is None:
        return functools.partial(frozen, eq=eq)
    shared: dict[str, Any] = {"__repr__": _text} | ({"__eq__": _is_equal, "__hash__": _hash} if eq else {})
    for name, function in shared.items():
        if name not in vars(made):
            setattr(made, name, function)
    made = dataclass(frozen=sys.flags.dev_mode, slots=True, eq=False, repr=False, match_args=False)(made)
    compared = [one.name for one in fields(made) if one.compare]
    made._compared = attrgetter(*compared) if compared else type
    return made


def _is_equal(one: Any, other: Any) -> Any:
    if one is other:
        return True
    if type(one) is not type(other):
        return NotImplemented
    compared = one._compared
    return compared(one) == compared(other)


def _hash(one: Any) -> int:
    return hash(one._compared(one))


def _text(one: Any) -> str:
    shown = (f"{field.name}={getattr(one, field.name)!r}" for field in fields(one) if field.repr)
    return f"{type(one).__qualname__}({', '.join(shown)})"
