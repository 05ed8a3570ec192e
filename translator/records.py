"""Dataclasses that are quick to define: `dataclass` here is `dataclasses.dataclass` as far as it goes.

Python's own writes and compiles the text of six methods for every frozen class, a third of a millisecond; a first launch imports
130 of ours; most are never compared or printed, and many never made. Here `__init__`, `__eq__` and `__hash__` are written
and compiled when they are first called, and the other methods are shared by all classes.
"""

from __future__ import annotations

import contextlib
import dataclasses
import sys
from collections.abc import Callable, Iterator
from dataclasses import MISSING, FrozenInstanceError, fields
from dataclasses import dataclass as pythons
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any

PARAMETERS = frozenset(("frozen", "slots", "eq", "repr"))

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:

    def dataclass(cls=None, /, *, frozen=False, slots=False, eq=True, repr=True):
        """Makes a class a dataclass; parameters as of `dataclasses.dataclass`."""

        def made(plain):
            own = dict(plain.__dict__)
            cls = pythons(plain, init=False, repr=False, eq=False, slots=slots)
            given = {"__init__": _late(cls, "__init__", _frozen_init if frozen else _init)}
            if repr:
                given["__repr__"] = _repr
            if eq:
                given["__eq__"] = _late(cls, "__eq__", _eq)
                given["__hash__"] = _late(cls, "__hash__", _hash) if frozen else None
            if frozen:
                given |= {"__setattr__": _refuse_to_set, "__delattr__": _refuse_to_delete}
                given |= {"__getstate__": _state, "__setstate__": _set_state} if slots else {}
            for name, method in given.items():
                if own.get(name) is None:  # what the class has itself stays; __eq__ alone leaves None for __hash__
                    setattr(cls, name, method)
            return cls

        return made if cls is None else made(cls)


@contextlib.contextmanager
def lent_to(package: str) -> Iterator[None]:
    """Gives modules of another package, as far as they are imported meanwhile, `dataclass` of here in the place of Python's.

    Whoever else asks for it meanwhile, and whoever wants parameters that ours does not have, gets Python's.
    """
    before = dataclasses.dataclass

    def lent(cls: Any = None, /, **options: Any) -> Any:
        asking = sys._getframe(1).f_globals.get("__name__", "").partition(".")[0]
        return (dataclass if asking == package and options.keys() <= PARAMETERS else before)(cls, **options)

    dataclasses.dataclass = lent
    try:
        yield
    finally:
        dataclasses.dataclass = before


def _late(cls: type[Any], name: str, written: Callable[[type[Any], dict[str, Any]], str]) -> Callable[..., Any]:
    """A method that puts the real one into its place when it is called; `written` gives its text, and fills its globals."""

    def first(*args: Any, **kwargs: Any) -> Any:
        known: dict[str, Any] = {}
        exec(written(cls, known), known)
        method = known[name]
        method.__qualname__, method.__module__ = f"{cls.__qualname__}.{name}", cls.__module__
        for owner in type(args[0]).__mro__:  # a copy of `cls` where somebody adds slots
            if owner.__dict__.get(name) is first:
                setattr(owner, name, method)
        return method(*args, **kwargs)

    return first


def _frozen_init(cls: type[Any], known: dict[str, Any]) -> str:
    known["_put"] = object.__setattr__
    return _init(cls, known, "_put(self, {name!r}, {value})")


def _init(cls: type[Any], known: dict[str, Any], assignment: str = "self.{name} = {value}") -> str:
    """`__init__`, with the parameters that the fields say."""
    known["_absent"] = MISSING
    placed, named = ["self"], list[str]()  # parameters by place, parameters by name alone
    lines = []
    for one in fields(cls):
        name, default, value = one.name, "", one.name
        if one.default is not MISSING:
            known[f"_default_{name}"], default = one.default, f"=_default_{name}"
        elif one.default_factory is not MISSING:
            known[f"_make_{name}"], default = one.default_factory, "=_absent"
            value = f"_make_{name}() if {name} is _absent else {name}"
        if one.init:
            (named if one.kw_only else placed).append(name + default)
        elif default:  # no parameter, but a local variable
            lines.append(f"{name}{default}")
        if one.init or default:
            lines.append(assignment.format(name=name, value=value))
    lines += ["self.__post_init__()"] if hasattr(cls, "__post_init__") else []
    parameters = [*placed, "*", *named] if named else placed
    return "\n    ".join([f"def __init__({', '.join(parameters)}):", *(lines or ["pass"])])


def _eq(cls: type[Any], known: dict[str, Any]) -> str:
    """Equality of the fields that count, as that of tuples, between instances of one class."""
    both = f"{_values(cls, 'self')} == {_values(cls, 'other')}"
    return f"def __eq__(self, other):\n    return {both} if other.__class__ is self.__class__ else NotImplemented"


def _hash(cls: type[Any], known: dict[str, Any]) -> str:
    return f"def __hash__(self):\n    return hash({_values(cls, 'self')})"


def _values(cls: type[Any], whose: str) -> str:
    return f"({''.join(f'{whose}.{one.name}, ' for one in fields(cls) if one.compare)})"


@recursive_repr()
def _repr(self: Any) -> str:
    shown = (f"{one.name}={getattr(self, one.name)!r}" for one in fields(self) if one.repr)
    return f"{type(self).__qualname__}({', '.join(shown)})"


def _refuse_to_set(self: Any, name: str, value: Any) -> None:
    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_to_delete(self: Any, name: str) -> None:
    raise FrozenInstanceError(f"cannot delete field {name!r}")


def _state(self: Any) -> list[Any]:
    return [getattr(self, one.name) for one in fields(self)]


def _set_state(self: Any, values: list[Any]) -> None:
    for one, value in zip(fields(self), values, strict=True):
        object.__setattr__(self, one.name, value)
