"""`triton.reinterpret`: the elements of an array read as another type, such as bytes as 8-bit floats."""

from __future__ import annotations

from typing import Any


class TensorWrapper:
    """An array with another element type: what kernels see of it is `dtype`, all else is that of `base`."""

    def __init__(self, base: Any, dtype: Any) -> None:
        """`dtype` is a type of the language."""
        self.base, self.dtype = base, dtype

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(f"a reinterpreted array has no attribute {name!r}")
        return getattr(self.base, name)

    def __str__(self) -> str:
        return f"TensorWrapper[{self.dtype}]({self.base})"


def reinterpret(tensor: Any, dtype: Any) -> Any:
    """The array with elements of type `dtype`, which has as many bits; the array itself where it has that type."""
    base = tensor.base if isinstance(tensor, TensorWrapper) else tensor
    return base if base.dtype == dtype else TensorWrapper(base, dtype)
