"""A kernel that is translated and ready to run in one mode."""

from __future__ import annotations

from typing import Any

from tilewright.artifact import Artifact, Options, launch_conditions
from tilewright.diagnostics import ArgumentKindError
from tilewright.runtime.host_expressions import condition
from tilewright.runtime.specialise import Call
from tilewright.runtime.tensor_maps import integer_places


class CompiledKernel:
    """One specialisation: its text, its machine code where it has one, and how to launch it.

    Attributes:
      source: the generated CUDA.
      name: the kernel's name.
      metadata: the options it was translated with.
      n_regs, n_spills: registers per thread and bytes of spills; 0 on the CPU.
    """

    def __init__(self, artifact: Artifact, options: Options, mode: str, device: int) -> None:
        """Compiles for the GPU in mode "gpu"; the CPU's library is built at the first launch."""
        self.artifact, self.metadata, self.mode, self.device = artifact, options, mode, max(device, 0)
        self.source, self.name = artifact.source, artifact.kernel_name
        self.n_regs = self.n_spills = 0
        self._launcher: Any = None
        conditions = launch_conditions(artifact) if options.guards else ()
        self._fits = condition(conditions, integer_places(artifact)) if conditions else None
        if mode == "gpu":
            self._load()

    def _load(self) -> None:
        from tilewright.runtime.cache import compiled
        from tilewright.runtime.driver import load
        from tilewright.runtime.launcher import Launcher

        cubin = compiled(self.artifact, self.metadata.maxnreg)
        self.n_regs, self.n_spills = cubin.registers, cubin.spill_bytes
        self._launcher = Launcher(self.artifact, load(cubin, self.artifact, self.device), self.device)

    @property
    def asm(self) -> dict[str, Any]:
        """The text in its forms: "cu", and "ptx" and "cubin" where NVRTC is there."""
        from tilewright.runtime.nvrtc import compile_ptx, compile_text, is_available

        if not is_available():
            return {"cu": self.source}
        return {"cu": self.source, "ptx": compile_ptx(self.artifact), "cubin": compile_text(self.artifact).code}

    def fits(self, call: Call) -> bool:
        """Whether the text is right for the values of a call, as its guards say."""
        return self._fits is None or self._fits(call.values)

    def finish(self) -> None:
        """Does now what the first launch would do: builds the CPU's library."""
        if self.mode == "cpu":
            from tilewright.runtime.cpu.build import build_library

            build_library(self.artifact)

    def launch(self, grid: tuple[int, int, int], call: Call, stream: Any = None) -> None:
        """Runs the kernel on the values of a call."""
        self._check_writable(call)
        if self.mode == "gpu":
            from tilewright.runtime.driver import current_stream

            chosen = current_stream(self.device) if stream is None else getattr(stream, "cuda_stream", stream)
            self._launcher.launch_anywhere(*grid, int(getattr(chosen, "ptr", chosen)), call.values)
        elif self.mode == "check":
            self._check(grid, call)
        else:
            from tilewright.runtime.cpu import run

            run(self.artifact, grid, call.values)

    def _check_writable(self, call: Call) -> None:
        for name, array in call.arrays:
            if name in self.artifact.writes and not array.writable:
                raise ArgumentKindError(
                    f"argument {name} is written by {self.name}, but the array is read-only; pass a copy"
                )

    def _check(self, grid: tuple[int, int, int], call: Call) -> None:
        import ctypes

        from tilewright.runtime.cpu import check
        from tilewright.runtime.cpu.check import Buffer

        buffers: list[Buffer] = []
        for name, array in call.arrays:
            if all(buffer.address != array.address for buffer in buffers):
                memory = memoryview((ctypes.c_char * array.size).from_address(array.address)).cast("B")
                content = memory if array.writable else memory.toreadonly()
                buffers.append(Buffer(array.address, content, name))
        check(self.artifact, grid, call.values, buffers)
