"""Host-side companions of kernels: `tilewright.tools`."""

from __future__ import annotations

import importlib
from typing import Any

from tilewright.absent import absent

_MODULES = ("disasm", "mxfp", "tensor_descriptor")  # which `import triton` alone makes reachable


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise absent("triton.tools", name, _MODULES)
    return importlib.import_module(f"tilewright.tools.{name}")
