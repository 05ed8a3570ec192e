"""`@jit` functions that can be launched: `kernel[grid](*args, **options)`.

A call is specialised, translated once per specialisation, and run where its arrays lie: on the GPU, on the CPU through
the host's compiler, or in the Python interpreter. `TILEWRIGHT_MODE` overrides the choice.
"""

from __future__ import annotations

import functools
import hashlib
import inspect
from collections.abc import Callable
from dataclasses import asdict, replace
from typing import Any

from tilewright.artifact import Argument, Artifact, Options, Target
from tilewright.diagnostics import ArgumentKindError, LaunchError
from tilewright.host import constexpr_function
from tilewright.kernel_function import KernelFunction, KernelParameter
from tilewright.runtime.arrays import HOST, NOWHERE
from tilewright.runtime.choices import (
    ACCEPTED,
    OPTION_NAMES,
    check_arch,
    check_can_wait,
    choose_mode,
    device_of,
    device_target,
    grid_sizes,
    make_options,
    target_of,
    unrecognised,
    wanted_mode,
)
from tilewright.runtime.compiled import CompiledKernel, Origin
from tilewright.runtime.fast_path import FastPath, untraced
from tilewright.runtime.fast_text import hold
from tilewright.runtime.forks import ForkLock, preparing
from tilewright.runtime.hooks import COMPILE_HOOKS, JitFunctionInfo
from tilewright.runtime.kernel_interface import KernelInterface
from tilewright.runtime.log import log, reason
from tilewright.runtime.mock_tensor import MockTensor
from tilewright.runtime.nvrtc import load_ahead
from tilewright.runtime.reinterpreted import TensorWrapper, reinterpret
from tilewright.runtime.signature import parse_signature
from tilewright.runtime.specialise import Call, describe_argument, key_of, specialise
from tilewright.runtime.tracing import launches_nothing, opaque
from tilewright.runtime.translations import translated
from tilewright.schedule.targets import find_target

__all__ = [
    "JITFunction", "KernelInterface", "MockTensor", "TensorWrapper", "constexpr_function", "jit", "reinterpret",
]  # fmt: skip


