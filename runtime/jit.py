"""`@jit` functions that can be launched: `kernel[grid](*args, **options)`.

A call is specialised, translated once per specialisation, and run where its arrays lie: on the GPU, on the CPU through
the host's compiler, or in the Python interpreter. `TILEWRIGHT_MODE` overrides the choice.
"""

from __future__ import annotations

import hashlib
import inspect
import weakref
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from tilewright.artifact import Argument, Artifact, Options, Target
from tilewright.diagnostics import HostCallError, MissingArgumentError
from tilewright.host import constexpr_function
from tilewright.kernel_function import KernelFunction
from tilewright.runtime.arguments.signature import parse_signature
from tilewright.runtime.arguments.specialise import Call, specialise
from tilewright.runtime.async_compile import FutureKernel, active_mode
from tilewright.runtime.compilations import Compilations
from tilewright.runtime.compiled import CompiledKernel
from tilewright.runtime.forks import preparing
from tilewright.runtime.hooks import COMPILE_HOOKS, Hook
from tilewright.runtime.kernel_interface import FoundByName, KernelInterface, QuickLaunches
from tilewright.runtime.keywords import check_options
from tilewright.runtime.launching.fast_path import FastPath, untraced
from tilewright.runtime.launching.fast_text import MISSING, hold
from tilewright.runtime.launching.grid_sizes import check_can_wait, grid_sizes
from tilewright.runtime.mock_tensor import MockTensor
from tilewright.runtime.options import ACCEPTED, OPTION_NAMES, check_unset, make_options, unrecognised
from tilewright.runtime.placement import Placement, check_memory, placement_here, placement_of
from tilewright.runtime.reinterpreted import TensorWrapper, reinterpret
from tilewright.runtime.specialisations import DeviceCaches, Specialisation, read, specialisation_for
from tilewright.runtime.tracebacks import outermost, shortened, warn
from tilewright.runtime.tracing import launches_nothing, opaque, recording
from tilewright.schedule.targets import find_target

__all__ = [
    "JITFunction", "KernelInterface", "MockTensor", "TensorWrapper", "constexpr_function", "jit", "reinterpret",
]  # fmt: skip


Launched = CompiledKernel | FutureKernel | None  # the last one from the interpreter
_KERNELS: weakref.WeakSet[JITFunction] = weakref.WeakSet()


