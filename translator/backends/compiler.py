"""`triton.backends.compiler`: the name of a GPU to compile for."""

from tilewright.runtime.active import GPUTarget

__all__ = ["GPUTarget"]
