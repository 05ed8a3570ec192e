"""How a dot operand lies in shared memory: the one format that TMA, wgmma, ldmatrix and cp.async share.

Lines run along the contiguous axis, at most 128 bytes each; a longer axis is cut into boxes that lie one after the other.
Within a line, 16-byte chunk c of line r lies at chunk `c ^ (r * chunks / 8 % chunks)`: the 128-, 64- and 32-byte swizzles
of the PTX ISA ("Swizzling modes" of tensor copies). Eight consecutive lines then meet 32 different banks.

Worked example, a [128, 64] tile of halves, contiguous along axis 1: one box of 128 lines of 128 bytes; element (5, 17) is
in chunk 2 of line 5, which lies at chunk 2 ^ 5 = 7: offset 5 * 64 + 7 * 8 + 1 = 377.
"""

from __future__ import annotations

import math

from ...frozen import frozen
from ...hardware import CHUNK_BYTES, SWIZZLED_LINE_BYTES


@frozen
class SharedTile:
    """A tile in shared memory.

    Attributes:
      shape: of the tile as the program sees it, rank 2 or 3, powers of two.
      fast: the axis that is contiguous, one of the last two.
      itemsize: bytes of an element.
      stages: how many of them stand in a ring.
    """

    shape: tuple[int, ...]
    fast: int
    itemsize: int
    stages: int = 1

    @property
    def slow(self) -> int:
        """The axis along which lines follow each other."""
        rank = len(self.shape)
        return 2 * rank - 3 - self.fast

    @property
    def line(self) -> int:
        """Elements of a line."""
        return min(self.shape[self.fast], SWIZZLED_LINE_BYTES // self.itemsize)

    @property
    def lines(self) -> int:
        """Lines of a box."""
        return int(self.shape[self.slow])

    @property
    def boxes(self) -> int:
        """Boxes side by side along the contiguous axis."""
        return self.shape[self.fast] // self.line

    @property
    def chunk(self) -> int:
        """Elements of 16 bytes."""
        return CHUNK_BYTES // self.itemsize

    @property
    def chunks(self) -> int:
        """Chunks of a line."""
        return max(self.line // self.chunk, 1)

    @property
    def swizzle(self) -> int:
        """Bytes of the swizzle pattern, 0 for none."""
        return self.line * self.itemsize if self.chunks > 1 else 0

    @property
    def size(self) -> int:
        """Elements of one stage."""
        return math.prod(self.shape)

    @property
    def stage_bytes(self) -> int:
        """Bytes of one stage."""
        return self.size * self.itemsize

    @property
    def rows_bytes(self) -> int:
        """Bytes of one stage of rows as they lie in memory, each of which starts anywhere in a chunk."""
        return self.lines * (self.shape[self.fast] * self.itemsize + CHUNK_BYTES)

    def offset(self, coordinates: tuple[int, ...]) -> int:
        """Where an element of one stage lies, in elements: the format by arithmetic, for tests."""
        *batch, _, _ = coordinates
        element, line = coordinates[self.fast], coordinates[self.slow]
        start = batch[0] * self.shape[-1] * self.shape[-2] if batch else 0
        box, chunk = element // self.line, element % self.line // self.chunk
        moved = chunk ^ (line * self.chunks // 8 % self.chunks)
        return start + ((box * self.lines + line) * self.chunks + moved) * self.chunk + element % self.chunk


def has_chunks(shape: tuple[int, ...], fast: int, itemsize: int) -> bool:
    """Whether a tile can lie so: whole chunks along the contiguous axis."""
    return shape[fast] * itemsize >= CHUNK_BYTES


def fits(shape: tuple[int, ...], fast: int, itemsize: int) -> bool:
    """Whether tensor copies can write a tile so: whole patterns of the swizzle along the other axis as well."""
    return has_chunks(shape, fast, itemsize) and shape[2 * len(shape) - 3 - fast] >= 8
