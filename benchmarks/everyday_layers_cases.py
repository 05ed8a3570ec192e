"""The problems of `everyday.py` around layers: what kernels of `everyday_layers.py` get, and what must come of it."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from everyday_cases import Problem, cdiv, empty, integers, randn

BF16, F32 = torch.bfloat16, torch.float32


def tiles(m: int, n: int, k: int, warps: int, stages: int) -> dict[str, Any]:
    """Sides of a product's tiles and its options."""
    return {"BLOCK_M": m, "BLOCK_N": n, "BLOCK_K": k, "num_warps": warps, "num_stages": stages}


def gated_product(m: int, n: int, k: int) -> Problem:
    x, gate, up = randn(m, k, dtype=BF16), randn(k, n, dtype=BF16), randn(k, n, dtype=BF16) * 0.01
    out = empty(m, n, dtype=BF16)
    reference = lambda: F.silu(x.double() @ gate.double()) * (x.double() @ up.double())
    meta, grid = tiles(128, 128, 64, 8, 3), (cdiv(m, 128), cdiv(n, 128))
    return Problem(grid, (x, gate, up, out, m, n, k), meta, out, reference, 4 * m * n * k, 1e-2, unit="TFLOP/s")


def lora_product(m: int, n: int, k: int, rank: int) -> Problem:
    x, w, a, b, out = randn(m, k), randn(k, n), randn(k, rank) * 0.05, randn(rank, n), empty(m, n)
    reference = lambda: x.double() @ w.double() + 0.5 * (x.double() @ a.double()) @ b.double()
    meta, grid = tiles(128, 128, 64, 8, 3) | {"RANK": rank}, (cdiv(m, 128), cdiv(n, 128))
    work = 2 * m * n * k + 2 * m * rank * (k + n)
    return Problem(grid, (x, w, a, b, out, m, n, k, 0.5), meta, out, reference, work, unit="TFLOP/s")


