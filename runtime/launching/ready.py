"""Launches that are written beforehand, all but what a repeated launch may change: the stream, pointers, floating point.

A `Ready` launch belongs to one grid, to one value of every integer, and with tensor maps to one set of pointers. Its blocks hold
the `CUlaunchConfig`, behind it what changes, then the addresses of the parameters, so that one `pack_into` from the stream on
writes everything. A block serves one launch at a time; a launch takes one from the pool and gives it back. The part in C has
an image of config and addresses instead (`struct image` of `quick_call.c`), of which it makes a copy for each launch.
"""

from __future__ import annotations

import ctypes
import functools
import struct
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tilewright.language.dtypes import Element, PointerType
from tilewright.runtime.arguments.exchange import exchange
from tilewright.runtime.driver import torch_on_gpu
from tilewright.runtime.launching.packing import CONFIG_BYTES

if TYPE_CHECKING:
    from tilewright.runtime.compiled import CompiledKernel

STREAM = 32  # where the config has the stream; behind it, up to its end, stand the launch's attributes
_CODES = {"fp32": "f", "fp64": "d"}  # other numbers are part of what a ready launch belongs to
Block = tuple[Any, Callable[[], int]]  # memory to write to, and what starts its launch
# What `quick_launch.c` starts from, a function from the device to its current stream, the device, a check of globals or None,
# and what the launch returns; then, for Python, free blocks, a maker of new ones, `pack_into`, and the bytes behind the stream.
# A plain tuple: it is taken apart at every launch.
Ready = tuple[
    bytes, Callable[[int], int], int, Callable[[], None] | None, "CompiledKernel",
    list[Block], Callable[[], Block], Any, bytes,
]  # fmt: skip


def changes(element: Element) -> bool:
    """Whether a ready launch takes other values of a parameter of this type."""
    return isinstance(element, PointerType) or element.short in _CODES


def make_ready(
    compiled: CompiledKernel, grid: tuple[int, int, int], values: tuple[Any, ...], streams: Callable[[int], int]
) -> Ready | None:
    """What repeats a launch of these sizes with other values of the parameters that change; None without programs.

    `streams` gives a device's current stream.

    Raises:
      TensorMapError, struct.error, TypeError: as the launch itself.
    """
    launcher = compiled.launcher
    if launcher is None or 0 in grid:
        return None
    whole, encodings = launcher.filled(*grid, 0, values)
    parameters = compiled.artifact.launch_parameters
    count = len(parameters) + len(encodings)
    config = ctypes.string_at(whole.config.value or 0, CONFIG_BYTES)
    addresses = struct.unpack(f"{count}Q", ctypes.string_at(whole.parameters.value or 0, 8 * count))
    code, places = f"Q{CONFIG_BYTES - STREAM - 8}s", {}
    changing: list[int] = []  # the number of each parameter that changes, and its code
    for number, parameter in enumerate(parameters):
        if changes(parameter.element):
            one = "Q" if isinstance(parameter.element, PointerType) else _CODES[parameter.element.short]
            places[number] = STREAM + struct.calcsize(f"{code}0{one}")
            code += one
            changing += (number, ord(one))
    packer = struct.Struct(code)
    first = -(-(STREAM + packer.size) // 8)  # the addresses, in words from the start
    function = ctypes.byref(ctypes.c_char.from_address(launcher.function))

    def new_block() -> Block:
        memory = (ctypes.c_uint64 * (first + count))()
        start = ctypes.addressof(memory)
        ctypes.memmove(start, config, CONFIG_BYTES)
        for number, address in enumerate(addresses):
            memory[first + number] = start + places[number] if number in places else address
        arguments = ctypes.byref(memory), function, ctypes.byref(memory, 8 * first), None
        starter = functools.partial(launcher.start_at_once, *arguments)
        starter.kept = whole, encodings  # type: ignore[attr-defined]  # which the other addresses point into
        return memory, starter

    check = compiled.check_globals if compiled.artifact.globals else None
    image = struct.pack(
        f"PPPiIII{CONFIG_BYTES}s{count}Q{len(changing)}H",
        *(launcher.start_address, launcher.function, stream_function(streams), compiled.device, count, len(places), 0),
        *(config, *addresses, *changing),
    )
    behind = config[STREAM + 8 :]
    return image, streams, compiled.device, check, compiled, [], new_block, packer.pack_into, behind


def stream_function(streams: Callable[[int], int]) -> int:
    """Where the C function lies that gives the same current streams; 0 if there is none."""
    torch = torch_on_gpu()
    if torch is None or streams is not torch._C._cuda_getCurrentRawStream:
        return 0
    return exchange(torch.Tensor)[1]
