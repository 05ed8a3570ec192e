"""Arrays of the host on a GPU, between bytes that must stay as they are."""

from __future__ import annotations

from typing import Any

import numpy as np

GUARD = 256  # bytes in front of every array and behind it
UNTOUCHED = 0xA5


class Guarded:
    """A copy of an array on the GPU; `value` is what a kernel gets, which starts `skip` elements behind an aligned place."""

    def __init__(self, array: np.ndarray[Any, Any], skip: int = 0) -> None:
        """Copies it."""
        import torch

        self.shape, self.dtype, self.size = array.shape, array.dtype, array.nbytes
        self.start = GUARD + skip * array.itemsize
        self.memory = torch.full((self.start + self.size + GUARD,), UNTOUCHED, dtype=torch.uint8, device="cuda")
        own = self.memory[self.start : self.start + self.size]
        own.copy_(torch.from_numpy(np.ascontiguousarray(array).reshape(-1).view(np.uint8).copy()))
        self.value = own.view(getattr(torch, str(array.dtype)))

    def result(self) -> np.ndarray[Any, Any]:
        """What it holds now.

        Raises:
          AssertionError: when something was written beside it.
        """
        memory, end = self.memory.cpu().numpy(), self.start + self.size
        assert (memory[: self.start] == UNTOUCHED).all() and (memory[end:] == UNTOUCHED).all()
        found: np.ndarray[Any, Any] = memory[self.start : end].copy().view(self.dtype).reshape(self.shape)
        return found
