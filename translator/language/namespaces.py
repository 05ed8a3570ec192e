"""`tl.math`, `tl.extra.libdevice`, `tl.extra.cuda` and `tl.target_info`, as importable modules."""

from __future__ import annotations

import inspect
import sys
from types import ModuleType
from typing import Any

from ..ops.table import OPS
from .builtin import Builtin

MATH = ("umulhi", "exp", "exp2", "fma", "log", "log2", "cos", "rsqrt", "sin", "sqrt", "sqrt_rn", "abs", "div_rn", "erf",
        "floor", "ceil")  # fmt: skip
PREFIX = "libdevice."


def _module(name: str, doc: str, members: dict[str, Any]) -> ModuleType:
    """A module below this package that `import` finds under its full name."""
    full = f"{__package__}.{name}"
    module = ModuleType(full, doc)
    module.__dict__.update(members)
    module.__path__ = []  # type: ignore[attr-defined]  # may have modules below it
    sys.modules[full] = module
    return module


def _function(op_name: str) -> Builtin:
    op = OPS[op_name]
    parameters = [inspect.Parameter(p, inspect.Parameter.POSITIONAL_OR_KEYWORD) for p in op.parameters]
    return Builtin(op_name, inspect.Signature(parameters), op.doc, op=op_name)


def _fdiv() -> Builtin:
    from . import stubs

    return stubs.fdiv  # type: ignore[no-any-return]


def _capability_at_least(major: int, minor: int = 0) -> bool:
    """Whether the target has at least this compute capability; every supported one has 8.0."""
    return (major, minor) <= (8, 0)


_LIBDEVICE = {name[len(PREFIX) :]: _function(name) for name in OPS if name.startswith(PREFIX)}
math = _module("math", "`tl.math`.", {name: _function(name) for name in MATH} | {"fdiv": _fdiv()})
_extra_libdevice = _module("extra.libdevice", "CUDA's device math library.", _LIBDEVICE)
_cuda_libdevice = _module("extra.cuda.libdevice", "CUDA's device math library.", _LIBDEVICE)
_cuda = _module("extra.cuda", "What only CUDA has.", {"libdevice": _cuda_libdevice})
extra = _module("extra", "Functions beyond the language proper.", {"libdevice": _extra_libdevice, "cuda": _cuda})
target_info = _module(
    "target_info",
    "What kernels may ask about the target.",
    {"is_cuda": lambda: True, "is_hip": lambda: False, "cuda_capability_geq": _capability_at_least},
)
