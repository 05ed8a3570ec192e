"""A kernel that is translated and ready to run in one mode."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import hashlib
import operator
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tilewright.absent import absent
from tilewright.artifact import GRID_SIDES, Artifact, Options, launch_conditions
from tilewright.diagnostics import ArgumentKindError, DeviceError, LaunchError
from tilewright.frozen import frozen
from tilewright.outputs import check_outputs, write_output
from tilewright.runtime.arguments.arrays import HOST, UNKNOWN
from tilewright.runtime.arguments.specialise import Call, key_of, specialise
from tilewright.runtime.building.assembly import Assembly
from tilewright.runtime.changed_globals import check_unchanged
from tilewright.runtime.finer import as_promised, left_to_finer, promised
from tilewright.runtime.hooks import LAUNCH_HOOKS, LOAD_HOOKS, LaunchMetadata
from tilewright.runtime.launching.fast_text import hold
from tilewright.runtime.launching.grid_sizes import check_can_wait, grid_sizes
from tilewright.runtime.launching.host_expressions import condition
from tilewright.runtime.launching.tensor_maps import integer_places
from tilewright.runtime.options import OPTION_NAMES
from tilewright.runtime.placement import check_memory, device_of
from tilewright.runtime.specialisations import Specialisation
from tilewright.runtime.tracebacks import outermost
from tilewright.runtime.tracing import RecordedLaunch, recording

if TYPE_CHECKING:
    from tilewright.runtime.building.nvrtc import Cubin
    from tilewright.runtime.cpu import Buffer
    from tilewright.runtime.launching.fast_path import FastPath
    from tilewright.runtime.launching.launcher import Launcher


@frozen
class Metadata(Options):
    """The options of a translation and what came of it; `shared` is the shared memory of a block in bytes."""

    name: str = ""
    target: str = ""
    shared: int = 0
    hash: str = ""


class CompiledKernel:
    """One specialisation: its text, its machine code where it has one, and how to launch it.

    Attributes:
      specialisation: what it was compiled for.
      source: the generated CUDA.
      name: the kernel's name.
      metadata: the options it was translated with, and facts about the text.
      n_regs, n_spills: registers per thread and bytes of spills; on the CPU what the text would need on a GPU, 0 without NVRTC.
      asm: the text in its forms, made when they are asked for: "cu", "ptx", "cubin", "sass".
      check_globals: a function that rejects a launch when what the kernel read outside of itself has changed since.
      few_at_most: the most programs for which there is another text, 0 where there is none.
      needs: from the values and the grid of a launch to whether the text is right for it: whether its guards hold, and its
        integers are multiples of what it takes them to be; None where it is right for all.
      conditions: the same, and that no other text is for the launch: one for few programs, or for integers that are multiples
        of something; None where it is for all.
      is_loaded: whether all is there that a launch needs at once; False where only the text is there, which no launch took.
      launcher: launches on the GPU; None in the other modes.
    """

    def __init__(self, artifact: Artifact, specialisation: Specialisation) -> None:
        """The text; `load` compiles it for the GPU in mode "gpu", and the CPU's library is built at the first launch."""
        options, place = specialisation.options, specialisation.placement
        self.artifact, self.specialisation = artifact, specialisation
        self.mode, self.device = place.mode, max(place.device, 0)
        self.source, self.name = artifact.source, artifact.kernel_name
        digest = hashlib.sha256(artifact.source.encode()).hexdigest()
        self.metadata = Metadata(
            **asdict(options), name=self.name, target=artifact.target, hash=digest,
            shared=artifact.shared_bytes + artifact.static_shared_bytes,
        )  # fmt: skip
        self.check_globals = functools.partial(check_unchanged, artifact.globals, self.name)
        self.is_new = True  # until a launch has told those who asked
        self.is_loaded = False
        self._cubin: Cubin | None = None
        self._is_built = False  # the CPU's library
        self._fast: FastPath | None = None
        self.launcher: Launcher | None = None
        function, places = specialisation.function, integer_places(artifact)
        needed = promised(specialisation.arguments, artifact)
        needed += launch_conditions(artifact) if options.guards else ()
        self.needs = condition(needed, places) if needed else None
        chosen = (*needed, *left_to_finer(function, artifact))
        self.few_at_most = 0
        if artifact.for_many and self.mode == "gpu":
            from tilewright.runtime.devices import multiprocessors

            self.few_at_most = multiprocessors(self.device)
            chosen = (*chosen, f"{' * '.join(GRID_SIDES)} > {self.few_at_most}")
        self.conditions = condition(chosen, places) if chosen else None
        self._forms: dict[str, str | bytes] = {"cu": self.source}
        self.asm = Assembly(artifact, self._forms)
        if self.mode != "gpu":
            from tilewright.runtime import cpu  # now, since no fork is to find it half imported (see `forks`)

            self._cpu = cpu

    def __getattr__(self, name: str) -> Any:
        raise absent("CompiledKernel", name, dir(self))

    def load(self) -> None:
        """Makes what a launch needs at once: for the GPU it compiles, or finds what was compiled, and loads it."""
        if self.mode == "gpu":
            self._load_for_gpu()
        self.is_loaded = True

    def _load_for_gpu(self) -> None:
        from tilewright.runtime.cache import compiled
        from tilewright.runtime.driver import load
        from tilewright.runtime.launching.launcher import Launcher
        from tilewright.runtime.placement import device_target

        cubin = compiled(self.artifact, device_target(self.device).name)
        self._cubin, self._forms["cubin"] = cubin, cubin.code
        with self._loading():
            self.launcher = Launcher(self.artifact, load(cubin, self.artifact, self.device), self.device)

    @contextlib.contextmanager
    def _loading(self) -> Iterator[None]:
        """Calls the hooks around the loading of machine code."""
        about: tuple[Any, ...] = (self.name, {}, self.metadata.hash)  # no files
        LOAD_HOOKS.begin(None, None, *about)
        yield
        LOAD_HOOKS.end(None, self.function, *about)

    @outermost
    def export(self, path: str | Path, header: str | Path = "", name: str = "", force: bool = False) -> None:
        """Writes this specialisation for C++: its text with the function that launches it, and the declaration of that.

        `name` is another name for the kernel: two in one program must not have the same.

        Raises:
          OutputExistsError: for a file that exists, unless `force`.
          SignatureError: when the name is no identifier.
          TilewrightError: when a file cannot be written.
        """
        from tilewright.emit.host import host_header, with_host_function
        from tilewright.pipeline import translate

        outputs = [Path(output) for output in (path, header) if output]
        made = self.specialisation
        check_outputs(outputs, force, "pass force=True to overwrite it", Path(made.function.path))
        artifact = self.artifact
        if name:
            artifact = translate(made.function, made.arguments, made.options, made.target, name)
        for output, text in zip(outputs, (with_host_function(artifact).source, host_header(artifact)), strict=False):
            write_output(output, text)

    @property
    def n_regs(self) -> int:
        """Registers per thread."""
        cubin = self._machine_code()
        return cubin.registers if cubin else 0

    @property
    def n_spills(self) -> int:
        """Bytes of registers that are kept in memory, per thread."""
        cubin = self._machine_code()
        return cubin.spill_bytes if cubin else 0

    @property
    def hash(self) -> str:
        """A digest of the text."""
        return self.metadata.hash

    @property
    def function(self) -> int | None:
        """The driver's handle of the kernel; None where it does not run on a GPU."""
        return self.launcher.function if self.launcher is not None else None

    def _machine_code(self) -> Cubin | None:
        from tilewright.runtime.building import nvrtc
        from tilewright.runtime.cache import compiled

        if self._cubin is None and nvrtc.is_available():
            self._cubin = compiled(self.artifact)
        return self._cubin

    def _init_handles(self) -> None:
        """What Triton's programs call before they read `n_regs`; here everything is ready."""

    def __getitem__(self, grid: Any) -> Callable[..., CompiledKernel]:
        """`compiled[grid]`: launches this specialisation on all arguments of the kernel, compile-time ones included."""
        if self._fast is None:
            from tilewright.runtime.launching.fast_path import FastPath

            self._fast = FastPath(self.specialisation.function, self)
        return hold(self._fast.function, () if grid is None else grid)

    def launch_checked(self, /, *args: Any, grid: Any, **kwargs: Any) -> CompiledKernel:
        """Launches this specialisation on all arguments of the kernel, or on those that are no compile-time values.

        Raises:
          ArgumentKindError: when they, or the options, need another one.
          DeviceError: when they lie elsewhere.
        """
        own, function = self.specialisation, self.specialisation.function
        if kwargs.keys().isdisjoint(function.arg_names):
            args = self._completed(args)
        bound, options, stream = function.bind(args, kwargs)
        call = specialise(function, bound)
        self._check_place(call)
        key = key_of(as_promised(call.arguments, self.artifact, own.arguments, call.values))
        sizes = grid_sizes(grid, bound)
        given = OPTION_NAMES & kwargs.keys()
        is_other = any(getattr(options, name) != getattr(own.options, name) for name in given)
        if key != own.argument_key or is_other or not self.fits(call, sizes):
            raise ArgumentKindError(
                f"these arguments need another specialisation of {self.name} than the one that was compiled; "
                f"{self.name}[grid](…) of the function itself finds or makes it"
            )
        self.check_globals()
        if 0 not in sizes:
            self.launch(sizes, call, stream)
        return self

    def _check_place(self, call: Call) -> None:
        """Rejects arrays that lie where this kernel does not run.

        Raises:
          DeviceError: names both places.
        """
        check_memory(call.arrays)
        own, device = self.specialisation.placement.device, device_of(call.arrays)
        if call.arrays and device != own:
            where, here = ("the CPU" if one == HOST else f"cuda:{one}" for one in (device, own))
            raise DeviceError(f"{self.name} was compiled for {here}, and the arrays of this launch lie on {where}")

    def _completed(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """All arguments, where the compile-time ones were left out: their values are known here."""
        function = self.specialisation.function
        if len(args) != len(function.params) - len(function.constexprs):
            return args
        given = iter(args)
        known = zip(function.params, self.specialisation.arguments, strict=True)
        return tuple(getattr(one, "value", None) if p.is_constexpr else next(given) for p, one in known)

    def fits(self, call: Call, grid: tuple[int, int, int]) -> bool:
        """Whether the text is right for the values of a call and for so many programs, as its guards say."""
        return self.needs is None or self.needs(call.values, grid)

    def finish(self) -> None:
        """Does now what the first launch would do: builds the CPU's library."""
        if self.mode == "cpu":
            self._cpu.build_library(self.artifact)

    def launch(self, grid: tuple[int, int, int], call: Call, stream: Any = None) -> None:
        """Runs the kernel on the values of a call, between the hooks; or writes the launch down for a traced program."""
        self._check_writable(call)
        traced = recording()
        if traced is not None:
            traced.launches.append(RecordedLaunch(self, grid, call.values))
            return
        if not LAUNCH_HOOKS:
            self._start(grid, call, stream)
            return
        metadata = self._launch_metadata(grid, call, stream)
        LAUNCH_HOOKS.begin(metadata)
        self._start(grid, call, stream)
        LAUNCH_HOOKS.end(metadata)

    def _launch_metadata(self, grid: tuple[int, int, int], call: Call, stream: Any) -> LaunchMetadata:
        own = {"name": self.name, "grid": grid, "stream": self._stream(stream, call) if self.mode == "gpu" else 0}
        describe = self.specialisation.function.launch_metadata
        values = dict(zip((p.name for p in self.artifact.parameters), call.values, strict=True))
        return LaunchMetadata(own | (describe(grid, self.metadata, values) if describe else {}))

    def _stream(self, stream: Any, call: Call) -> int:
        """The number of a stream, or of the current one.

        Raises:
          LaunchError: for what is no stream.
        """
        from tilewright.runtime.driver import current_stream

        if stream is None:
            return current_stream(self.device, {type(a.owner).__module__.partition(".")[0] for _, a in call.arrays})
        chosen = getattr(stream, "cuda_stream", stream)
        chosen = getattr(chosen, "ptr", chosen)
        try:
            number = operator.index(chosen)
        except TypeError:
            number = -1
        if not 0 <= number < 2**64:
            raise LaunchError(f"stream is {chosen!r}; it must be a stream of torch or CuPy, or the number of one")
        return number

    def _start(self, grid: tuple[int, int, int], call: Call, stream: Any) -> None:
        if self.launcher is not None:
            self.launcher.launch_anywhere(*grid, self._stream(stream, call), call.values)
            return
        check_can_wait(self.metadata, grid)
        if self.mode == "check":
            self._check(grid, call)
            return
        if LOAD_HOOKS and not self._is_built:
            with self._loading():
                self.finish()
        self._is_built = True
        self._cpu.run(self.artifact, grid, call.values)

    def _check_writable(self, call: Call) -> None:
        for name, array in call.arrays:
            if name in self.artifact.writes and not array.writable:
                raise ArgumentKindError(
                    f"argument {name} is written by {self.name}, but the array is read-only; pass a copy, or, of arrays of "
                    "JAX, have tilewright.jax.call make the result"
                )

    def _check(self, grid: tuple[int, int, int], call: Call) -> None:
        buffers: list[Buffer] = []
        for name, array in call.arrays:
            if array.size == UNKNOWN:
                raise ArgumentKindError(f"argument {name} does not tell its size, which the check needs: pass a tensor")
            memory = memoryview((ctypes.c_char * array.size).from_address(array.address)).cast("B")
            content = memory if array.writable else memory.toreadonly()
            buffers.append(self._cpu.Buffer(array.address, content, name))
        self._cpu.check(self.artifact, grid, call.values, buffers)
