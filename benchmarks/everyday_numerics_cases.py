"""The problems of `everyday.py` in training and numerics: what kernels of `everyday_numerics.py` get, what must come of it."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from everyday_cases import DEVICE, Problem, cdiv, empty, integers, power, randn

BF16, F32 = torch.bfloat16, torch.float32


def head_norm(tokens: int, heads: int, dim: int) -> Problem:
    x, w = randn(tokens, heads, dim, dtype=BF16), randn(dim, dtype=BF16)
    out = torch.empty_like(x)
    reference = lambda: x.double() * (x.double().square().mean(-1, keepdim=True) + 1e-6).rsqrt() * w.double()
    rows = tokens * heads
    meta = {"DIM": dim, "BLOCK": 32}
    return Problem((cdiv(rows, 32),), (x, w, out, rows, 1e-6), meta, out, reference, 4 * x.numel(), 1e-2)


def layer_norm_rows(rows: int, n: int, bits: int) -> Problem:
    dtype = F32 if bits == 32 else BF16
    x, w, b = randn(rows, n, dtype=dtype), randn(n, dtype=dtype), randn(n, dtype=dtype)
    out = torch.empty_like(x)
    reference = lambda: F.layer_norm(x.double(), (n,), w.double(), b.double())
    meta = {"BLOCK": power(n), "num_warps": 16}
    return Problem((rows,), (x, w, b, out, n, n, 1e-5), meta, out, reference, 2 * x.numel() * x.itemsize, 1e-2)


def softmax_columns(n: int, c: int) -> Problem:
    x, out = randn(n, c), empty(n, c)
    meta = {"BLOCK_N": power(n), "BLOCK_C": 32, "num_warps": 8}
    reference = lambda: torch.softmax(x.double(), 0)
    return Problem((cdiv(c, 32),), (x, out, n, c), meta, out, reference, 4 * x.numel())


def batch_norm_gradients(images: int, channels: int, pixels: int) -> Problem:
    x, dy = randn(images, channels, pixels), randn(images, channels, pixels)
    mean, rstd = randn(channels, dtype=F32) * 0.1, randn(channels, dtype=F32).abs() + 0.5
    dw, db = empty(channels, dtype=F32), empty(channels, dtype=F32)

    def reference() -> torch.Tensor:
        normal = (x.double() - mean.double()[:, None]) * rstd.double()[:, None]
        return (dy.double() * normal).sum((0, 2))

    args = (x, dy, mean, rstd, dw, db, images, channels, pixels)
    return Problem((channels,), args, {"BLOCK": 1024, "num_warps": 8}, dw, reference, 4 * x.numel())


def mean_pool(batch: int, s: int, d: int) -> Problem:
    x, lengths, out = randn(batch, s, d), integers(s + 1, batch, low=1), empty(batch, d, dtype=F32)

    def reference() -> torch.Tensor:
        live = torch.arange(s, device=x.device) < lengths[:, None]
        return (x.double() * live[..., None]).sum(1) / lengths.double()[:, None]

    args = (x, lengths, out, s, d)
    meta = {"BLOCK_S": 32, "BLOCK_D": 128}
    return Problem((batch, cdiv(d, 128)), args, meta, out, reference, 2 * int(lengths.sum()) * d)


def cross_entropy_gradient(rows: int, v: int) -> Problem:
    x, target, loss = randn(rows, v), integers(v, rows, dtype=torch.int64), empty(rows, dtype=F32)
    gradient = torch.empty_like(x)
    reference = lambda: torch.softmax(x.double(), 1) - F.one_hot(target, v)
    args = (x, target, loss, gradient, v, 1.0)
    return Problem((rows,), args, {"BLOCK": 4096, "num_warps": 8}, gradient, reference, 6 * x.numel(), 5e-3)


def focal_loss(n: int) -> Problem:
    x, target, loss = randn(n), integers(2, n, dtype=torch.int32), torch.zeros(1, device=DEVICE[0])

    def reference() -> torch.Tensor:
        share, t = torch.sigmoid(x.double()), target.double()
        entropy = F.binary_cross_entropy_with_logits(x.double(), t, reduction="none")
        missed = share * (1 - t) + (1 - share) * t
        return ((0.25 * t + 0.75 * (1 - t)) * missed.square() * entropy).sum()[None]

    return Problem(
        (cdiv(n, 1024),), (x, target, loss, n, 0.25), {"BLOCK": 1024}, loss, reference, 6 * n, 1e-3, zeroed=True
    )


def adam_8bit(n: int) -> Problem:
    p, g, out = randn(n, dtype=F32), randn(n), empty(n, dtype=F32)
    m, v = integers(256, n, dtype=torch.uint8), integers(256, n, dtype=torch.uint8, low=64)
    scales, code = randn(2, n // 256, dtype=F32).abs() + 0.1, torch.linspace(-1, 1, 256, device=p.device)

    def reference() -> torch.Tensor:
        wide = scales.double().repeat_interleave(256, 1)
        first = 0.9 * code.double()[m.long()] * wide[0] + 0.1 * g.double()
        second = 0.99 * v.double() / 255 * wide[1] + 0.01 * g.double().square()
        return p.double() - 0.1 * first / (second.sqrt() + 1e-6)

    new = torch.empty_like(m), torch.empty_like(v), torch.empty_like(scales)
    args = (p, g, m, v, scales, code, out, *new, n // 256, 0.1, 0.9, 0.99, 1e-6)
    return Problem((n // 1024,), args, {"GROUPS": 4, "GROUP": 256}, out, reference, 14 * n)


def lstm_cell(rows: int, h: int) -> Problem:
    gates, c = randn(rows, 4 * h), randn(rows, h, dtype=F32)
    out, new = empty(rows, h), empty(rows, h, dtype=F32)

    def reference() -> torch.Tensor:
        enter, forget, cell, last = gates.double().chunk(4, 1)
        state = torch.sigmoid(forget) * c.double() + torch.sigmoid(enter) * torch.tanh(cell)
        return torch.sigmoid(last) * torch.tanh(state)

    args = (gates, c, out, new, h)
    return Problem((rows, cdiv(h, 1024)), args, {"BLOCK": 1024}, out, reference, 18 * rows * h)


def philox_dropout(n: int) -> Problem:
    x, out, seed = randn(n).abs() + 1, empty(n), 1 << 20

    def reference() -> torch.Tensor:
        low = (1 << 32) - 1
        counter = torch.zeros(4, cdiv(n, 4096) * 1024, dtype=torch.int64, device=x.device)
        counter[0] = torch.arange(counter.shape[1], device=x.device)
        keys = (seed, 1)
        for _ in range(10):
            wide = [counter[i] * (m >> 16) for i, m in ((0, 0xD2511F53), (2, 0xCD9E8D57))]  # 48 bits at most
            high = [(w + (counter[i] * (m & 0xFFFF) >> 16)) >> 16
                    for w, i, m in ((wide[0], 0, 0xD2511F53), (wide[1], 2, 0xCD9E8D57))]  # fmt: skip
            rest = [(counter[i] * (m & 0xFFFF) + ((counter[i] * (m >> 16) & 0xFFFF) << 16)) & low
                    for i, m in ((0, 0xD2511F53), (2, 0xCD9E8D57))]  # fmt: skip
            counter = torch.stack((high[1] ^ counter[1] ^ keys[0], rest[1], high[0] ^ counter[3] ^ keys[1], rest[0]))
            keys = (keys[0] + 0x9E3779B9) & low, (keys[1] + 0xBB67AE85) & low
        kept = counter.view(4, -1, 1024).transpose(0, 1).reshape(-1)[:n] < 3 << 30  # of 1 << 32
        return torch.where(kept, x.double() / 0.75, 0)

    return Problem((cdiv(n, 4096),), (x, out, n, seed, 0.75), {"BLOCK": 1024}, out, reference, 4 * n)


def jacobi(h: int, w: int) -> Problem:
    u, f, out = randn(h, w, dtype=F32), randn(h, w, dtype=F32), empty(h, w, dtype=F32)

    def reference() -> torch.Tensor:
        around = F.pad(u.double(), (1, 1, 1, 1))
        near = around[:-2, 1:-1] + around[2:, 1:-1] + around[1:-1, :-2] + around[1:-1, 2:]
        return 0.25 * (near - f.double())

    meta = {"BLOCK_H": 8, "BLOCK_W": 128}
    return Problem((cdiv(w, 128), cdiv(h, 8)), (u, f, out, h, w), meta, out, reference, 12 * h * w)


def forces(n: int) -> Problem:
    position, mass, out = randn(3, n, dtype=F32), randn(n, dtype=F32).abs(), empty(3, n, dtype=F32)

    def reference() -> torch.Tensor:
        result = torch.zeros(3, n, dtype=torch.float64, device=position.device)
        for some in torch.arange(n, device=position.device).split(512):
            difference = position.double()[:, None, :] - position.double()[:, some, None]
            pull = mass.double() * (difference.square().sum(0) + 0.01) ** -1.5
            result[:, some] = (difference * pull).sum(2)
        return result

    meta = {"BLOCK_I": 64, "BLOCK_J": 64}
    return Problem((cdiv(n, 64),), (position, mass, out, n, 0.01), meta, out, reference, 20 * n * n, unit="TFLOP/s")


def mandelbrot(h: int, w: int) -> Problem:
    out = empty(h, w, dtype=torch.int32)
    steps = 200

    def reference() -> torch.Tensor:
        cx = (torch.arange(w, device=out.device) / w * 3.0 - 2.0).double()[None, :]
        cy = (torch.arange(h, device=out.device) / h * 2.0 - 1.0).double()[:, None]
        x, y, count = torch.zeros(h, w).to(cx), torch.zeros(h, w).to(cx), torch.zeros(h, w).to(cx)
        for _ in range(steps):
            xx, yy = x * x, y * y
            inside = xx + yy < 4.0
            x, y = torch.where(inside, xx - yy + cx, x), torch.where(inside, 2 * x * y + cy, y)
            count += inside
        return count

    # Points whose orbit fp32 leaves otherwise are few, and far off.
    args = (out, w, h, steps)
    return Problem((cdiv(h * w, 512),), args, {"BLOCK": 512}, out, reference, 7 * steps * h * w, 0.5, unit="TFLOP/s")


def manhattan(m: int, n: int, k: int) -> Problem:
    x, y, out = randn(m, k, dtype=F32), randn(n, k, dtype=F32), empty(m, n, dtype=F32)
    reference = lambda: torch.cdist(x.double(), y.double(), p=1)
    meta = {"BLOCK_M": 32, "BLOCK_N": 32, "BLOCK_K": 32}
    grid = (cdiv(m, 32), cdiv(n, 32))
    return Problem(grid, (x, y, out, m, n, k), meta, out, reference, 3 * m * n * k, unit="TFLOP/s")


def grid_sample(images: int, c: int, h: int, w: int) -> Problem:
    x, places = randn(images, c, h, w, dtype=F32), randn(images, h, w, 2, dtype=F32) * 0.5
    out = empty(images, c, h, w, dtype=F32)
    reference = lambda: F.grid_sample(x.double(), places.double(), align_corners=True)
    args = (x, places, out, c, h, w, h * w)
    return Problem((cdiv(h * w, 256), images), args, {"BLOCK": 256}, out, reference, 8 * x.numel(), 1e-3)


def pack_signs(n: int) -> Problem:
    x, out = randn(n, dtype=BF16), empty(n // 32, dtype=torch.int32)

    def reference() -> torch.Tensor:
        bits = (x.view(-1, 32) > 0).long() << torch.arange(32, device=x.device)
        return bits.sum(1).to(torch.int32).double()

    return Problem((cdiv(n // 32, 64),), (x, out, n // 32), {"BLOCK": 64}, out, reference, 2 * n)


# A kernel, sizes on a GPU, and sizes for a check on the CPU.
CASES: tuple[tuple[Callable[..., Problem], tuple[int, ...], tuple[int, ...]], ...] = (
    (head_norm, (16384, 32, 128), (5, 7, 32)),
    (layer_norm_rows, (4096, 16383, 32), (3, 1001, 32)),
    (layer_norm_rows, (4096, 16383, 16), (3, 1001, 16)),
    (softmax_columns, (512, 65536), (13, 70)),
    (batch_norm_gradients, (64, 256, 3136), (3, 5, 1100)),
    (mean_pool, (256, 512, 1024), (3, 50, 140)),
    (cross_entropy_gradient, (4096, 32000), (3, 5000)),
    (focal_loss, (67108864,), (3000,)),
    (adam_8bit, (33554432,), (2048,)),
    (lstm_cell, (16384, 1024), (3, 1100)),
    (philox_dropout, (67108864,), (5000,)),
    (jacobi, (8192, 8192), (19, 140)),
    (forces, (16384,), (140,)),
    (mandelbrot, (2048, 3072), (12, 50)),
    (manhattan, (2048, 2048, 256), (35, 40, 40)),
    (grid_sample, (16, 32, 256, 256), (2, 3, 9, 31)),
    (pack_signs, (134217728,), (4096,)),
)
