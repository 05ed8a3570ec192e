"""The quick way from `kernel[grid](...)` to the driver, for launches whose like has been before.

For the argument types of a call a Python function is written that computes, from cheap properties of each argument, a key
that decides the specialisation, and looks the launch up under it. What it finds is started at once; everything else goes
the long way (`JITFunction.launch`), which also words all errors, and is remembered. Arguments that the quick way knows:
torch tensors, numbers, None, and compile-time values that are numbers, strings, types or kernels.
"""

from __future__ import annotations

import operator
import os
import struct
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tilewright.kernel_function import KernelFunction, KernelParameter
from tilewright.language.dtypes import DType
from tilewright.runtime.choices import ACCEPTED
from tilewright.runtime.hooks import LAUNCH_HOOKS
from tilewright.runtime.specialise import annotated_type

if TYPE_CHECKING:
    from tilewright.runtime.compiled import CompiledKernel
    from tilewright.runtime.jit import JITFunction
    from tilewright.runtime.launcher import Launcher

MISSING: Any = type("Missing", (), {"__repr__": lambda self: "missing"})()
ENVIRONMENT = ("TILEWRIGHT_MODE", "TRITON_INTERPRET", "TRITON_DEBUG", "TRITON_F32_DEFAULT")  # read at every launch
PREFIX = "_tw_"
KEPT = 4096  # launches remembered per kernel and combination of types
INT32 = "-2147483648 <= {name} <= 2147483647"


def _environment() -> tuple[Any, list[Any]]:
    """The process's environment as the plain dictionary behind `os.environ`, which is ten times as quick, and the keys."""
    plain = getattr(os.environ, "_data", None)
    encode = getattr(os.environ, "encodekey", None)
    if not isinstance(plain, dict) or encode is None:
        return os.environ, list(ENVIRONMENT)
    return plain, [encode(name) for name in ENVIRONMENT]


