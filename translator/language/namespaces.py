"""`tl.math`, `tl.extra.libdevice`, `tl.extra.cuda` and `tl.target_info`, as importable modules."""

from __future__ import annotations

import sys
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from ..ops.table import OPS
from .block_size import BLOCK_SIZE
from .builtin import Builtin
from .dependent_grids import GRID_CONTROL
from .missing import missing_name
from .stubs import fdiv, maximum, minimum
from .targets import TARGET_INFO

MATH = ("umulhi", "exp", "exp2", "fma", "log", "log2", "cos", "rsqrt", "sin", "sqrt", "sqrt_rn", "abs", "div_rn", "erf",
        "floor", "ceil")  # fmt: skip
PREFIX = "libdevice."


def elementwise(op_name: str, method: bool = False) -> Builtin:
    """The function that is a row of the op table."""
    op = OPS[op_name]
    return Builtin(op_name, op.parameters, op.doc, method=method, op=op_name)


LIBDEVICE = {name[len(PREFIX) :]: elementwise(name) for name in OPS if name.startswith(PREFIX)}


def _module(name: str, doc: str, members: dict[str, Any]) -> ModuleType:
    """A module below this package that `import` finds under its full name."""
    full = f"{__package__}.{name}"
    module = ModuleType(full, doc)

    def missing(attribute: str) -> Any:
        raise missing_name(f"tl.{name}", attribute, members, LIBDEVICE, sys.modules[__package__].__all__)

    # The import system asks a module for a path before it looks for modules below it, and who asks whether there is one for
    # its specification.
    spec = ModuleSpec(full, None, is_package=True)
    module.__dict__.update(members, __path__=[], __spec__=spec, __getattr__=missing)
    sys.modules[full] = module
    return module


# Kernels of Triton 2 have the device math library's functions there, and in `tl.libdevice`, two of them under these names.
OF_TRITON_2 = LIBDEVICE | {"max": maximum, "min": minimum}
math = _module("math", "`tl.math`.", OF_TRITON_2 | {name: elementwise(name) for name in MATH} | {"fdiv": fdiv})
libdevice = _module("libdevice", "CUDA's device math library, where Triton 2 had it.", OF_TRITON_2)
_extra_libdevice = _module("extra.libdevice", "CUDA's device math library.", LIBDEVICE)
_cuda_libdevice = _module("extra.cuda.libdevice", "CUDA's device math library.", LIBDEVICE)
_cuda = _module("extra.cuda", "What only CUDA has.", {"libdevice": _cuda_libdevice, **GRID_CONTROL, **BLOCK_SIZE})
extra = _module("extra", "Functions beyond the language proper.", {"libdevice": _extra_libdevice, "cuda": _cuda})
target_info = _module("target_info", "What kernels may ask about the target.", TARGET_INFO)