class JITFunction(KernelInterface, KernelFunction):
    """A kernel. Index it with a grid and call it; see the module docstring."""

    def __init__(
        self,
        fn: Callable[..., Any],
        version: Any = None,
        do_not_specialize: Any = None,
        do_not_specialize_on_alignment: Any = None,
        debug: bool | None = None,
        noinline: bool | None = None,
        repr: Callable[[Any], str] | None = None,
        launch_metadata: Callable[..., dict[str, Any]] | None = None,
        source: str | None = None,
    ) -> None:
        """`@jit` with Triton's arguments, which are attributes afterwards; `version` has no effect."""
        super().__init__(fn, source)
        self.do_not_specialize = tuple(do_not_specialize or ())
        self.do_not_specialize_on_alignment = tuple(do_not_specialize_on_alignment or ())
        self.unspecialised = (*self.do_not_specialize, *self.do_not_specialize_on_alignment)
        self.version, self.debug, self.noinline, self.launch_metadata = version, debug, noinline, launch_metadata
        self._called = repr
        self._signature = inspect.signature(fn)
        self._compiled: dict[Any, CompiledKernel] = {}
        self._lock = ForkLock()
        self._known: list[dict[str, Any]] = []  # what was compiled, for the log
        self._compiling: dict[Any, ForkLock] = {}
        self._fast = FastPath(self)

    def __reduce__(self) -> str:
        """Other processes find a kernel where this one did: in its module."""
        return self.fn.__qualname__

    def _unsafe_update_src(self, source: str) -> None:
        super()._unsafe_update_src(source)
        self._fast = FastPath(self)

    @property
    def cache_key(self) -> str:
        """A digest of the kernel's text and of the kernels and numbers that it uses."""
        from tilewright.runtime.autotune_subject import source_digest

        return source_digest(self)

    def repr(self, specialization: Any) -> str:
        """What tools call the kernel: what the function `repr` of the decorator says, or its module and name."""
        return self._called(specialization) if self._called else f"{self.__module__}.{self.fn.__qualname__}"

    def is_general(self, parameter: KernelParameter) -> bool:
        """Whether values of a parameter are not told apart by alignment or divisibility."""
        return parameter.name in self.unspecialised or parameter.num in self.unspecialised

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

    @untraced
    def __getitem__(self, grid: Any) -> Callable[..., Any]:
        """`kernel[grid]`: a callable that launches `grid` programs."""
        return hold(self._fast.function, () if grid is None else grid)

    @untraced
    def run(self, *args: Any, grid: Any, warmup: bool = False, **kwargs: Any) -> CompiledKernel | None:
        """Launches (or with `warmup` only compiles); returns the compiled kernel, None in the interpreter."""
        if warmup:
            return self.launch(*args, grid=grid, warmup=True, **kwargs)
        found: CompiledKernel | None = self._fast.function(grid, *args, **kwargs)
        return found

    def launch(self, *args: Any, grid: Any, warmup: bool = False, **kwargs: Any) -> CompiledKernel | None:
        """The same, for any arguments and without looking for a launch that is prepared (see `fast_path`)."""
        if launches_nothing():
            return None
        found: CompiledKernel | None = opaque(self._launch)(args, grid, warmup, kwargs)
        return found

    def _launch(self, args: tuple[Any, ...], grid: Any, warmup: bool, kwargs: dict[str, Any]) -> CompiledKernel | None:
        with preparing():
            bound, options, stream = self._bind(args, kwargs)
            sizes = grid_sizes(grid, bound)
            if warmup:
                bound |= {p.name: MockTensor.wrap_dtype(bound[p.name]) for p in self.params if not p.is_constexpr}
            call = specialise(self, bound, self.unspecialised)
            if not warmup:
                _check_memory(call)
            mode = choose_mode(call)
            if mode == "interpret":
                from tilewright.runtime.interpreted import interpret
            else:
                compiled = self._find(call, options, mode, device_of(call))
        if mode == "interpret":
            if not warmup and 0 not in sizes:
                check_can_wait(options, sizes)
                interpret(self, sizes, bound, options, self.unspecialised)
            return None
        compiled.check_globals()
        if COMPILE_HOOKS and compiled.is_new:
            self._tell(compiled, call, options, warmup)
        compiled.is_new = False
        if not warmup and 0 not in sizes:
            compiled.launch(sizes, call, stream)
        return compiled

    def _tell(self, compiled: CompiledKernel, call: Call, options: Options, warmup: bool) -> None:
        """Calls the hooks that want to know of compilations, with what Triton's are given."""
        signature = {argument.name: describe_argument(argument) for argument in call.arguments}
        info = JitFunctionInfo(self.__module__, self.__name__, self)
        facts = {**asdict(options), "signature": signature, "device": compiled.device, "is_warmup": warmup}
        shown = (
            f"{self.__name__}[num_warps={options.num_warps}]({', '.join(f'{n}: {t}' for n, t in signature.items())})"
        )
        for hook in COMPILE_HOOKS:
            hook(key=compiled.metadata.hash, repr=shown, fn=info, compile=facts, is_manual_warmup=warmup,
                 already_compiled=False)  # fmt: skip

    def warmup(self, *args: Any, grid: Any = (1,), **kwargs: Any) -> CompiledKernel | None:
        """Compiles without launching; element types, such as torch.float32, may stand for arrays."""
        return self.launch(*args, grid=grid, warmup=True, **kwargs)

    @preparing()
    def translate(
        self, signature: str, arch: str = "sm_90a", host: bool = False, name: str = "", **options: Any
    ) -> Artifact:
        """The generated CUDA for a signature such as "*fp32:16, i32, 1024"; needs neither GPU nor arguments.

        With `host` the text ends in `launch_<kernel>`, a C++ function that launches it. `guards=False` gives text that is
        right for all values. `name` is another name for the kernel: two in one program must not have the same.
        """
        from tilewright.emit.host import with_host_function
        from tilewright.pipeline import translate

        chosen = make_options(options, self.debug)
        artifact = translate(self, parse_signature(self, signature), chosen, find_target(arch), name)
        return with_host_function(artifact) if host else artifact

    @preparing()
    def compile(self, signature: str, **options: Any) -> CompiledKernel:
        """The compiled kernel for a signature, for device 0 or else the host, to launch as `compiled[grid](*args)`."""
        from tilewright.runtime.driver import is_available

        mode = wanted_mode() or ("gpu" if is_available() else "cpu")
        if mode == "interpret":
            raise LaunchError("nothing is compiled with TILEWRIGHT_MODE=interpret")
        arguments = parse_signature(self, signature)
        return self.compiled_for(arguments, make_options(options, self.debug), mode, 0 if mode == "gpu" else HOST)

    def call_of(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Call:
        """The specialisation that arguments need."""
        return specialise(self, self._bind(args, kwargs)[0], self.unspecialised)

    def _find(self, call: Call, options: Options, mode: str, device: int) -> CompiledKernel:
        found = self.compiled_for(call.arguments, options, mode, device)
        if found.fits(call):
            return found
        return self.compiled_for(call.arguments, replace(options, guards=False), mode, device)

    def compiled_for(
        self, arguments: tuple[Argument, ...], options: Options, mode: str, device: int, target: Target | None = None
    ) -> CompiledKernel:
        """The compiled kernel of a specialisation, made once; the text is for `target`, or for the device's."""
        target = target or target_of(mode, device)
        key = (key_of(arguments), options, mode, device, target.name, self.raw_src)
        found = self._compiled.get(key)
        if found is None:
            with self._lock:  # one lock a specialisation: different ones are compiled at the same time
                own = self._compiling.setdefault(key, ForkLock())
            with own:
                found = self._compiled.get(key)
                if found is None:
                    found = self._compiled[key] = self._compile(arguments, options, mode, device, target)
        return found

    @preparing()
    def _compile(
        self, arguments: tuple[Argument, ...], options: Options, mode: str, device: int, target: Target
    ) -> CompiledKernel:
        meanwhile = functools.partial(load_ahead, device_target(device).name) if mode == "gpu" else None
        artifact, is_new = translated(self, arguments, options, target, meanwhile)
        how = "translated" if is_new else "translation from the cache"
        log(
            "compile",
            lambda: f"{self.__name__} ({mode}): {how}; {self._reason(arguments, options, mode, device, target)}",
        )
        return CompiledKernel(artifact, options, mode, device, Origin(self, key_of(arguments), arguments))

    def _reason(self, arguments: tuple[Argument, ...], options: Options, mode: str, device: int, target: Target) -> str:
        """In which arguments and options the specialisation differs from the nearest known one."""
        text = hashlib.sha256(self.raw_src.encode()).hexdigest()
        parts: dict[str, Any] = {argument.name: describe_argument(argument) for argument in arguments}
        parts |= {**asdict(options), "mode": mode, "device": device, "target": target.name, "source": text[:12]}
        why = reason(parts, self._known)
        self._known.append(parts)
        return why

    def _bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[dict[str, Any], Options, Any]:
        """Arguments by parameter name, options, and the stream."""
        names = set(self.arg_names)
        unknown = [name for name in kwargs if name not in names and name not in ACCEPTED]
        if unknown:
            raise unrecognised(unknown[0], (*names, *ACCEPTED))
        if "arch" not in names:
            check_arch(kwargs.get("arch"))
        chosen = {name: value for name, value in kwargs.items() if name in OPTION_NAMES}
        try:
            bound = self._signature.bind(*args, **{name: value for name, value in kwargs.items() if name in names})
        except TypeError as error:
            raise TypeError(f"{self.__name__}: {error}; its parameters are {', '.join(self.arg_names)}") from None
        bound.apply_defaults()
        for name in OPTION_NAMES & names:  # a parameter of that name is both an argument and the option
            chosen.setdefault(name, bound.arguments[name])
        return dict(bound.arguments), make_options(chosen, self.debug), kwargs.get("stream")


def _check_memory(call: Call) -> None:
    """Rejects a launch on what only stands for arrays.

    Raises:
      ArgumentKindError: names the first.
    """
    for name, array in call.arrays:
        if array.device == NOWHERE:
            raise ArgumentKindError(f"argument {name} is a MockTensor, which has no memory: only warmup takes it")


def jit(fn: Callable[..., Any] | None = None, **options: Any) -> Any:
    """Makes a kernel of a function; with or without arguments, as in Triton."""
    if fn is None:
        return lambda function: JITFunction(function, **options)
    return JITFunction(fn, **options)
