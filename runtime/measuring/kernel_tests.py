"""What tests of kernels ask and use: `triton._internal_testing`. Which GPU there is, random arrays, arrays as tensors of torch.

Triton keeps it for its own tests; those of public kernels import it too. On a host without a GPU the target is the CPU.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from tilewright.diagnostics import ArgumentKindError
from tilewright.language.dtypes import DType
from tilewright.language.targets import GPUTarget
from tilewright.runtime.active import ACTIVE
from tilewright.runtime.placement import wanted_mode
from tilewright.runtime.reinterpreted import TensorWrapper, reinterpret

int_dtypes = ["int8", "int16", "int32", "int64"]
uint_dtypes = ["uint8", "uint16", "uint32", "uint64"]
integral_dtypes = int_dtypes + uint_dtypes
float_dtypes = ["float16", "float32", "float64"]
float_dtypes_with_bfloat16 = [*float_dtypes, "bfloat16"]
dtypes = integral_dtypes + float_dtypes
dtypes_with_bfloat16 = [*dtypes, "bfloat16"]
torch_float8_dtypes = ["float8_e4m3fn", "float8_e5m2"]
torch_dtypes = ["bool", *int_dtypes, "uint8", *float_dtypes, "bfloat16"]
tma_dtypes = sorted({*dtypes_with_bfloat16} - {"int64", "uint64", "float64"})
SEED = 17


def is_interpreter() -> bool:
    """Whether kernels run in the interpreter, by the environment's wish."""
    return wanted_mode() == "interpret"


def get_current_target() -> GPUTarget | None:
    """The current target; None in the interpreter."""
    return None if is_interpreter() else ACTIVE.get_current_target()


def _generation() -> int:
    """The first number of the GPU's compute capability; 0 where kernels run without one."""
    target = get_current_target()
    return target.arch // 10 if target is not None and target.backend == "cuda" else 0


def is_cuda() -> bool:
    """Whether kernels run on a GPU."""
    return _generation() > 0


def is_ampere_or_newer() -> bool:
    """Whether they run on a GPU of capability 8.0 or later."""
    return _generation() >= 8


def is_hopper() -> bool:
    """Whether they run on a GPU of capability 9.0."""
    return _generation() == 9


def is_hopper_or_newer() -> bool:
    """Whether they run on a GPU of capability 9.0 or later."""
    return _generation() >= 9


def is_blackwell() -> bool:
    """Whether they run on a GPU of capability 10."""
    return _generation() == 10


def is_sm12x() -> bool:
    """Whether they run on a GPU of capability 12."""
    return _generation() == 12


def other_vendors() -> bool:
    """Whether the target is one of AMD's or Intel's: it never is."""
    return False


def get_arch() -> str:
    """The target's capability as a text; empty in the interpreter."""
    target = get_current_target()
    return "" if target is None else str(target.arch)


def supports_tma(byval_only: bool = False) -> bool:
    """Whether kernels may take tensor descriptors: they may everywhere, also where the hardware has no tensor copies."""
    return True


def supports_ws() -> bool:
    """Whether loops may ask for warps of several kinds: they may; where it does not pay nothing comes of it."""
    return True


def tma_skip_msg(byval_only: bool = False) -> str:
    """Why a test with tensor descriptors is left out, which none is."""
    return "tensor descriptors are taken everywhere"


def default_alloc_fn(size: int, align: int, _: Any) -> Any:
    """Memory for `triton.set_allocator`."""
    import torch

    return torch.empty(size, dtype=torch.int8, device=ACTIVE.get_active_torch_device())


def numpy_random(shape: Any, dtype_str: str, rs: Any = None, low: Any = None, high: Any = None) -> Any:
    """A random array, the same in every run; no integer in it is 0, so that others can be divided by it.

    Elements of 8-bit floats are bytes of small numbers; "bfloat16" gives float32 that bfloat16 holds.

    Raises:
      ArgumentKindError: for a type that there is not.
    """
    rs = np.random.RandomState(SEED) if rs is None else rs
    if dtype_str in integral_dtypes:
        dtype = np.dtype(dtype_str)
        bounds = np.iinfo(dtype)
        least = bounds.min if low is None else max(low, bounds.min)
        most = bounds.max if high is None else min(high, bounds.max)
        found = rs.randint(least, most, shape, dtype=dtype)
        return np.where(found == 0, np.ones((), dtype), found)
    if "float8" in dtype_str:
        return rs.randint(20, 40, shape, dtype=np.int8)
    if dtype_str in ("bool", "bool_", "int1"):
        return rs.normal(0, 1, shape) > 0
    if dtype_str not in float_dtypes_with_bfloat16:
        known = ", ".join([*dtypes_with_bfloat16, "bool"])
        raise ArgumentKindError(f"there are no random numbers of the type {dtype_str!r}; the types are {known}")
    found = np.asarray(rs.normal(0, 1, shape))
    if dtype_str != "bfloat16":
        return found.astype(dtype_str)
    return (found.astype(np.float32).view(np.uint32) & np.uint32(0xFFFF0000)).view(np.float32)


def to_triton(x: Any, device: Any, dst_type: str | None = None) -> Any:
    """An array of NumPy as a tensor of torch on a device; of `dst_type` where NumPy has no such type."""
    import tilewright.language as tl
    import torch

    name = x.dtype.name
    if name in uint_dtypes:
        return reinterpret(torch.tensor(x.view(name[1:]), device=device), getattr(tl, name))
    tensor = torch.tensor(x, device=device)
    if dst_type is not None and "float8" in dst_type:
        return reinterpret(tensor, getattr(tl, dst_type))
    return tensor.bfloat16() if (name, dst_type) == ("float32", "bfloat16") else tensor


def to_numpy(x: Any) -> Any:
    """A tensor, of torch or reinterpreted, as an array of NumPy; of bfloat16 as float32.

    Raises:
      ArgumentKindError: for what is no tensor.
    """
    import torch

    if isinstance(x, TensorWrapper):
        return x.base.cpu().numpy().view(torch_dtype_name(x.dtype))
    if not isinstance(x, torch.Tensor):
        raise ArgumentKindError(f"to_numpy takes a tensor of torch or of triton.reinterpret, not {type(x).__name__}")
    return (x.float() if x.dtype is torch.bfloat16 else x).cpu().numpy()


def unwrap_tensor(t: Any) -> Any:
    """The tensor of torch itself."""
    return t.base if isinstance(t, TensorWrapper) else t


def torch_dtype_name(dtype: Any) -> str:
    """What torch calls a type, of the language or torch's own."""
    return dtype.numpy_name if isinstance(dtype, DType) else str(dtype).removeprefix("torch.")


def str_to_triton_dtype(x: str) -> DType:
    """A type of the language by the name that torch has for it."""
    import tilewright.language as tl

    found: DType = getattr(tl, {"bool": "int1", "float8_e4m3fn": "float8e4nv", "float8_e5m2": "float8e5"}.get(x, x))
    return found
