"""`triton.backends.compiler`: the name of a GPU to compile for."""

from tilewright.language.targets import GPUTarget

__all__ = ["GPUTarget"]
