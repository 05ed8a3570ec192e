"""Kernels in programs of JAX. Inside, `jax` is the real one.

import tilewright.jax

@jax.jit
def scale(x, factor):
    out = jax.ShapeDtypeStruct(x.shape, x.dtype)
    grid = (triton.cdiv(x.size, 1024),)
    return tilewright.jax.call(x, x.size, factor, kernel=scale_kernel, out_shape=out, grid=grid, BLOCK=1024)
"""

from __future__ import annotations

try:
    import jax as _jax  # noqa: F401
except ImportError as error:
    from tilewright.diagnostics import MissingPackageError

    raise MissingPackageError(
        "tilewright.jax needs jax, which cannot be imported; install it with `pip install tilewright[jax]`"
    ) from error

from tilewright.jax.call import call

__all__ = ["call"]
