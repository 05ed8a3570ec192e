"""Compiling, caching, launching, tuning, and the ways to run. Names of Triton's `runtime` are looked up when first used.

`jit.py` is what users hold. `arguments` says what was passed, `building` makes and keeps machine code, `launching` takes both
to the driver, `tuning` and `measuring` time it; `cpu` runs the same text on the host.
"""

from __future__ import annotations

import importlib
from typing import Any

from tilewright.absent import absent

_HOMES = {
    "JITFunction": "jit",
    "KernelInterface": "kernel_interface",
    "InterpreterError": "errors",
    "MockTensor": "mock_tensor",
    "TensorWrapper": "reinterpreted",
    "reinterpret": "reinterpreted",
    "autotune": "tuning.autotune",
    "Autotuner": "tuning.autotune",
    "Config": "tuning.config",
    "heuristics": "tuning.heuristics",
    "Heuristics": "tuning.heuristics",
}


_MODULES = ("autotuner", "cache", "driver", "errors", "jit")  # which `import triton` alone makes reachable


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"tilewright.runtime.{name}")
    if name == "OutOfResources":
        return importlib.import_module("tilewright.diagnostics").OutOfResources
    if name not in _HOMES:
        raise absent("triton.runtime", name, [*_HOMES, *_MODULES])
    return getattr(importlib.import_module(f"tilewright.runtime.{_HOMES[name]}"), name)
