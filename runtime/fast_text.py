"""Writes the Python function that is the quick way for one combination of argument types; see `fast_path`.

The function computes two keys. The first has the values of all that a ready launch belongs to (`ready.py`), and finds launches
that were made like this before, but for addresses and floating-point numbers. The second has what decides the specialisation,
and finds launches whose values differ. What neither finds goes the long way.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tilewright.kernel_function import KernelFunction, KernelParameter
from tilewright.language.dtypes import DType, float32
from tilewright.runtime.arrays import _device_of
from tilewright.runtime.hooks import LAUNCH_HOOKS
from tilewright.runtime.ready import STREAM, changes
from tilewright.runtime.specialise import annotated_type

if TYPE_CHECKING:
    from tilewright.runtime.fast_path import FastPath

MISSING: Any = type("Missing", (), {"__repr__": lambda self: "missing"})()
# Read at every launch.
ENVIRONMENT = ("TILEWRIGHT_MODE", "TILEWRIGHT_ARCH", "TRITON_INTERPRET", "TRITON_DEBUG", "TRITON_F32_DEFAULT")
HELD_OTHERWISE = (
    "jax",
    "jaxlib",
    "tilewright",
)  # libraries of arrays that nobody may write to, or that stand for others
PREFIX = "_tw_"
# Under names of their own, since a kernel or its parameter may be called `type`.
BUILTINS = {builtin.__name__: builtin for builtin in (type, tuple, dict, str, Exception)}
INT32 = "-2147483648 <= {name} <= 2147483647"


def _environment() -> tuple[Any, list[Any]]:
    """The process's environment as the plain dictionary behind `os.environ`, which is ten times as quick, and the keys."""
    plain = getattr(os.environ, "_data", None)
    encode = getattr(os.environ, "encodekey", None)
    if not isinstance(plain, dict) or encode is None:
        return os.environ, list(ENVIRONMENT)
    return plain, [encode(name) for name in ENVIRONMENT]


class Writer:
    """Collects what each parameter adds to the function."""

    def __init__(self, path: FastPath) -> None:
        """An empty function for a path."""
        self._path, self._kernel = path, path.kernel
        self._checks: list[str] = []
        self._lines: list[str] = []
        self._exact: list[str] = []  # parts of the first key
        self._class: list[str] = []  # parts of the second
        self._pointers: list[str] = []  # addresses whose alignment counts
        self._addresses: list[str] = []  # all addresses
        self._values: list[str] = []
        self._changing: list[str] = []
        self.runtime: list[int] = []  # parameters that the kernel gets, by number; `changing` those of them that change
        self.changing: list[int] = []
        self.libraries: set[str] = set()  # of arrays
        self._scope: dict[str, Any] = {}

    def add(self, parameter: KernelParameter, kind: type) -> bool:
        """Takes a parameter in; False for a type that the quick way does not know."""
        name, number = parameter.name, parameter.num
        self._scope[f"{PREFIX}type{number}"] = kind
        self._checks.append(f"{PREFIX}type({name}) is {PREFIX}type{number}")
        if kind is type(None):
            return True
        if parameter.is_constexpr:
            return self._constant(name, kind)
        general = self._kernel.is_general(parameter)
        annotated = annotated_type(parameter.annotation)
        self.runtime.append(number)
        if kind is int or kind is bool or kind is float:
            return self._number(parameter, kind, annotated, general)
        library = kind.__module__.partition(".")[0]
        self.libraries.add(library)
        if library == "torch" and hasattr(kind, "data_ptr"):
            if kind.__name__ == "FakeTensor":  # has no memory
                return False
            facts: tuple[str, ...] = (f"{name}.dtype", f"{name}.get_device()")
            self._array(number, f"{PREFIX}p{number} = {name}.data_ptr()", facts, general)
        elif hasattr(kind, "__cuda_array_interface__") and library not in HELD_OTHERWISE:
            facts = (f"{PREFIX}f{number}",)
            self._array(number, f"{PREFIX}p{number}, {PREFIX}f{number} = {PREFIX}look({name})", facts, general)
        else:
            return False
        return True

    def _constant(self, name: str, kind: type) -> bool:
        if kind is float:
            self._key(f"({name} or {PREFIX}str({name}))")  # 0.0 is equal to -0.0
        elif kind in (int, bool, str, DType) or issubclass(kind, KernelFunction):
            self._key(name)
        else:
            return False
        return True

    def _key(self, part: str) -> None:
        self._exact.append(part)
        self._class.append(part)

    def _array(self, number: int, line: str, facts: tuple[str, ...], general: bool) -> None:
        address = f"{PREFIX}p{number}"
        self._lines.append(line)
        for fact in facts:
            self._key(fact)
        self._change(address, number)
        self._addresses.append(address)
        if not general:
            self._pointers.append(address)

    def _change(self, value: str, number: int) -> None:
        self._values.append(value)
        self._changing.append(value)
        self.changing.append(number)

    def _number(self, parameter: KernelParameter, kind: type, annotated: DType | None, general: bool) -> bool:
        name, is_int = parameter.name, annotated is not None and annotated.is_int() and not annotated.is_bool()
        if kind is not int and is_int:
            return False
        if changes(annotated or float32) and (annotated is not None or kind is float):
            self._change(name, parameter.num)
            return True
        self._values.append(name)
        self._exact.append(f"({name} or {PREFIX}str({name}))" if kind is float else name)
        if kind is not int:
            return True
        if annotated is not None:
            if is_int and not general:
                self._class.append(f"not {name} & 15")
            return True
        inside = "0" if general else f"({name} == 1 or {name} & 15 and 3 or 2)"
        self._class.append(f"{inside} if {INT32.format(name=name)} else {PREFIX}wide({name}, {general})")
        return True

    def function(self) -> Callable[..., Any]:
        """The written function."""
        plain, names = _environment()
        around = {
            "E": plain.get, "ready": {}, "table": {}, "path": self._path, "look": _look, "enter": LAUNCH_HOOKS.enter,
            "exit": LAUNCH_HOOKS.exit, "wide": _wide_class, "writer": self,
            "sizes": _sizes, **BUILTINS,
        }  # fmt: skip
        self._scope |= {PREFIX + name: value for name, value in around.items()}
        reads = [f"{PREFIX}E({name!r})" for name in names]
        said = f"({', '.join(reads)}, *{PREFIX}options.items())"
        world = f"{said} if {PREFIX}options or {' or '.join(reads)} else None"
        if self._path.is_bound:  # the environment has decided already, and options would be errors
            world = f"{PREFIX}tuple({PREFIX}options)"
        if self._pointers:
            each = ", ".join(f"not {address} & 15" for address in self._pointers)
            self._lines.append(f"{PREFIX}aligned = not ({' | '.join(self._pointers)}) & 15 or ({each},)")
            self._key(f"{PREFIX}aligned")
        exec(self._text(world), self._scope)
        found: Callable[..., Any] = self._scope[self._kernel.__name__]
        return found

    def _text(self, world: str) -> str:
        signature = []
        for parameter in self._kernel.params:
            self._scope[f"{PREFIX}default{parameter.num}"] = parameter.default if parameter.has_default else MISSING
            signature.append(f"{parameter.name}={PREFIX}default{parameter.num}")
        names = self._kernel.arg_names
        bound = ", ".join(f"{name!r}: {name}" for name in names)
        text = f"""
def {self._kernel.__name__}(_tw_grid, /, {_listed(signature)}*_tw_more, stream=None, **_tw_options):
    if not ({" and ".join((*self._checks, "not _tw_more"))}):
        if stream is not None:
            _tw_options["stream"] = stream
        return _tw_path.other(_tw_grid, ({_listed(names)}*_tw_more,), _tw_options)
    try:
        _tw_shape = _tw_grid if _tw_type(_tw_grid) is _tw_tuple else _tw_sizes(_tw_grid, {{{bound}}})
        {"; ".join((*self._lines, "pass"))}
        _tw_world = {world}
        _tw_exact = (_tw_world, _tw_shape, {_listed(self._exact)})
        _tw_found = _tw_ready.get(_tw_exact)
        if _tw_type(_tw_found) is _tw_dict:
            _tw_found = _tw_found.get(({_listed(self._addresses)}))
        if _tw_found is not None and not (_tw_enter or _tw_exit):
            _tw_free, _tw_new, _tw_pack, _tw_behind, _tw_stream, _tw_device, _tw_check, _tw_compiled = _tw_found
            if _tw_check is not None:
                _tw_check()
            _tw_block = _tw_free.pop() if _tw_free else _tw_new()
            _tw_memory, _tw_start = _tw_block
            _tw_pack(_tw_memory, {STREAM}, _tw_stream(_tw_device) if stream is None else stream, _tw_behind,
                     {_listed(self._changing)})
            _tw_status = _tw_start()
            _tw_free.append(_tw_block)
            if not _tw_status:
                return _tw_compiled
        _tw_key = (_tw_world, {_listed(self._class)})
        _tw_entry = _tw_table.get(_tw_key)
    except _tw_Exception:
        _tw_key = _tw_entry = None  # an argument that cannot be looked into: the long way says why
    if _tw_entry is not None and not (_tw_enter or _tw_exit):
        _tw_values = ({_listed(self._values)})
        _tw_compiled = _tw_entry.start(_tw_shape, stream, _tw_values)
        if _tw_compiled is not None:
            _tw_path.repeated(_tw_ready, _tw_exact, _tw_entry, _tw_shape, _tw_values, ({_listed(self._addresses)}),
                              _tw_writer)
            return _tw_compiled
    if stream is not None:
        _tw_options["stream"] = stream
    return _tw_path.missed(
        None if _tw_key is None else (_tw_table, _tw_key), _tw_entry, _tw_grid, _tw_options, ({_listed(names)}), _tw_writer
    )
"""
        return text


def _listed(parts: list[str]) -> str:
    return "".join(f"{part}, " for part in parts)


def _wide_class(value: int, general: bool) -> tuple[int, bool]:
    """What decides the type and divisibility of an integer that does not fit into 32 bits."""
    width = 64 if -(2**63) <= value < 2**63 else 65 if value < 2**64 and value > 0 else 66
    return width, general or not value & 15


def _look(array: Any) -> tuple[int, tuple[Any, ...]]:
    """The address of an array of any library, and all else that the long way looks at."""
    interface = array.__cuda_array_interface__
    address, read_only = interface["data"]
    facts = interface["typestr"], interface.get("strides"), read_only, getattr(array, "dtype", None)
    return int(address), (*facts, _device_of(array))


def _sizes(grid: Any, bound: dict[str, Any]) -> tuple[Any, ...]:
    """A grid that is no tuple."""
    shown = grid(bound) if callable(grid) else grid
    return tuple(shown) if isinstance(shown, (tuple, list)) else (shown,)
