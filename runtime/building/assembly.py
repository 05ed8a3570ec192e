"""A kernel's text in the forms that a compiler makes of it, each made when it is first asked for."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from tilewright.artifact import Artifact
from tilewright.diagnostics import ToolchainError
from tilewright.runtime.building import nvrtc
from tilewright.runtime.tracebacks import outermost

FORMS = ("cu", "ptx", "cubin", "sass")


class Assembly(Mapping[str, str | bytes]):
    """By name: "cu" and "ptx", "cubin" (bytes), "sass"; getting one raises `ToolchainError` where its tool is missing."""

    def __init__(self, artifact: Artifact, known: dict[str, str | bytes]) -> None:
        """`known` are forms that exist already."""
        self._artifact, self._known = artifact, known

    @outermost
    def __getitem__(self, form: str) -> str | bytes:
        if form not in FORMS:
            raise KeyError(f"a kernel has no {form!r}; it has {', '.join(FORMS)}")
        if form not in self._known:
            self._known[form] = self._make(form)
        return self._known[form]

    def __contains__(self, form: object) -> bool:
        return form in FORMS  # without making it

    def __iter__(self) -> Iterator[str]:
        return iter(FORMS)

    def __len__(self) -> int:
        return len(FORMS)

    def _make(self, form: str) -> str | bytes:
        from tilewright.runtime import cache

        if form == "ptx":
            return nvrtc.compile_ptx(self._artifact)
        if form == "cubin":
            return cache.compiled(self._artifact).code
        code = self["cubin"]
        return disassemble(code) if isinstance(code, bytes) else ""


def disassemble(cubin: bytes) -> str:
    """The machine code as text.

    Raises:
      ToolchainError: without CUDA's `nvdisasm` or `cuobjdump`.
    """
    for tool, flags in (("nvdisasm", ("-c",)), ("cuobjdump", ("-sass",))):
        program = _find(tool)
        if program is None:
            continue
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "kernel.cubin"
            file.write_bytes(cubin)
            done = subprocess.run(
                [program, *flags, str(file)], capture_output=True, encoding="utf-8", errors="replace", check=False
            )
        if done.returncode != 0:
            raise ToolchainError(f"{tool} cannot read the machine code: {done.stderr.strip()}")
        return done.stdout
    raise ToolchainError(
        "showing machine code needs CUDA's nvdisasm or cuobjdump, and neither is on PATH, in $CUDA_HOME/bin or among the "
        "packages; `pip install nvidia-cuda-nvdisasm` brings one"
    )


def _find(tool: str) -> str | None:
    folders = [toolkit / "bin" for toolkit in nvrtc.named_toolkits()]
    try:
        import nvidia

        folders += [folder for root in nvidia.__path__ for folder in sorted(Path(root).glob("*/bin"))]
    except ImportError:
        pass
    folders.append(nvrtc.USUAL_TOOLKIT / "bin")
    return shutil.which(tool) or shutil.which(tool, path=os.pathsep.join(map(str, folders)))