class JITFunction(FoundByName, KernelInterface, KernelFunction, metaclass=QuickLaunches):
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
        self._warn_of_names("do_not_specialize", self.do_not_specialize)
        self._warn_of_names("do_not_specialize_on_alignment", self.do_not_specialize_on_alignment)
        self.params = [
            replace(
                p,
                do_not_specialize=not {p.name, p.num}.isdisjoint(self.do_not_specialize),
                do_not_specialize_on_alignment=not {p.name, p.num}.isdisjoint(self.do_not_specialize_on_alignment),
            )
            for p in self.params
        ]
        self.version, self.debug, self.noinline, self.launch_metadata = version, debug, noinline, launch_metadata
        self._called = repr
        self.signature = inspect.signature(fn)
        self.compilations = Compilations()
        self.pre_run_hooks: list[Hook] = []
        self._fast = FastPath(self)
        _KERNELS.add(self)

    def _warn_of_names(self, option: str, given: tuple[Any, ...]) -> None:
        """Warns of names and numbers of parameters that the kernel does not have.

        Triton passes over them, and public kernels carry some.
        """
        unknown = [one for one in given if one not in self.arg_names and one not in range(len(self.params))]
        if unknown:
            known = ", ".join(self.arg_names) or "none"
            text = f"{option}: {self.__name__} has no parameter {unknown[0]!r}; it has {known}"
            warn(f"{text}; the name is passed over")

    def _unsafe_update_src(self, source: str) -> None:
        super()._unsafe_update_src(source)
        for kernel in tuple(_KERNELS):  # which may take this one as a compile-time value
            kernel._fast = FastPath(kernel)

    def add_pre_run_hook(self, hook: Hook) -> None:
        """Has `hook` called with the arguments of every launch before it, and of every warmup."""
        self.pre_run_hooks.append(hook)
        self._fast = FastPath(self)

    @property
    def constexprs(self) -> list[int]:
        """The numbers of the compile-time parameters."""
        return [parameter.num for parameter in self.params if parameter.is_constexpr]

    @property
    def device_caches(self) -> DeviceCaches:
        """What is compiled, by device: `kernel.device_caches[0][0]` has the specialisations by their keys."""
        return DeviceCaches(self)

    def forget(self, device: int | None = None) -> None:
        """Forgets what is compiled for a device, or for all; the next launch finds it on the disk, or compiles it."""
        self.compilations.forget(device)
        self._fast = FastPath(self)

    @property
    def cache_key(self) -> str:
        """A digest of the kernel's text, of the line where it stands, and of the kernels and numbers that it uses."""
        from tilewright.runtime.tuning.subject import source_digest

        return hashlib.sha256(f"{source_digest(self)}:{self.first_line}".encode()).hexdigest()

    @property
    def hash(self) -> str:
        """`cache_key`, by the name that Triton keeps it under."""
        return self.cache_key

    @property
    def used_global_vals(self) -> dict[tuple[str, int], tuple[Any, dict[str, Any]]]:
        """The globals that its compiled text depends on, as in Triton: by name and dictionary, what they were and where."""
        found: dict[tuple[str, int], tuple[Any, dict[str, Any]]] = {}
        for compiled in list(self.compilations.made.values()):
            for owner, name, value in compiled.artifact.globals:
                names = getattr(owner, "__globals__", {})
                if name in names and not isinstance(value, KernelFunction):
                    found[name, id(names)] = (value, names)
        return found

    def repr(self, specialization: Any) -> str:
        """What tools call the kernel: what the function `repr` of the decorator says, or its module and name."""
        return self._called(specialization) if self._called else f"{self.__module__}.{self.fn.__qualname__}"

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        """Calls the function from a kernel that the interpreter runs.

        Raises:
          HostCallError: from anywhere else.
        """
        from tilewright.language.builtin import active

        if active.get() is None:
            text = f"a kernel is launched with a grid: write {self.__name__}[grid](…), not {self.__name__}(…)"
            raise shortened(HostCallError(text))
        from tilewright.interpreter import call_inside

        return call_inside(self, args, kwargs)

    @untraced
    def __getitem__(self, grid: Any) -> Callable[..., Any]:
        """`kernel[grid]`: a callable that launches `grid` programs."""
        return hold(self._fast.function, () if grid is None else grid)

    @untraced
    def run(self, /, *args: Any, grid: Any, warmup: bool = False, **kwargs: Any) -> Launched:
        """Launches (or with `warmup` only compiles); returns the compiled kernel, None in the interpreter."""
        if warmup:
            return self.launch(*args, grid=grid, warmup=True, **kwargs)
        found: CompiledKernel | None = self._fast.function(grid, *args, **kwargs)
        return found

    def launch(self, /, *args: Any, grid: Any, warmup: bool = False, **kwargs: Any) -> Launched:
        """The same, for any arguments and without looking for a launch that is prepared (see `fast_path`)."""
        if launches_nothing():
            return None
        for hook in self.pre_run_hooks:
            hook(*args, **kwargs)
        found: Launched = opaque(self._launch)(args, grid, warmup, kwargs)
        return found

    def _launch(self, args: tuple[Any, ...], grid: Any, warmup: bool, kwargs: dict[str, Any]) -> Launched:
        with preparing():
            bound, options, stream = self.bind(args, kwargs)
            sizes = grid_sizes(grid, bound)
            if warmup:
                bound |= {p.name: MockTensor.wrap_dtype(bound[p.name]) for p in self.params if not p.is_constexpr}
            call = specialise(self, bound)
            if not warmup:
                check_memory(call.arrays)
            place = placement_of(call.arrays)
            if place.mode == "interpret":
                from tilewright.runtime.interpreted import interpret
            else:
                wanted = Specialisation(self, call.arguments, call.key, options, place, place.target())
                if COMPILE_HOOKS.enter and self._is_left_out(wanted, warmup):
                    return None
                later = active_mode.get() if warmup else None
                if later is not None:
                    return later.submit((self, wanted.key), lambda: self._prepared(call, sizes, wanted, warmup))
                compiled = self._prepared(call, sizes, wanted, warmup)
        if place.mode == "interpret":
            if not warmup and 0 not in sizes and recording() is None:
                check_can_wait(options, sizes)
                interpret(self, sizes, bound, options)
            return None
        if not warmup and 0 not in sizes:
            compiled.launch(sizes, call, stream)
        return compiled

    def _prepared(self, call: Call, grid: tuple[int, int, int], wanted: Specialisation, warmup: bool) -> CompiledKernel:
        """The compiled kernel for a call, told of to those who asked; a warm-up returns that for more programs, if it differs."""
        compiled = self._told(self.compilations.found(call, grid, wanted), warmup)
        own, few = compiled.specialisation, wanted.options.few_programs
        if warmup and own.options.few_programs != few:
            own = replace(own, options=replace(own.options, few_programs=few))
            return self._told(self.compilations.made_for(own), warmup)
        return compiled

    def _told(self, compiled: CompiledKernel, warmup: bool) -> CompiledKernel:
        compiled.check_globals()
        if COMPILE_HOOKS.exit and compiled.is_new:
            compiled.specialisation.tell(COMPILE_HOOKS.exit, warmup)
        compiled.is_new = False
        return compiled

    def _is_left_out(self, wanted: Specialisation, warmup: bool) -> bool:
        """Whether a hook, told of what would be compiled, answers that it is not to be."""
        return not self.compilations.has(wanted) and wanted.tell(COMPILE_HOOKS.enter, warmup)

    @outermost
    def warmup(self, /, *args: Any, grid: Any = (1,), **kwargs: Any) -> Launched:
        """Compiles without launching; element types, such as torch.float32, may stand for arrays.

        Within an `AsyncCompileMode` it only begins to compile, and returns a `FutureKernel`.
        """
        return self.launch(*args, grid=grid, warmup=True, **kwargs)

    @outermost
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

    @outermost
    @preparing()
    def compile(self, signature: str, **options: Any) -> CompiledKernel:
        """The compiled kernel for a signature, for the current GPU or else the host; launch it as `compiled[grid](*args)`."""
        here = placement_here()
        return self.compiled_for(parse_signature(self, signature), make_options(options, self.debug), here)

    def call_of(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Call:
        """The specialisation that arguments need."""
        return specialise(self, self.bind(args, kwargs)[0])

    def compiled_for(
        self, arguments: tuple[Argument, ...], options: Options, placement: Placement, target: Target | None = None
    ) -> CompiledKernel:
        """The compiled kernel for arguments that no call gave; the text is for `target`, or for the placement's own."""
        return self.compilations.made_for(specialisation_for(self, arguments, options, placement, target))

    @outermost
    def preload(self, specialization_data: str) -> CompiledKernel:
        """The compiled kernel for what a hook was told as `compile["specialization_data"]`, here or in another process.

        Raises:
          SpecializationDataError: a RuntimeError, when the data are for another kernel or another target.
        """
        return self.compilations.made_for(read(self, specialization_data, placement_here()))

    def bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[dict[str, Any], Options, Any]:
        """Arguments by parameter name, options, and the stream."""
        names = set(self.arg_names)
        unknown = [name for name in kwargs if name not in names and name not in ACCEPTED]
        if unknown:
            raise unrecognised(unknown[0], ACCEPTED, self.__name__, self.arg_names)
        check_unset({name: value for name, value in kwargs.items() if name not in names})
        chosen = {name: value for name, value in kwargs.items() if name in OPTION_NAMES}
        try:
            bound = self.signature.bind(*args, **{name: value for name, value in kwargs.items() if name in names})
        except TypeError as error:
            cause = f"{self.__name__}: {error}; its parameters are {', '.join(self.arg_names)}"
            raise MissingArgumentError(cause) from None
        bound.apply_defaults()
        for name in OPTION_NAMES & names:  # a parameter of that name is both an argument and the option
            chosen.setdefault(name, bound.arguments[name])
        stream = None if "stream" in names else kwargs.get("stream")
        return dict(bound.arguments), make_options(chosen, self.debug), stream


@outermost
def jit(fn: Any = MISSING, **options: Any) -> Any:
    """Makes a kernel of a function; with or without arguments, as in Triton.

    Raises:
      UnknownOptionError: for an option that there is not.
      NoSourceError: for what is no function.
    """
    check_options("@jit", options, list(inspect.signature(JITFunction).parameters)[1:])
    if fn is MISSING:
        return outermost(lambda function: JITFunction(function, **options))
    return JITFunction(fn, **options)
