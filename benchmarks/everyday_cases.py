"""The problems of `everyday.py` without products: what kernels of `everyday_rows.py` get, and what must come of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.nn.functional as F

DEVICE = ["cuda"]  # where arrays are made; `everyday.py --small` checks on the CPU


@dataclass(frozen=True)
class Problem:
    """One launch.

    Attributes:
      grid, args, meta: the launch; `meta` holds constexpr parameters and options.
      output: what is checked, poisoned before; `zeroed` if the kernel adds to it.
      reference: the result in float64.
      tolerance: allowed norm of the difference over the norm of the reference.
      work: bytes that must move, or operations; `unit` is what it is per second, times 1e12.
    """

    grid: tuple[int, ...]
    args: tuple[Any, ...]
    meta: dict[str, Any]
    output: torch.Tensor
    reference: Callable[[], torch.Tensor]
    work: float
    tolerance: float = 2e-3
    zeroed: bool = False
    unit: str = field(default="TB/s")


def randn(*shape: int, dtype: torch.dtype = torch.float16) -> torch.Tensor:
    """Normal numbers."""
    return torch.randn(*shape, device=DEVICE[0], dtype=torch.float32).to(dtype)


def empty(*shape: int, dtype: torch.dtype = torch.float16) -> torch.Tensor:
    """An array for results."""
    return torch.empty(*shape, device=DEVICE[0], dtype=dtype)


def integers(high: int, *shape: int, low: int = 0, dtype: torch.dtype = torch.int32) -> torch.Tensor:
    """Uniform integers from `low` to below `high`."""
    return torch.randint(low, high, shape, device=DEVICE[0], dtype=dtype)


def power(n: int) -> int:
    """The next power of two."""
    return 1 << (n - 1).bit_length()


def cdiv(a: int, b: int) -> int:
    """Quotient, rounded up."""
    return -(-a // b)


def add_rms_norm(m: int, n: int) -> Problem:
    x, residual, w = (
        randn(m, n, dtype=torch.bfloat16),
        randn(m, n, dtype=torch.bfloat16),
        randn(n, dtype=torch.bfloat16),
    )
    total, out = torch.empty_like(x), torch.empty_like(x)

    def reference() -> torch.Tensor:
        s = x.double() + residual.double()
        return s * (s.square().mean(1, keepdim=True) + 1e-6).rsqrt() * w.double()

    args = (x, residual, w, total, out, n, 1e-6)
    return Problem((m,), args, {"BLOCK": power(n), "num_warps": 8}, out, reference, 8 * m * n, 1e-2)


def masked_softmax(heads: int, length: int) -> Problem:
    x = randn(heads, length, length)
    out = torch.empty_like(x)

    def reference() -> torch.Tensor:
        after = torch.ones(length, length, dtype=torch.bool, device=x.device).triu(1)
        return torch.softmax((x.double() * 0.125).masked_fill(after, -torch.inf), 2)

    return Problem(
        (length, heads), (x, out, length, 0.125), {"BLOCK": power(length)}, out, reference, 4 * x.numel(), 2e-2
    )


def quantize_rows(m: int, n: int) -> Problem:
    x, q, scale = (
        randn(m, n, dtype=torch.bfloat16),
        empty(m, n, dtype=torch.float8_e4m3fn),
        empty(m, dtype=torch.float32),
    )
    reference = lambda: x.double() / x.double().abs().amax(1, keepdim=True) * 448
    return Problem((m,), (x, q, scale, n), {"BLOCK": power(n), "num_warps": 8}, q, reference, 3 * m * n, 4e-2)


def cosine(m: int, n: int) -> Problem:
    x, y, out = randn(m, n), randn(m, n), empty(m, dtype=torch.float32)
    reference = lambda: F.cosine_similarity(x.double(), y.double(), dim=1)
    return Problem((cdiv(m, 4),), (x, y, out, m, n), {"ROWS": 4, "BLOCK": power(n)}, out, reference, 4 * m * n)


def route(m: int, experts: int) -> Problem:
    x, expert, weight = randn(m, experts), empty(m, 2, dtype=torch.int32), empty(m, 2, dtype=torch.float32)
    reference = lambda: torch.softmax(x.double(), 1).topk(2, dim=1).values
    meta = {"ROWS": 16, "BLOCK": power(experts)}
    return Problem((cdiv(m, 16),), (x, expert, weight, m, experts), meta, weight, reference, 2 * m * experts)


def layer_norm_blocks(m: int, n: int) -> Problem:
    x, w, b = randn(m, n), randn(n), randn(n)
    out = torch.empty_like(x)
    reference = lambda: F.layer_norm(x.double(), (n,), w.double(), b.double(), 1e-5)
    return Problem((m,), (x, w, b, out, n, 1e-5), {"BLOCK": min(power(n), 4096)}, out, reference, 4 * m * n)


def softmax_blocks(m: int, n: int) -> Problem:
    x = randn(m, n)
    out = torch.empty_like(x)
    meta = {"BLOCK": min(power(n), 4096), "num_warps": 8}
    return Problem((m,), (x, out, n), meta, out, lambda: torch.softmax(x.double(), 1), 4 * m * n, 1e-2)


def cross_entropy(m: int, n: int) -> Problem:
    x, target, loss = (
        randn(m, n, dtype=torch.bfloat16),
        integers(n, m, dtype=torch.int64),
        empty(m, dtype=torch.float32),
    )
    reference = lambda: F.cross_entropy(x.double(), target, reduction="none")
    meta = {"BLOCK": min(power(n), 8192), "num_warps": 8}
    return Problem((m,), (x, target, loss, n), meta, loss, reference, 2 * m * n)


def argmax_blocks(m: int, n: int) -> Problem:
    x, out = randn(m, n, dtype=torch.float32), empty(m, dtype=torch.int32)
    return Problem((m,), (x, out, n), {"BLOCK": 1024}, out, lambda: x.double().argmax(1), 4 * m * n, 1e-9)


def group_norm(images: int, groups: int, channels: int, pixels: int) -> Problem:
    x, w, b = randn(images, groups * channels, pixels), randn(groups * channels), randn(groups * channels)
    out = torch.empty_like(x)
    reference = lambda: F.group_norm(x.double(), groups, w.double(), b.double(), 1e-5)
    args = (x, w, b, out, channels * pixels, pixels, groups, 1e-5)
    return Problem((images * groups,), args, {"BLOCK": 2048, "num_warps": 8}, out, reference, 4 * x.numel())


def column_sums(m: int, n: int) -> Problem:
    x, out = randn(m, n), empty(n, dtype=torch.float32)
    meta = {"ROWS": 256, "BLOCK_M": 16, "BLOCK_N": 128}
    grid = (cdiv(n, 128), cdiv(m, 256))
    return Problem(grid, (x, out, m, n), meta, out, lambda: x.double().sum(0), 2 * m * n, zeroed=True)


def gemv(m: int, k: int) -> Problem:
    w, x, out = randn(m, k, dtype=torch.bfloat16), randn(k, dtype=torch.bfloat16), empty(m, dtype=torch.float32)
    meta = {"BLOCK_M": 4, "BLOCK_K": 1024}
    return Problem((cdiv(m, 4),), (w, x, out, m, k), meta, out, lambda: w.double() @ x.double(), 2 * m * k)


def swiglu(m: int, n: int) -> Problem:
    x, out = randn(m, 2 * n, dtype=torch.bfloat16), empty(m, n, dtype=torch.bfloat16)
    reference = lambda: F.silu(x[:, :n].double()) * x[:, n:].double()
    return Problem((m, cdiv(n, 1024)), (x, out, n), {"BLOCK": 1024}, out, reference, 6 * m * n, 1e-2)


def adamw(n: int) -> Problem:
    p, g = randn(n, dtype=torch.float32), randn(n, dtype=torch.bfloat16)
    m, v = randn(n, dtype=torch.float32), randn(n, dtype=torch.float32).square()
    out = empty(3, n, dtype=torch.float32)

    def reference() -> torch.Tensor:
        first = 0.9 * m.double() + 0.1 * g.double()
        second = 0.95 * v.double() + 0.05 * g.double().square()
        return torch.stack((p.double() * (1 - 1e-5) - 1e-3 * first / (second.sqrt() + 1e-8), first, second))

    args = (p, g, m, v, out, n, 1e-3, 0.9, 0.95, 1e-8, 0.01)
    return Problem((cdiv(n, 1024),), args, {"BLOCK": 1024}, out, reference, 26 * n)


def rope(tokens: int, heads: int, half: int) -> Problem:
    x, angle = randn(tokens, heads, 2 * half, dtype=torch.bfloat16), randn(tokens, half, dtype=torch.float32)
    cos, sin, out = angle.cos(), angle.sin(), torch.empty_like(x)

    def reference() -> torch.Tensor:
        left, right = x.double().split(half, 2)
        c, s = cos.double()[:, None], sin.double()[:, None]
        return torch.cat((left * c - right * s, right * c + left * s), 2)

    meta = {"HALF": half, "HEADS": power(heads)}
    return Problem((tokens,), (x, cos, sin, out, heads), meta, out, reference, 4 * x.numel(), 1e-2)


def transpose(m: int, n: int) -> Problem:
    x, out = randn(m, n), empty(n, m)
    grid = (cdiv(m, 64), cdiv(n, 64))
    return Problem(grid, (x, out, m, n), {"BLOCK": 64}, out, lambda: x.double().T, 4 * m * n)


def dequantize_int4(k: int, n: int) -> Problem:
    packed, scale = integers(2**31 - 1, k // 8, n, low=-(2**31)), randn(k // 128, n)
    out = empty(k, n)

    def reference() -> torch.Tensor:
        shifts = torch.arange(0, 32, 4, device=packed.device, dtype=torch.int32)
        nibbles = ((packed[:, None, :] >> shifts[None, :, None]) & 15).reshape(k, n) - 8
        return nibbles.double() * scale.double().repeat_interleave(128, 0)

    meta = {"GROUP": 128, "BLOCK_K": 64, "BLOCK_N": 64}
    return Problem((k // 64, cdiv(n, 64)), (packed, scale, out, n), meta, out, reference, 2.5 * k * n)


def max_pool(images: int, h: int, w: int) -> Problem:
    x = randn(images, h, w)
    out_h, out_w = (h + 1) // 2, (w + 1) // 2
    out = empty(images, out_h, out_w)
    reference = lambda: F.max_pool2d(x.double(), 3, 2, 1)
    args = (x, out, h, w, out_h, out_w, out.numel())
    return Problem((cdiv(out.numel(), 1024),), args, {"BLOCK": 1024}, out, reference, 2 * (x.numel() + out.numel()))


def upsample(images: int, h: int, w: int) -> Problem:
    x, out = randn(images, h, w), empty(images, 2 * h, 2 * w)
    reference = lambda: F.interpolate(x[None].double(), scale_factor=2, mode="bilinear")[0]
    return Problem(
        (cdiv(out.numel(), 1024),), (x, out, h, w, out.numel()), {"BLOCK": 1024}, out, reference, 10 * x.numel()
    )


def batch_norm_stats(images: int, channels: int, pixels: int) -> Problem:
    x, mean, var = (
        randn(images, channels, pixels),
        empty(channels, dtype=torch.float32),
        empty(channels, dtype=torch.float32),
    )
    reference = lambda: x.double().var((0, 2), correction=0)
    args = (x, mean, var, images, channels, pixels)
    return Problem((channels,), args, {"BLOCK": 1024}, var, reference, 2 * x.numel())


def embedding(tokens: int, vocabulary: int, n: int) -> Problem:
    ids, table, out = integers(vocabulary, tokens, dtype=torch.int64), randn(vocabulary, n), empty(tokens, n)
    reference = lambda: table[ids].double()
    return Problem((tokens,), (ids, table, out, n), {"BLOCK": power(n)}, out, reference, 4 * tokens * n)


def embedding_bag(bags: int, each: int, vocabulary: int, n: int) -> Problem:
    sizes = integers(2 * each, bags, dtype=torch.int64)
    offsets = torch.zeros(bags + 1, dtype=torch.int64, device=sizes.device)
    offsets[1:] = sizes.cumsum(0)
    ids, table = integers(vocabulary, int(offsets[-1])), randn(vocabulary, n)
    out = empty(bags, n, dtype=torch.float32)
    reference = lambda: F.embedding_bag(ids.long(), table.double(), offsets[:-1], mode="sum")
    work = 2 * int(offsets[-1]) * n
    return Problem((bags,), (ids, offsets, table, out, n), {"BLOCK": power(n)}, out, reference, work)


def embedding_backward(tokens: int, vocabulary: int, n: int) -> Problem:
    ids, grad, out = integers(vocabulary, tokens), randn(tokens, n), empty(vocabulary, n)
    reference = lambda: torch.zeros(vocabulary, n, dtype=torch.float64, device=ids.device).index_add_(
        0, ids, grad.double()
    )
    args, meta = (ids, grad, out, tokens * n), {"N": n, "BLOCK": 1024}
    return Problem((cdiv(tokens * n, 1024),), args, meta, out, reference, 4 * tokens * n, zeroed=True)


def segment_sum(m: int, segments: int, n: int) -> Problem:
    x, segment, out = randn(m, n, dtype=torch.float32), integers(segments, m), empty(segments, n, dtype=torch.float32)
    reference = lambda: torch.zeros(segments, n, dtype=torch.float64, device=x.device).index_add_(
        0, segment, x.double()
    )
    meta = {"ROWS": 16, "BLOCK": power(n)}
    return Problem((cdiv(m, 16),), (x, segment, out, m, n), meta, out, reference, 8 * m * n, zeroed=True)


def csr_times_vector(rows: int, each: int, columns: int) -> Problem:
    sizes = integers(2 * each, rows, dtype=torch.int64)
    starts = torch.zeros(rows + 1, dtype=torch.int32, device=sizes.device)
    starts[1:] = sizes.cumsum(0)
    count = int(starts[-1])
    cols, values, x = integers(columns, count), randn(count, dtype=torch.float32), randn(columns, dtype=torch.float32)
    out = empty(rows, dtype=torch.float32)

    def reference() -> torch.Tensor:
        row = torch.repeat_interleave(torch.arange(rows, device=x.device), sizes)
        result = torch.zeros(rows, dtype=torch.float64, device=x.device)
        return result.index_add_(0, row, values.double() * x.double()[cols])

    return Problem((rows,), (starts, cols, values, x, out), {"BLOCK": 128, "num_warps": 1}, out, reference, 12 * count)


def write_cache(tokens: int, slots: int, n: int) -> Problem:
    k, cache = randn(tokens, n), empty(slots, n)
    places = torch.randperm(slots, device=k.device)[:tokens]

    def reference() -> torch.Tensor:
        return torch.zeros_like(cache).index_copy_(0, places, k).double()

    args = (k, places, cache, n)
    return Problem((tokens,), args, {"BLOCK": power(n)}, cache, reference, 4 * tokens * n, zeroed=True)


def histogram(n: int) -> Problem:
    x, bins = integers(256, n), empty(256, dtype=torch.int32)
    reference = lambda: torch.bincount(x, minlength=256)
    return Problem((cdiv(n, 1024),), (x, bins, n), {"BLOCK": 1024}, bins, reference, 4 * n, 1e-9, zeroed=True)


# A kernel, sizes on a GPU, and sizes for a check on the CPU.
CASES: tuple[tuple[Callable[..., Problem], tuple[int, ...], tuple[int, ...]], ...] = (
    (add_rms_norm, (8192, 4096), (3, 100)),
    (masked_softmax, (32, 2048), (2, 37)),
    (quantize_rows, (8192, 4096), (3, 100)),
    (cosine, (16384, 1024), (7, 60)),
    (route, (65536, 64), (19, 8)),
    (layer_norm_blocks, (4096, 8192), (3, 100)),
    (softmax_blocks, (4096, 50257), (3, 5001)),
    (cross_entropy, (4096, 50257), (3, 9001)),
    (argmax_blocks, (4096, 32000), (3, 2500)),
    (group_norm, (16, 32, 16, 4096), (2, 3, 2, 1500)),
    (column_sums, (16384, 4096), (300, 130)),
    (gemv, (16384, 8192), (9, 1500)),
    (swiglu, (8192, 8192), (3, 1100)),
    (adamw, (1 << 25,), (3000,)),
    (rope, (8192, 32, 64), (3, 5, 16)),
    (transpose, (8192, 8192), (100, 70)),
    (dequantize_int4, (8192, 8192), (128, 70)),
    (max_pool, (1024, 112, 112), (3, 11, 13)),
    (upsample, (512, 128, 128), (3, 8, 9)),
    (batch_norm_stats, (32, 256, 3136), (2, 3, 1100)),
    (embedding, (16384, 50257, 2048), (5, 50, 100)),
    (embedding_bag, (4096, 32, 100000, 512), (5, 4, 50, 60)),
    (embedding_backward, (16384, 50257, 1024), (9, 5, 100)),
    (segment_sum, (65536, 1000, 256), (40, 5, 30)),
    (csr_times_vector, (65536, 200, 65536), (20, 100, 50)),
    (write_cache, (8192, 32768, 1024), (5, 9, 100)),
    (histogram, (1 << 24,), (3000,)),
)
