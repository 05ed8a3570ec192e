"""Writes the Python function that is the quick way for one combination of argument types; see `fast_path`.

The function computes two keys. The first has the values of all that a ready launch belongs to (`ready.py`), and finds launches
that were made like this before, but for addresses and floating-point numbers. The second has what decides the specialisation,
and finds launches whose values differ. What neither finds goes the long way. Where the part in C was built (`quick_launch.c`),
it stands in front of the function and starts what the first key finds.
"""

from __future__ import annotations

import importlib
import operator
import os
from collections.abc import Callable
from types import MethodType
from typing import TYPE_CHECKING, Any

from tilewright.kernel_function import KernelFunction, KernelParameter
from tilewright.language.dtypes import DType, float32
from tilewright.runtime.arguments.arrays import device_of_array
from tilewright.runtime.arguments.exchange import exchange
from tilewright.runtime.arguments.specialise import Watched, annotated_type, watched
from tilewright.runtime.hooks import LAUNCH_HOOKS
from tilewright.runtime.launching.grid_sizes import called
from tilewright.runtime.launching.ready import STREAM, changes

try:
    quick_launch: Any = importlib.import_module("tilewright.runtime.quick_launch")
except ImportError:  # of a package that was built without a C compiler
    quick_launch = None

# What `kernel[grid]` makes of the kernel's function and the grid: the quickest way there is to hold an argument.
hold: Callable[[Any, Any], Callable[..., Any]] = operator.getitem if quick_launch is not None else MethodType

if TYPE_CHECKING:
    from tilewright.runtime.launching.fast_path import FastPath

MISSING: Any = type("Missing", (), {"__repr__": lambda self: "missing"})()
# Read at every launch.
ENVIRONMENT = (
    "TILEWRIGHT_MODE", "TILEWRIGHT_ARCH", "TRITON_INTERPRET", "TRITON_DEBUG", "TRITON_F32_DEFAULT", "TRITON_DEFAULT_FP_FUSION",
)  # fmt: skip
HELD_OTHERWISE = (
    "jax",
    "jaxlib",
    "tilewright",
)  # libraries of arrays that nobody may write to, or that stand for others
PREFIX = "_tw_"
# Under names of their own, since a kernel or its parameter may be called `type`.
BUILTINS = {builtin.__name__: builtin for builtin in (type, tuple, dict, str, callable, Exception)}
INT32 = "-2147483648 <= {name} <= 2147483647"


def _environment() -> tuple[Any, list[Any]]:
    """The process's environment as the plain dictionary behind `os.environ`, which is ten times as quick, and the keys."""
    plain = getattr(os.environ, "_data", None)
    encode = getattr(os.environ, "encodekey", None)
    if not isinstance(plain, dict) or encode is None:
        return os.environ, list(ENVIRONMENT)
    return plain, [encode(name) for name in ENVIRONMENT]