def untraced(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, marked so that torch.compile ends its graph in front of it instead of tracing what it does."""
    function._torchdynamo_disable = True  # type: ignore[attr-defined]
    function._torchdynamo_disable_msg = (  # type: ignore[attr-defined]
        "a launch of tilewright; a function decorated with tilewright.torch.op can be part of a graph"
    )
    return function


class Prepared:
    """A launch that is ready but for its values; `otherwise` is the one for values that the guards exclude."""

    __slots__ = ("_compiled", "_fits", "_pick", "_start", "_streams", "otherwise")

    def __init__(self, compiled: CompiledKernel, launcher: Launcher, places: list[int], count: int) -> None:
        """`places` are those of the kernel's values among the `count` that the written function collects."""
        from tilewright.runtime.driver import stream_source

        self._compiled = compiled
        self._pick: Any = None
        if places != list(range(count)):
            one = operator.itemgetter(*places) if places else lambda values: ()
            self._pick = one if len(places) != 1 else lambda values: (one(values),)
        self._fits, self._start, self._streams = compiled.conditions, launcher.launch, stream_source()
        self.otherwise: Prepared | None = None

    def start(self, grid: tuple[Any, ...], stream: Any, collected: tuple[Any, ...]) -> CompiledKernel | None:
        """Starts the kernel; None when the long way must be taken."""
        values = collected if self._pick is None else self._pick(collected)
        if self._fits is not None and not self._fits(values):
            return self.otherwise.start(grid, stream, collected) if self.otherwise is not None else None
        compiled = self._compiled
        axes = len(grid)
        if axes == 1:
            (x,), y, z = grid, 1, 1
        elif axes == 2:
            (x, y), z = grid, 1
        elif axes == 3:
            x, y, z = grid
        else:
            return None
        if not (x and y and z):
            return compiled
        if stream is None:
            stream = self._streams(compiled.device)
        elif type(stream) is not int:
            return None
        if compiled.artifact.globals:
            compiled.check_globals()
        try:
            status = self._start(x, y, z, stream, values)
        except (struct.error, OverflowError, TypeError):  # a grid that is none
            return None
        return None if status else compiled


class FastPath:
    """The quick way for one kernel. `function` takes the grid and then what the kernel takes."""

    def __init__(self, kernel: JITFunction) -> None:
        """Nothing is written before the first call."""
        self._kernel = kernel
        self._names = kernel.arg_names
        self._written: dict[tuple[type, ...], Callable[..., Any] | None] = {}
        self.function: Callable[..., Any] = self._first if self._is_plain() else self._long_way

    def _is_plain(self) -> bool:
        def clashes(parameter: KernelParameter) -> bool:
            name = parameter.name
            return parameter.variadic or name.startswith(PREFIX) or (name in ACCEPTED and not parameter.is_constexpr)

        return "stream" not in self._names and not any(clashes(parameter) for parameter in self._kernel.params)

    @untraced
    def _long_way(self, grid: Any, /, *args: Any, **kwargs: Any) -> Any:
        return self._kernel.launch(*args, grid=grid, **kwargs)

    @untraced
    def _first(self, grid: Any, /, *args: Any, **kwargs: Any) -> Any:
        """Writes the function for these types and calls it; the long way for types that the quick one does not know."""
        given = dict(zip(self._names, args, strict=False)) | kwargs
        arguments = [given.get(p.name, p.default if p.has_default else MISSING) for p in self._kernel.params]
        types = tuple(map(type, arguments))
        if types not in self._written:
            self._written[types] = self._write(types)
        function = self._written[types]
        if function is None:
            return self._kernel.launch(*args, grid=grid, **kwargs)
        self.function = function
        return function(grid, *args, **kwargs)

    def other(self, grid: Any, arguments: tuple[Any, ...], options: dict[str, Any]) -> Any:
        """A call whose types are not those of the written function, or that is not right."""
        if len(arguments) > len(self._names):
            return self._kernel.launch(*arguments, grid=grid, **options)
        given = {n: value for n, value in zip(self._names, arguments, strict=True) if value is not MISSING}
        return self._first(grid, **given, **options)

    def _write(self, types: tuple[type, ...]) -> Callable[..., Any] | None:
        writer = _Writer(self._kernel)
        for parameter, kind in zip(self._kernel.params, types, strict=True):
            if not writer.add(parameter, kind):
                return None
        return writer.function(self)

    def missed(self, key: Any, entry: Prepared | None, grid: Any, options: Any, arguments: Any, runtime: Any) -> Any:
        """The long way for a call that the written function did not find, which it will find the next time."""
        compiled = self._kernel.launch(*arguments, grid=grid, **options)
        if key is not None and compiled is not None and compiled.launcher is not None:
            places = [runtime.index(parameter.path[0]) for parameter in compiled.artifact.parameters]
            prepared = Prepared(compiled, compiled.launcher, places, len(runtime))
            if entry is None:
                table, own = key
                if len(table) >= KEPT:
                    table.clear()
                table[own] = prepared
            elif not compiled.metadata.guards:
                entry.otherwise = prepared
        return compiled


class _Writer:
    """Collects what each parameter adds to the written function."""

    def __init__(self, kernel: JITFunction) -> None:
        self._kernel = kernel
        self._checks: list[str] = []
        self._lines: list[str] = []
        self._key: list[str] = []
        self._pointers: list[str] = []
        self._values: list[str] = []
        self._runtime: list[int] = []
        self._scope: dict[str, Any] = {}

    def add(self, parameter: KernelParameter, kind: type) -> bool:
        """Takes a parameter in; False for a type that the quick way does not know."""
        name, number = parameter.name, parameter.num
        self._scope[f"{PREFIX}type{number}"] = kind
        self._checks.append(f"type({name}) is {PREFIX}type{number}")
        if kind is type(None):
            return True
        if parameter.is_constexpr:
            return self._constant(name, kind)
        general = self._kernel.is_general(parameter)
        annotated = annotated_type(parameter.annotation)
        if kind.__module__.partition(".")[0] == "torch" and hasattr(kind, "data_ptr"):
            if kind.__name__ == "FakeTensor":  # has no memory
                return False
            self._tensor(name, number, general)
        elif kind is int:
            self._integer(name, annotated, general)
        elif kind not in (bool, float) or (annotated is not None and annotated.is_int() and not annotated.is_bool()):
            return False
        else:
            self._values.append(name)
        self._runtime.append(number)
        return True

    def _constant(self, name: str, kind: type) -> bool:
        if kind is float:
            self._key.append(f"({name} or str({name}))")  # 0.0 is equal to -0.0
        elif kind in (int, bool, str, DType) or issubclass(kind, KernelFunction):
            self._key.append(name)
        else:
            return False
        return True

    def _tensor(self, name: str, number: int, general: bool) -> None:
        address = f"{PREFIX}p{number}"
        self._lines.append(f"{address} = {name}.data_ptr()")
        self._key += [f"{name}.dtype", f"{name}.get_device()"]
        self._values.append(address)
        if not general:
            self._pointers.append(address)

    def _integer(self, name: str, annotated: DType | None, general: bool) -> None:
        self._values.append(name)
        if annotated is not None:
            if annotated.is_int() and not annotated.is_bool() and not general:
                self._key.append(f"not {name} & 15")
            return
        inside = "0" if general else f"({name} == 1 or {name} & 15 and 3 or 2)"
        self._key.append(f"{inside} if {INT32.format(name=name)} else {PREFIX}wide({name}, {general})")

    def function(self, path: FastPath) -> Callable[..., Any]:
        """The written function."""
        plain, names = _environment()
        self._scope |= {f"{PREFIX}E": plain.get, f"{PREFIX}table": {}, f"{PREFIX}path": path, 
                        f"{PREFIX}hooks": LAUNCH_HOOKS, f"{PREFIX}wide": _wide_class,
                        f"{PREFIX}runtime": self._runtime, f"{PREFIX}sizes": _sizes}  # fmt: skip
        key = [f"{PREFIX}E({name!r})" for name in names]
        key += [f"tuple({PREFIX}options.items()) if {PREFIX}options else ()", *self._key]
        if self._pointers:
            each = ", ".join(f"not {address} & 15" for address in self._pointers)
            key.append(f"not ({' | '.join(self._pointers)}) & 15 or ({each},)")
        exec(self._text(key), self._scope)
        return untraced(self._scope[self._kernel.__name__])

    def _text(self, key: list[str]) -> str:
        signature = []
        for parameter in self._kernel.params:
            self._scope[f"{PREFIX}default{parameter.num}"] = parameter.default if parameter.has_default else MISSING
            signature.append(f"{parameter.name}={PREFIX}default{parameter.num}")
        names = self._kernel.arg_names
        bound = ", ".join(f"{name!r}: {name}" for name in names)
        text = f"""
def {self._kernel.__name__}(_tw_grid, /, {"".join(f"{one}, " for one in signature)}*_tw_more, stream=None, **_tw_options):
    if not ({" and ".join((*self._checks, "not _tw_more"))}):
        if stream is not None:
            _tw_options["stream"] = stream
        return _tw_path.other(_tw_grid, ({"".join(f"{name}, " for name in names)}*_tw_more), _tw_options)
    _tw_key = _tw_entry = None
    try:
        {"; ".join((*self._lines, "pass"))}
        _tw_key = ({", ".join(key)},)
        _tw_entry = _tw_table.get(_tw_key)
    except Exception:
        _tw_key = None  # an argument that cannot be looked into: the long way says why
    if _tw_entry is not None and not _tw_hooks:
        _tw_found = _tw_entry.start(
            _tw_grid if type(_tw_grid) is tuple else _tw_sizes(_tw_grid, {{{bound}}}),
            stream, ({"".join(f"{value}, " for value in self._values)}),
        )
        if _tw_found is not None:
            return _tw_found
    if stream is not None:
        _tw_options["stream"] = stream
    return _tw_path.missed(
        None if _tw_key is None else (_tw_table, _tw_key), _tw_entry, _tw_grid, _tw_options,
        ({"".join(f"{name}, " for name in names)}), _tw_runtime,
    )
"""
        return text


def _wide_class(value: int, general: bool) -> tuple[int, bool]:
    """What decides the type and divisibility of an integer that does not fit into 32 bits."""
    width = 64 if -(2**63) <= value < 2**63 else 65 if value < 2**64 and value > 0 else 66
    return width, general or not value & 15


def _sizes(grid: Any, bound: dict[str, Any]) -> tuple[Any, ...]:
    """A grid that is no tuple."""
    shown = grid(bound) if callable(grid) else grid
    return tuple(shown) if isinstance(shown, (tuple, list)) else (shown,)
