"""The memory that a launch hands to the driver: the launch's shape and all arguments, written in one go.

A block holds, one after another: the addresses of the kernel's parameters, the `CUlaunchConfig`, the arguments. Only what
changes between launches is written: the addresses of tensor maps (which come last), the config, the arguments. The
attributes of a launch never change; all blocks of a kernel name the same memory.
"""

from __future__ import annotations

import ctypes
import math
import struct
from collections.abc import Sequence
from typing import Any

from tilewright.artifact import LaunchParameter
from tilewright.frozen import frozen
from tilewright.language.dtypes import Element, PointerType

CONFIG_BYTES = 56
# grid x, y, z; block x, y, z; dynamic shared bytes; stream; then no attributes, or their address and number
_CONFIG, _NO_ATTRIBUTES, _SOME_ATTRIBUTES = "7I4xQ", "16x", "QI4x"
ATTRIBUTE = struct.Struct("<I4xi60x")  # a `CUlaunchAttribute`: which one, and its value
COOPERATIVE, PROGRAMMATIC_SERIALIZATION = 2, 6
_CODES = {"i1": "?", "i8": "b", "i16": "h", "i32": "i", "i64": "q", "u8": "B", "u16": "H", "u32": "I", "u64": "Q",
          "fp16": "e", "bf16": "2s", "fp32": "f", "fp64": "d"}  # fmt: skip


def code_of(element: Element) -> str:
    """How `struct` writes a parameter of a type; a bfloat16 as bytes, so that it refuses numbers, which `fitted` is for."""
    return "Q" if isinstance(element, PointerType) else _CODES[element.short]


@frozen
class Layout:
    """Where everything stands in a block, in bytes; `packer` writes from `first` on, the tensor maps' addresses first.

    `attributes` holds the launch's attributes; `tail` is what the packer takes for them after the stream.
    """

    size: int
    first: int
    config: int
    offsets: tuple[int, ...]
    packer: struct.Struct
    attributes: Any
    tail: tuple[int, ...]


@frozen
class Block:
    """Memory for one launch at a time: what to write to, and the two addresses that the driver takes."""

    memory: Any
    config: ctypes.c_void_p
    parameters: ctypes.c_void_p


def lay_out(parameters: Sequence[LaunchParameter], maps: int, attributes: Sequence[int] = ()) -> Layout:
    """The layout for a kernel with `maps` tensor maps after its parameters, launched with the attributes of these numbers."""
    first = 8 * len(parameters)
    config = first + 8 * maps
    kept = ctypes.create_string_buffer(b"".join(ATTRIBUTE.pack(number, 1) for number in attributes))
    tail = (ctypes.addressof(kept), len(attributes)) if attributes else ()
    code = f"<{maps}Q{_CONFIG}{_SOME_ATTRIBUTES if attributes else _NO_ATTRIBUTES}"
    position = config + CONFIG_BYTES
    offsets = []
    for parameter in parameters:
        one = code_of(parameter.element)
        width = struct.calcsize(f"<{one}")
        padding = -position % width
        code += f"{padding}x{one}" if padding else one
        offsets.append(position + padding)
        position += padding + width
    return Layout(position, first, config, tuple(offsets), struct.Struct(code), kept, tail)


def new_block(layout: Layout) -> Block:
    """A block with the addresses of the ordinary parameters in place."""
    memory = (ctypes.c_uint64 * (layout.size // 8 + 1))()
    start = ctypes.addressof(memory)
    for number, offset in enumerate(layout.offsets):
        memory[number] = start + offset
    return Block(memory, ctypes.c_void_p(start + layout.config), ctypes.c_void_p(start))


def in_range(parameters: Sequence[LaunchParameter], values: Sequence[Any]) -> list[Any]:
    """The values as `struct` takes them, where a parameter's annotation forces a type on them that they do not fit."""
    return [fitted(parameter.element, value) for parameter, value in zip(parameters, values, strict=True)]


def fitted(element: Element, value: Any) -> Any:
    """The value as a type takes it: integers wrap around, floats that are too large are infinite; a bfloat16 is bytes."""
    if isinstance(element, PointerType):
        return int(value)
    if element.is_bool():
        return bool(value)
    if element.is_int():
        wrapped = int(value) & (1 << element.bits) - 1
        return wrapped - (1 << element.bits) if element.is_int_signed() and wrapped >> element.bits - 1 else wrapped
    number = as_float(value)
    if element.name == "bf16":  # the upper half of the float32, rounded to even
        (bits,) = struct.unpack("<I", ctypes.c_float(number))
        rounded = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16 if number == number else 0x7FC0
        return rounded.to_bytes(2, "little")
    largest = {"fp16": 65520.0, "fp32": 3.4028235677973366e38}.get(
        element.name, math.inf
    )  # from here on rounds to infinity
    return math.copysign(math.inf, number) if abs(number) >= largest else number


def as_float(value: float) -> float:
    """A number of Python's as a float; an integer that is too large for one is infinite."""
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf
