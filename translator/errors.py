"""`triton.errors`: the base of all errors, under the name that it has in Triton."""

from .diagnostics import TilewrightError as TritonError

__all__ = ["TritonError"]
