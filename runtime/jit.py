"""`@jit` functions that can be launched: `kernel[grid](*args, **options)`.

A call is specialised, translated once per specialisation, and run where its arrays lie: on the GPU, on the CPU through
the host's compiler, or in the Python interpreter. `TILEWRIGHT_MODE` overrides the choice.
"""

from __future__ import annotations

import inspect
import os
import sys
import threading
from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any

from tilewright.artifact import Artifact, Options, Target
from tilewright.diagnostics import DeviceError, GridError, LaunchError, TilewrightError
from tilewright.kernel_function import KernelFunction
from tilewright.runtime.arrays import HOST
from tilewright.runtime.compiled import CompiledKernel
from tilewright.runtime.kernel_interface import KernelInterface
from tilewright.runtime.signature import parse_signature
from tilewright.runtime.specialise import Call, specialise
from tilewright.schedule.targets import find_target

MODES = ("gpu", "cpu", "check", "interpret")
OPTION_NAMES = frozenset(field.name for field in fields(Options))
ACCEPTED = OPTION_NAMES | {"stream"}
HOST_TARGET = "sm_90a"


class JITFunction(KernelInterface, KernelFunction):
    """A kernel. Index it with a grid and call it; see the module docstring."""

    def __init__(
        self,
        fn: Callable[..., Any],
        do_not_specialize: Any = (),
        do_not_specialize_on_alignment: Any = (),
        debug: bool | None = None,
        noinline: bool | None = None,
        source: str | None = None,
        **other: Any,
    ) -> None:
        """`@jit` with Triton's arguments; `repr`, `launch_metadata` and `version` are accepted and have no effect."""
        super().__init__(fn, source)
        self.unspecialised = (*(do_not_specialize or ()), *(do_not_specialize_on_alignment or ()))
        self.debug, self.noinline = debug, noinline
        unknown = set(other) - {"repr", "launch_metadata", "version"}
        if unknown:
            raise TypeError(f"jit() has no argument {sorted(unknown)[0]!r}")
        self._signature = inspect.signature(fn)
        self._compiled: dict[Any, CompiledKernel] = {}
        self._lock = threading.Lock()
        self._compiling: dict[Any, threading.Lock] = {}

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Calls the function from a kernel that the interpreter runs.

        Raises:
          LaunchError: from anywhere else.
        """
        from tilewright.language.builtin import active

        if active.get() is None:
            raise LaunchError(
                f"a kernel is launched with a grid: write {self.__name__}[grid](…), not {self.__name__}(…)"
            )
        from tilewright.interpreter import call_inside

        return call_inside(self, args, kwargs)

    def __getitem__(self, grid: Any) -> Callable[..., Any]:
        """`kernel[grid]`: a callable that launches `grid` programs."""
        return lambda *args, **kwargs: self.run(*args, grid=grid, **kwargs)

    def run(self, *args: Any, grid: Any, warmup: bool = False, **kwargs: Any) -> CompiledKernel | None:
        """Launches (or with `warmup` only compiles); returns the compiled kernel, None in the interpreter."""
        bound, options, stream = self._bind(args, kwargs)
        sizes = grid_sizes(grid, bound)
        call = specialise(self, bound, self.unspecialised)
        mode = choose_mode(call)
        if mode == "interpret":
            from tilewright.runtime.interpreted import interpret

            if not warmup and 0 not in sizes:
                interpret(self, sizes, bound, options)
            return None
        device = device_of(call)
        compiled = self._find(call, options, mode, device)
        _check_globals(compiled.artifact)
        if not warmup and 0 not in sizes:
            compiled.launch(sizes, call, stream)
        return compiled

    def warmup(self, *args: Any, grid: Any = (1,), **kwargs: Any) -> CompiledKernel | None:
        """Compiles without launching."""
        return self.run(*args, grid=grid, warmup=True, **kwargs)

    def translate(self, signature: str, arch: str = "sm_90a", **options: Any) -> Artifact:
        """The generated CUDA for a signature such as "*fp32:16, i32, 1024"; needs neither GPU nor arguments."""
        from tilewright.pipeline import translate

        return translate(self, parse_signature(self, signature), make_options(options, self), find_target(arch))

    def _find(self, call: Call, options: Options, mode: str, device: int) -> CompiledKernel:
        key = (call.key, options, mode, device, self.raw_src)
        found = self._compiled.get(key)
        if found is None:
            with self._lock:  # one lock a specialisation: different ones are compiled at the same time
                own = self._compiling.setdefault(key, threading.Lock())
            with own:
                found = self._compiled.get(key)
                if found is None:
                    found = self._compiled[key] = self._compile(call, options, mode, device)
        if found.fits(call):
            return found
        return self._find(call, replace(options, guards=False), mode, device)

    def _compile(self, call: Call, options: Options, mode: str, device: int) -> CompiledKernel:
        from tilewright.pipeline import translate

        artifact = translate(self, call.arguments, options, target_of(mode, device))
        return CompiledKernel(artifact, options, mode, device)

    def _bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[dict[str, Any], Options, Any]:
        """Arguments by parameter name, options, and the stream."""
        names = set(self.arg_names)
        unknown = [name for name in kwargs if name not in names and name not in ACCEPTED]
        if unknown:
            raise KeyError(f"Keyword argument {unknown[0]} was specified but unrecognised")
        chosen = {name: value for name, value in kwargs.items() if name in OPTION_NAMES}
        try:
            bound = self._signature.bind(*args, **{name: value for name, value in kwargs.items() if name in names})
        except TypeError as error:
            raise TypeError(f"{self.__name__}: {error}; its parameters are {', '.join(self.arg_names)}") from None
        bound.apply_defaults()
        for name in OPTION_NAMES & names:  # a parameter of that name is both an argument and the option
            chosen.setdefault(name, bound.arguments[name])
        return dict(bound.arguments), make_options(chosen, self), kwargs.get("stream")


def _check_globals(artifact: Artifact) -> None:
    """Rejects a launch of a kernel that read a global which has changed since.

    Raises:
      RuntimeError: as in Triton.
    """
    for module, name, value in artifact.globals:
        now = getattr(sys.modules.get(module), name, value)
        now = getattr(now, "value", now)
        if type(now) is type(value) and now != value:
            raise RuntimeError(
                f"Global variable {name} has changed since we compiled this kernel, from {value!r} to {now!r}; pass it as an "
                "argument, or start a new process"
            )


def make_options(given: dict[str, Any], function: JITFunction | None = None) -> Options:
    """Options of a launch.

    Raises:
      LaunchError: for values that no kernel can have.
    """
    unknown = set(given) - OPTION_NAMES
    if unknown:
        raise KeyError(f"Keyword argument {sorted(unknown)[0]} was specified but unrecognised")
    values = {name: getattr(value, "value", value) for name, value in given.items()}
    if function is not None and function.debug:
        values.setdefault("debug", True)
    if os.environ.get("TRITON_DEBUG", "0") not in ("", "0"):
        values.setdefault("debug", True)
    if os.environ.get("TRITON_F32_DEFAULT"):
        values.setdefault("default_dot_input_precision", os.environ["TRITON_F32_DEFAULT"])
    options = Options(**values)
    if not isinstance(options.num_warps, int) or options.num_warps < 1 or options.num_warps & (options.num_warps - 1):
        raise LaunchError(f"num_warps must be a power of 2, not {options.num_warps!r}")
    if options.num_warps > 32:
        from tilewright.diagnostics import OutOfResources

        raise OutOfResources(options.num_warps * 32, 1024, "threads")
    return options


def grid_sizes(grid: Any, bound: dict[str, Any]) -> tuple[int, int, int]:
    """The numbers of programs along the three axes.

    Raises:
      GridError: when the grid is not one to three non-negative integers.
    """
    shown = grid(bound) if callable(grid) else grid
    sizes = tuple(shown) if isinstance(shown, (tuple, list)) else (shown,)
    try:
        numbers = [int(size.__index__()) for size in sizes]
    except AttributeError:
        raise GridError(
            f"the grid must be integers, got {shown!r}; divide with triton.cdiv, which gives an integer"
        ) from None
    if not 1 <= len(numbers) <= 3 or any(number < 0 for number in numbers):
        raise GridError(f"the grid must be one to three non-negative integers, got {shown!r}")
    limits = (2**31 - 1, 65535, 65535)
    for axis, (number, limit) in enumerate(zip(numbers, limits, strict=False)):
        if number > limit:
            raise GridError(f"the grid's axis {axis} has {number} programs; the hardware takes {limit}")
    x, y, z = (*numbers, *(1,) * (3 - len(numbers)))
    return x, y, z


def device_of(call: Call) -> int:
    """The device that all arrays lie on; `HOST` without arrays.

    Raises:
      DeviceError: when they lie on several.
    """
    places = {array.device: name for name, array in call.arrays}
    if len(places) > 1:
        listed = ", ".join(
            f"{name} on {'the CPU' if device == HOST else f'cuda:{device}'}" for device, name in places.items()
        )
        raise DeviceError(f"all arrays must lie on one device: {listed}; move them, as with x.to('cuda')")
    return next(iter(places), HOST)


def choose_mode(call: Call) -> str:
    """Where to run: as TILEWRIGHT_MODE says, or where the arrays lie.

    Raises:
      LaunchError: for an unknown mode.
      DeviceError: when the arrays lie where the mode cannot reach them.
    """
    wanted = os.environ.get("TILEWRIGHT_MODE", "")
    if os.environ.get("TRITON_INTERPRET", "0") not in ("", "0") and not wanted:
        wanted = "interpret"
    if wanted and wanted not in MODES:
        raise LaunchError(f"TILEWRIGHT_MODE is {wanted!r}; it must be one of {', '.join(MODES)}")
    device = device_of(call)
    if device == HOST and wanted == "gpu" and call.arrays:
        raise DeviceError("TILEWRIGHT_MODE=gpu needs arrays on a GPU; these lie on the CPU")
    if device != HOST and wanted in ("cpu", "check", "interpret"):
        raise DeviceError(f"TILEWRIGHT_MODE={wanted} needs arrays on the CPU; these lie on cuda:{device}: pass x.cpu()")
    if wanted:
        return wanted
    if device != HOST:
        return "gpu"
    from tilewright.runtime.cpu import has_compiler

    return "cpu" if has_compiler() else "interpret"


def target_of(mode: str, device: int) -> Target:
    """The architecture that the text is written for."""
    if mode != "gpu":
        return find_target(os.environ.get("TILEWRIGHT_ARCH", HOST_TARGET))
    from tilewright.runtime.driver import capability

    major, minor = capability(max(device, 0))
    try:
        return find_target(f"sm_{major}{minor}")
    except TilewrightError:
        return find_target("sm_80") if major == 8 else find_target(f"sm_{major}0")


def jit(fn: Callable[..., Any] | None = None, **options: Any) -> Any:
    """Makes a kernel of a function; with or without arguments, as in Triton."""
    if fn is None:
        return lambda function: JITFunction(function, **options)
    return JITFunction(fn, **options)
