"""The tensor maps of a launch, as the CPU run's TMA reads them.

Little endian: u64 base address; u32 rank; u32 bytes per element; u32 bytes of swizzle; u32 box[5]; u64 sizes[5]; u64
strides[4] in bytes; zeros up to 128 bytes. The contiguous dimension is the first.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

from tilewright.artifact import Artifact, TensorMap
from tilewright.hardware import MAP_BYTES, MAX_RANK
from tilewright.language.dtypes import PointerType
from tilewright.runtime.launching.host_expressions import evaluate


def encode_tensor_maps(artifact: Artifact, values: Sequence[int | float | bool]) -> list[bytes]:
    """128 bytes for each of `artifact.tensor_maps`; `values` are the launch's, in the order of `artifact.parameters`.

    Raises:
      HostExpressionError: for a size or stride that cannot be computed from the integer arguments.
    """
    integers, pointers = {}, {}
    for parameter, value in zip(artifact.parameters, values, strict=True):
        if isinstance(parameter.element, PointerType):
            pointers[parameter.name] = int(value)
        elif not parameter.element.is_floating():
            integers[parameter.name] = int(value)
    return [_encoded(tensor_map, pointers[tensor_map.base], integers) for tensor_map in artifact.tensor_maps]


def _encoded(tensor_map: TensorMap, base: int, integers: dict[str, int]) -> bytes:
    sizes = [evaluate(text, integers) for text in tensor_map.sizes]
    strides = [evaluate(text, integers) for text in tensor_map.strides]
    rank = len(sizes)
    head = struct.pack("<QIII", base, rank, tensor_map.element.bits // 8, tensor_map.swizzle)
    box = struct.pack(f"<{MAX_RANK}I", *tensor_map.box, *[0] * (MAX_RANK - rank))
    extents = struct.pack(f"<{MAX_RANK}Q", *sizes, *[0] * (MAX_RANK - rank))
    steps = struct.pack(f"<{MAX_RANK - 1}Q", *strides, *[0] * (MAX_RANK - rank))
    return (head + box + extents + steps).ljust(MAP_BYTES, b"\0")