def gptq_product(m: int, n: int, k: int) -> Problem:
    x, words = randn(m, k), integers(1 << 31, k // 8, n, low=-(1 << 31))
    scales, zeros = randn(k // 128, n).abs() * 0.1, integers(1 << 31, k // 128, n // 8, low=-(1 << 31))
    out = empty(m, n)
    shifts = torch.arange(0, 32, 4, device=x.device)

    def reference() -> torch.Tensor:
        w = (words[:, None, :] >> shifts[:, None] & 15).reshape(k, n).double()
        z = (zeros[:, :, None] >> shifts & 15).reshape(k // 128, n).double()
        return x.double() @ ((w - z.repeat_interleave(128, 0)) * scales.double().repeat_interleave(128, 0))

    meta = (tiles(16, 64, 128, 4, 4) if m <= 16 else tiles(128, 128, 64, 8, 3)) | {"GROUP": 128}
    grid = (cdiv(m, meta["BLOCK_M"]), cdiv(n, meta["BLOCK_N"]))
    work, unit = (n * k / 2, "TB/s") if m <= 16 else (2 * m * n * k, "TFLOP/s")
    return Problem(grid, (x, words, scales, zeros, out, m, n, k), meta, out, reference, work, unit=unit)


def block_sparse_product(m: int, n: int, k: int, each: int) -> Problem:
    block, columns = 64, n // 64
    places = torch.stack([torch.randperm(k // block)[:each] for _ in range(columns)]).to(torch.int32)
    x, blocks, out = randn(m, k), randn(columns, each, block, block), empty(m, n)
    places = places.to(x.device)
    starts = torch.arange(columns + 1, device=x.device, dtype=torch.int32) * each

    def reference() -> torch.Tensor:
        parts = x.double().view(m, -1, block)
        chosen = zip(places.long(), blocks.double(), strict=True)
        return torch.cat([torch.einsum("mek,ekn->mn", parts[:, place], block) for place, block in chosen], 1)

    meta = {"BLOCK_M": 128, "BLOCK": block, "num_warps": 4, "num_stages": 3}
    args = (x, blocks, starts, places, out, m, n, k)
    return Problem((cdiv(m, 128), columns), args, meta, out, reference, 2 * m * n * each * block, unit="TFLOP/s")


def normed_product(m: int, n: int, k: int) -> Problem:
    x, g, w, out = randn(m, k), randn(k), randn(k, n), empty(m, n)

    def reference() -> torch.Tensor:
        scale = (x.double().square().mean(1, keepdim=True) + 1e-6).rsqrt()
        return (x.double() * g.double()) @ w.double() * scale

    meta, grid = tiles(128, 128, 64, 8, 3), (cdiv(m, 128), cdiv(n, 128))
    return Problem(grid, (x, g, w, out, m, n, k, 1e-6), meta, out, reference, 2 * m * n * k, unit="TFLOP/s")


def linear_norm(m: int, n: int, k: int) -> Problem:
    x, w, bias, residual, out = randn(m, k), randn(k, n), randn(n), randn(m, n), empty(m, n)
    reference = lambda: F.layer_norm(x.double() @ w.double() + bias.double() + residual.double(), (n,), eps=1e-5)
    meta = {"BLOCK_M": 64, "N": n, "BLOCK_K": 64, "num_warps": 8, "num_stages": 3}
    return Problem(
        (cdiv(m, 64),), (x, w, bias, residual, out, m, k, 1e-5), meta, out, reference, 2 * m * n * k, unit="TFLOP/s"
    )


def mlp(m: int, hidden: int, dim: int) -> Problem:
    x, up, down, out = randn(m, dim), randn(dim, hidden) * 0.1, randn(hidden, dim) * 0.1, empty(m, dim)

    def reference() -> torch.Tensor:
        h = x.double() @ up.double()
        return (h * torch.sigmoid(1.702 * h)) @ down.double()

    meta = {"DIM": dim, "BLOCK_M": 128, "BLOCK_H": 64, "num_warps": 8, "num_stages": 3}
    return Problem(
        (cdiv(m, 128),), (x, up, down, out, m, hidden), meta, out, reference, 4 * m * hidden * dim, unit="TFLOP/s"
    )


def window_attention(heads: int, length: int, window: int, dim: int) -> Problem:
    q, k, v = (randn(heads, length, dim, dtype=BF16) for _ in range(3))
    out = empty(heads, length, dim, dtype=BF16)

    def reference() -> torch.Tensor:
        place = torch.arange(length, device=q.device)
        back = place[:, None] - place
        seen = (back >= 0) & (back < window)
        alone = lambda head: (t[head, None].double() for t in (q, k, v))
        return torch.cat([F.scaled_dot_product_attention(*alone(h), attn_mask=seen) for h in range(heads)])

    meta = {"WINDOW": window, "DIM": dim, "BLOCK_M": 128, "BLOCK_N": 64, "num_warps": 8, "num_stages": 3}
    args = (q, k, v, out, length, math.log2(math.e) / math.sqrt(dim))
    work = 4 * heads * length * min(window, length) * dim
    return Problem((cdiv(length, 128), heads), args, meta, out, reference, work, 1e-2, unit="TFLOP/s")


def interaction(samples: int, features: int, dim: int) -> Problem:
    x, out = randn(samples, features, dim), empty(samples, features * (features - 1) // 2)

    def reference() -> torch.Tensor:
        products = torch.bmm(x.double(), x.double().transpose(1, 2))
        rows, cols = torch.tril_indices(features, features, -1, device=x.device)
        return products[:, rows, cols]

    meta = {"DIM": dim, "BLOCK": 32, "num_warps": 2}
    return Problem((samples,), (x, out, features), meta, out, reference, 2 * (x.numel() + out.numel()))


def convolution_gradient(images: int, h: int, w: int, c: int, out_channels: int) -> Problem:
    x, dy = randn(images, h, w, c), randn(images, h, w, out_channels)
    dw = empty(3, 3, c, out_channels, dtype=F32)

    def reference() -> torch.Tensor:
        around = F.pad(x.float(), (0, 0, 1, 1, 1, 1)).double()
        flat = dy.double().reshape(-1, out_channels)
        taps = [around[:, i : i + h, j : j + w].reshape(-1, c).T @ flat for i in range(3) for j in range(3)]
        return torch.stack(taps).view(3, 3, c, out_channels)

    pixels = images * h * w
    part = cdiv(cdiv(pixels, 16), 64) * 64
    meta = {"BLOCK_C": 64, "BLOCK_OUT": 128, "BLOCK_P": 64, "num_warps": 4, "num_stages": 3}
    args = (x, dy, dw, h, w, c, out_channels, pixels, part)
    work = 18 * pixels * c * out_channels
    grid = (cdiv(c, 64), 9, cdiv(pixels, part))
    return Problem(grid, args, meta, dw, reference, work, zeroed=True, unit="TFLOP/s")


# A kernel, sizes on a GPU, and sizes for a check on the CPU.
CASES: tuple[tuple[Callable[..., Problem], tuple[int, ...], tuple[int, ...]], ...] = (
    (gated_product, (4096, 8192, 4096), (70, 144, 128)),
    (lora_product, (4096, 4096, 4096, 16), (70, 144, 128, 16)),
    (gptq_product, (16, 8192, 8192), (5, 128, 256)),
    (gptq_product, (4096, 4096, 4096), (70, 128, 128)),
    (block_sparse_product, (8192, 4096, 4096, 16), (70, 128, 256, 2)),
    (normed_product, (4096, 4096, 4096), (70, 144, 128)),
    (linear_norm, (65536, 256, 1024), (70, 64, 128)),
    (mlp, (65536, 1024, 128), (70, 128, 32)),
    (window_attention, (64, 8192, 1024, 128), (2, 150, 70, 32)),
    (interaction, (65536, 27, 64), (3, 27, 64)),
    (convolution_gradient, (16, 56, 56, 128, 128), (2, 5, 7, 64, 128)),
)
