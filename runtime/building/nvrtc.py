"""Compiles generated text with NVRTC, for an exact architecture; needs no GPU."""

from __future__ import annotations

import contextlib
import functools
import os
import re
import threading
from pathlib import Path
from typing import Any

from tilewright.artifact import Artifact
from tilewright.diagnostics import ToolchainError
from tilewright.frozen import frozen
from tilewright.runtime.building.cubin import resources
from tilewright.runtime.building.nvrtc_version import remember, remembered
from tilewright.runtime.forks import preparing
from tilewright.runtime.source_lines import explain
from tilewright.runtime.tracebacks import warn

INSTALL = (
    "install CUDA's compiler with `pip install tilewright[cu13]` (drivers from 580) or `pip install tilewright[cu12]`"
)
USUAL_TOOLKIT = Path("/usr/local/cuda")
NOTHING = 'extern "C" __global__ void nothing() {}'
_STARTED: list[threading.Thread] = []  # the thread that loads NVRTC ahead, once there is one
VERSION_LINE = "#define CUDA_VERSION "
SERIALISED = "Potential Performance Loss"  # ptxas's words where every wgmma is waited for; tests look for them
# Versions whose assembler is known to go wrong on Hopper: (first bad, first good), what happens.
KNOWN_BAD = {((13, 0), (13, 1)): "its ptxas can write wrong shared memory on Hopper; NVRTC 13.1 or later is clean"}


@frozen
class Cubin:
    """Machine code, and what it needs: registers per thread, bytes of spills and of static shared memory."""

    code: bytes
    registers: int
    spill_bytes: int
    static_shared_bytes: int
    log: str


@functools.cache
def bindings() -> Any:
    """The NVRTC module of cuda-bindings.

    Raises:
      ToolchainError: when it or the library cannot be loaded.
    """
    try:
        from cuda.bindings import nvrtc

        nvrtc.nvrtcVersion()
    except Exception as error:
        raise ToolchainError(f"NVRTC cannot be loaded ({error}); {INSTALL}") from error
    return nvrtc


def is_available() -> bool:
    """Whether text can be compiled here."""
    try:
        return bool(bindings())
    except ToolchainError:
        return False


@functools.cache
def version() -> tuple[int, int]:
    """NVRTC's version; a library that is known from an earlier process is not loaded for it."""
    found = remembered() or _loaded_version()
    for (first_bad, first_good), why in KNOWN_BAD.items():
        if first_bad <= found < first_good:
            warn(f"NVRTC {found[0]}.{found[1]}: {why}")
    return found


def _loaded_version() -> tuple[int, int]:
    _, major, minor = bindings().nvrtcVersion()
    remember((int(major), int(minor)))
    return int(major), int(minor)


def named_toolkits() -> list[Path]:
    """The folders of CUDA's toolkit that the environment names; one that is empty is none."""
    return [Path(folder) for name in ("CUDA_HOME", "CUDA_PATH") if (folder := os.environ.get(name))]


@functools.cache
def header_folder() -> str | None:
    """A folder with CUDA's headers of NVRTC's major version; None when there is none."""
    import sysconfig

    site = Path(sysconfig.get_paths()["purelib"]) / "nvidia"
    major = version()[0]
    roots = [site / f"cu{major}" / "include", site / "cuda_runtime" / "include"]
    roots += [toolkit / "include" for toolkit in (*named_toolkits(), USUAL_TOOLKIT)]
    roots += _beside_nvrtc()
    for root in roots:
        if (root / "cuda_fp16.h").exists() and _header_major(root) in (None, major):
            return str(root)
    return None


def _beside_nvrtc() -> list[Path]:
    """Include folders of the packages that cuda-bindings itself lies in."""
    import cuda.bindings

    package = Path(cuda.bindings.__file__).resolve().parents[2] / "nvidia"
    return [package / f"cu{version()[0]}" / "include", package / "cuda_runtime" / "include"]


def _header_major(root: Path) -> int | None:
    try:
        with open(root / "cuda.h", encoding="utf-8", errors="ignore") as lines:  # it stands among the first of 25,000
            found = (line.removeprefix(VERSION_LINE) for line in lines if line.startswith(VERSION_LINE))
            return int(next(found, "0")) // 1000 or None
    except (OSError, ValueError):
        return None


