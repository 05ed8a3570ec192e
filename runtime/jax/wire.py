"""The description of a launch as jaxlib's custom call `triton_kernel_call_ffi` takes it: a protocol buffer, compressed.

The call starts any cubin on XLA's stream. Its message types (`TritonAnyKernelCall` and what it holds, in jaxlib's
`triton.proto`) are few and flat, so they are written here, field by field, instead of by a library.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable
from typing import Any

from tilewright.artifact import TENSOR_MAP_TYPES
from tilewright.frozen import frozen
from tilewright.hardware import WARP_SIZE
from tilewright.language.dtypes import DType
from tilewright.runtime.driver_library import ELEMENTS, SWIZZLES
from tilewright.runtime.launching.packing import code_of
from tilewright.runtime.launching.tensor_maps import Shape

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5  # wire types
ALIGNMENT = 16  # of all pointers that the kernel takes to be so aligned; XLA's are at least
# The fields of `Parameter`'s oneof for numbers; what is narrower than 32 bits travels as such.
BOOL, I32, U32, I64, U64, F32, F64 = 2, 3, 4, 5, 6, 7, 8


@frozen
class Launch:
    """What the call needs: the machine code, the shape of the launch, and its parameters (see `array` and the others)."""

    kernel_name: str
    cubin: bytes
    digest: str
    capability: int
    num_threads: int
    shared_bytes: int
    grid: tuple[int, int, int]
    parameters: tuple[bytes, ...]


def opaque(launch: Launch) -> bytes:
    """The attribute `opaque` of the custom call.

    jaxlib keeps loaded code by name, shared memory and PTX; a digest stands for the PTX, which is not needed beside a cubin.
    """
    image = _bytes(1, launch.cubin) + _bytes(2, launch.kernel_name.encode()) + _number(3, launch.shared_bytes)
    kernel = (
        _bytes(1, launch.kernel_name.encode()) + _number(2, launch.num_threads // WARP_SIZE) + _number(3, launch.shared_bytes)
        + _bytes(4, launch.digest.encode()) + _number(6, launch.capability) + _number(10, 1) + _bytes(11, image)
    )  # fmt: skip
    x, y, z = launch.grid
    call = _bytes(1, kernel) + _number(2, x) + _number(3, y) + _number(4, z)
    call += b"".join(_bytes(5, parameter) for parameter in launch.parameters)
    return zlib.compress(_bytes(1, call) + _bytes(4, launch.kernel_name.encode()))


def array(zeros: int = 0) -> bytes:
    """A parameter that is the address of the next buffer, whose first `zeros` bytes are set to zero before the launch."""
    return _bytes(1, _number(1, zeros) + _number(2, ALIGNMENT))


def scalar(element: DType, value: Any) -> bytes:
    """A parameter that is a number; `value` as `in_range` gives it."""
    name = element.short
    if name in ("fp32", "fp64"):
        return _float(F32, "<f", value) if name == "fp32" else _float(F64, "<d", value)
    if name in ("fp16", "bf16"):  # by its bits
        return _number(U32, int.from_bytes(struct.pack(f"<{code_of(element)}", value), "little"))
    fields = {"i1": BOOL, "i64": I64, "u64": U64, "u8": U32, "u16": U32, "u32": U32}
    return _number(fields.get(name, I32), int(value))


def tensor_map(shape: Shape) -> bytes:
    """A parameter that is a tensor map over the next buffer: its sizes from the outermost dimension on, strides in elements."""
    one = shape.map
    strides = [*(stride // one.element.itemsize for stride in reversed(shape.strides)), 1]
    kind = ELEMENTS.index(TENSOR_MAP_TYPES.get(one.element.short, "UINT8"))
    described = (
        _number(1, kind) + _number(2, SWIZZLES[one.swizzle]) + _numbers(3, reversed(shape.sizes)) + _numbers(4, strides)
        + _numbers(5, reversed(one.box)) + _number(6, 0)
    )  # fmt: skip
    return _bytes(9, _bytes(1, described))


def _varint(value: int) -> bytes:
    value &= (1 << 64) - 1  # negative numbers are written as 64 bits
    written = bytearray()
    while value > 0x7F:
        written.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes((*written, value))


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3 | VARINT) + _varint(value)


def _numbers(field: int, values: Iterable[int]) -> bytes:
    return _bytes(field, b"".join(map(_varint, values)))


def _bytes(field: int, content: bytes) -> bytes:
    return _varint(field << 3 | BYTES) + _varint(len(content)) + content


def _float(field: int, code: str, value: Any) -> bytes:
    return _varint(field << 3 | (FIXED32 if code == "<f" else FIXED64)) + struct.pack(code, value)