def in_c(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function as a `Launch` that never has anything ready; the function itself where the part in C was not built."""
    if quick_launch is None:
        return function
    made: Callable[..., Any] = quick_launch.Launch(function, b"", (), (), {}, (), {}, (), [], [], {}, None, None, 0)
    return made


class Writer:
    """Collects what each parameter adds to the function."""

    def __init__(self, path: FastPath) -> None:
        """An empty function for a path."""
        self._path, self._kernel = path, path.kernel
        self._checks: list[str] = []
        self._lines: list[str] = []
        self._exact: list[str] = []  # parts of the first key
        self._class: list[str] = []  # parts of the second
        self._addresses: list[str] = []
        self._values: list[str] = []
        self._changing: list[str] = []
        self.runtime: list[int] = []  # parameters that the kernel gets, by number; `changing` those of them that change
        self.changing: list[int] = []
        self.libraries: set[str] = set()  # of arrays
        self._kinds: list[str] = []  # what each parameter adds to the first key, as `quick_launch.c` calls it
        self._scope: dict[str, Any] = {}
        self._reader = 0  # where the C function of torch lies that reads tensors
        self._plain, variables = _environment()
        self.is_bound = path.is_bound  # to one specialisation
        self._variables = [] if path.is_bound else variables  # which have decided already where a kernel is bound
        all_positional = path.positional == len(self._kernel.params)  # C takes any parameter by position
        self.in_c = quick_launch is not None and isinstance(self._plain, dict) and all_positional
        self.ready: dict[Any, Any] = {}  # launches by the first key

    def add(self, parameter: KernelParameter, kind: type) -> bool:
        """Takes a parameter in; False for a type that the quick way does not know."""
        name, number = parameter.name, parameter.num
        self._scope[f"{PREFIX}type{number}"] = kind
        self._checks.append(f"{PREFIX}type({name}) is {PREFIX}type{number}")
        if kind is type(None):
            self._kinds.append("n")
            return True
        if parameter.is_constexpr:
            return self._constant(name, kind)
        seen = watched(parameter)
        annotated = annotated_type(parameter.annotation)
        self.runtime.append(number)
        if kind is int or kind is bool or kind is float:
            return self._number(parameter, kind, annotated, seen)
        library = kind.__module__.partition(".")[0]
        self.libraries.add(library)
        if library == "torch" and hasattr(kind, "data_ptr"):
            if kind.__name__ == "FakeTensor":  # has no memory
                return False
            self._tensor(parameter, kind, not seen.divisible)
        elif hasattr(kind, "__cuda_array_interface__") and library not in HELD_OTHERWISE:
            self._looked_at(parameter, "look", not seen.divisible)
        else:
            return False
        return True

    def _tensor(self, parameter: KernelParameter, kind: type, general: bool) -> None:
        """A tensor of torch: its element type and device are in the keys, in C as one number."""
        if not self.in_c:
            facts = f"{parameter.name}.dtype", f"{parameter.name}.get_device()"
            self._array(parameter.num, f"{PREFIX}p{parameter.num} = {parameter.name}.data_ptr()", facts, general)
            return
        has_memory = kind.__name__ in ("Tensor", "Parameter")  # which tensors derived from these may not have
        reader = exchange(kind)[0] if has_memory else 0
        self._reader = self._reader or reader
        self._looked_at(parameter, "read" if reader else "look", general)

    def _looked_at(self, parameter: KernelParameter, look: str, general: bool) -> None:
        number = parameter.num
        code = "t" if look == "read" else "a"
        self._kinds.append(code if general else code.upper())
        line = f"{PREFIX}p{number}, {PREFIX}f{number} = {PREFIX}{look}({parameter.name})"
        self._array(number, line, (f"{PREFIX}f{number}",), general)

    def _constant(self, name: str, kind: type) -> bool:
        self._kinds.append("z" if kind is float else "k")
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
            self._key(f"not {address} & 15")

    def _change(self, value: str, number: int) -> None:
        self._values.append(value)
        self._changing.append(value)
        self.changing.append(number)

    def _number(self, parameter: KernelParameter, kind: type, annotated: DType | None, seen: Watched) -> bool:
        name, is_int = parameter.name, annotated is not None and annotated.is_int() and not annotated.is_bool()
        if kind is not int and is_int:
            return False
        if changes(annotated or float32) and (annotated is not None or kind is float):
            self._change(name, parameter.num)
            self._kinds.append("v")
            return True
        self._values.append(name)
        self._kinds.append("z" if kind is float else "k")
        self._exact.append(f"({name} or {PREFIX}str({name}))" if kind is float else name)
        if kind is not int:
            return True
        if annotated is not None:
            if is_int and seen.divisible:
                self._class.append(f"not {name} & 15")
            return True
        divisible = f"{name} & 15 and 3 or 2" if seen.divisible else "3"
        inside = f"({name} == 1 or {divisible})" if seen.one else "0"
        self._class.append(f"{inside} if {INT32.format(name=name)} else {PREFIX}wide({name}, {not seen.divisible})")
        return True

    def function(self) -> Callable[..., Any]:
        """The written function."""
        around = {
            "E": self._plain.get, "ready": self.ready, "table": {}, "path": self._path, "look": _look, "writer": self,
            "enter": LAUNCH_HOOKS.enter, "exit": LAUNCH_HOOKS.exit, "wide": _wide_class, "sizes": _sizes, "called": called,
            **BUILTINS,
        }  # fmt: skip
        self._scope |= {PREFIX + name: value for name, value in around.items()}
        reads = [f"{PREFIX}E({variable!r})" for variable in self._variables]
        said = f"({_listed(reads)}*{PREFIX}options, *{PREFIX}options.values())"
        world = f"{said} if {' or '.join((f'{PREFIX}options', *reads))} else ()"
        exec(self._text(world), self._scope)
        found: Callable[..., Any] = self._scope[self._kernel.__name__]
        return found

    def quickened(self, written: Callable[..., Any]) -> Callable[..., Any]:
        """The written function behind one in C that launches what is ready; itself where that was not built."""
        if not self.in_c:
            return in_c(written)
        parameters, names = self._kernel.params, self._kernel.arg_names
        types, defaults = ([self._scope[f"{PREFIX}{what}{p.num}"] for p in parameters] for what in ("type", "default"))
        numbers = {name: number for number, name in enumerate(names)} | {"stream": -1}
        made: Any = quick_launch.Launch(
            written, "".join(self._kinds).encode(), tuple(types), tuple(names), numbers, tuple(defaults),
            self._plain, tuple(self._variables), LAUNCH_HOOKS.enter, LAUNCH_HOOKS.exit, self.ready,
            _sizes_for, _look, self._reader,
        )  # fmt: skip
        self._scope[f"{PREFIX}read"] = made.read
        quick: Callable[..., Any] = made
        return quick

    def _text(self, world: str) -> str:
        signature = []
        for parameter in self._kernel.params:
            self._scope[f"{PREFIX}default{parameter.num}"] = parameter.default if parameter.has_default else MISSING
            signature.append(f"{parameter.name}={PREFIX}default{parameter.num}")
        signature.insert(self._path.positional, "*_tw_more")
        names = self._kernel.arg_names
        bound = ", ".join(f"{name!r}: {name}" for name in names)
        text = f"""
def {self._kernel.__name__}(_tw_grid, /, {_listed(signature)}stream=None, **_tw_options):
    if not ({" and ".join((*self._checks, "not _tw_more"))}):
        if stream is not None:
            _tw_options["stream"] = stream
        return _tw_path.other(_tw_grid, ({_listed(names)}*_tw_more,), _tw_options)
    _tw_shape = _tw_grid
    if _tw_type(_tw_grid) is not _tw_tuple:
        if _tw_callable(_tw_grid):
            _tw_grid = _tw_called(_tw_grid, {{{bound}}})
        _tw_shape = _tw_sizes(_tw_grid)
    try:
        {"; ".join((*self._lines, "pass"))}
        _tw_world = {world}
        _tw_exact = (_tw_shape, {_listed(self._exact)})
        if _tw_world:
            _tw_exact += _tw_world
        _tw_found = _tw_ready.get(_tw_exact)
        if _tw_type(_tw_found) is _tw_dict:
            _tw_found = _tw_found.get(({_listed(self._addresses)}))
        if _tw_found is not None and not (_tw_enter or _tw_exit):
            _, _tw_stream, _tw_device, _tw_check, _tw_compiled, _tw_free, _tw_new, _tw_pack, _tw_behind = _tw_found
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
            _tw_entry.repeated(_tw_writer, _tw_exact, _tw_values, ({_listed(self._addresses)}))
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
    if hasattr(array, "get_device"):  # a tensor of torch
        return array.data_ptr(), (array.dtype, array.get_device())
    interface = array.__cuda_array_interface__
    address, read_only = interface["data"]
    facts = interface["typestr"], interface.get("strides"), read_only, getattr(array, "dtype", None)
    return int(address), (*facts, device_of_array(array))


def _sizes(grid: Any) -> tuple[Any, ...]:
    """A grid that is no tuple, as one."""
    return tuple(grid) if isinstance(grid, (tuple, list)) else (grid,)


def _sizes_for(grid: Any, bound: dict[str, Any]) -> tuple[Any, ...]:
    """The same for a grid that may be a function of the arguments."""
    return _sizes(called(grid, bound) if callable(grid) else grid)
