"""What stands for arrays of JAX while a kernel is recorded: an address, and memory only where something is timed."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
from tilewright.frozen import frozen
from tilewright.runtime.driver import bindings, checked, in_context
from tilewright.runtime.tracing import RecordedLaunch, recorded

STEP = 1 << 20  # between the addresses of placeholders; a multiple of every alignment


class Placeholder:
    """An array that has a shape and type, and instead of memory an address that tells it from others."""

    def __init__(self, shape: Sequence[int], dtype: Any, number: int, device: int) -> None:
        """`number` counts the arrays of a call."""
        self.shape, self.dtype, self.device_number = tuple(shape), np.dtype(dtype), device
        self.address = (number + 1) * STEP
        self.device = SimpleNamespace(id=device)

    def data_ptr(self) -> int:
        """What a launch takes for its address."""
        return self.address

    def numel(self) -> int:
        """The number of elements."""
        return int(np.prod(self.shape, dtype=np.int64))


class Memory:
    """Memory of a GPU that holds zeros, for the time of a tuning; a context manager that gives it back."""

    def __init__(self, like: Placeholder) -> None:
        """As large as the array."""
        self.shape, self.dtype, self.device = like.shape, like.dtype, like.device
        self._bytes = -(-max(like.numel() * self.dtype.itemsize, 1) // 4) * 4  # whole words, which are set to zero
        self._device = like.device_number

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {"shape": self.shape, "typestr": "|V1", "data": (self._address, False), "version": 3}

    def __enter__(self) -> Memory:
        with in_context(self._device):
            self._address = int(checked(bindings().cuMemAlloc(self._bytes)))
            checked(bindings().cuMemsetD32Async(self._address, 0, self._bytes // 4, 0))
        return self

    def __exit__(self, *error: object) -> None:
        with in_context(self._device):
            bindings().cuCtxSynchronize()
            bindings().cuMemFree(self._address)


@frozen
class Request:
    """A launch that a program asks for while JAX traces it.

    Attributes:
      kernel: what is launched.
      grid: as in `kernel[grid]`.
      args: the kernel's first arguments; arrays among them count by shape and type.
      shapes: of the results, which are its arguments after these.
    """

    kernel: Any
    grid: Any
    args: Sequence[Any]
    shapes: Sequence[Any]


def record(request: Request, device: int, options: dict[str, Any]) -> tuple[list[RecordedLaunch], list[int]]:
    """What a kernel launches on arrays of these shapes on a device, and the addresses that stand for the arrays in it.

    `options` are compile-time arguments and options of the launch.
    """
    given: list[Any] = []
    addresses: list[int] = []
    for value in (*request.args, *request.shapes):
        if hasattr(value, "shape") and hasattr(value, "dtype") and value.shape != ():
            placeholder = Placeholder(value.shape, value.dtype, len(addresses), device)
            addresses.append(placeholder.address)
            value = placeholder
        given.append(value)
    known: dict[int, Memory] = {}
    with contextlib.ExitStack() as held:

        def with_memory(value: Any) -> Any:
            if not isinstance(value, Placeholder):
                return value
            if value.address not in known:
                known[value.address] = held.enter_context(Memory(value))
            return known[value.address]

        with recorded(with_memory) as made:
            request.kernel[request.grid](*given, **options)
    return made.launches, addresses
