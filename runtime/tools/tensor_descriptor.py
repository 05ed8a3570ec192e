"""`TensorDescriptor`: a tensor in memory that a kernel accesses by blocks, made on the host."""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import Any

from tilewright.diagnostics import ArgumentKindError, DescriptorError
from tilewright.hardware import MAX_RANK, TENSOR_ALIGNMENT
from tilewright.language.dtypes import DType, float32
from tilewright.runtime.arguments.arrays import Array, describe
from tilewright.runtime.tracebacks import outermost

PADDINGS = ("zero", "nan")


@dataclass
class TensorDescriptor:
    """An argument of a kernel; in the kernel it has `load([offsets])`, `store([offsets], value)` and more.

    Attributes:
      base: the array that holds the first element; its address is divisible by 16.
      shape: elements per axis.
      strides: elements from one index to the next, per axis; multiples of 16 bytes, the last one is 1.
      block_shape: elements per axis of the blocks that are loaded and stored.
      padding: what is read outside the tensor, "zero" or "nan".
      round_f32_to_tf32: whether loads of fp32 round to tf32, to nearest; dots in tf32 leave the last bits out otherwise.
    """

    base: Any
    shape: Any
    strides: Any
    block_shape: Any
    padding: str = "zero"
    round_f32_to_tf32: bool = False

    @outermost
    def __post_init__(self) -> None:
        """Checks what descriptors must fulfil.

        Raises:
          DescriptorError: says what does not hold.
        """
        array = array_of(self, "base")
        try:
            self.shape, self.strides, self.block_shape = (
                list(map(operator.index, items)) for items in (self.shape, self.strides, self.block_shape)
            )
        except TypeError as error:
            _reject(f"shape, strides and block_shape must be lists of integers ({error})")
        rank = len(self.shape)
        if not 0 < rank <= MAX_RANK or len(self.strides) != rank or len(self.block_shape) != rank:
            _reject(
                f"shape, strides and block_shape must have one entry per axis, 1 to {MAX_RANK} of them; they have "
                f"{rank}, {len(self.strides)} and {len(self.block_shape)}"
            )
        if array.address % TENSOR_ALIGNMENT:
            _reject("base must be 16-byte aligned; copy the array, or start it elsewhere")
        if self.strides[-1] != 1:
            _reject(f"the last stride must be 1, not {self.strides[-1]}; pass a contiguous array or transpose it")
        if any(stride * array.dtype.itemsize % TENSOR_ALIGNMENT for stride in self.strides[:-1]):
            _reject(f"strides must be 16-byte aligned; {self.strides} of {array.dtype} are not; pad the rows")
        if any(side <= 0 for side in self.shape) or any(side <= 0 for side in self.block_shape):
            _reject(f"shape must be positive, and so must block_shape: {self.shape} and {self.block_shape}")
        if max(self.shape) >= 1 << 31:
            _reject(f"indices are 32-bit integers; the shape {self.shape} has too long a side")
        if self.padding not in PADDINGS:
            _reject(f"padding must be 'zero' or 'nan', not {self.padding!r}")
        if self.padding == "nan" and not array.dtype.is_floating():
            _reject(f"padding 'nan' is for floats, not for {array.dtype}")

    @staticmethod
    @outermost
    def from_tensor(
        tensor: Any, block_shape: Any, padding: str = "zero", round_f32_to_tf32: bool = False
    ) -> TensorDescriptor:
        """The descriptor of a whole array.

        Raises:
          DescriptorError: for what has no shape, and as `TensorDescriptor`.
        """
        if not hasattr(tensor, "shape"):
            _reject(f"from_tensor takes an array, not {type(tensor).__name__}")
        shape = [int(side) for side in tensor.shape]
        return TensorDescriptor(tensor, shape, _strides(tensor, shape), block_shape, padding, round_f32_to_tf32)


def _reject(cause: str) -> None:
    raise DescriptorError(f"TensorDescriptor: {cause}")


def _strides(tensor: Any, shape: list[int]) -> list[int]:
    """Strides in elements; those of a row-major array where it does not tell."""
    if hasattr(tensor, "stride"):
        return [int(stride) for stride in tensor.stride()]
    if getattr(tensor, "strides", None) is not None and hasattr(tensor, "itemsize"):
        return [int(stride) // int(tensor.itemsize) for stride in tensor.strides]
    strides = [1]
    for side in reversed(shape[1:]):
        strides.insert(0, strides[0] * side)
    return strides


def is_descriptor(value: Any) -> bool:
    """Whether an argument is a tensor descriptor, ours or one that has the same attributes."""
    return all(hasattr(value, name) for name in ("base", "shape", "strides", "block_shape"))


def reading(descriptor: Any, dtype: DType) -> tuple[str, bool]:
    """What is read outside of the tensor, "zero" or "nan", and whether elements of type `dtype` round to tf32."""
    rounds = bool(getattr(descriptor, "round_f32_to_tf32", False)) and dtype == float32
    return getattr(descriptor, "padding", "zero"), rounds


def array_of(descriptor: Any, name: str) -> Array:
    """The array behind a descriptor.

    Raises:
      ArgumentKindError: when `base` is none.
    """
    array = describe(descriptor.base, name)
    if array is None:
        raise ArgumentKindError(f"TensorDescriptor: base must be an array, not {type(descriptor.base).__name__}")
    return array
