"""The disk cache of compiled kernels: a folder per content, the `.cu` beside its cubin.

An entry that is missing, cut short, altered or unreadable is a miss; a cache that cannot be written is no cache. Entries
appear whole or not at all: they are written elsewhere and moved into place.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
import warnings
from pathlib import Path

from tilewright.artifact import Artifact
from tilewright.runtime.folders import cache_folder
from tilewright.runtime.nvrtc import Cubin, compile_text, version
from tilewright.version import VERSION


def compiled(artifact: Artifact, maxnreg: int | None = None, target: str | None = None) -> Cubin:
    """The machine code of a kernel for `target` (by default the one it was written for), from the cache or from NVRTC."""
    target = target or artifact.target
    parts = (artifact.source, target, repr(maxnreg), repr(version()), VERSION)
    key = hashlib.sha256("\0".join(parts).encode()).hexdigest()
    folder = cache_folder() / "gpu" / key[:2] / key[2:]
    found = _read(folder)
    if found is not None:
        return found
    result = compile_text(artifact, target, maxnreg)
    _write(folder, artifact, result)
    return result


def _read(folder: Path) -> Cubin | None:
    try:
        facts = json.loads((folder / "facts.json").read_text(encoding="utf-8"))
        code = (folder / "kernel.cubin").read_bytes()
        if hashlib.sha256(code).hexdigest() != facts["digest"]:
            return None
        return Cubin(code, facts["registers"], facts["spill_bytes"], facts["static_shared_bytes"], facts["log"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _write(folder: Path, artifact: Artifact, cubin: Cubin) -> None:
    facts = {
        "digest": hashlib.sha256(cubin.code).hexdigest(),
        "registers": cubin.registers,
        "spill_bytes": cubin.spill_bytes,
        "static_shared_bytes": cubin.static_shared_bytes,
        "log": cubin.log,
    }
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for name, content in (
            (f"{artifact.kernel_name}.cu", artifact.source.encode()),
            ("kernel.cubin", cubin.code),
            ("facts.json", json.dumps(facts).encode()),  # last: an entry counts once its facts are there
        ):
            handle, temporary = tempfile.mkstemp(dir=folder)
            with os.fdopen(handle, "wb") as file:
                file.write(content)
            os.replace(temporary, folder / name)
    except OSError as error:
        warnings.warn(f"the cache cannot be written ({error}); kernels are compiled anew each time", stacklevel=2)
