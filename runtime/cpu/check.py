"""Runs a kernel under sanitizers, in a process of its own: races, accesses out of bounds, misalignment, deadlocks.

Every array becomes an allocation of exactly its size, so that one element past the end is found; arrays that overlap become
one. The kernel runs under several schedules; the first fault is reported as the kernel's own line.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import struct
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tilewright.artifact import Artifact
from tilewright.diagnostics import KernelFaultError
from tilewright.frozen import frozen
from tilewright.language.dtypes import PointerType
from tilewright.runtime.cpu.build import build_check
from tilewright.runtime.cpu.memory import Buffer, Region, place_of, regions
from tilewright.runtime.cpu.run import DELIVERIES, SCHEDULES, as_started, pack
from tilewright.runtime.cpu.tensor_maps import encode_tensor_maps
from tilewright.runtime.source_lines import explain

NO_BUFFER = (1 << 64) - 1
# Per sanitizer: schedules, and when asynchronous operations are performed under each.
PLANS = {
    "memory": (("greedy_low", "early"), ("greedy_high", "late"), ("random", "mixed")),
    "races": (("round_robin", "early"), ("reverse", "late")),
}
SEED = 1  # of the random schedule
FAULT_STATUS = 86
SANITIZER_OPTIONS = {
    "TSAN_OPTIONS": "halt_on_error=1 exitcode=66",
    # The second is on by default since GCC 13. It keeps frames elsewhere, and those of a fiber that has ended are gone at once.
    "ASAN_OPTIONS": "detect_leaks=0 detect_stack_use_after_return=0",
    "UBSAN_OPTIONS": "print_stacktrace=1",  # helpers make the access, a line of the kernel asks for it
}
LOADED_FIRST = ("LD_PRELOAD", "DYLD_INSERT_LIBRARIES")  # variables that name such libraries, on Linux and macOS
UNKNOWN_MEMORY = (
    ", far from every argument; if the address was read from memory: the check copies the arrays that are arguments, and "
    "not those that addresses in memory point to, so run this kernel with TILEWRIGHT_MODE=cpu"
)


@frozen
class _Launch:
    """A launch as a checking program reads it (see `check_main.h`).

    Attributes:
      artifact: the kernel.
      grid: its blocks along each axis.
      regions: what stands for the arrays.
      described: the counts and sizes of all, the arguments and the tensor maps.
    """

    artifact: Artifact
    grid: tuple[int, int, int]
    regions: Sequence[Region]
    described: bytes


def check(
    artifact: Artifact,
    grid: tuple[int, int, int],
    values: Sequence[int | float | bool],
    buffers: Sequence[Buffer],
) -> None:
    """Runs the kernel once per sanitizer and schedule; the last memory run's results are written back.

    Raises:
      KernelFaultError: what was found, with the kernel's line.
    """
    launch = _described(artifact, grid, values, regions(buffers))
    for sanitizer, plans in PLANS.items():
        program = build_check(artifact, sanitizer)
        for plan in plans:
            result = _run(program, launch, plan)
            if sanitizer == "memory":
                last = result
    for region, content in zip(launch.regions, last, strict=True):
        region.write_back(content)


def _described(
    artifact: Artifact, grid: tuple[int, int, int], values: Sequence[int | float | bool], copied: Sequence[Region]
) -> _Launch:
    maps = encode_tensor_maps(artifact, values)
    grid, values = as_started(artifact, grid, values)
    sizes = [region.size for region in copied]
    described = struct.pack(f"<{3 + len(sizes)}Q", len(copied), len(values), len(maps), *sizes)
    for parameter, value, packed in zip(artifact.launch_parameters, values, pack(artifact, values), strict=True):
        place = place_of(int(value), copied) if isinstance(parameter.element, PointerType) else None
        described += struct.pack("<2Q", *(place if place is not None else (NO_BUFFER, packed)))
    for encoded in maps:  # the base, its first 8 bytes, becomes a buffer and the offset in it
        base = int.from_bytes(encoded[:8], "little")
        place = place_of(base, copied)
        described += struct.pack("<2Q", *(place if place is not None else (NO_BUFFER, base))) + encoded[8:]
    return _Launch(artifact, grid, copied, described)


def _run(program: Path, launch: _Launch, plan: tuple[str, str]) -> list[bytes]:
    """What a run under a plan leaves in the regions.

    Raises:
      KernelFaultError: what it found.
    """
    schedule, delivery = plan
    head = struct.pack("<6Q", *launch.grid, SCHEDULES[schedule], SEED, DELIVERIES[delivery]) + launch.described
    with tempfile.TemporaryFile() as file:  # without a name, so that nothing is left when this process is killed
        file.write(head)
        for region in launch.regions:
            file.write(region.content())
        file.flush()
        done = subprocess.run(
            [*_launcher(), str(program), str(file.fileno()), str(os.getpid())], pass_fds=[file.fileno()],
            capture_output=True, encoding="utf-8", errors="replace", check=False,
            env=_environment(),
        )  # fmt: skip
        if done.stdout:
            print(done.stdout, end="")
        if done.returncode != 0:
            raise KernelFaultError(_report(done.stderr, done.returncode, launch.artifact, launch.regions))
        file.seek(len(head))
        return [file.read(region.size) for region in launch.regions]


def _environment() -> dict[str, str]:
    """This process's, without libraries that are loaded first, as allocators often are: a sanitizer has to be that."""
    kept = {name: value for name, value in os.environ.items() if name not in LOADED_FIRST}
    return {**kept, **SANITIZER_OPTIONS}


