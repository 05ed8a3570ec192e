"""The language: what users import as `tl`.

Types, `constexpr`, and one `Builtin` per function. What a function means is in `ops/`, `frontend/` and `interpreter/`;
this package holds names, signatures and documentation only.
"""

from __future__ import annotations

import difflib
import enum
import inspect
from typing import Any

from ..ops.table import OPS as _OPS
from . import stubs as _stubs
from .builtin import Builtin as _Builtin
from .constexpr import constexpr
from .control import condition, range, static_range
from .dtypes import (
    DTYPES_BY_WORD as _DTYPES,
)
from .dtypes import (
    DType,
    PointerType,
)
from .namespaces import extra, math, target_info

TRITON_MAX_TENSOR_NUMEL = 1048576

# Triton's names that later versions will bring; using one is an error that says so.
NOT_YET = frozenset(
    """dot dot_scaled make_block_ptr advance make_tensor_descriptor load_tensor_descriptor store_tensor_descriptor
    tensor_descriptor associative_scan cumsum cumprod sort topk bitonic_merge histogram gather join split cat
    interleave flip rand rand4x randint randint4x randn randn4x philox philox_impl pair_uniform_to_normal
    uint_to_uniform_float inline_asm_elementwise map_elementwise expect_zero aggregate float8e4b15 float8e4b8
    float8e5b16""".split()
)


class PropagateNan(enum.Enum):
    """What `maximum`, `minimum` and `clamp` do with NaN."""

    NONE = 0
    ALL = 1


class const:  # noqa: N801 (Triton's name)
    """Annotation of a pointer parameter that is only read."""


class tensor:  # noqa: N801 (Triton's name)
    """The type of tiles and run-time scalars inside kernels, for annotations and `isinstance`."""


class tuple:  # noqa: N801 (Triton's name)
    """The type of tuples inside kernels, for annotations and `isinstance`."""


dtype = DType
pointer_type = PointerType
pi32_t = PointerType(_DTYPES["int32"])


def _elementwise(name: str) -> _Builtin:
    op = _OPS[name]
    parameters = [inspect.Parameter(p, inspect.Parameter.POSITIONAL_OR_KEYWORD) for p in op.parameters]
    return _Builtin(name, inspect.Signature(parameters), op.doc, method=True, op=name)


_ELEMENTWISE = ("where", "abs", "fma", "exp", "exp2", "log", "log2", "sin", "cos", "sqrt", "sqrt_rn", "rsqrt", "erf", "floor",
                "ceil", "div_rn", "umulhi", "sigmoid")  # fmt: skip
globals().update({name: _elementwise(name) for name in _ELEMENTWISE})
globals().update({name: value for name, value in vars(_stubs).items() if isinstance(value, _Builtin)})
globals().update(_DTYPES)

METHODS = {value.name: value for value in dict(globals()).values() if isinstance(value, _Builtin) and value.method}


def __getattr__(name: str) -> Any:
    """Names that do not exist: says which one was meant, or that it is still to come."""
    if name in NOT_YET:
        raise AttributeError(f"tl.{name} is not supported yet")
    close = difflib.get_close_matches(name, globals(), n=1)
    hint = f"; did you mean tl.{close[0]}?" if close else ""
    raise AttributeError(f"module 'triton.language' has no attribute {name!r}{hint}")


__all__ = [name for name in globals() if not name.startswith("_")] + ["constexpr", "condition", "range", "static_range"]
__all__ += ["extra", "math", "target_info"]
