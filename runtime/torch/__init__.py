"""Kernels as operators of torch, which torch.compile, torch.export and autograd know. Inside, `torch` is the real one.

import tilewright.torch

@tilewright.torch.op
def scale(x: torch.Tensor, factor: float) -> torch.Tensor:
    out = torch.empty_like(x)
    scale_kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), factor, BLOCK=1024)
    return out
"""

from __future__ import annotations

try:
    import torch as _torch  # noqa: F401
except ImportError as error:
    from tilewright.diagnostics import MissingPackageError

    raise MissingPackageError(
        "tilewright.torch needs torch, which cannot be imported; install it with `pip install tilewright[torch]`"
    ) from error

from tilewright.torch.operator import op

__all__ = ["op"]
