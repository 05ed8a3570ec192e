"""Products whose loops do more than multiply, in tiles that nobody tuned: one source through tilewright and through Triton.

usage: python benchmarks/layer_tiles.py [--only WORD ...] [--case-ms 6] [--output RESULT.json] [--small]

As `product_tiles.py`, with scales of blocks, weights of few bits, activations and norms of operands, rows that are looked up,
several products in a loop, triangles, lists of blocks, sums beside products, loops around loops.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from typing import Any

import torch
import torch.nn.functional as F
from everyday import measure
from everyday_cases import Problem, cdiv, empty, integers, randn
from many_shapes import compile_all

KERNELS = "layer_tiles_kernels.py"
Tile = tuple[int, int, int, int]


def launch(args: tuple[Any, ...], y: torch.Tensor, m: int, n: int, k: int, tile: tuple[int, ...], wanted: Any,
           work: float = 0.0, tolerance: float = 4e-3, grid: tuple[int, ...] = (), **meta: Any) -> Problem:  # fmt: skip
    """A problem of a layer in these tiles, whose `wanted` is the reference."""
    bm, bn, bk, warps = tile
    meta = {"BM": bm, "BN": bn, "BK": bk, "num_warps": warps, **meta}
    grid = grid or (cdiv(m, bm), cdiv(n, bn))
    return Problem(grid, args, meta, y, wanted, work or 2 * m * n * k, tolerance, unit="TFLOP/s")


def block_scaled(m: int, n: int, k: int, *tile: int) -> Problem:
    groups = cdiv(k, 128)
    x, w = (randn(rows, k, dtype=torch.float32).to(torch.float8_e4m3fn) for rows in (m, n))
    xs, ws = randn(m, groups, dtype=torch.float32), randn(cdiv(n, 128), groups, dtype=torch.float32)
    y = empty(m, n, dtype=torch.bfloat16)

    def wanted() -> torch.Tensor:
        a = x.double() * xs.double().repeat_interleave(128, 1)[:, :k]
        b = w.double() * ws.double().repeat_interleave(128, 0)[:n].repeat_interleave(128, 1)[:, :k]
        return a @ b.T

    return launch((x, xs, w, ws, y, m, n, k), y, m, n, k, tile, wanted, tolerance=1e-2)


def byte_weights(by_rows: int, m: int, n: int, k: int, *tile: int) -> Problem:
    x, s, y = randn(m, k), randn(n, dtype=torch.float32), empty(m, n)
    w = integers(100, *((k, n) if by_rows else (n, k)), low=-100, dtype=torch.int8)
    w = w if by_rows else w.T
    wanted = lambda: x.double() @ w.double() * s.double() / k
    s /= k
    return launch((x, w, s, y, m, n, k, *w.stride()), y, m, n, k, tile, lambda: wanted() * k)


def nibble_weights(m: int, n: int, k: int, *tile: int) -> Problem:
    groups = cdiv(k, 128)
    x, w, y = randn(m, k), integers(256, k // 2, n, dtype=torch.uint8), empty(m, n)
    s, z = randn(groups, n) * 0.05, integers(16, groups, n).to(torch.float16)

    def wanted() -> torch.Tensor:
        fields = torch.stack((w & 15, w >> 4), 1).view(k, n).to(torch.float16)
        wide = lambda part: part.repeat_interleave(128, 0)[:k]
        return x.double() @ ((fields - wide(z)) * wide(s)).double()

    return launch((x, w, s, z, y, m, n, k), y, m, n, k, tile, wanted)


def silu_layer(bits: int, m: int, n: int, k: int, *tile: int) -> Problem:
    dtype = {16: torch.float16, 32: torch.float32}[bits]
    x, w, y = randn(m, k, dtype=dtype), randn(k, n, dtype=dtype), empty(m, n, dtype=dtype)
    return launch((x, w, y, m, n, k), y, m, n, k, tile, lambda: F.silu(x.double()).to(dtype).double() @ w.double())


def normed_layer(m: int, n: int, k: int, *tile: int) -> Problem:
    x, g, w, y = randn(m, k), randn(k), randn(n, k), empty(m, n)

    def wanted() -> torch.Tensor:
        rows = x.double()
        return (x * g).double() @ w.double().T * (rows.square().mean(1, keepdim=True) + 1e-6).rsqrt()

    return launch((x, g, w, y, m, n, k, 1e-6), y, m, n, k, tile, wanted)


def gate_up(m: int, n: int, k: int, *tile: int) -> Problem:
    x, g, u, y = randn(m, k), randn(n, k) * k**-0.5, randn(n, k) * k**-0.5, empty(m, n)
    wanted = lambda: F.silu(x.double() @ g.double().T) * (x.double() @ u.double().T)
    return launch((x, g, u, y, m, n, k), y, m, n, k, tile, wanted, 4 * m * n * k)


def gathered_layer(m: int, n: int, k: int, *tile: int) -> Problem:
    x, rows, w, y = randn(2 * m, k), integers(2 * m, m), randn(n, k), empty(m, n)
    return launch((x, rows, w, y, m, n, k), y, m, n, k, tile, lambda: x[rows.long()].double() @ w.double().T)


def lora_layer(m: int, n: int, k: int, *tile: int) -> Problem:
    x, w, a, b, y = randn(m, k), randn(n, k), randn(k, 16) * k**-0.5, randn(16, n), empty(m, n)
    wanted = lambda: x.double() @ w.double().T + x.double() @ a.double() @ b.double()
    return launch((x, w, a, b, y, m, n, k), y, m, n, k, tile, wanted, R=16)


def lower_triangle(m: int, n: int, k: int, *tile: int) -> Problem:
    side = max(m, k)
    a, b, c = randn(side, side), randn(side, n), empty(side, n)
    wanted = lambda: a.double().tril() @ b.double()
    return launch((a, b, c, side, n), c, side, n, side, tile, wanted, side * side * n)


def sparse_blocks(m: int, n: int, k: int, *tile: int) -> Problem:
    bm, _, bk, _ = tile
    kept = torch.rand(cdiv(m, bm), cdiv(k, bk)) < 0.5
    rows, columns = kept.nonzero(as_tuple=True)
    a, b, c = randn(m, k), randn(k, n), empty(m, n)
    first = torch.searchsorted(rows, torch.arange(cdiv(m, bm) + 1)).to(torch.int32).to(a.device)
    whole = kept.to(a.device).repeat_interleave(bm, 0)[:m].repeat_interleave(bk, 1)[:, :k]
    args = (a, b, first, torch.cat((columns, columns[:1])).to(torch.int32).to(a.device), c, m, n, k)
    return launch(args, c, m, n, k, tile, lambda: a.double() * whole @ b.double(), m * n * k)


def weight_gradient(m: int, n: int, k: int, *tile: int) -> Problem:
    x, dy, dw, db = randn(k, m), randn(k, n), empty(m, n, dtype=torch.float32), empty(n, dtype=torch.float32)
    return launch((x, dy, dw, db, m, n, k), dw, m, n, k, tile, lambda: x.double().T @ dy.double())


def nearest(m: int, n: int, k: int, bm: int, bn: int, warps: int) -> Problem:
    x, c, best, least = randn(m, k), randn(n, k), empty(m, dtype=torch.int32), empty(m, dtype=torch.float32)
    wanted = lambda: (c.double().square().sum(1) - 2 * x.double() @ c.double().T).amin(1)
    meta, work = {"K": k, "BM": bm, "BN": bn, "num_warps": warps}, 2 * m * n * k
    return Problem((cdiv(m, bm),), (x, c, best, least, m, n), meta, least, wanted, work, unit="TFLOP/s")


def vocabulary(m: int, n: int, k: int, *tile: int) -> Problem:
    x, w, out = randn(m, k), randn(n, k) * k**-0.5, empty(m, dtype=torch.float32)
    wanted = lambda: (x.double() @ w.double().T).logsumexp(1)
    return launch((x, w, out, m, n, k), out, m, n, k, tile, wanted, grid=(cdiv(m, tile[0]),))


def taps(m: int, n: int, k: int, *tile: int) -> Problem:
    x, w, y = randn(m, k), randn(3, k, n), empty(m, n)

    def wanted() -> torch.Tensor:
        padded = F.pad(x.double(), (0, 0, 2, 0))
        return sum(padded[tap : tap + m] @ w[tap].double() for tap in range(3))

    return launch((x, w, y, m, k, n), y, m, n, 3 * k, tile, wanted, TAPS=3)


def residual_layer(bits: int, m: int, n: int, k: int, *tile: int) -> Problem:
    dtype = {16: torch.float16, 32: torch.float32}[bits]
    x, w, b, r = (randn(*shape, dtype=dtype) for shape in ((m, k), (k, n), (n,), (m, n)))
    y, h = empty(m, n, dtype=dtype), empty(m, n, dtype=dtype)
    wanted = lambda: F.gelu(x.double() @ w.double() + b.double()) + r.double()
    grid = (cdiv(m, tile[0]) * cdiv(n, tile[1]),)
    return launch((x, w, b, r, y, h, m, n, k), y, m, n, k, tile, wanted, grid=grid)


def wide_weights(m: int, n: int, k: int, *tile: int) -> Problem:
    x, w, y = randn(m, k, dtype=torch.bfloat16), randn(n, k, dtype=torch.float32), empty(m, n, dtype=torch.bfloat16)
    wanted = lambda: x.double() @ w.to(torch.bfloat16).double().T
    return launch((x, w, y, m, n, k), y, m, n, k, tile, wanted, tolerance=1e-2)


def heads_product(batch: int, heads: int, m: int, n: int, k: int, *tile: int) -> Problem:
    a, b, c = randn(batch, m, heads, k), randn(batch, n, heads, k), empty(batch, heads, m, n)
    wanted = lambda: torch.einsum("bmhk,bnhk->bhmn", a.double(), b.double())
    grid, work = (cdiv(m, tile[0]), cdiv(n, tile[1]), batch * heads), 2 * batch * heads * m * n * k
    args = (
        a,
        b,
        c,
        heads,
        m,
        n,
        k,
        *a.stride()[:1],
        a.stride(2),
        a.stride(1),
        *b.stride()[:1],
        b.stride(2),
        b.stride(1),
    )
    return launch(args, c, m, n, k, tile, wanted, work, grid=grid)


SIZES = ((2048, 2048, 2048), (256, 4096, 4096), (16, 8192, 2048), (3000, 1000, 520))
TILES = ((64, 64, 64, 4), (128, 128, 32, 8), (32, 64, 64, 4), (128, 64, 64, 4), (16, 64, 128, 4),
         (32, 128, 64, 4))  # fmt: skip
SCALED = ((64, 64, 128, 4), (128, 128, 128, 8), (64, 128, 128, 4), (16, 64, 128, 4))
WORDS = ((64, 64, 32, 4), (128, 128, 32, 8))


def _cases() -> Iterator[tuple[Any, tuple[int, ...], tuple[int, ...]]]:
    """(problem, large sizes, small sizes)."""
    halves = (nibble_weights, normed_layer, gate_up, gathered_layer, lora_layer, lower_triangle, sparse_blocks,
              weight_gradient, taps, wide_weights)  # fmt: skip
    kinds: list[tuple[Any, tuple[int, ...], tuple[tuple[int, ...], ...]]] = [(build, (), TILES) for build in halves]
    kinds += [(byte_weights, (0,), TILES), (byte_weights, (1,), TILES), (block_scaled, (), SCALED)]
    kinds += [(build, (16,), TILES) for build in (silu_layer, residual_layer)]
    kinds += [(build, (32,), WORDS) for build in (silu_layer, residual_layer)]
    for build, bits, tiles in kinds:
        for at, sizes in enumerate(SIZES):
            small = (sizes[0] // 30 + 3, 72, 200)
            for tile in tiles:
                if tile[0] != 16 or at in {1, 2}:  # few rows are for few rows
                    yield build, (*bits, *sizes, *tile), (*bits, *small, *tile)
    for m, n, k in ((2048, 32_000, 1024), (1000, 5000, 768)):
        for tile in TILES[:4]:
            yield vocabulary, (m, n, k, *tile), (70, 200, 72, *tile)
    for m, n, k in ((65_536, 1000, 64), (10_000, 4096, 128)):
        for bm, bn, warps in ((64, 64, 4), (128, 64, 4), (128, 128, 8), (32, 32, 2)):
            yield nearest, (m, n, k, bm, bn, warps), (100, 70, k, bm, bn, warps)
    for batch, heads, m, n, k in ((4, 16, 1024, 1024, 64), (32, 8, 200, 333, 128)):
        for tile in TILES[:4]:
            yield heads_product, (batch, heads, m, n, k, *tile), (2, 3, 70, 72, 40, *tile)


CASES = tuple(_cases())


if __name__ == "__main__":
    if "--small" not in sys.argv:
        compile_all(KERNELS, CASES, max((os.cpu_count() or 1) - 2, 1))
    measure({KERNELS: CASES}, __doc__)