def compile_text(artifact: Artifact, target: str | None = None) -> Cubin:
    """The machine code of a translated kernel for `target`, its own architecture when that is None.

    Raises:
      ToolchainError: with the compiler's words, at the kernel's lines.
    """
    options = [f"--gpu-architecture={target or artifact.target}", "--ptxas-options=-v"]
    code, log = _compile(artifact, options, "CUBIN")
    spills = sum(int(count) for count in re.findall(r"(\d+) bytes spill", log))  # only the log tells
    arch = target or artifact.target
    registers, shared = resources(code, artifact.kernel_name, int(re.sub(r"\D", "", arch)))
    return Cubin(code, registers, spills, shared, log)


def compile_ptx(artifact: Artifact) -> str:
    """The PTX, for display."""
    code, _ = _compile(artifact, [f"--gpu-architecture={artifact.target.replace('sm_', 'compute_')}"], "PTX")
    return code.rstrip(b"\0").decode()


def _compile(artifact: Artifact, options: list[str], kind: str) -> tuple[bytes, str]:
    options = ["-std=c++17", *options, *artifact.compiler_flags]
    if artifact.headers:
        folder = header_folder()
        if folder is None:
            raise ToolchainError(
                f"the kernel needs CUDA's headers for NVRTC {version()[0]} and none were found; {INSTALL}"
            )
        options = [*options, f"--include-path={folder}"]
    status, log, code = _run(artifact.source, f"{artifact.kernel_name}.cu", options, kind)
    if status != 0:
        readable = explain(re.sub(r"\.cu\((\d+)\)", r".cu line \1", log), artifact)
        raise ToolchainError(f"NVRTC rejects the generated text of {artifact.kernel_name}:\n{readable}")
    return code, log


def _run(text: str, name: str, options: list[str], kind: str) -> tuple[int, str, bytes]:
    """NVRTC's status (0: done), its words, and the code of `kind`, CUBIN or PTX.

    NVRTC's own cache is left out: what is found there comes without a word on spills, and ours stands in front of it. So are
    textures and CUDA's runtime, which generated text has no use for: to declare them takes a tenth of a small compilation.
    """
    nvrtc = bindings()
    _, major, minor = nvrtc.nvrtcVersion()
    given = [*options, *(["--no-cache", "--minimal"] if (major, minor) >= (12, 9) else [])]
    _, program = nvrtc.nvrtcCreateProgram(text.encode(), name.encode(), 0, [], [])
    try:
        (status,) = nvrtc.nvrtcCompileProgram(program, len(given), [option.encode() for option in given])
        _, size = nvrtc.nvrtcGetProgramLogSize(program)
        raw = _room(size)
        nvrtc.nvrtcGetProgramLog(program, raw)
        log = raw.rstrip(b"\0 ").decode(errors="replace")
        if int(status) != 0:
            return int(status), log, b""
        _, size = getattr(nvrtc, f"nvrtcGet{kind}Size")(program)
        code = _room(size)
        getattr(nvrtc, f"nvrtcGet{kind}")(program, code)
        return 0, log, code[:size]
    finally:
        nvrtc.nvrtcDestroyProgram(program)


def _room(size: int) -> bytes:
    """Bytes for NVRTC to write to. Never a single one: of those Python has one object each, which everybody shares."""
    return bytes(size + 1)


def load_ahead(target: str) -> None:
    """Starts a thread that loads NVRTC and lets it compile nothing for a target, as the first compilation is the slowest.

    It works while a kernel is being translated: loading and compiling need Python's lock for the import alone. The headers
    are looked for there too.
    """

    @preparing()
    def load() -> None:
        with contextlib.suppress(ToolchainError):  # who needs NVRTC is told
            _run(NOTHING, "nothing.cu", [f"--gpu-architecture={target}"], "CUBIN")
            header_folder()

    if not _STARTED:
        _STARTED.append(threading.Thread(target=load, name="tilewright loads NVRTC"))
        with contextlib.suppress(RuntimeError):  # no thread can begin while Python ends
            _STARTED[0].start()
