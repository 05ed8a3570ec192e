"""The quick way from `kernel[grid](...)` to the driver, for launches whose like has been before.

For the argument types of a call a Python function is written (`fast_text.py`) that computes, from cheap properties of each
argument, keys under which it looks the launch up. What it finds is started at once; everything else goes the long way
(`JITFunction.launch`), which also words all errors, and is remembered. Arguments that the quick way knows: torch tensors, arrays
with an interface for CUDA, numbers, None, and compile-time values that are numbers, strings, types or kernels.
"""

from __future__ import annotations

import functools
import inspect
import operator
import struct
from collections.abc import Callable
from numbers import Integral
from typing import TYPE_CHECKING, Any, TypeVar

from tilewright.diagnostics import TilewrightError, UnknownArgumentError
from tilewright.hardware import MOST_PROGRAMS
from tilewright.kernel_function import KernelParameter
from tilewright.runtime.driver import stream_source
from tilewright.runtime.launching.fast_text import MISSING, PREFIX, Writer, in_c
from tilewright.runtime.launching.ready import changes, make_ready
from tilewright.runtime.options import ACCEPTED, unrecognised
from tilewright.runtime.tracebacks import shortened, shortened_if_users

if TYPE_CHECKING:
    from tilewright.runtime.compiled import CompiledKernel
    from tilewright.runtime.jit import JITFunction

Call = TypeVar("Call", bound=Callable[..., Any])
KEPT = 4096  # launches remembered per kernel and combination of types
MOST_X, MOST_Y, MOST_Z = MOST_PROGRAMS
KEPT_READY = 1024  # of them ready, and per ready launch with tensor maps, sets of pointers


def untraced(function: Call) -> Call:
    """The function, marked so that torch.compile ends its graph in front of it instead of tracing what it does."""
    function._torchdynamo_disable = True  # type: ignore[attr-defined]
    function._torchdynamo_disable_msg = (  # type: ignore[attr-defined]
        "a launch of tilewright; a function decorated with tilewright.torch.op can be part of a graph"
    )
    return function


def _rank(compiled: CompiledKernel) -> tuple[bool, bool]:
    """The order in which the kernels of one call are looked at: those with guards first, and those for many programs."""
    return not compiled.metadata.guards, compiled.metadata.few_programs


