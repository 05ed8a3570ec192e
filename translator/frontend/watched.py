"""What launches compare with what a translation read: members of modules, classes and objects, and what functions read.

The functions are Python's own that ran at compile time. An array is told by itself where its shape or type alone was read,
and by what it holds where elements were, since it may be large and is changed in place. Plain globals are noted where names
are looked up (`builder.py`).
"""

from __future__ import annotations

from types import FunctionType, MethodType, ModuleType
from typing import TYPE_CHECKING, Any

from ..language.constexpr import plain, unwrap
from ..outside import WATCHED, as_read, content_of, is_ours, outer_value

if TYPE_CHECKING:
    from .builder import Builder

LASTING = ("builtins", "math")  # modules whose members nobody assigns


def is_watched_function(value: Any) -> bool:
    """Whether a value is a Python function of the user's, which another one may take the place of."""
    return isinstance(value, FunctionType) and not is_ours(value.__module__ or "")


def is_watched(value: Any) -> bool:
    """Whether launches look at what stands in a value's place: another one there may mean another kernel."""
    return isinstance(plain(value), WATCHED) or is_watched_function(value) or _is_object(value)


def _is_object(value: Any) -> bool:
    """Whether a value is what a class of the user's made; the members that were read of it are watched themselves."""
    kind = type(value).__module__ or ""
    return not (callable(value) or isinstance(value, ModuleType) or kind == "builtins" or is_ours(kind))


def watch_member(builder: Builder, owner: Any, name: str, value: Any) -> bool:
    """Notes what `owner.name` was, where the user can change it; whether it was noted."""
    home = owner.__name__ if isinstance(owner, ModuleType) else _module(owner)
    kept = isinstance(owner, tuple) or is_ours(home) or home in LASTING
    if kept or not is_watched(value):
        return False
    watch(builder, owner, name, value)
    return True


def watch(builder: Builder, owner: Any, name: str, value: Any) -> None:
    """Notes what a name of a function or object stood for; an object is told by itself, since it may equal another one."""
    builder.globals[id(owner), name] = (owner, name, as_read(value))


def watch_content(builder: Builder, value: Any, index: Any = ...) -> None:
    """Notes what an array of NumPy or torch holds, whole or at an index, where the text depends on that."""
    content = content_of(value, index) if hasattr(type(value), "__array__") else None
    if content is not None:
        builder.globals[id(value), index] = (value, index, content)


def watch_function(builder: Builder, function: Any) -> None:
    """Notes the values that a Python function reads from outside, and those that the functions read which it calls."""
    pending, seen = [function], set()
    while pending:
        one: Any = pending.pop()
        if isinstance(one, MethodType):
            _watch_attributes(builder, one)
            one = one.__func__
        if not is_watched_function(one) or one in seen:
            continue
        seen.add(one)
        for name in _names_read(one, ("LOAD_GLOBAL", "LOAD_DEREF", "LOAD_NAME")):
            try:
                value = unwrap(outer_value(one, name))
            except LookupError:
                continue
            if is_watched(value):
                watch(builder, one, name, value)
            if type(value).__module__ == "numpy":
                watch_content(builder, value)
            pending.append(value)


def _watch_attributes(builder: Builder, method: MethodType) -> None:
    """Notes the attributes of its object that a method of the user's reads."""
    own = getattr(method.__self__, "__dict__", {})
    if is_watched_function(method.__func__):
        for name in _names_read(method.__func__, ("LOAD_ATTR", "LOAD_METHOD")):
            if name in own:
                watch_member(builder, method.__self__, name, own[name])


def _names_read(function: Any, codes: tuple[str, ...]) -> list[str]:
    import dis

    return list(dict.fromkeys(str(one.argval) for one in dis.get_instructions(function) if one.opname in codes))


def _module(value: Any) -> str:
    kind = value if isinstance(value, type) else type(value)
    return kind.__module__ or ""
