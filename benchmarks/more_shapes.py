"""Simple kernels of more kinds in many shapes, tiles and types: one source through tilewright and through Triton.

usage: python benchmarks/more_shapes.py [--only WORD ...] [--case-ms 10] [--output RESULT.json] [--small]

As `many_shapes.py`, with products, attention, pictures, atomics, indices and integers.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from typing import Any

import torch
import torch.nn.functional as F
from everyday import measure
from everyday_cases import Problem, cdiv, empty, integers, power, randn
from many_shapes import ELEMENTS, FLOATS, compile_all

KERNELS = "more_shapes_kernels.py"


def attention(bits: int, heads: int, length: int, d: int, causal: int, bm: int, bn: int, warps: int) -> Problem:
    q, k, v = (randn(heads, length, d, dtype=FLOATS[bits]) for _ in range(3))
    out, meta = torch.empty_like(q), {"D": d, "CAUSAL": bool(causal), "BM": bm, "BN": bn, "num_warps": warps}
    wide = lambda: (x[None].double() for x in (q, k, v))
    reference = lambda: F.scaled_dot_product_attention(*wide(), is_causal=bool(causal))[0]
    work = 4 * heads * length * length * d / (1 + causal)
    args = (q, k, v, out, length, d**-0.5)
    return Problem((cdiv(length, bm), heads), args, meta, out, reference, work, 5e-3, unit="TFLOP/s")


def persistent_product(bits: int, m: int, n: int, k: int, bm: int, bn: int, bk: int, warps: int) -> Problem:
    a, b, c = randn(m, k, dtype=FLOATS[bits]), randn(k, n, dtype=FLOATS[bits]), empty(m, n, dtype=FLOATS[bits])
    meta, programs = {"BM": bm, "BN": bn, "BK": bk, "num_warps": warps}, min(132, cdiv(m, bm) * cdiv(n, bn))
    reference, work = lambda: a.double() @ b.double(), 2 * m * n * k
    return Problem((programs,), (a, b, c, m, n, k), meta, c, reference, work, unit="TFLOP/s")


def linear_gelu(bits: int, m: int, n: int, k: int, bm: int, bn: int, bk: int, warps: int) -> Problem:
    x, w, b = randn(m, k, dtype=FLOATS[bits]), randn(n, k, dtype=FLOATS[bits]), randn(n, dtype=FLOATS[bits])
    y, meta = empty(m, n, dtype=FLOATS[bits]), {"BM": bm, "BN": bn, "BK": bk, "num_warps": warps}
    reference = lambda: F.gelu(x.double() @ w.double().T + b.double())
    grid, work = (cdiv(m, bm), cdiv(n, bn)), 2 * m * n * k
    return Problem(grid, (x, w, b, y, m, n, k), meta, y, reference, work, 4e-3, unit="TFLOP/s")


def batched_product(bits: int, batch: int, side: int, warps: int) -> Problem:
    a, b = randn(batch, side, side, dtype=FLOATS[bits]), randn(batch, side, side, dtype=FLOATS[bits])
    c, meta = torch.empty_like(a), {"S": side, "P": max(power(side), 16), "num_warps": warps}
    return Problem((batch,), (a, b, c), meta, c, lambda: a.double() @ b.double(), 3 * a.nbytes)


def integer_product(m: int, n: int, k: int, bm: int, bn: int, bk: int, warps: int) -> Problem:
    a, b = (integers(100, rows, k, low=-100, dtype=torch.int8) for rows in (m, n))
    s, c = randn(n, dtype=torch.float32), empty(m, n, dtype=torch.float32)
    meta, grid = {"BM": bm, "BN": bn, "BK": bk, "num_warps": warps}, (cdiv(m, bm), cdiv(n, bn))
    reference, work = lambda: a.double() @ b.double().T * s.double(), 2 * m * n * k
    return Problem(grid, (a, b, s, c, m, n, k), meta, c, reference, work, unit="TFLOP/s")


def split_product(bits: int, m: int, n: int, k: int, split: int, bm: int, bn: int, bk: int, warps: int) -> Problem:
    a, b, c = randn(m, k, dtype=FLOATS[bits]), randn(k, n, dtype=FLOATS[bits]), empty(m, n, dtype=torch.float32)
    meta = {"SPLIT": split, "BM": bm, "BN": bn, "BK": bk, "num_warps": warps}
    grid, work = (cdiv(m, bm), cdiv(n, bn), split), 2 * m * n * k
    reference = lambda: a.double() @ b.double()
    return Problem(grid, (a, b, c, m, n, k), meta, c, reference, work, zeroed=True, unit="TFLOP/s")


def layer_norm_rows(bits: int, n: int, rows: int, warps: int, elements: int = ELEMENTS) -> Problem:
    m, dtype = max(elements // n, 1), FLOATS[bits]
    x, w, b, y = randn(m, n, dtype=dtype), randn(n, dtype=dtype), randn(n, dtype=dtype), empty(m, n, dtype=dtype)
    meta = {"ROWS": rows, "BLOCK": power(n), "num_warps": warps}
    reference = lambda: F.layer_norm(x.double(), (n,), w.double(), b.double())
    return Problem((cdiv(m, rows),), (x, w, b, y, m, n, 1e-5), meta, y, reference, 2 * x.nbytes)


def swiglu_packed(bits: int, n: int, block: int, warps: int, elements: int = ELEMENTS) -> Problem:
    m = max(elements // n, 1)
    x, y = randn(m, 2 * n, dtype=FLOATS[bits]), empty(m, n, dtype=FLOATS[bits])
    reference = lambda: F.silu(x[:, :n].double()) * x[:, n:].double()
    meta = {"BLOCK": block, "num_warps": warps}
    return Problem((m, cdiv(n, block)), (x, y, n), meta, y, reference, 3 * y.nbytes)


def rotate_half(bits: int, heads: int, d: int, warps: int, elements: int = ELEMENTS) -> Problem:
    tokens = max(elements // (heads * d), 1)
    x, y = randn(tokens, heads, d, dtype=FLOATS[bits]), empty(tokens, heads, d, dtype=FLOATS[bits])
    cos, sin = randn(tokens, d // 2, dtype=torch.float32), randn(tokens, d // 2, dtype=torch.float32)

    def reference() -> torch.Tensor:
        low, high, c, s = *x.double().chunk(2, 2), cos.double()[:, None], sin.double()[:, None]
        return torch.cat((low * c - high * s, high * c + low * s), 2)

    meta = {"HEADS": heads, "D": d, "num_warps": warps}
    return Problem((tokens,), (x, cos, sin, y), meta, y, reference, 2 * x.nbytes + 2 * cos.nbytes)


def best_of_row(bits: int, n: int, rows: int, block: int, warps: int, elements: int = ELEMENTS) -> Problem:
    m = max(elements // n, 1)
    x = torch.argsort(randn(m, n, dtype=torch.float32), 1).to(torch.float32)
    x = (x % 2000).to(FLOATS[bits]) if bits == 16 else x
    place, meta = empty(m, dtype=torch.int64), {"ROWS": rows, "BLOCK": block, "num_warps": warps}
    reference = lambda: (x == x.amax(1, keepdim=True)).to(torch.int32).argmax(1)
    return Problem((cdiv(m, rows),), (x, place, m, n), meta, place, reference, x.nbytes)


def counts(n: int, bins: int, block: int, warps: int) -> Problem:
    x, out = integers(1 << 20, n), empty(bins, dtype=torch.int32)
    reference = lambda: torch.bincount(x.long() % bins, minlength=bins)
    meta = {"BINS": bins, "BLOCK": block, "num_warps": warps}
    return Problem((cdiv(n, block),), (x, out, n), meta, out, reference, x.nbytes, zeroed=True)


def rows_added(bits: int, d: int, bm: int, warps: int, elements: int = ELEMENTS // 2) -> Problem:
    m = max(elements // d, 1)
    x, out, place = randn(m, d, dtype=FLOATS[bits]), empty(2000, d, dtype=torch.float32), integers(2000, m)
    reference = lambda: torch.zeros_like(out, dtype=torch.float64).index_add_(0, place.long(), x.double())
    meta = {"BM": bm, "BD": power(d), "num_warps": warps}
    return Problem((cdiv(m, bm),), (x, place, out, m, d), meta, out, reference, x.nbytes, zeroed=True)


def max_pool(bits: int, pictures: int, h: int, w: int, bh: int, bw: int, warps: int) -> Problem:
    x, y = randn(pictures, h, w, dtype=FLOATS[bits]), empty(pictures, h // 2, w // 2, dtype=FLOATS[bits])
    grid, meta = (cdiv(h // 2, bh), cdiv(w // 2, bw), pictures), {"BH": bh, "BW": bw, "num_warps": warps}
    return Problem(grid, (x, y, h, w), meta, y, lambda: F.max_pool2d(x.double()[None], 2)[0], x.nbytes + y.nbytes)


def filter_rows(bits: int, channels: int, length: int, taps: int, block: int, warps: int) -> Problem:
    x, w = randn(4 * channels, length, dtype=FLOATS[bits]), randn(channels, taps, dtype=FLOATS[bits])
    y, meta = torch.empty_like(x), {"TAPS": taps, "BLOCK": block, "num_warps": warps}

    def reference() -> torch.Tensor:
        wide = F.pad(x.double().view(4, channels, length), (taps - 1, 0))
        return F.conv1d(wide, w.double()[:, None], groups=channels).view(4 * channels, length)

    grid = (cdiv(length, block), 4 * channels)
    return Problem(grid, (x, w, y, channels, length), meta, y, reference, 2 * x.nbytes)


def convolution(bits: int, c: int, h: int, w: int, o: int, bm: int, bn: int, bk: int, warps: int) -> Problem:
    x, f, y = (make(*s, dtype=FLOATS[bits]) for make, s in ((randn, (h, w, c)), (randn, (9, c, o)), (empty, (h, w, o))))
    meta, grid = {"BM": bm, "BN": bn, "BK": bk, "num_warps": warps}, (cdiv(h * w, bm), cdiv(o, bn))

    def reference() -> torch.Tensor:
        weights = f.double().view(3, 3, c, o).permute(3, 2, 0, 1)
        return F.conv2d(x.double().permute(2, 0, 1)[None], weights, padding=1)[0].permute(1, 2, 0)

    return Problem(grid, (x, f, y, c, h, w, o), meta, y, reference, 18 * h * w * c * o, unit="TFLOP/s")


def column_stats(bits: int, n: int, bm: int, bn: int, warps: int, elements: int = ELEMENTS) -> Problem:
    m = max(elements // n, 1)
    x, mean, var = randn(m, n, dtype=FLOATS[bits]), *(empty(n, dtype=torch.float32) for _ in range(2))
    meta, reference = {"BM": bm, "BN": bn, "num_warps": warps}, lambda: x.double().var(0, correction=0)
    return Problem((cdiv(n, bn),), (x, mean, var, m, n), meta, var, reference, x.nbytes)


def integers_mixed(bits: int, n: int, block: int, warps: int) -> Problem:
    dtype = {8: torch.uint8, 16: torch.int16, 32: torch.int32, 64: torch.int64}[bits]
    x = integers(40, n, dtype=dtype)
    y, meta = torch.empty_like(x), {"BLOCK": block, "num_warps": warps}

    def reference() -> torch.Tensor:
        z = x.long()
        z = ((z ^ (z >> 3)) * 5 + (z & 15)) % (1 << 8 if bits == 8 else 1 << 62)
        return torch.where(z > 40, z - 40, z)

    return Problem((cdiv(n, block),), (x, y, n), meta, y, reference, 2 * x.nbytes)


def axes_swapped(bits: int, b: int, c: int, d: int, order: int, bc: int, bd: int, warps: int) -> Problem:
    dims = ((0, 1, 2), (1, 0, 2), (0, 2, 1), (2, 1, 0))[order]
    sizes = [0, 0, 0]
    for axis, size in zip(dims, (b, c, d), strict=True):
        sizes[axis] = size
    x = randn(*sizes, dtype=FLOATS[bits]).permute(dims)
    y, meta = empty(b, c, d, dtype=FLOATS[bits]), {"BC": bc, "BD": bd, "num_warps": warps}
    grid = (cdiv(c, bc), cdiv(d, bd), b)
    return Problem(grid, (x, y, b, c, d, *x.stride()), meta, y, lambda: x.double(), 2 * y.nbytes)


def cross_entropy(bits: int, n: int, block: int, warps: int, elements: int = ELEMENTS) -> Problem:
    m = max(elements // n, 1)
    x, label, loss = randn(m, n, dtype=FLOATS[bits]), integers(n, m, dtype=torch.int64), empty(m, dtype=torch.float32)
    reference = lambda: F.cross_entropy(x.double(), label, reduction="none")
    return Problem((m,), (x, label, loss, n), {"BLOCK": block, "num_warps": warps}, loss, reference, x.nbytes)


def quantized(bits: int, n: int, rows: int, group: int, warps: int, elements: int = ELEMENTS) -> Problem:
    m, groups = max(elements // n, 1), cdiv(n, group)
    x, q, s = randn(m, n, dtype=FLOATS[bits]), empty(m, n, dtype=torch.int8), empty(m, groups, dtype=torch.float32)
    meta = {"ROWS": rows, "GROUP": group, "num_warps": warps}

    def reference() -> torch.Tensor:
        parts = F.pad(x.double(), (0, groups * group - n)).view(m, groups, group)
        scale = parts.abs().amax(2, keepdim=True) / 127 + 1e-8
        return (parts / scale).round().view(m, groups * group)[:, :n]

    return Problem((cdiv(m, rows), groups), (x, q, s, m, n), meta, q, reference, x.nbytes + q.nbytes, 1e-2)


def _products() -> Iterator[tuple[Any, tuple[int, ...], tuple[int, ...]]]:
    """(problem, large sizes, small sizes)."""
    tiles = ((64, 64, 32, 4), (128, 128, 32, 4), (128, 64, 64, 4), (128, 256, 64, 8), (16, 128, 64, 4))
    for length, d, causal in ((1000, 64, 0), (2048, 128, 1), (777, 32, 1), (4096, 64, 0)):
        for tile in ((64, 64, 4), (128, 64, 4), (128, 128, 8), (32, 32, 2)):
            yield attention, (16, 32, length, d, causal, *tile), (16, 2, length // 9, d, causal, *tile)
    yield attention, (32, 16, 1000, 64, 0, 64, 32, 4), (32, 2, 70, 64, 0, 64, 32, 4)
    for m, n, k in ((2048, 2048, 2048), (4000, 3001, 520), (8192, 8192, 1024), (100, 4096, 4096)):
        for tile in tiles:
            for build in (persistent_product, linear_gelu):
                yield build, (16, m, n, k, *tile), (16, m // 20, n // 20, k // 9, *tile)
        for build in (persistent_product, linear_gelu):
            yield build, (32, m, n, k, 64, 64, 32, 4), (32, m // 20, n // 20, k // 9, 64, 64, 32, 4)
        for tile in ((64, 64, 64, 4), (128, 128, 128, 8)):
            yield integer_product, (m, n, k, *tile), (m // 20, n // 20, k // 9, *tile)
    for side in (16, 20, 32, 50, 64):
        for bits, warps in ((16, 1), (16, 4), (32, 4)):
            yield batched_product, (bits, 20_000, side, warps), (bits, 9, side, warps)
    for m, n, k, split in ((64, 4096, 4096, 4), (512, 512, 16_384, 8), (100, 1000, 10_000, 8)):
        for tile in ((64, 64, 32, 4), (64, 128, 64, 4)):
            yield split_product, (16, m, n, k, split, *tile), (16, m // 2, n // 20, k // 50, split, *tile)
    for c, h, w, o in ((64, 56, 56, 64), (256, 28, 30, 200), (48, 100, 100, 96)):
        for tile in ((64, 64, 32, 4), (128, 64, 64, 4)):
            yield convolution, (16, c, h, w, o, *tile), (16, c // 2, h // 9, w // 9, o // 4, *tile)


def _others() -> Iterator[tuple[Any, tuple[int, ...], tuple[int, ...]]]:
    """(problem, large sizes, small sizes)."""
    for bits in (16, 32):
        for n, rows, warps in ((64, 16, 4), (200, 8, 4), (768, 4, 4), (1024, 1, 4), (1000, 2, 8), (5000, 1, 8)):
            yield layer_norm_rows, (bits, n, rows, warps), (bits, n, rows, warps, 4000)
        for n, block, warps in ((11_008, 1024, 4), (2730, 1024, 4), (4096, 4096, 8), (999, 256, 1)):
            yield swiglu_packed, (bits, n, block, warps), (bits, n // 9, block, warps, 3000)
        for heads, d, warps in ((32, 128, 4), (8, 64, 4), (16, 256, 8), (1, 128, 1)):
            yield rotate_half, (bits, heads, d, warps), (bits, heads, d, warps, 9000)
        for n, rows, block, warps in ((1000, 4, 256, 4), (32_000, 1, 4096, 8), (100, 16, 128, 4), (5000, 8, 128, 4)):
            yield best_of_row, (bits, n, rows, block, warps), (bits, n // 3, rows, block, warps, 3000)
        for d, bm in ((64, 16), (100, 4), (256, 1), (33, 32)):
            yield rows_added, (bits, d, bm, 4), (bits, d, bm, 4, 3000)
        for h, w in ((512, 512), (223, 225)):
            for bh, bw in ((1, 128), (16, 16), (8, 64)):
                yield max_pool, (bits, 64, h, w, bh, bw, 4), (bits, 2, h // 9, w // 5, bh, bw, 4)
        for length, taps, block, warps in ((4096, 4, 1024, 4), (1000, 3, 256, 4), (8191, 16, 512, 8)):
            yield filter_rows, (bits, 256, length, taps, block, warps), (bits, 3, length // 9, taps, 128, warps)
        for n, bm, bn in ((512, 32, 32), (1000, 128, 8), (4096, 8, 128), (77, 64, 16), (20_000, 16, 64)):
            yield column_stats, (bits, n, bm, bn, 4), (bits, n // 30 + 1, bm, bn, 4, 9000)
        for order in range(4):
            for b, c, d in ((32, 512, 1024), (64, 333, 777)):
                for bc, bd in ((32, 32), (64, 64), (8, 128)):
                    sizes = (order, bc, bd, 4)
                    yield axes_swapped, (bits, b, c, d, *sizes), (bits, 2, c // 9, d // 9, *sizes)
        for n, block, warps in ((32_000, 2048, 4), (50_257, 4096, 8), (1001, 256, 4), (128_256, 1024, 4)):
            yield cross_entropy, (bits, n, block, warps), (bits, n // 50, 128, warps, 9000)
        for n, rows, group, warps in ((4096, 4, 128, 4), (4096, 1, 4096, 8), (1000, 16, 64, 4), (2048, 64, 32, 4)):
            yield quantized, (bits, n, rows, group, warps), (bits, n // 2, rows, group, warps, 9000)
    for bits in (8, 16, 32, 64):
        for n, block, warps in ((1 << 24, 1024, 4), ((1 << 24) + 5, 4096, 8), (10_000_001, 256, 4)):
            yield integers_mixed, (bits, n, block, warps), (bits, n >> 13, block, warps)
    for bins, block in ((10, 1024), (256, 512), (100_000, 1024)):
        yield counts, (10_000_001, bins, block, 4), (3001, bins, block, 4)


CASES = (*_products(), *_others())


if __name__ == "__main__":
    if "--small" not in sys.argv:
        compile_all(KERNELS, CASES, max((os.cpu_count() or 1) - 2, 1))
    measure({KERNELS: CASES}, __doc__)
