"""Arrays of any library as the launcher sees them: an address, an element type, a place.

In: a tensor of torch, an array of CuPy, JAX or NumPy, or anything with one of the array protocols. Out: an `Array`.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from tilewright.diagnostics import ArgumentKindError, ContiguityError, TracedArrayError
from tilewright.frozen import frozen
from tilewright.language.dtypes import DTYPES, DType
from tilewright.runtime.mock_tensor import MockTensor

HOST = -1
UNKNOWN = -1  # bytes of an array that tells where it begins and nothing else
NOWHERE = -2  # of a `MockTensor`, which goes with arrays on any device
_NAMES = {dtype.numpy_name: dtype for dtype in DTYPES} | {dtype.word: dtype for dtype in DTYPES}
_TYPESTRINGS = {"b1": "bool", "i1": "int8", "i2": "int16", "i4": "int32", "i8": "int64", "u1": "uint8", "u2": "uint16",
                "u4": "uint32", "u8": "uint64", "f2": "float16", "f4": "float32", "f8": "float64"}  # fmt: skip
_BYTE_ORDERS = "<|"  # of a typestring that kernels can read: the low byte first, or a single one


@frozen
class Array:
    """`device` is the CUDA device's number, `HOST` or `NOWHERE`; `size` counts bytes from the first element to the end."""

    address: int
    dtype: DType
    device: int
    size: int
    writable: bool
    owner: Any


def describe(value: Any, name: str) -> Array | None:
    """What an argument is as an array; None when it is none.

    Raises:
      ArgumentKindError: for an element type that kernels do not know.
      ContiguityError: for memory without a plain layout.
    """
    numpy = sys.modules.get("numpy")
    if isinstance(value, type) or (numpy is not None and isinstance(value, numpy.generic)):
        return None  # NumPy's scalars have the interface of arrays, but no memory that lasts
    module = type(value).__module__.partition(".")[0]
    if type(value).__name__ == "TensorWrapper":  # ours or Triton's
        found = describe(value.base, name)
        return None if found is None else replace(found, dtype=_dtype(value.dtype, name))
    if isinstance(value, MockTensor):
        return Array(0, _dtype(value.dtype, name), NOWHERE, 0, True, value)
    if module == "torch" and hasattr(value, "data_ptr"):
        return _torch(value, name)
    if module in ("jax", "jaxlib"):
        return _jax(value, name)
    if getattr(value, "mask", None) is not None and isinstance(value, _masked()) and value.mask.any():
        raise ContiguityError(
            f"argument {name}: a masked array, whose mask no kernel sees; pass x.filled(0) and the mask as another array"
        )
    if hasattr(value, "__cuda_array_interface__"):
        return _interface(value, value.__cuda_array_interface__, device_of_array(value), name)
    if hasattr(value, "__array_interface__"):
        return _interface(value, value.__array_interface__, HOST, name)
    if hasattr(value, "data_ptr") and hasattr(value, "dtype"):
        dtype = _dtype(value.dtype, name)
        address = value.data_ptr()
        if not isinstance(address, int):
            raise ArgumentKindError(f"argument {name} has the address {address!r}, which is no integer")
        return Array(address, dtype, device_of_array(value), _told_size(value, dtype, name), True, value)
    if hasattr(value, "__dlpack__"):
        return _dlpack(value, name)
    return None


def _masked() -> Any:
    """NumPy's class of masked arrays; nothing where nobody has any."""
    return getattr(sys.modules.get("numpy.ma"), "MaskedArray", ())


def _dtype(dtype: Any, name: str) -> DType:
    if isinstance(dtype, DType):
        return dtype
    word = str(dtype).rpartition(".")[2]
    if word not in _NAMES:
        raise ArgumentKindError(f"argument {name}: arrays of {dtype} cannot be passed to a kernel; convert it first")
    return _NAMES[word]


def _torch(tensor: Any, name: str) -> Array:
    layout = str(tensor.layout)
    if layout != "torch.strided":
        raise ContiguityError(
            f"argument {name}: a tensor of layout {layout} has no plain memory; call .to_dense() first"
        )
    if _is_traced(tensor):
        raise TracedArrayError(
            f"argument {name} is a {type(tensor).__name__} of torch without memory, as tracing has them (torch.compile, "
            "torch.export, vmap, device='meta'): launch from a function decorated with tilewright.torch.op"
        )
    if getattr(tensor, "is_neg", bool)() or getattr(tensor, "is_conj", bool)():
        raise ContiguityError(
            f"argument {name}: a lazily negated or conjugated view; pass x.resolve_neg().resolve_conj()"
        )
    device = tensor.device
    number = HOST if device.type == "cpu" else int(device.index or 0)
    if device.type not in ("cpu", "cuda"):
        raise ArgumentKindError(f"argument {name}: a tensor on {device} cannot be passed to a kernel")
    storage = tensor.untyped_storage()
    size = storage.nbytes() - tensor.storage_offset() * tensor.element_size()
    return Array(tensor.data_ptr(), _dtype(tensor.dtype, name), number, size, True, tensor)


def _is_traced(tensor: Any) -> bool:
    """Whether a tensor of torch stands for one that is computed later, or for several."""
    fakes = sys.modules.get("torch._subclasses.fake_tensor")
    if tensor.device.type == "meta" or isinstance(tensor, getattr(fakes, "FakeTensor", ())):
        return True
    try:
        return bool(tensor.data_ptr() == 0 and tensor.numel() > 0)
    except RuntimeError:  # of wrapped tensors: vmap's, grad's, subclasses without storage
        return True


def _dlpack(value: Any, name: str) -> Array:
    """An array of which only DLPack tells where it lies."""
    from tilewright.runtime.arguments import dlpack

    if not dlpack.is_on_gpu(value):
        import numpy as np

        return _interface(value, np.from_dlpack(value).__array_interface__, HOST, name)
    from tilewright.runtime.driver import current_stream, in_context

    _, device = value.__dlpack_device__()
    with in_context(int(device)):  # JAX makes the array's device current for good when it tells the stream to wait
        view = dlpack.view(value, name, current_stream(int(device)))
    dtype = _dtype(view.dtype, name)
    strides = None if view.strides is None else tuple(stride * dtype.itemsize for stride in view.strides)
    size = _bytes(view.shape, strides, dtype, name)
    return Array(view.address, dtype, view.device, size, True, (value, view.capsule))


def _jax(value: Any, name: str) -> Array | None:
    """An array of JAX, which nobody may write to."""
    jax = sys.modules["jax"]
    if isinstance(value, jax.core.Tracer):
        raise TracedArrayError(
            f"argument {name} is a tracer of JAX (jit, vmap, grad), which has no memory: launch with tilewright.jax.call, "
            "which JAX can trace"
        )
    if not isinstance(value, jax.Array):
        return None
    if next(iter(value.devices())).platform == "gpu":
        return replace(_dlpack(value, name), writable=False)
    import numpy as np

    view = np.asarray(value)
    return _interface(view, {**view.__array_interface__, "data": (view.ctypes.data, True)}, HOST, name)


def _interface(value: Any, interface: dict[str, Any], device: int, name: str) -> Array:
    try:
        (address, read_only), shape, typestring = interface["data"], interface["shape"], interface["typestr"]
        known = _TYPESTRINGS.get(typestring.lstrip(_BYTE_ORDERS), typestring)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ArgumentKindError(
            f"argument {name} has an array interface without data, shape or typestr ({error})"
        ) from None
    dtype = _dtype(getattr(value, "dtype", known), name)
    size = _bytes(shape, interface.get("strides"), dtype, name)
    return Array(int(address), dtype, device, size, not read_only, value)


def _bytes(shape: Sequence[int], strides: Sequence[int] | None, dtype: DType, name: str) -> int:
    """Bytes from an array's first element to the end of its last; `strides` in bytes, None for rows one after another.

    Raises:
      ContiguityError: for an array that runs backwards.
    """
    if strides and any(stride < 0 for stride in strides):
        raise ContiguityError(
            f"argument {name}: an array with negative strides; pass a copy, as numpy.ascontiguousarray(x)"
        )
    if 0 in shape:
        return 0
    if not strides:
        return dtype.itemsize * math.prod(shape)
    return dtype.itemsize + sum((side - 1) * stride for side, stride in zip(shape, strides, strict=True))


def _told_size(value: Any, dtype: DType, name: str) -> int:
    """Bytes of an array that has no interface but `data_ptr`, from its shape and strides if it has these.

    Of one that runs backwards they are not known: libraries make such arrays to be read before the address that they tell.
    """
    shape, stride = getattr(value, "shape", None), getattr(value, "stride", None)
    if not isinstance(shape, Sequence) or not callable(stride):
        return UNKNOWN
    steps = [step * dtype.itemsize for step in stride()]
    return _bytes(shape, steps, dtype, name) if all(step >= 0 for step in steps) else UNKNOWN


def device_of_array(value: Any) -> int:
    """The number of the device that an array of any library tells, `HOST` for the CPU; 0 for one that tells none."""
    device = getattr(value, "device", None)
    if getattr(device, "type", device) == "cpu":
        return HOST
    for attribute in ("id", "index"):
        number = getattr(device, attribute, None)
        if isinstance(number, int):
            return number
    return 0
