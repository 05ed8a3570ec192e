"""NVRTC's version without loading it, which takes longer than everything else that a cached kernel needs.

The version of the library that was loaded last is remembered on disk, together with the library's file and what decides
which library is loaded: the environment and the folders of installed packages. It counts while all of that is unchanged.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import sys
from pathlib import Path
from typing import Any

from tilewright.runtime.building import store
from tilewright.runtime.building.folders import cache_folder

ENVIRONMENT = ("CUDA_HOME", "CUDA_PATH", "CONDA_PREFIX", "LD_LIBRARY_PATH", "LD_PRELOAD")
PACKAGES = (
    "nvidia",
    "nvidia/cuda_nvrtc",
    "cuda",
    "cuda/bindings",
)  # folders that a change of what is installed touches


def root() -> Path:
    """Where versions are kept."""
    return cache_folder() / "toolchain"


def remembered() -> tuple[int, int] | None:
    """The version that `remember` was told under the same circumstances."""
    entry = store.read(root(), _key())
    if entry is None:
        return None
    try:
        library, (major, minor) = entry[0]["library"], entry[0]["version"]
        return (major, minor) if _facts(library[0]) == library else None
    except (KeyError, TypeError, ValueError, IndexError):
        return None


def remember(version: tuple[int, int]) -> None:
    """Keeps the version of the library that this process has loaded, where that can be told."""
    with contextlib.suppress(OSError):
        loaded = {
            line.split(maxsplit=5)[5]
            for line in Path("/proc/self/maps").read_text(encoding="utf-8").splitlines()
            if "/libnvrtc.so" in line
        }
        if len(loaded) == 1:
            store.write(root(), _key(), {"library": _facts(loaded.pop()), "version": version}, {})


def _key() -> str:
    seen: list[Any] = [sys.prefix, [os.environ.get(name) for name in ENVIRONMENT]]
    for folder in sys.path:
        seen += [_facts(f"{folder}/{name}") for name in PACKAGES]
    return hashlib.sha256(json.dumps([one for one in seen if one is not None]).encode()).hexdigest()


def _facts(path: str) -> list[Any] | None:
    """A file or folder with its size and time; None where there is none."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return [path, found.st_size, found.st_mtime_ns]
