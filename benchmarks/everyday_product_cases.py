"""The problems of `everyday.py` with products: what kernels of `everyday_products.py` get, and what must come of it."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
import torch.nn.functional as F
from everyday_cases import Problem, cdiv, empty, integers, randn


def linear_gelu(m: int, n: int, k: int) -> Problem:
    a, b, bias, c = randn(m, k), randn(n, k), randn(n, dtype=torch.float32), empty(m, n)

    def reference() -> torch.Tensor:
        total = a.double() @ b.double().T + bias.double()
        return total * torch.sigmoid(1.702 * total)

    meta = {"BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 64, "num_warps": 8, "num_stages": 4}
    grid = (cdiv(m, 128), cdiv(n, 128))
    return Problem(grid, (a, b, bias, c, m, n, k), meta, c, reference, 2 * m * n * k, unit="TFLOP/s")


def int8_weights(m: int, n: int, k: int) -> Problem:
    a, c = randn(m, k, dtype=torch.bfloat16), empty(m, n, dtype=torch.bfloat16)
    b, scale = integers(128, k, n, low=-128, dtype=torch.int8), randn(n, dtype=torch.float32)
    few = m <= 64
    sizes = (16, 64, 128) if few else (128, 128, 64)
    meta = dict(zip(("BLOCK_M", "BLOCK_N", "BLOCK_K"), sizes, strict=True)) | {
        "num_warps": 4 if few else 8,
        "num_stages": 4,
    }
    grid = (cdiv(n, sizes[1]), cdiv(m, sizes[0]))
    reference = lambda: a.double() @ b.double() * scale.double()
    work, unit = (n * k, "TB/s") if few else (2 * m * n * k, "TFLOP/s")
    return Problem(grid, (a, b, scale, c, m, n, k), meta, c, reference, work, 1e-2, unit=unit)


def int8_product(m: int, n: int, k: int) -> Problem:
    a, b = (integers(128, rows, k, low=-128, dtype=torch.int8) for rows in (m, n))
    a_scale, b_scale = randn(m, dtype=torch.float32), randn(n, dtype=torch.float32)
    c = empty(m, n, dtype=torch.bfloat16)
    reference = lambda: a.double() @ b.double().T * a_scale.double()[:, None] * b_scale.double()
    meta = {"BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 128, "num_warps": 8, "num_stages": 3}
    args = (a, b, a_scale, b_scale, c, m, n, k)
    return Problem((cdiv(m, 128), cdiv(n, 128)), args, meta, c, reference, 2 * m * n * k, 1e-2, unit="TOP/s")


def batched_product(batches: int, m: int, n: int, k: int) -> Problem:
    a, b, c = randn(batches, m, k), randn(batches, k, n), empty(batches, m, n)
    meta = {"BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 64, "num_warps": 8, "num_stages": 3}
    grid = (cdiv(m, 128), cdiv(n, 128), batches)
    reference = lambda: a.double() @ b.double()
    return Problem(grid, (a, b, c, m, n, k), meta, c, reference, 2 * batches * m * n * k, unit="TFLOP/s")


def convolution(images: int, h: int, w: int, channels: int, out_channels: int) -> Problem:
    x, weight = randn(images, h, w, channels), randn(3, 3, channels, out_channels)
    out = empty(images, h, w, out_channels)

    def reference() -> torch.Tensor:
        result = F.conv2d(x.double().permute(0, 3, 1, 2), weight.double().permute(3, 2, 0, 1), padding=1)
        return result.permute(0, 2, 3, 1)

    pixels = images * h * w
    meta = {"BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 64, "num_warps": 8, "num_stages": 3}
    args = (x, weight, out, h, w, channels, out_channels, pixels)
    work = 18 * pixels * channels * out_channels
    return Problem((cdiv(pixels, 128), cdiv(out_channels, 128)), args, meta, out, reference, work, unit="TFLOP/s")


def lora_shrink(m: int, rank: int, k: int) -> Problem:
    x, a, out = (
        randn(m, k, dtype=torch.bfloat16),
        randn(rank, k, dtype=torch.bfloat16),
        empty(m, rank, dtype=torch.float32),
    )
    part = 512
    meta = {"PART": part, "BLOCK_M": 64, "BLOCK_R": 16, "BLOCK_K": 128, "num_stages": 3}
    grid = (cdiv(m, 64), cdiv(k, part))
    reference = lambda: x.double() @ a.double().T
    return Problem(grid, (x, a, out, m, rank, k), meta, out, reference, 2 * m * k, 1e-2, zeroed=True)


def decode(heads: int, group: int, length: int, part: int) -> Problem:
    depth, parts = 128, cdiv(length, part)
    q, k, v = randn(heads, group, depth), randn(heads, length, depth), randn(heads, length, depth)
    out = empty(heads, parts, group, depth, dtype=torch.float32)
    most, total = (empty(heads, parts, group, dtype=torch.float32) for _ in range(2))
    scale = 1 / math.sqrt(depth)

    def reference() -> torch.Tensor:
        ends = [slice(i * part, (i + 1) * part) for i in range(parts)]
        scores = [q.double() @ k[:, end].double().transpose(1, 2) * scale for end in ends]
        return torch.stack([torch.softmax(s, 2) @ v[:, end].double() for s, end in zip(scores, ends, strict=True)], 1)

    meta = {"PART": part, "BLOCK_G": 16, "BLOCK_N": 64, "D": depth, "num_stages": 3}
    args = (q, k, v, out, most, total, length, scale, group)
    return Problem((heads, parts), args, meta, out, reference, 4 * heads * length * depth)


def paged_decode(requests: int, heads: int, group: int, length: int, page: int) -> Problem:
    depth, pages = 128, cdiv(length, page)
    q = randn(requests, heads, group, depth)
    k, v = (randn(requests * pages, page, heads, depth) for _ in range(2))
    table = torch.randperm(requests * pages, device=q.device).to(torch.int32).reshape(requests, pages)
    lengths = integers(length + 1, requests, low=length // 2)
    out = torch.empty_like(q)
    scale = 1 / math.sqrt(depth)

    def reference() -> torch.Tensor:
        results = []
        for i in range(requests):
            keys, values = (t[table[i].long()].reshape(-1, heads, depth)[: int(lengths[i])].double() for t in (k, v))
            scores = torch.einsum("hgd,nhd->hgn", q[i].double(), keys) * scale
            results.append(torch.einsum("hgn,nhd->hgd", torch.softmax(scores, 2), values))
        return torch.stack(results)

    meta = {"PAGE": page, "BLOCK_G": 16, "D": depth, "num_stages": 3}
    args = (q, k, v, table, lengths, out, pages, scale, heads, group)
    return Problem((requests, heads), args, meta, out, reference, 4 * int(lengths.sum()) * heads * depth)


def experts(tokens: int, number: int, n: int, k: int, block: int, columns: int) -> Problem:
    x, w = randn(tokens, k, dtype=torch.bfloat16), randn(number, n, k, dtype=torch.bfloat16)
    chosen = integers(number, tokens)
    order, owner = [], []
    for expert in range(number):
        own = torch.nonzero(chosen == expert).flatten()
        blocks = cdiv(len(own), block)
        order.append(F.pad(own, (0, blocks * block - len(own)), value=tokens))
        owner += [expert] * blocks
    slots = torch.cat(order).to(torch.int32)
    blocks_of = torch.tensor(owner, dtype=torch.int32, device=x.device)
    out = empty(tokens, n, dtype=torch.bfloat16)

    def reference() -> torch.Tensor:
        result = torch.empty(tokens, n, dtype=torch.float64, device=x.device)
        for expert in range(number):
            result[chosen == expert] = x[chosen == expert].double() @ w[expert].double().T
        return result

    meta = {"BLOCK_M": block, "BLOCK_N": columns, "BLOCK_K": 64, "num_warps": 4 if block == 64 else 8, "num_stages": 4}
    args = (x, w, out, slots, blocks_of, tokens, n, k)
    grid = (len(owner), cdiv(n, columns))
    return Problem(grid, args, meta, out, reference, 2 * tokens * n * k, 1e-2, unit="TFLOP/s")


def linear_attention(heads: int, length: int) -> Problem:
    depth, width = 128, 128
    q, k = randn(heads, length, depth) * 0.1, randn(heads, length, depth) * 0.1
    v = randn(heads, length, width)
    out = torch.empty_like(v)

    def reference() -> torch.Tensor:
        return torch.stack([(a.double() @ b.double().T).tril() @ c.double() for a, b, c in zip(q, k, v, strict=True)])

    meta = {"CHUNK": 64, "D": depth, "DV": 64, "num_stages": 2}
    work = heads * length * (2 * 64 * depth + 2 * 64 * width + 4 * depth * width)
    return Problem((heads, width // 64), (q, k, v, out, length), meta, out, reference, work, 1e-2, unit="TFLOP/s")


# A kernel, sizes on a GPU, and sizes for a check on the CPU.
CASES: tuple[tuple[Callable[..., Problem], tuple[int, ...], tuple[int, ...]], ...] = (
    (linear_gelu, (4096, 4096, 4096), (100, 136, 72)),
    (int8_weights, (16, 8192, 8192), (5, 80, 144)),
    (int8_weights, (4096, 4096, 4096), (70, 144, 144)),
    (int8_product, (4096, 4096, 4096), (100, 130, 144)),
    (batched_product, (64, 512, 512, 512), (2, 100, 136, 72)),
    (convolution, (16, 56, 56, 128, 128), (1, 7, 9, 72, 40)),
    (lora_shrink, (4096, 16, 4096), (70, 12, 1024)),
    (decode, (64, 8, 8192, 1024), (2, 5, 200, 128)),
    (paged_decode, (64, 8, 8, 4096, 16), (2, 2, 5, 100, 16)),
    (experts, (4096, 8, 4096, 4096, 64, 128), (100, 3, 128, 72, 64, 128)),
    (experts, (4096, 8, 4096, 4096, 128, 256), (100, 3, 256, 72, 128, 256)),
    (linear_attention, (64, 4096), (2, 128)),
)
