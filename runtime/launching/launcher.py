"""Launches of one kernel on one device: pack the arguments, encode the tensor maps, one driver call.

The call goes through ctypes instead of cuda-bindings because that halves its cost; it releases the interpreter's lock, so
that a full queue does not stop other threads. Blocks come from a pool: a launch never shares its memory with another.
"""

from __future__ import annotations

import ctypes
import functools
import struct
from collections.abc import Sequence
from typing import Any

from tilewright.artifact import Artifact
from tilewright.diagnostics import CooperativeGridError
from tilewright.runtime.driver import bindings, in_context, refusal, resident_blocks, set_current_if_none
from tilewright.runtime.launching.grids import started
from tilewright.runtime.launching.packing import (
    COOPERATIVE,
    PROGRAMMATIC_SERIALIZATION,
    Block,
    in_range,
    lay_out,
    new_block,
)
from tilewright.runtime.launching.tensor_maps import Encoder

WRONG_CONTEXT = (201, 400)  # CUDA_ERROR_INVALID_CONTEXT, CUDA_ERROR_INVALID_HANDLE
TOO_LARGE = 720  # CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE


@functools.cache
def start_address() -> int:
    """Where the driver's function lies that starts a kernel."""
    return bindings().address("cuLaunchKernelEx")


@functools.cache
def _launch_functions() -> tuple[Any, Any]:
    """The driver's function: for addresses, and, more quickly, for what `ctypes.byref` makes."""
    address = start_address()
    return ctypes.CFUNCTYPE(ctypes.c_int, *[ctypes.c_void_p] * 4)(address), ctypes.CFUNCTYPE(ctypes.c_int)(address)


class Launcher:
    """A kernel on a device, ready to launch."""

    def __init__(self, artifact: Artifact, function: int, device: int) -> None:
        """Prepares for launches of a `CUfunction`."""
        self.device = device
        self._artifact = artifact
        self._layout = lay_out(artifact.launch_parameters, len(artifact.tensor_maps), _attributes(artifact))
        self._pack, self._first, self._tail = self._layout.packer.pack_into, self._layout.first, self._layout.tail
        self._encode = Encoder(artifact).encode if artifact.tensor_maps else None
        self.function, self._function = function, ctypes.c_void_p(function)
        self._threads, self._shared = artifact.num_threads, artifact.shared_bytes
        self.resident = resident_blocks(function, artifact, device) if artifact.persistent else 0
        self._free: list[Block] = []
        self.start_address = start_address()
        self._start, self.start_at_once = _launch_functions()

    def launch(self, x: int, y: int, z: int, stream: int, values: tuple[Any, ...]) -> int:
        """Starts the kernel on a stream; returns at once, with the driver's status.

        Raises:
          TensorMapError: when a tensor map cannot be encoded.
          struct.error, TypeError: when the grid is not of integers.
        """
        block, encodings = self.filled(x, y, z, stream, values)
        try:  # the encodings live until the driver has taken the arguments
            return self._start(block.config, self._function, block.parameters, None)  # type: ignore[no-any-return]
        finally:
            self._free.append(block)
            del encodings

    def filled(self, x: int, y: int, z: int, stream: int, values: tuple[Any, ...]) -> tuple[Block, Sequence[Any]]:
        """A block with a launch's shape and arguments, and the tensor maps that it points to, which its user keeps alive.

        Raises:
          TensorMapError, struct.error, TypeError: as `launch`.
        """
        encodings = self._encode(values) if self._encode is not None else ()
        if self.resident:
            (x, y, z), counts = started((x, y, z), self._artifact.program_axes, self.resident, self._artifact.in_turns)
            values = (*values, *counts)
        try:
            block = self._free.pop()
        except IndexError:
            block = new_block(self._layout)
        shape = (*encodings, x, y, z, self._threads, 1, 1, self._shared, stream, *self._tail)
        try:
            self._pack(block.memory, self._first, *shape, *values)
        except (struct.error, OverflowError):
            self._pack(block.memory, self._first, *shape, *in_range(self._artifact.launch_parameters, values))
        return block, encodings

    def launch_anywhere(self, x: int, y: int, z: int, stream: int, values: tuple[Any, ...]) -> None:
        """The same where the caller's thread may have no context, or another device's.

        Raises:
          CooperativeGridError: when a cooperative grid has more blocks than fit.
          ToolchainError: with the driver's name of the error.
        """
        status = self.launch(x, y, z, stream, values)
        if status in WRONG_CONTEXT:  # nothing was started
            set_current_if_none(self.device)
            with in_context(self.device):
                status = self.launch(x, y, z, stream, values)
        if status == TOO_LARGE:
            fits = resident_blocks(self.function, self._artifact, self.device)
            raise CooperativeGridError(
                f"the grid ({x}, {y}, {z}) of {self._artifact.kernel_name} has {x * y * z} programs, and device {self.device} "
                f"holds {fits} at once, as a cooperative grid needs; start at most {fits} programs and let each do the work "
                "of several, or take fewer warps, registers or bytes of shared memory per program"
            )
        if status != 0:
            raise refusal(status, f" at the launch of {self._artifact.kernel_name}")


def _attributes(artifact: Artifact) -> list[int]:
    """The numbers of the attributes that launches have."""
    wanted = ((COOPERATIVE, artifact.cooperative), (PROGRAMMATIC_SERIALIZATION, artifact.dependent))
    return [number for number, is_wanted in wanted if is_wanted]
