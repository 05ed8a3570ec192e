"""The disk cache of compiled kernels: the `.cu` beside its cubin, found by everything that decides the machine code.

A cache that cannot be written is no cache; kernels then compile each time.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import time
from pathlib import Path
from typing import Any

from tilewright.absent import absent
from tilewright.artifact import Artifact
from tilewright.frozen import frozen
from tilewright.runtime.building import store
from tilewright.runtime.building.folders import BOUND, bound_bytes, cache_folder
from tilewright.runtime.building.nvrtc import Cubin, compile_text, version
from tilewright.runtime.environment import ALWAYS_COMPILE, is_on
from tilewright.runtime.log import log, reason
from tilewright.runtime.tracebacks import warn
from tilewright.version import VERSION

KINDS = {
    "cpu": "programs of the CPU run",
    "translations": "translations",
    "toolchain": "facts about CUDA's compiler",
    "tuned": "results of tunings, which stay when the cache is cleared",
}
LASTING = ("tuned",)
CUBIN, TEXT = "kernel.cubin", "kernel.cu"  # never the kernel's name: Windows has no files called "aux" or "con"


def root() -> Path:
    """Where compiled kernels are kept."""
    return cache_folder() / "gpu"


def location(kernel: Listed) -> Path:
    """The file with a cached kernel's text."""
    return kernel.entry.folder / TEXT


def compiled(artifact: Artifact, target: str | None = None) -> Cubin:
    """The machine code of a kernel for `target` (by default the one it was written for), from the cache or from NVRTC."""
    target = target or artifact.target
    parts = key_parts(artifact, target)
    key = hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()
    found = _read(key)
    if found is None:
        with store.sole_maker(root(), key):
            found = _read(key)  # another process may have made it meanwhile
            if found is None:
                return _make(key, parts, artifact, target)
    log(lambda: f"{artifact.kernel_name} for {artifact.target}: machine code from the cache, {key[:12]}")
    return found


def key_parts(artifact: Artifact, target: str) -> dict[str, str]:
    """Everything that decides the machine code, by name."""
    text = hashlib.sha256(artifact.source.encode()).hexdigest()
    major, minor = version()
    return {
        "kernel": artifact.kernel_name, "text": text, "target": target, "flags": " ".join(artifact.compiler_flags) or "none",
        "NVRTC": f"{major}.{minor}", "tilewright": VERSION,
    }  # fmt: skip


def _make(key: str, parts: dict[str, str], artifact: Artifact, target: str) -> Cubin:
    start = time.perf_counter()
    result = compile_text(artifact, target)
    took = time.perf_counter() - start

    def message() -> str:
        known = [e.facts["key"] for e in listed() if e.facts["key"]["kernel"] == artifact.kernel_name]
        return (
            f"{artifact.kernel_name} for {artifact.target}: compiled in {took * 1000:.0f} ms, {key[:12]}; "
            f"not in the cache: {reason(parts, known)}"
        )

    log(message)
    _write(key, parts, artifact, result)
    return result


def _read(key: str) -> Cubin | None:
    found = None if is_on(ALWAYS_COMPILE) else store.read(root(), key)
    if found is None:
        return None
    facts, files = found
    try:
        return Cubin(files[CUBIN], facts["registers"], facts["spill_bytes"], facts["static_shared_bytes"], facts["log"])
    except KeyError:  # of another version
        return None


def _write(key: str, parts: dict[str, str], artifact: Artifact, cubin: Cubin) -> None:
    facts = {
        "key": parts,
        "registers": cubin.registers,
        "spill_bytes": cubin.spill_bytes,
        "static_shared_bytes": cubin.static_shared_bytes,
        "log": cubin.log,
    }
    try:
        store.write(root(), key, facts, {TEXT: artifact.source.encode(), CUBIN: cubin.code})
        gone = store.shrink(root(), bound_bytes())
    except OSError as error:
        warn(f"the cache cannot be written ({error}); kernels are compiled anew each time", UserWarning)
        return
    if gone:
        log(lambda: f"{gone} kernels left the cache, which is bounded by {BOUND}={bound_bytes() >> 20}")


def __getattr__(name: str) -> Any:
    raise absent("triton.runtime.cache", name, ())


# ------------------------------------------------------------------------------------------------------ for people


@frozen
class Listed:
    """A kernel in the cache."""

    entry: store.Entry
    facts: dict[str, Any]


def listed(prefix: str = "") -> list[Listed]:
    """The kernels whose key begins with a prefix, the one used last first."""
    found = []
    for entry in store.entries(root()):
        if entry.key.startswith(prefix):
            with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
                facts = json.loads((entry.folder / store.FACTS).read_text(encoding="utf-8"))["facts"]
                key = dict(facts["key"])
                found.append(Listed(entry, {**facts, "key": {"kernel": key["kernel"], "target": key["target"], **key}}))
    return found


def clear() -> tuple[int, int]:
    """Empties the cache, what the CPU run built included; how many files went, and their bytes.

    What other processes are writing stays, so that they can go on.
    """
    from tilewright.runtime.cpu.build import header_folders, remove_headers

    own = (cache_folder() / name for name in ("gpu", *KINDS) if name not in LASTING)
    gone = [store.remove_all(part) for part in own if part.exists()]
    gone += [remove_headers(part) for part in header_folders()]
    return sum(files for files, _ in gone), sum(size for _, size in gone)


def others() -> list[tuple[str, int, int]]:
    """What is kept besides kernels for a GPU: what it is, in how many files, and their bytes."""
    from tilewright.runtime.cpu.build import header_folders

    found = [(what, *store.kept(cache_folder() / name)) for name, what in KINDS.items()]
    ahead = [store.kept(folder) for folder in header_folders()]
    found.append(("precompiled headers", sum(files for files, _ in ahead), sum(size for _, size in ahead)))
    return [one for one in found if one[1]]