class Prepared:
    """A launch that is ready but for its values.

    `otherwise` is the one for values that the guards exclude, or for few programs. Where such came first, this one has no machine
    code yet, and takes the long way.
    """

    __slots__ = ("_compiled", "_fits", "_numbers", "_pick", "_start", "_streams", "otherwise")

    def __init__(self, compiled: CompiledKernel, writer: Writer, otherwise: Prepared | None = None) -> None:
        """For the function that `writer` wrote."""
        runtime = writer.runtime
        self._compiled = compiled
        self._numbers = [parameter.path[0] for parameter in compiled.artifact.parameters]
        places = [runtime.index(number) for number in self._numbers]
        self._pick: Any = None
        if places != list(range(len(runtime))):
            one = operator.itemgetter(*places) if places else lambda values: ()
            self._pick = one if len(places) != 1 else lambda values: (one(values),)
        self._fits = compiled.needs if writer.is_bound else compiled.conditions
        self._streams = stream_source(writer.libraries)
        self._start: Any = None
        self.otherwise = otherwise

    def come(self, compiled: CompiledKernel, writer: Writer) -> None:
        """Takes in what the long way has launched, or made without a launch: in its place among those that are looked at."""
        last, own = self, _rank(compiled)
        while last._compiled is not compiled and last.otherwise is not None and _rank(last.otherwise._compiled) <= own:
            last = last.otherwise
        if last._compiled is not compiled:
            last.otherwise = last = Prepared(compiled, writer, last.otherwise)
        if compiled.launcher is not None:
            last._start = compiled.launcher.launch

    def start(self, grid: tuple[Any, ...], stream: Any, collected: tuple[Any, ...]) -> CompiledKernel | None:
        """Starts the kernel; None when the long way must be taken."""
        values = collected if self._pick is None else self._pick(collected)
        compiled = self._compiled
        try:
            x, y, z = map(operator.index, (*grid, 1, 1)[: max(len(grid), 3)])
        except (TypeError, ValueError):  # a grid that is none
            return None
        if self._fits is not None and not self._fits(values, (x, y, z)):
            return self.otherwise.start(grid, stream, collected) if self.otherwise is not None else None
        if self._start is None:
            return None
        if not (0 <= x <= MOST_X and 0 <= y <= MOST_Y and 0 <= z <= MOST_Z):
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
        except (struct.error, OverflowError, TypeError):  # values that the long way words an error for
            return None
        return None if status else compiled

    def repeated(self, writer: Writer, key: tuple[Any, ...], collected: tuple[Any, ...], pointers: Any) -> None:
        """After a launch that was not ready: the second one with the same `key` makes those ready that follow.

        `key` is the first one of the written function, with the grid in front. Not with a grid of objects that may be other
        numbers by then, such as tensors of one element.
        """
        ready, grid = writer.ready, key[0]
        if not all(isinstance(size, Integral) for size in grid):
            return
        known = ready.get(key, MISSING)
        if known is MISSING:
            if len(ready) >= KEPT_READY:
                ready.clear()
            ready[key] = None
            return
        found = self._made_ready(grid, collected, writer)
        if found is None:
            return
        launch, is_for_pointers = found
        if not is_for_pointers:
            ready[key] = launch
            return
        by_pointers = known or {}
        if len(by_pointers) >= KEPT_READY:
            by_pointers.clear()
        by_pointers[pointers] = launch
        ready[key] = by_pointers  # also where another thread has emptied the table meanwhile

    def _made_ready(self, grid: tuple[Any, ...], collected: tuple[Any, ...], writer: Writer) -> Any:
        """The `Ready` launch with these values, and whether it is for their pointers alone; None where that cannot be."""
        values = collected if self._pick is None else self._pick(collected)
        x, y, z = (*grid, 1, 1)[:3]
        if self._fits is not None and not self._fits(values, (x, y, z)):
            return self.otherwise._made_ready(grid, collected, writer) if self.otherwise is not None else None
        if self._start is None:
            return None
        artifact = self._compiled.artifact
        if [p.path[0] for p in artifact.parameters if changes(p.element)] != writer.changing:
            return None
        made = make_ready(self._compiled, (x, y, z), values, self._streams)
        return None if made is None else (made, bool(artifact.tensor_maps))


