"""Products of one layer in many tiles and shapes, as those have them who write a tile down and do not tune it.

usage: python benchmarks/product_tiles.py [--only WORD ...] [--case-ms 6] [--output RESULT.json] [--small]

The kernels of `more_shapes.py`: fp16, floats and bytes in tiles that are short and long along K, of sizes from a single wave of
programs to thousands, with few and with many trips.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from typing import Any

from everyday import measure
from many_shapes import compile_all
from more_shapes import KERNELS, integer_product, linear_gelu, persistent_product

SIZES = ((2048, 2048, 2048), (8192, 8192, 1024), (4096, 4096, 4096), (512, 4096, 96), (4096, 4096, 256),
         (100, 4096, 4096), (16_384, 512, 64))  # fmt: skip
HALVES = ((64, 64, 32, 4), (128, 128, 32, 4), (128, 128, 32, 8), (64, 128, 32, 4), (128, 256, 32, 8), (128, 64, 32, 4),
          (64, 32, 32, 4), (128, 32, 32, 4), (64, 128, 16, 4), (64, 64, 16, 4), (64, 64, 64, 4), (128, 128, 64, 4),
          (128, 128, 64, 8), (128, 64, 64, 4), (64, 128, 64, 4), (64, 256, 64, 4), (64, 32, 64, 4))  # fmt: skip
PERSISTENT = ((64, 64, 32, 4), (128, 128, 32, 4))
FLOATS = ((64, 64, 16, 4), (128, 128, 16, 8), (64, 64, 32, 4))
BYTES = ((64, 64, 64, 4), (128, 128, 64, 8), (64, 64, 32, 4), (64, 64, 128, 4))


def _cases() -> Iterator[tuple[Any, tuple[int, ...], tuple[int, ...]]]:
    """(problem, large sizes, small sizes)."""
    for sizes in SIZES:
        small = tuple(max(side // 20, 16) for side in sizes)
        for build, bits, tiles in (
            (linear_gelu, (16,), HALVES),
            (persistent_product, (16,), PERSISTENT),
            (linear_gelu, (32,), FLOATS),
            (integer_product, (), BYTES),
        ):
            for tile in tiles:
                yield build, (*bits, *sizes, *tile), (*bits, *small, *tile)


CASES = tuple(_cases())


if __name__ == "__main__":
    if "--small" not in sys.argv:
        compile_all(KERNELS, CASES, max((os.cpu_count() or 1) - 2, 1))
    measure({KERNELS: CASES}, __doc__)
