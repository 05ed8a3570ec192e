"""What `kernel.warmup` takes in place of arrays: their element types."""

from __future__ import annotations

from typing import Any

from tilewright.language.dtypes import DType


class MockTensor:
    """An array without memory, which a kernel is compiled for; aligned, so that text and key are those of most arrays.

    `kernel.warmup(torch.float32, ...)` makes these of the types that stand where parameters take arrays.
    """

    def __init__(self, dtype: Any, shape: Any = None) -> None:
        """`dtype` is a type of torch, NumPy or the language; `shape` is what functions of the arguments may ask for."""
        self.dtype, self.shape = dtype, [1] if shape is None else list(shape)

    @staticmethod
    def wrap_dtype(value: Any) -> Any:
        """A type of torch or of the language as an array of that type; anything else as it is."""
        of_torch = type(value).__name__ == "dtype" and type(value).__module__ == "torch"
        return MockTensor(value) if of_torch or isinstance(value, DType) else value

    def stride(self) -> tuple[int, ...]:
        """The strides of rows one after another."""
        strides = [1]
        for side in reversed(self.shape[1:]):
            strides.insert(0, strides[0] * side)
        return tuple(strides)

    @staticmethod
    def data_ptr() -> int:
        """No place, but one that is divisible by 16."""
        return 0
