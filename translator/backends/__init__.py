"""`tilewright.backends`: what kernels are compiled for."""

from . import compiler

__all__ = ["compiler"]