def _launcher() -> list[str]:
    """ThreadSanitizer needs address-space randomisation off on recent kernels."""
    setarch = shutil.which("setarch")
    return [setarch, platform.machine(), "-R"] if setarch else []


# --------------------------------------------------------------------------------------------------------- reports


def _report(text: str, status: int, artifact: Artifact, copied: Sequence[Region]) -> str:
    if status == FAULT_STATUS:
        return explain(text.partition("tilewright-fault: ")[2], artifact)
    if "data race" in text:
        return explain(_race(text, artifact), artifact)
    if "AddressSanitizer" in text and "kernel.cu:" in text:  # otherwise it is no access of the kernel's
        return explain(_out_of_bounds(text, artifact, copied), artifact)
    if match := re.search(r"kernel\.cu:\d+:\d+: runtime error: (.*)", text):
        return explain(f"misaligned access at line {_own_line(text, artifact)}: {match[1]}", artifact)
    return f"the check ended with status {status}:\n{text[-2000:]}"


def _own_line(frames: str, artifact: Artifact) -> int:
    """The innermost line of the generated text that came from a statement of the kernel, not from a helper."""
    lines = [int(number) for number in re.findall(r"kernel\.cu:(\d+)", frames)]
    mapped = {line for line, *_ in artifact.lines}
    return next((line for line in lines if line in mapped), lines[0] if lines else 0)


def _race(text: str, artifact: Artifact) -> str:
    """The two accesses of ThreadSanitizer's first report."""
    accesses = re.findall(
        r"(Atomic write|Atomic read|Write|Read|Previous atomic write|Previous atomic read|Previous write|Previous read) of "
        r"size \d+ at \S+ by ([^:\n]*):\n((?:\s+#\d+ .*\n)+)",
        text,
    )
    names = dict(re.findall(r"Thread (T\d+) '([^']*)'", text))
    parts, proxies = [], []
    for kind, thread, frames in accesses[:2]:
        line = _own_line(frames, artifact)
        number = re.search(r"\bT\d+", thread)
        who = names.get(number[0], f"thread {number[0]}") if number else "a thread"
        parts.append(f"{kind.lower()} at line {line} by {who}")
        proxies.append(who.startswith(("wgmma", "TMA store")))
    place = re.search(r"Location is (?:global '([^']*)'|heap block)", text)
    name = (place[1] or "global memory") if place else "memory"
    help = (
        "; what threads write needs a barrier and an async_proxy_fence before it"
        if any(proxies) != all(proxies)
        else ""
    )
    return f"race on {name}: " + "; ".join(parts) + help


def _out_of_bounds(text: str, artifact: Artifact, copied: Sequence[Region]) -> str:
    kind = re.search(r"AddressSanitizer: (\S+)", text)
    access = re.search(r"(READ|WRITE) of size (\d+)", text)
    what = f"{access[1].lower()} of {access[2]} bytes" if access else "access"
    line = _own_line(text, artifact)
    near = re.search(r"is located (\d+) bytes (.+?) (?:of )?(\d+)-byte region \[(0x[0-9a-f]+)", text)
    where = UNKNOWN_MEMORY if kind and kind[1] == "SEGV" else ""
    if near:
        start = int(near[4], 16)
        for number, address in re.findall(r"tilewright-buffer: (\d+) (0x[0-9a-f]+)", text):
            if int(address, 16) == start:
                before = "left" in near[2] or "before" in near[2]
                side = "before" if before else "past the end of"
                where = f", {near[1]} bytes {side} {copied[int(number)].described(before)}"
    return f"out of bounds: {what} at line {line}{where} ({kind[1] if kind else 'address'})"
