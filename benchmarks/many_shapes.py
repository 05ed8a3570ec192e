"""Simple kernels in many shapes, tiles and types: one source through tilewright and through Triton.

usage: python benchmarks/many_shapes.py [--only WORD ...] [--case-ms 10] [--output RESULT.json] [--small]

The checks and options are those of `everyday.py`. A case's name is its kernel, the bits of an element, the sizes, the tile and
last the warps. First, as many processes as there are processors compile everything into both caches.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from contest import load_both
from everyday import HERE, measure
from everyday_cases import Problem, cdiv, empty, integers, power, randn

FLOATS = {16: torch.float16, 32: torch.float32}
ELEMENTS = 1 << 24  # of most arrays
KERNELS = "many_shapes_kernels.py"


def softmax_row(bits: int, n: int, warps: int, elements: int = ELEMENTS) -> Problem:
    m, dtype = max(elements // n, 1), FLOATS[bits]
    x, y = randn(m, n, dtype=dtype), empty(m, n, dtype=dtype)
    reference = lambda: torch.softmax(x.double(), 1)
    return Problem((m,), (x, y, n), {"BLOCK": power(n), "num_warps": warps}, y, reference, 2 * x.nbytes)


def softmax_rows(bits: int, n: int, rows: int, block: int, warps: int, elements: int = ELEMENTS) -> Problem:
    m, dtype = max(elements // n, 1), FLOATS[bits]
    x, y = randn(m, n, dtype=dtype), empty(m, n, dtype=dtype)
    meta = {"ROWS": rows, "BLOCK": block, "num_warps": warps}
    return Problem((cdiv(m, rows),), (x, y, m, n), meta, y, lambda: torch.softmax(x.double(), 1), 2 * x.nbytes)


def logsumexp_rows(bits: int, n: int, rows: int, block: int, warps: int, elements: int = ELEMENTS) -> Problem:
    m = max(elements // n, 1)
    x, out = randn(m, n, dtype=FLOATS[bits]), empty(m, dtype=torch.float32)
    meta = {"ROWS": rows, "BLOCK": block, "num_warps": warps}
    return Problem((cdiv(m, rows),), (x, out, m, n), meta, out, lambda: torch.logsumexp(x.double(), 1), x.nbytes)


def norm_in_blocks(bits: int, n: int, block: int, warps: int, elements: int = ELEMENTS) -> Problem:
    m, dtype = max(elements // n, 1), FLOATS[bits]
    x, w, y = randn(m, n, dtype=dtype), randn(n, dtype=dtype), empty(m, n, dtype=dtype)

    def reference() -> torch.Tensor:
        wide = x.double()
        return wide / (wide.square().mean(1, keepdim=True) + 1e-5).sqrt() * w.double()

    return Problem((m,), (x, w, y, n), {"BLOCK": block, "num_warps": warps}, y, reference, 2 * x.nbytes)


def columns_sum(bits: int, n: int, bm: int, bn: int, warps: int, elements: int = ELEMENTS) -> Problem:
    m = max(elements // n, 1)
    x, out = randn(m, n, dtype=FLOATS[bits]), empty(n, dtype=torch.float32)
    meta = {"BM": bm, "BN": bn, "num_warps": warps}
    return Problem((cdiv(n, bn),), (x, out, m, n), meta, out, lambda: x.double().sum(0), x.nbytes)


def bias_silu(bits: int, n: int, bm: int, bn: int, warps: int, elements: int = ELEMENTS) -> Problem:
    m, dtype = max(elements // n, 1), FLOATS[bits]
    x, b, y = randn(m, n, dtype=dtype), randn(n, dtype=torch.float32), empty(m, n, dtype=dtype)
    reference = lambda: torch.nn.functional.silu(x.double() + b.double())
    meta = {"BM": bm, "BN": bn, "num_warps": warps}
    return Problem((cdiv(m, bm), cdiv(n, bn)), (x, b, y, m, n), meta, y, reference, 2 * x.nbytes)


def transposed(bits: int, m: int, n: int, bm: int, bn: int, warps: int) -> Problem:
    x = integers(100, m, n, dtype=torch.int8) if bits == 8 else randn(m, n, dtype=FLOATS[bits])
    y, meta = empty(n, m, dtype=x.dtype), {"BM": bm, "BN": bn, "num_warps": warps}
    return Problem((cdiv(m, bm), cdiv(n, bn)), (x, y, m, n), meta, y, lambda: x.double().T, 2 * x.nbytes)


def rows_taken(bits: int, d: int, bm: int, warps: int, elements: int = ELEMENTS // 2) -> Problem:
    m, dtype = max(elements // d, 1), FLOATS[bits]
    x, y, place = randn(50_000, d, dtype=dtype), empty(m, d, dtype=dtype), integers(50_000, m)
    meta = {"BM": bm, "BD": power(d), "num_warps": warps}
    return Problem((cdiv(m, bm),), (x, place, y, m, d), meta, y, lambda: x.double()[place.long()], 2 * y.nbytes)


def middle_sum(bits: int, b: int, c: int, ba: int, warps: int, elements: int = ELEMENTS) -> Problem:
    a = max(elements // (b * c), 1)
    x, out = randn(a, b, c, dtype=FLOATS[bits]), empty(a, c, dtype=torch.float32)
    meta = {"B": b, "C": c, "BA": ba, "num_warps": warps}
    return Problem((cdiv(a, ba),), (x, out, a), meta, out, lambda: x.double().sum(1), x.nbytes)


def matrix_vector(bits: int, m: int, n: int, bm: int, bn: int, warps: int) -> Problem:
    a, x, out = randn(m, n, dtype=FLOATS[bits]), randn(n, dtype=FLOATS[bits]), empty(m, dtype=torch.float32)
    meta = {"BM": bm, "BN": bn, "num_warps": warps}
    return Problem((cdiv(m, bm),), (a, x, out, m, n), meta, out, lambda: a.double() @ x.double(), a.nbytes)


def product(bits: int, m: int, n: int, k: int, bm: int, bn: int, bk: int, warps: int) -> Problem:
    dtype = FLOATS[bits]
    a, b, c = randn(m, k, dtype=dtype), randn(k, n, dtype=dtype), empty(m, n, dtype=dtype)
    meta = {"BM": bm, "BN": bn, "BK": bk, "num_warps": warps}
    reference, work = lambda: a.double() @ b.double(), 2 * m * n * k
    return Problem((cdiv(m, bm), cdiv(n, bn)), (a, b, c, m, n, k), meta, c, reference, work, unit="TFLOP/s")


def distances(m: int, n: int, d: int, bm: int, bn: int, warps: int) -> Problem:
    x, y, out = randn(m, d, dtype=torch.float32), randn(n, d, dtype=torch.float32), empty(m, n, dtype=torch.float32)
    meta = {"D": d, "BM": bm, "BN": bn, "num_warps": warps}
    reference = lambda: torch.cdist(x.double(), y.double())
    return Problem((cdiv(m, bm), cdiv(n, bn)), (x, y, out, m, n), meta, out, reference, out.nbytes)


def channels_last(bits: int, pictures: int, c: int, p: int, bc: int, bp: int, warps: int) -> Problem:
    x, y = randn(pictures, c, p, dtype=FLOATS[bits]), empty(pictures, p, c, dtype=FLOATS[bits])
    grid, meta = (cdiv(c, bc), cdiv(p, bp), pictures), {"BC": bc, "BP": bp, "num_warps": warps}
    return Problem(grid, (x, y, c, p), meta, y, lambda: x.double().transpose(1, 2), 2 * x.nbytes)


def _cases() -> Iterator[tuple[Any, tuple[int, ...], tuple[int, ...]]]:
    """(problem, large sizes, small sizes)."""
    tiles = ((32, 32), (64, 64), (16, 128))
    for bits in (16, 32):
        for n in (100, 500, 1023, 3000, 10_000):
            yield softmax_row, (bits, n, 4), (bits, n // 7, 4, 300)
        for rows, block in ((128, 8), (32, 32), (16, 64), (8, 128), (4, 512), (4, 1024)):
            for n in (block - 1, block):
                for build in (softmax_rows, logsumexp_rows):
                    yield build, (bits, n, rows, block, 4), (bits, n, rows, block, 4, 3000)
        for n, block, warps in ((1000, 256, 4), (4096, 2048, 8), (8191, 1024, 4)):
            yield norm_in_blocks, (bits, n, block, warps), (bits, n // 9, 128, warps, 3000)
        for n in (1000, 32_768):
            for bm, bn in ((16, 64), (32, 32), (128, 8), (8, 128)):
                yield columns_sum, (bits, n, bm, bn, 4), (bits, n // 30, bm, bn, 4, 9000)
        for n in (1023, 4096):
            for bm, bn in (*tiles, (1, 1024), (128, 16)):
                yield bias_silu, (bits, n, bm, bn, 4), (bits, n // 20, bm, bn, 4, 9000)
        for d in (33, 64, 100, 255, 512):
            for bm in (1, 8, 32):
                yield rows_taken, (bits, d, bm, 4), (bits, d, bm, 4, 3000)
        for b, c in ((16, 32), (8, 128), (64, 8), (4, 256), (128, 4)):
            for ba in (1, 4):
                yield middle_sum, (bits, b, c, ba, 4), (bits, b, c, ba, 4, 9000)
        for m, n in ((4096, 4096), (50_000, 333)):
            for bm, bn in ((1, 1024), (4, 256), (16, 64), (8, 512)):
                yield matrix_vector, (bits, m, n, bm, bn, 4), (bits, m // 900, n // 5, bm, bn, 4)
        for m, n, k in ((1000, 1000, 1000), (2048, 2048, 512), (300, 5000, 77), (8192, 1001, 64), (2001, 2001, 2001)):
            for *tile, warps in ((32, 32, 32, 4), (64, 64, 32, 4), (128, 64, 32, 4), (128, 128, 64, 8)):
                yield product, (bits, m, n, k, *tile, warps), (bits, m // 20, n // 20, k // 9, *tile, warps)
        for c, p in ((3, 50_176), (256, 784), (17, 999)):
            for bc, bp in ((16, 64), (32, 32), (4, 256)):
                yield channels_last, (bits, 16, c, p, bc, bp, 4), (bits, 2, c, p // 9, bc, bp, 4)
    for bits in (8, 16, 32):
        for m, n in ((4095, 4097), (100_000, 64), (20_000, 300)):
            for bm, bn in tiles:
                yield transposed, (bits, m, n, bm, bn, 4), (bits, m // 100, n // 3, bm, bn, 4)
    for d in (3, 8, 64):
        for bm, bn in tiles:
            yield distances, (4000, 4001, d, bm, bn, 4), (70, 91, d, bm, bn, 4)


CASES = tuple(_cases())


def compile_share(kernels: str, cases: tuple[Any, ...]) -> None:
    """Compiles cases for both, into their caches; what cannot be compiled the measurement reports."""
    with tempfile.TemporaryDirectory() as folder:
        modules = load_both(HERE / kernels, Path(folder))
        for build, sizes, _ in cases:
            problem = build(*sizes)
            for module in modules.values():
                try:
                    getattr(module, build.__name__).warmup(*problem.args, grid=problem.grid, **problem.meta)
                except Exception as error:
                    print(f"{build.__name__} {sizes}: {error}", file=sys.stderr)


def compile_all(kernels: str, cases: tuple[Any, ...], processes: int) -> None:
    """Compiles all cases of a file of kernels in so many processes."""
    context = multiprocessing.get_context("spawn")
    shares = [context.Process(target=compile_share, args=(kernels, cases[at::processes])) for at in range(processes)]
    for share in shares:
        share.start()
    for share in shares:
        share.join()


if __name__ == "__main__":
    if "--small" not in sys.argv:
        compile_all(KERNELS, CASES, max((os.cpu_count() or 1) - 2, 1))
    measure({KERNELS: CASES}, __doc__)
