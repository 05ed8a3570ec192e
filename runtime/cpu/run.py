"""Runs generated text on the CPU, in this process."""

from __future__ import annotations

import ctypes
import functools
import math
import struct
from collections.abc import Callable, Sequence

from tilewright.artifact import Artifact
from tilewright.diagnostics import KernelFaultError
from tilewright.hardware import MAP_BYTES
from tilewright.runtime.cpu.build import RUN, STACKS, build_library
from tilewright.runtime.cpu.tensor_maps import encode_tensor_maps
from tilewright.runtime.forks import ENGINE
from tilewright.runtime.launching.grids import in_turns
from tilewright.runtime.launching.packing import code_of, in_range
from tilewright.runtime.source_lines import explain

SCHEDULES = {"round_robin": 0, "reverse": 1, "greedy_low": 2, "greedy_high": 3, "random": 4}
# When asynchronous copies and wgmmas are performed: at once, as late as their waits allow, or now so and now so.
DELIVERIES = {"early": 0, "late": 1, "mixed": 2}

BLOCKS_ALONG_AXIS = 2  # of a persistent kernel, so that each runs several programs
_stacks: int | None = None  # of the threads of a block, in all libraries of this process: see `build.entry_point`


def run(
    artifact: Artifact,
    grid: tuple[int, int, int],
    values: Sequence[int | float | bool],
    schedule: str = "greedy_low",
    seed: int = 0,
    delivery: str = "late",
) -> None:
    """Runs all programs of a grid; pointers are addresses in `values`, in the order of `artifact.parameters`.

    Raises:
      KernelFaultError: on a deadlock, a divergent barrier, a failed assertion, or an access where no memory is.
      ToolchainError: without a C++ compiler.
    """
    maps = [ctypes.create_string_buffer(encoded, MAP_BYTES) for encoded in encode_tensor_maps(artifact, values)]
    grid, values = as_started(artifact, grid, values)
    words = [*pack(artifact, values), *map(ctypes.addressof, maps)]
    packed = (ctypes.c_uint64 * max(len(words), 1))(*words)
    function = _function(artifact)
    with ENGINE:  # one for the process: grids run one after the other, also those of several threads
        report = function(*grid, SCHEDULES[schedule], seed, DELIVERIES[delivery], packed)
    if report:
        raise KernelFaultError(explain(report.decode(), artifact))


def as_started(
    artifact: Artifact, grid: tuple[int, int, int], values: Sequence[int | float | bool]
) -> tuple[tuple[int, int, int], Sequence[int | float | bool]]:
    """The grid and the values of `artifact.launch_parameters` with which a launch of `grid` programs starts."""
    if not artifact.persistent:
        return grid, values
    axes = artifact.program_axes
    if artifact.in_turns:
        return in_turns(grid, axes, BLOCKS_ALONG_AXIS * math.prod(grid[axes:])), (*values, *grid[:axes])
    x, y, z = (min(side, BLOCKS_ALONG_AXIS) if axis < axes else side for axis, side in enumerate(grid))
    return (x, y, z), (*values, *grid[:axes])


@functools.lru_cache(maxsize=256)
def _function(artifact: Artifact) -> Callable[..., bytes | None]:
    """The C function that runs a kernel's grid and returns what went wrong, if anything did."""
    path = build_library(artifact)
    try:
        library = ctypes.CDLL(str(path))
    except OSError:  # somebody emptied the cache before it was opened
        library = ctypes.CDLL(str(build_library(artifact)))
    _share_stacks(library)
    function = library[RUN]
    function.restype = ctypes.c_char_p
    function.argtypes = [ctypes.c_uint] * 6 + [ctypes.c_void_p]
    return function


def _share_stacks(library: ctypes.CDLL) -> None:
    global _stacks
    share = library[STACKS]
    share.restype, share.argtypes = ctypes.c_void_p, (ctypes.c_void_p,)
    with ENGINE:
        _stacks = share(_stacks)


def pack(artifact: Artifact, values: Sequence[int | float | bool]) -> list[int]:
    """Every argument as an unsigned integer of 8 bytes that starts with its own bytes, which are those of a launch on a GPU."""
    parameters = artifact.launch_parameters
    written = zip(parameters, in_range(parameters, values), strict=True)
    return [int.from_bytes(struct.pack(f"<{code_of(one.element)}", value), "little") for one, value in written]
