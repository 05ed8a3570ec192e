"""Tensor maps for a launch: sizes and strides from its integers, encoded by the driver, kept for the next launch.

In: an artifact's `TensorMap`s and the values of a launch. Out: per map the address of 128 bytes that a kernel takes as a
parameter. The rules that are checked are those of `cuTensorMapEncodeTiled` (CUDA driver API, Tensor Map Object Management).
"""

from __future__ import annotations

import ctypes
import operator
import threading
from collections.abc import Callable, Sequence
from typing import Any

from tilewright.artifact import TENSOR_MAP_TYPES, WIDE_ROW, Artifact, TensorMap
from tilewright.diagnostics import TensorMapError
from tilewright.frozen import frozen
from tilewright.hardware import MAP_ALIGNMENT, MAP_BYTES, MAX_RANK, MAX_SIDE
from tilewright.language.dtypes import DType, PointerType
from tilewright.runtime.driver_library import ELEMENTS, INTERLEAVE_NONE, L2_PROMOTIONS, OUT_OF_BOUNDS_ZERO, SWIZZLES
from tilewright.runtime.launching.host_expressions import Places, evaluator, names_in

KEPT = 512  # encodings per map of a kernel; each is 128 bytes
MAX_SIZE, MAX_STRIDE = 2**32, 2**40


@frozen
class Shape:
    """A map with the numbers of a launch: `address` in bytes, sizes in elements, strides in bytes."""

    map: TensorMap
    address: int
    sizes: tuple[int, ...]
    strides: tuple[int, ...]


class Encoding(int):
    """The address of the 128 bytes of an encoded map; `memory` owns them."""

    memory: Any


def integer_places(artifact: Artifact) -> Places:
    """Where the integer parameters stand among a launch's values."""
    numbered = enumerate(artifact.parameters)
    return tuple((p.name, place) for place, p in numbered if isinstance(p.element, DType) and p.element.is_int())


class Encoder:
    """The maps of one kernel, with the encodings of its last launches."""

    def __init__(self, artifact: Artifact) -> None:
        """Makes functions of the maps' texts.

        Raises:
          HostExpressionError: when a size or stride is no arithmetic in the kernel's integers.
        """
        places, pointers = integer_places(artifact), _pointer_places(artifact)
        self._maps = []
        for one in artifact.tensor_maps:
            if one.base not in pointers:
                raise TensorMapError(f"the tensor map {one.name} starts at {one.base}, which is no pointer parameter")
            sizes, strides = evaluator(one.sizes, places), evaluator(one.strides, places)
            used = [dict(places)[name] for name in names_in((*one.sizes, *one.strides))]
            deciding = operator.itemgetter(pointers[one.base], *used)  # the address alone, or a tuple with the integers
            kept: dict[Any, Encoding] = {}
            self._maps.append((one, pointers[one.base], sizes, strides, deciding, kept))
        self._lock = threading.Lock()

    def encode(self, values: Sequence[Any]) -> list[Encoding]:
        """The encodings for a launch, one per map.

        Raises:
          TensorMapError: names the map and the rule that the arguments break.
        """
        found = []
        for one, base, sizes, strides, deciding, kept in self._maps:
            key = deciding(values)
            encoding = kept.get(key)
            if encoding is None:
                encoding = encode(Shape(one, values[base], sizes(values), strides(values)))
                self._keep(kept, key, encoding)
            found.append(encoding)
        return found

    def _keep(self, kept: dict[Any, Encoding], key: Any, encoding: Encoding) -> None:
        with self._lock:
            while len(kept) >= KEPT:  # the oldest goes; a launch that uses it holds it itself
                del kept[next(iter(kept))]
            kept[key] = encoding


def _pointer_places(artifact: Artifact) -> dict[str, int]:
    return {p.name: place for place, p in enumerate(artifact.parameters) if isinstance(p.element, PointerType)}


def encode(shape: Shape) -> Encoding:
    """Has the driver encode a map: no interleaving, zeros outside.

    Raises:
      TensorMapError: when a rule is broken, or the driver refuses.
    """
    check_rules(shape)
    from tilewright.runtime.driver import bindings

    driver, one, rank = bindings(), shape.map, len(shape.sizes)
    row = shape.sizes[0] * one.element.itemsize
    memory = ctypes.create_string_buffer(MAP_BYTES + MAP_ALIGNMENT)
    address = -(-ctypes.addressof(memory) // MAP_ALIGNMENT) * MAP_ALIGNMENT
    (status,) = driver.cuTensorMapEncodeTiled(
        address,
        ELEMENTS.index(TENSOR_MAP_TYPES.get(one.element.short, "UINT8")),
        rank,
        shape.address,
        (ctypes.c_uint64 * rank)(*shape.sizes),
        (ctypes.c_uint64 * rank)(*shape.strides),
        (ctypes.c_uint32 * rank)(*one.box),
        (ctypes.c_uint32 * rank)(*[1] * rank),
        INTERLEAVE_NONE,
        SWIZZLES[one.swizzle],
        L2_PROMOTIONS[256 if row >= WIDE_ROW else 128],
        OUT_OF_BOUNDS_ZERO,
    )
    if status != 0:
        raise TensorMapError(f"the CUDA driver refuses {_named(shape)}: {driver.error_name(status)}")
    encoding = Encoding(address)
    encoding.memory = memory
    return encoding


def check_rules(shape: Shape) -> None:
    """Checks a map against the hardware's rules.

    Raises:
      TensorMapError: names the first rule that is broken.
    """
    one, row = shape.map, shape.map.box[0] * shape.map.element.itemsize
    rules: list[tuple[bool, Callable[[], str]]] = [
        (1 <= len(one.box) <= MAX_RANK, lambda: f"a map has 1 to {MAX_RANK} dimensions, this one {len(one.box)}"),
        (shape.address % 16 == 0, lambda: f"{one.base} must be aligned to 16 bytes and lies at {shape.address:#x}"),
        (all(1 <= size <= MAX_SIZE for size in shape.sizes), lambda: "every size must be from 1 to 2^32"),
        (all(0 < stride < MAX_STRIDE and stride % 16 == 0 for stride in shape.strides),
         lambda: "every stride must be a multiple of 16 bytes, above 0 and below 2^40"),
        (all(1 <= side <= MAX_SIDE for side in one.box), lambda: f"a box has 1 to {MAX_SIDE} elements per dimension"),
        (row % 16 == 0, lambda: f"a row of the box must be a multiple of 16 bytes and has {row}"),
        (one.swizzle in (0, 32, 64, 128), lambda: "a swizzle spans 0, 32, 64 or 128 bytes"),
        (not one.swizzle or row <= one.swizzle, lambda: f"a row of the box, {row} bytes, must fit into the swizzle"),
    ]  # fmt: skip
    for holds, rule in rules:
        if not holds:
            raise TensorMapError(f"the hardware cannot copy through {_named(shape)}: {rule()}")


def _named(shape: Shape) -> str:
    one = shape.map
    sizes = ", ".join(f"{text} = {size}" for text, size in zip(one.sizes, shape.sizes, strict=True))
    strides = ", ".join(f"{text} = {stride}" for text, stride in zip(one.strides, shape.strides, strict=True))
    return (
        f"the tensor map {one.name} over {one.base} (sizes {sizes}; strides in bytes {strides or 'none'}; "
        f"box {' x '.join(map(str, one.box))} of {one.element}, swizzle {one.swizzle})"
    )