class FastPath:
    """The quick way for one kernel. `function` takes the grid and then what the kernel takes.

    With `only` it is the quick way for one specialisation, whose `launch` takes the place of the kernel's.
    """

    def __init__(self, kernel: JITFunction, only: CompiledKernel | None = None) -> None:
        """Nothing is written before the first call."""
        self.kernel, self._only, self.is_bound = kernel, only, only is not None
        self._names = kernel.arg_names
        kinds = [parameter.kind for parameter in kernel.signature.parameters.values()]
        self.positional = sum(kind is not inspect.Parameter.KEYWORD_ONLY for kind in kinds)  # parameters before a `*`
        self._written: dict[tuple[type, ...], Callable[..., Any] | None] = {}
        self.function: Callable[..., Any] = in_c(self._first if self._is_plain() else self._long_way)

    def _is_plain(self) -> bool:
        def clashes(parameter: KernelParameter) -> bool:
            name = parameter.name
            return parameter.variadic or name.startswith(PREFIX) or (name in ACCEPTED and not parameter.is_constexpr)

        is_watched = bool(self.kernel.pre_run_hooks) and self._only is None
        return (
            not is_watched
            and "stream" not in self._names
            and not any(clashes(parameter) for parameter in self.kernel.params)
        )

    def _launch(self, grid: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        for name in kwargs.keys() & {"grid", "warmup"}:  # which are arguments of `launch`, and not the caller's to pass
            if name not in self._names:
                raise unrecognised(name, ())
            raise UnknownArgumentError(
                f"{name} is an argument of every kernel's run: pass the parameter {name} by position"
            )
        launch = self.kernel.launch if self._only is None else self._only.launch_checked
        try:
            return launch(*args, grid=grid, **kwargs)
        except TilewrightError as error:
            raise shortened(error, lambda: self._names)
        except Exception as error:
            raise shortened_if_users(error)

    @untraced
    def _long_way(self, grid: Any, /, *args: Any, **kwargs: Any) -> Any:
        return self._launch(grid, args, kwargs)

    @untraced
    def _first(self, grid: Any, /, *args: Any, **kwargs: Any) -> Any:
        """Writes the function for these types and calls it; the long way for types that the quick one does not know."""
        given = dict(zip(self._names, args, strict=False)) | kwargs
        arguments = [given.get(p.name, p.default if p.has_default else MISSING) for p in self.kernel.params]
        types = tuple(map(type, arguments))
        if types not in self._written:
            self._written[types] = self._write(types)
        function = self._written[types]
        if function is None:
            return self._launch(grid, args, kwargs)
        self.function = function
        return function(grid, *args, **kwargs)

    def other(self, grid: Any, arguments: tuple[Any, ...], options: dict[str, Any]) -> Any:
        """A call whose types are not those of the written function, or that is not right."""
        if len(arguments) > len(self._names):
            return self._launch(grid, arguments, options)
        given = {n: value for n, value in zip(self._names, arguments, strict=True) if value is not MISSING}
        if len(given) < len(arguments):
            return self._launch(grid, (), given | options)
        args, named = self._as_passed(arguments)
        return self._first(grid, *args, **named, **options)

    def _as_passed(self, arguments: tuple[Any, ...]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """A value for every parameter as a call passes them: by position, and by name behind a `*`."""
        return arguments[: self.positional], dict(
            zip(self._names[self.positional :], arguments[self.positional :], strict=True)
        )

    def _write(self, types: tuple[type, ...]) -> Callable[..., Any] | None:
        writer = Writer(self)
        for parameter, kind in zip(self.kernel.params, types, strict=True):
            if not writer.add(parameter, kind):
                return None
        written = untraced(writer.function())
        return writer.quickened(self._worded(written) if writer.in_c else written)

    def _worded(self, written: Callable[..., Any]) -> Callable[..., Any]:
        """The written function, but that arguments which Python cannot bind, such as one that is passed twice, go the long way.

        Too slow for every launch: it stands behind the part in C only.
        """

        @functools.wraps(written)
        def call(grid: Any, /, *args: Any, **kwargs: Any) -> Any:
            try:
                return written(grid, *args, **kwargs)
            except TypeError as error:
                inside = error.__traceback__ and error.__traceback__.tb_next
                if inside is not None:  # it was raised by what the function does
                    raise
            return self._launch(grid, args, kwargs)

        return call

    def missed(self, key: Any, entry: Prepared | None, grid: Any, options: Any, arguments: Any, writer: Writer) -> Any:
        """The long way for a call that the written function did not find, which it will find the next time."""
        args, named = self._as_passed(arguments)
        compiled = self._launch(grid, args, named | options)
        if key is not None and compiled is not None and compiled.launcher is not None:
            all_made = (*self._looked_at_before(compiled, options), compiled)
            if entry is None:
                table, own = key
                if len(table) >= KEPT:
                    table.clear()
                entry = table[own] = Prepared(all_made[0], writer)
            for one in all_made:
                entry.come(one, writer)
        return compiled

    def _looked_at_before(self, compiled: CompiledKernel, options: Any) -> list[CompiledKernel]:
        """Those for values that keep to guards, or that come in more programs, where these were not asked for."""
        own, asked = compiled.metadata, (options.get("guards", True), options.get("few_programs", False))
        if self._only is not None or (own.guards, own.few_programs) == asked:
            return []
        return self.kernel.compilations.before(compiled, *asked)
