"""What a translation reads from outside of the kernel's own text, told so that another process can check it.

Names in a kernel stand for other functions, plain values, modules, functions of the language. The frontend notes each such
name with the way to it from the kernel (`Reading.path`) and what stood there (`Reading.mark`). A translation can be used
again where everything that it read still stands in its place; where something was read that cannot be told from outside,
such as a Python function of the user's, it cannot.
"""

from __future__ import annotations

import builtins
import copy
import enum
import hashlib
import json
from types import FunctionType, ModuleType
from typing import Any

from .frozen import frozen
from .kernel_function import KernelFunction
from .language.builtin import Builtin
from .language.constexpr import plain, unwrap
from .language.dtypes import DType, PointerType

# Steps: ("argument", name) of the kernel, ("global", name) and ("default", parameter) of a function, ("member", name) of a
# module, ("item", number) of a tuple.
Path = tuple[tuple[str, str | int], ...]
OURS = __package__ or "tilewright"
# Functions of Python that give the same for the same arguments in every process, besides those of `math`. Not among them
# are those that look into modules (`getattr`), at the process (`id`, `hash`), or give what has no order (`set`).
LASTING = frozenset(
    """abs all any ascii bin bool chr complex dict divmod enumerate float format hex int isinstance issubclass len list max
    min oct ord pow print range repr reversed round slice sorted str sum tuple type zip""".split()
)


@frozen
class Reading:
    """What stood at a path; `module` is that of the function that read a watched global value, "" for everything else."""

    path: Path
    mark: str
    module: str = ""


# Kinds of outer values that launches compare with what a translation read. Modules and classes are not among them.
WATCHED = (
    bool, int, float, complex, str, bytes, bytearray, tuple, list, dict, set, frozenset, DType, PointerType, KernelFunction,
)  # fmt: skip


def as_read(value: Any) -> Any:
    """A value as it is now, also when it, or what it contains, is changed in place later."""
    value = unwrap(value)
    if type(value) is dict:
        return {key: as_read(item) for key, item in value.items()}
    if type(value) in (list, tuple):
        return type(value)(map(as_read, value))
    kind = type(value)
    is_container = kind.__hash__ is None and hasattr(kind, "__len__") and not hasattr(kind, "__array__")
    return copy.copy(value) if is_container else value  # such as sets, deques, dicts of other classes


def content_of(array: Any, index: Any) -> Any:
    """A copy of what an array of NumPy or torch holds at an index, of all for `...`; None where it cannot be looked at."""
    import numpy as np

    try:
        return np.array(array[index])
    except (TypeError, ValueError, RuntimeError):  # on a GPU, or of elements that NumPy does not have
        return None


class UntoldError(Exception):
    """A value that cannot be told from another one by looking at it."""


class Outside:
    """Collects what one translation reads."""

    def __init__(self, function: KernelFunction) -> None:
        """Nothing is read yet; paths start at `function`."""
        self._known: dict[int, tuple[Any, Path]] = {}  # by identity; the object is held so that it stays the only one
        self._readings: dict[Path, Reading] = {}
        self._told = True
        self._enter(function, ())

    @property
    def readings(self) -> tuple[Reading, ...] | None:
        """What was read; None when the translation cannot be used again."""
        return tuple(self._readings.values()) if self._told else None

    def argument(self, name: str, value: Any) -> None:
        """Notes a compile-time argument, whose value is part of the specialisation."""
        self._enter(unwrap(value), (("argument", name),))

    def read(self, owner: Any, kind: str, name: str, value: Any, module: str = "") -> None:
        """Notes that `name` of `owner`, a function ("global") or a module ("member"), stood for `value`."""
        if isinstance(owner, ModuleType) and is_ours(owner.__name__):
            return  # as old as the translator itself
        if id(owner) not in self._known:
            self.untold()
            return
        path: Path = (*self._known[id(owner)][1], (kind, name))
        if path not in self._readings:
            try:
                self._readings[path] = Reading(path, mark(value), module)
            except UntoldError:
                self.untold()
            self._enter(unwrap(value), path)

    def untold(self) -> None:
        """Notes that the translation depends on more than can be told, or did more than to translate."""
        self._told = False

    def _enter(self, value: Any, path: Path) -> None:
        """Remembers the way to what can be read from in its turn."""
        if isinstance(value, (KernelFunction, ModuleType)) and id(value) not in self._known:
            self._known[id(value)] = (value, path)
            for parameter in value.params if isinstance(value, KernelFunction) else ():
                self._enter(unwrap(parameter.default), (*path, ("default", parameter.name)))
        elif type(value) in (tuple, list):
            for number, item in enumerate(value):
                self._enter(unwrap(item), (*path, ("item", number)))


