"""Compiling, caching, launching, tuning, and the ways to run. Names of Triton's `runtime` are looked up when first used."""

from __future__ import annotations

import importlib
from typing import Any

_HOMES = {
    "JITFunction": "jit",
    "KernelInterface": "kernel_interface",
    "InterpreterError": "errors",
    "MockTensor": "mock_tensor",
    "TensorWrapper": "reinterpreted",
    "reinterpret": "reinterpreted",
    "autotune": "autotune",
    "Autotuner": "autotune",
    "Config": "autotune_config",
    "heuristics": "autotune_heuristics",
    "Heuristics": "autotune_heuristics",
}


_MODULES = ("autotuner", "cache", "driver", "errors", "jit")  # which `import triton` alone makes reachable


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"tilewright.runtime.{name}")
    if name == "OutOfResources":
        return importlib.import_module("tilewright.diagnostics").OutOfResources
    if name not in _HOMES:
        raise AttributeError(f"module 'tilewright.runtime' has no attribute {name!r}")
    return getattr(importlib.import_module(f"tilewright.runtime.{_HOMES[name]}"), name)
