"""Simple kernels whose rows are multiples of 8, 4 or 2 elements and not of 16: one source through tilewright and through Triton.

usage: python benchmarks/even_shapes.py [--only WORD ...] [--case-ms 10] [--output RESULT.json] [--small]

The kernels and checks are those of `many_shapes.py`. Triton knows of multiples of 16 alone, as of any integer that a kernel gets.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from typing import Any

from everyday import measure
from many_shapes import (
    KERNELS,
    bias_silu,
    channels_last,
    columns_sum,
    compile_all,
    logsumexp_rows,
    matrix_vector,
    norm_in_blocks,
    product,
    rows_taken,
    softmax_row,
    softmax_rows,
    transposed,
)

RESTS = (8, 4, 2)  # what sizes have beyond a multiple of 16
TILES = ((64, 64, 32, 4), (128, 64, 32, 4), (128, 128, 64, 8))


def _rows(bits: int, rest: int) -> Iterator[tuple[Any, ...]]:
    """(problem, its sizes) of kernels along rows; the last sizes may be left out where there are few elements."""
    for n in (96, 496, 2000, 9984):
        yield softmax_row, bits, n + rest, 4
    yield softmax_rows, bits, 16 + rest, 32, 32, 4
    yield softmax_rows, bits, 496 + rest, 4, 512, 4
    yield logsumexp_rows, bits, 112 + rest, 8, 128, 4
    yield norm_in_blocks, bits, 992 + rest, 256, 4
    yield norm_in_blocks, bits, 8176 + rest, 1024, 4
    for bm, bn in ((16, 64), (128, 8), (8, 128)):
        yield columns_sum, bits, 992 + rest, bm, bn, 4
    for bm, bn in ((32, 32), (64, 64), (16, 128), (1, 1024)):
        yield bias_silu, bits, 992 + rest, bm, bn, 4
    for d in (32, 96, 240):
        for bm in (8, 32):
            yield rows_taken, bits, d + rest, bm, 4


def _others(bits: int, rest: int) -> Iterator[tuple[tuple[Any, ...], tuple[Any, ...]]]:
    """(problem, its sizes), and the same for few elements, of all other kernels."""
    for bm, bn in ((1, 1024), (4, 256), (16, 64)):
        tile = bm, bn, 4
        yield (matrix_vector, bits, 50_000, 320 + rest, *tile), (matrix_vector, bits, 60, 64 + rest, *tile)
    for m, n, k in ((992, 992, 992), (8192, 992, 64), (2000, 2000, 2000)):
        for *tile, warps in TILES:
            small = m // 20, 64 + rest, 96 + rest
            yield (product, bits, m + rest, n + rest, k + rest, *tile, warps), (product, bits, *small, *tile, warps)
    for bc, bp in ((16, 64), (32, 32), (4, 256)):
        tile = bc, bp, 4
        yield (channels_last, bits, 16, 16 + rest, 992 + rest, *tile), (channels_last, bits, 2, rest, 96 + rest, *tile)
    for bm, bn in ((32, 32), (64, 64)):
        tile = bm, bn, 4
        yield (transposed, bits, 4080 + rest, 4096 + rest, *tile), (transposed, bits, 48 + rest, 96 + rest, *tile)


def _cases() -> Iterator[tuple[Any, tuple[int, ...], tuple[int, ...]]]:
    """(problem, large sizes, small sizes)."""
    for rest in RESTS:
        for bits in (16, 32):
            for build, *sizes in _rows(bits, rest):
                yield build, tuple(sizes), (*sizes, 3000)
            for (build, *large), (_, *small) in _others(bits, rest):
                yield build, tuple(large), tuple(small)


CASES = tuple(_cases())


if __name__ == "__main__":
    if "--small" not in sys.argv:
        compile_all(KERNELS, CASES, max((os.cpu_count() or 1) - 2, 1))
    measure({KERNELS: CASES}, __doc__)