def is_ours(module: str) -> bool:
    """Whether a module belongs to this package."""
    return module == OURS or module.startswith(f"{OURS}.")


def mark(value: Any) -> str:
    """A text that is the same for values that mean the same to a translation.

    Raises:
      UntoldError: for a value that could change without a sign of it.
    """
    return json.dumps(_mark(value))


def function_mark(function: KernelFunction, defaults: bool = True) -> str:
    """A digest of what a translation sees of a function itself: its text, its place, what its parameters default to."""
    parameters = [
        (one.name, one.annotation, _mark(one.default) if defaults and one.has_default else None)
        for one in function.params
    ]
    facts = (function.__name__, function.__module__, function.file, function.first_line, function.raw_src, parameters)
    return hashlib.sha256(json.dumps(facts).encode()).hexdigest()


def _mark(value: Any) -> Any:
    value = plain(value)
    if value is None or type(value) in (bool, int, float, str):
        return [type(value).__name__, repr(value)]
    if type(value) in (tuple, list):
        return [type(value).__name__, *(_mark(item) for item in value)]
    if type(value) is dict:
        return ["dict", *([_mark(key), _mark(item)] for key, item in value.items())]
    if isinstance(value, (DType, PointerType)):
        return ["type", str(value)]
    if isinstance(value, Builtin):
        return ["builtin", value.name]
    if isinstance(value, KernelFunction):
        return ["function", function_mark(value)]
    if isinstance(value, ModuleType):
        return ["module", value.__name__]
    return _named(value)


def _named(value: Any) -> Any:
    """Classes, functions and enumerators of Python and of this package, by their names."""
    one = type(value) if isinstance(value, enum.Enum) else value
    module, name = getattr(one, "__module__", None), getattr(one, "__qualname__", None)
    if not isinstance(module, str) or not isinstance(name, str) or "<" in name:
        raise UntoldError
    if not is_ours(module) and module != "math" and not (module == "builtins" and name in LASTING):
        raise UntoldError
    return ["named", module, name, value.name if isinstance(value, enum.Enum) else ""]


# ---------------------------------------------------------------------------------------------------- reading again


def read_again(readings: tuple[Reading, ...], function: KernelFunction, arguments: dict[str, Any]) -> list[Any] | None:
    """What stands where a translation of `function` read, each as (owner, value); None when one means something else now.

    `arguments` are the compile-time arguments by name.
    """
    known: dict[Path, Any] = {(): function}
    values = []
    try:
        for reading in readings:
            value = _value_at(reading.path, known, arguments)
            if mark(value) != reading.mark:
                return None
            owner = _value_at(reading.path[:-1], known, arguments) if reading.module else None
            values.append((owner, value))
    except (UntoldError, LookupError, AttributeError, TypeError):
        return None
    return values


def _value_at(path: Path, known: dict[Path, Any], arguments: dict[str, Any]) -> Any:
    if path not in known:
        kind, name = path[-1]
        owner = None if kind == "argument" else _value_at(path[:-1], known, arguments)
        known[path] = unwrap(_step(owner, kind, name, arguments))
    return known[path]


def _step(owner: Any, kind: str, name: Any, arguments: dict[str, Any]) -> Any:
    if kind == "argument":
        return arguments[name]
    if kind == "global":
        return outer_value(owner, name)
    if kind == "default":
        (found,) = [parameter.default for parameter in owner.params if parameter.name == name]
        return found
    return owner[name] if kind == "item" else getattr(owner, name)


def outer_value(owner: Any, name: Any) -> Any:
    """What a name that a function does not define stands for: a variable around it, a global, or a function of Python.

    Of anything else but a function (a kernel's, or one of Python), the member of that name; of an array with an index in place
    of a name, the content there.

    Raises:
      LookupError: when it stands for nothing.
    """
    if not isinstance(name, str):
        return content_of(owner, name)
    function = owner.fn if isinstance(owner, KernelFunction) else owner
    if not isinstance(function, FunctionType):
        try:
            return getattr(owner, name)
        except AttributeError as error:
            raise LookupError(name) from error
    code = function.__code__
    if name in code.co_freevars and function.__closure__:
        try:
            return function.__closure__[code.co_freevars.index(name)].cell_contents
        except ValueError:
            pass  # not assigned yet: a global of that name is what remains
    names = function.__globals__
    if name in names:
        return names[name]
    if not hasattr(builtins, name):
        raise LookupError(name)
    return getattr(builtins, name)
