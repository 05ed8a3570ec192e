"""The language: what users import as `tl`.

Types, `constexpr`, and one `Builtin` per function. What a function means is in `ops/`, `frontend/` and `interpreter/`;
this package holds names, signatures and documentation only.
"""

from __future__ import annotations

import sys as _sys
from typing import Any

from ..host import constexpr_function
from . import stubs as _stubs
from .builtin import Builtin as _Builtin
from .constexpr import constexpr
from .control import condition, range, static_range
from .dtypes import DTYPES_BY_WORD as _DTYPES
from .dtypes import ELSEWHERE as _ELSEWHERE
from .dtypes import DType as dtype  # noqa: N813 (Triton's name)
from .limits import MOST_ELEMENTS
from .missing import NOT_YET
from .missing import missing_name as _missing_name
from .namespaces import LIBDEVICE as _LIBDEVICE
from .namespaces import elementwise as _elementwise
from .namespaces import extra, libdevice, math, target_info
from .undocumented import CONSTEXPR_0, _is_power_of_two, _log2, _unwrap_if_constexpr, get_int_dtype, str_to_ty
from .values import (
    PropagateNan,
    block_type,
    const,
    constexpr_type,
    pointer_type,
    tensor,
    tensor_descriptor,
    tuple,
    tuple_type,
)

TRITON_MAX_TENSOR_NUMEL = MOST_ELEMENTS
pi32_t = pointer_type(_DTYPES["int32"])

_FUNCTIONS = ("where", "fma", "div_rn", "umulhi")
_METHODS = (
    "abs",
    "exp",
    "exp2",
    "log",
    "log2",
    "sin",
    "cos",
    "sqrt",
    "sqrt_rn",
    "rsqrt",
    "erf",
    "floor",
    "ceil",
    "sigmoid",
)
_builtins = {name: _elementwise(name) for name in _FUNCTIONS} | {name: _elementwise(name, True) for name in _METHODS}
_builtins |= {name: value for name, value in vars(_stubs).items() if isinstance(value, _Builtin)}
globals().update(_builtins)
globals().update(_DTYPES)
globals().update({dtype.word: dtype for dtype in _ELSEWHERE})

# The functions that can be called as methods of their first argument.
METHODS = {name: function for name, function in _builtins.items() if function.method}

__all__ = [
    "CONSTEXPR_0", "NOT_YET", "PropagateNan", "TRITON_MAX_TENSOR_NUMEL", "_is_power_of_two", "_log2",
    "_unwrap_if_constexpr", "block_type", "condition", "const",
    "constexpr", "constexpr_function", "constexpr_type", "dtype", "extra", "get_int_dtype", "libdevice", "math", "pi32_t",
    "pointer_type", "range", "static_range", "str_to_ty", "target_info", "tensor", "tensor_descriptor", "tuple", "tuple_type",
    *_builtins, *_DTYPES, *(dtype.word for dtype in _ELSEWHERE),
]  # fmt: skip

# Triton's language is defined in these two modules, and kernels name them: `tl.core.constexpr`, `tl.standard.sum`.
core = standard = _sys.modules[__name__]
_sys.modules |= {f"{__name__}.core": core, f"{__name__}.standard": standard}


def __getattr__(name: str) -> Any:
    """Names that do not exist: says which one was meant, or that it is still to come."""
    raise _missing_name("tl", name, __all__, _LIBDEVICE)
