"""Arrays that offer nothing but DLPack, and those of JAX on a GPU: what a capsule says of them.

The structures are `DLManagedTensor` and what it holds, of DLPack's header, in the form without a version, which every
producer gives unless it is asked for another.
"""

from __future__ import annotations

import ctypes
from typing import Any

from tilewright.diagnostics import ArgumentKindError
from tilewright.frozen import frozen
from tilewright.runtime.arguments.exchange import pointer_of

CUDA, CUDA_MANAGED = 2, 13
DEFAULT_STREAM = 1  # DLPack's number for CUDA's stream 0
_KINDS = {0: "int", 1: "uint", 2: "float"}
_SPECIAL = {(4, 16): "bfloat16", (6, 8): "bool", (10, 8): "float8_e4m3fn", (12, 8): "float8_e5m2"}


class _Tensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device", ctypes.c_int32),
        ("rank", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


@frozen
class View:
    """An array on a GPU: strides in elements, `dtype` as NumPy names it. `capsule` keeps the memory."""

    address: int
    device: int
    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...] | None
    capsule: Any


def is_on_gpu(value: Any) -> bool:
    """Whether an object with `__dlpack_device__` lies on a GPU."""
    kind, _ = value.__dlpack_device__()
    return int(kind) in (CUDA, CUDA_MANAGED)


def view(value: Any, name: str, stream: int) -> View:
    """What an array's capsule says; the array is complete for work on `stream`.

    Raises:
      ArgumentKindError: for an array that gives no capsule, or whose type is unknown here.
    """
    try:
        capsule = value.__dlpack__(stream=stream or DEFAULT_STREAM)
        tensor = _Tensor.from_address(pointer_of(capsule, b"dltensor"))
    except (BufferError, ValueError, TypeError, RuntimeError) as error:
        raise ArgumentKindError(f"argument {name}: its memory cannot be reached through DLPack: {error}") from error
    kind = _KINDS.get(tensor.code)
    dtype = f"{kind}{tensor.bits}" if kind else _SPECIAL.get((tensor.code, tensor.bits))
    if dtype is None or tensor.lanes != 1:
        raise ArgumentKindError(
            f"argument {name}: arrays of DLPack's type ({tensor.code}, {tensor.bits} bits, {tensor.lanes} lanes) cannot be "
            "passed to a kernel; convert it first"
        )
    shape = tuple(tensor.shape[axis] for axis in range(tensor.rank))
    strides = tuple(tensor.strides[axis] for axis in range(tensor.rank)) if tensor.strides else None
    return View((tensor.data or 0) + tensor.byte_offset, tensor.device, dtype, shape, strides, capsule)
