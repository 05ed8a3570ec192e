"""The problems of `everyday.py` around sequence models: what kernels of `everyday_sequences.py` get, and what must come of it."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from everyday_cases import Problem, cdiv, empty, integers, power, randn

BF16, F32 = torch.bfloat16, torch.float32


def merge_states(tokens: int, heads: int, dim: int) -> Problem:
    a, b, out = randn(tokens, heads, dim), randn(tokens, heads, dim), empty(tokens, heads, dim)
    a_lse, b_lse, lse = (
        randn(tokens, heads, dtype=F32),
        randn(tokens, heads, dtype=F32),
        empty(tokens, heads, dtype=F32),
    )

    def reference() -> torch.Tensor:
        weight = torch.sigmoid(a_lse.double() - b_lse.double())[..., None]
        return a.double() * weight + b.double() * (1 - weight)

    args = (a, a_lse, b, b_lse, out, lse, heads)
    return Problem((tokens, heads), args, {"DIM": dim}, out, reference, 6 * a.numel())


def combine_splits(requests: int, heads: int, splits: int, dim: int) -> Problem:
    parts, lse = randn(requests, heads, splits, dim, dtype=F32), randn(requests, heads, splits, dtype=F32)
    lengths, out = integers(splits * 64 + 1, requests, low=1), empty(requests, heads, dim)

    def reference() -> torch.Tensor:
        live = torch.arange(splits, device=lse.device) < ((lengths + 63) // 64)[:, None, None]
        weights = torch.softmax(lse.double().masked_fill(~live, -torch.inf), -1)
        return (weights[..., None] * parts.double()).sum(2)

    meta = {"SPLITS": splits, "CHUNK": 64, "DIM": dim}
    return Problem((requests, heads), (parts, lse, out, lengths), meta, out, reference, 2 * parts.numel())


def rotate_pairs(tokens: int, q_heads: int, k_heads: int, dim: int) -> Problem:
    q, k = randn(tokens, q_heads, dim, dtype=BF16), randn(tokens, k_heads, dim, dtype=BF16)
    frequencies = 10000 ** (torch.arange(dim // 2, device=q.device) * (-2 / dim))
    angles = torch.arange(4096, device=q.device)[:, None] * frequencies
    cos, sin, positions = angles.cos(), angles.sin(), integers(4096, tokens, dtype=torch.int64)
    out = torch.empty_like(q)

    def reference() -> torch.Tensor:
        x, y = q.double().unflatten(-1, (-1, 2)).unbind(-1)
        c, s = cos[positions].double()[:, None], sin[positions].double()[:, None]
        return torch.stack((x * c - y * s, x * s + y * c), -1).flatten(-2)

    args = (q, k, out, torch.empty_like(k), cos, sin, positions, tokens)
    meta = {"Q_HEADS": q_heads, "K_HEADS": k_heads, "DIM": dim, "BLOCK_T": 16}
    return Problem((cdiv(tokens, 16), q_heads + k_heads), args, meta, out, reference, 4 * (q.numel() + k.numel()), 1e-2)


def quantize_groups(rows: int, n: int) -> Problem:
    x, q = randn(rows, n, dtype=BF16), empty(rows, n, dtype=torch.float8_e4m3fn)
    scales = empty(rows, n // 128, dtype=F32)

    def reference() -> torch.Tensor:
        return x.double().unflatten(1, (-1, 128)).abs().amax(-1) / 448

    groups = x.numel() // 128
    return Problem((groups,), (x, q, scales, groups), {"GROUP": 128, "num_warps": 1}, scales, reference, 3 * x.numel())


def silu_quantize(rows: int, n: int) -> Problem:
    x, q, scales = randn(rows, 2 * n, dtype=BF16), empty(rows, n, dtype=torch.int8), empty(rows, n // 128, dtype=F32)

    def reference() -> torch.Tensor:
        gate, up = x.double().chunk(2, 1)
        return (F.silu(gate) * up).unflatten(1, (-1, 128)).abs().amax(-1) / 127

    args = (x, q, scales, n)
    return Problem((rows, cdiv(n, 1024)), args, {"GROUP": 128, "BLOCK": 1024}, scales, reference, 5 * rows * n)


def norm_quantize(rows: int, n: int) -> Problem:
    x, residual, w = randn(rows, n, dtype=BF16), randn(rows, n, dtype=BF16), randn(n, dtype=F32)
    total, q, scales = torch.empty_like(x), empty(rows, n, dtype=torch.int8), empty(rows, dtype=F32)

    def reference() -> torch.Tensor:
        s = x.double() + residual.double()
        y = s * (s.square().mean(1, keepdim=True) + 1e-6).rsqrt() * w.double()
        return y.abs().amax(1) / 127

    args = (x, residual, w, total, q, scales, n, 1e-6)
    return Problem((rows,), args, {"BLOCK": power(n), "num_warps": 8}, scales, reference, 7 * rows * n)


def gather_tokens(tokens: int, each: int, n: int) -> Problem:
    x, order = randn(tokens, n, dtype=BF16), torch.randperm(tokens * each, device=randn(1).device)
    out = empty(tokens * each, n, dtype=BF16)
    reference = lambda: x.double()[order // each]
    args = (x, order.to(torch.int32), out, n)
    return Problem((tokens * each,), args, {"EACH": each, "BLOCK": 1024}, out, reference, 2 * (1 + each) * x.numel())


def sum_experts(tokens: int, each: int, n: int) -> Problem:
    y, weights = randn(tokens * each, n, dtype=BF16), torch.softmax(randn(tokens, each, dtype=F32), 1)
    places = torch.randperm(tokens * each, device=y.device).view(tokens, each)
    out = empty(tokens, n, dtype=BF16)
    reference = lambda: (y.double()[places] * weights.double()[..., None]).sum(1)
    args = (y, places.to(torch.int32), weights, out, n)
    work = 2 * (1 + each) * tokens * n
    return Problem((tokens, cdiv(n, 1024)), args, {"EACH": each, "BLOCK": 1024}, out, reference, work, 1e-2)


def causal_conv(batches: int, length: int, d: int) -> Problem:
    x, w, bias = randn(batches, length, d, dtype=BF16), randn(4, d, dtype=F32), randn(d, dtype=F32)
    out = torch.empty_like(x)

    def reference() -> torch.Tensor:
        padded = F.pad(x.double().transpose(1, 2), (3, 0))
        return F.silu(F.conv1d(padded, w.double().T[:, None], bias.double(), groups=d)).transpose(1, 2)

    meta = {"WIDTH": 4, "BLOCK_L": 16, "BLOCK_D": 128}
    grid = (batches, cdiv(length, 16), cdiv(d, 128))
    return Problem(grid, (x, w, bias, out, length, d), meta, out, reference, 4 * x.numel(), 1e-2)


def state_update(batches: int, d: int, states: int) -> Problem:
    state, x, dt = randn(batches, d, states, dtype=F32), randn(batches, d, dtype=BF16), randn(batches, d, dtype=F32)
    a, skip = -randn(d, states, dtype=F32).exp(), randn(d, dtype=F32)
    b, c, out = randn(batches, states, dtype=BF16), randn(batches, states, dtype=BF16), empty(batches, d, dtype=F32)

    def reference() -> torch.Tensor:
        step = F.softplus(dt.double())
        moved = state.double() * (a.double() * step[..., None]).exp()
        moved += b.double()[:, None] * (step * x.double())[..., None]
        return (moved * c.double()[:, None]).sum(-1) + x.double() * skip.double()

    args = (state, torch.empty_like(state), x, dt, a, b, c, skip, out, d)
    grid = (batches, cdiv(d, 64))
    return Problem(grid, args, {"STATE": states, "BLOCK": 64}, out, reference, 8 * state.numel())


def recurrence(batches: int, length: int, d: int) -> Problem:
    x, gate, out = (randn(batches, length, d, dtype=BF16) for _ in range(3))

    def reference() -> torch.Tensor:
        g, h, rows = torch.sigmoid(gate.double()), torch.zeros(batches, d, dtype=torch.float64, device=x.device), []
        for step in range(length):
            h = g[:, step] * h + (1 - g[:, step]) * x[:, step].double()
            rows.append(h)
        return torch.stack(rows, 1)

    meta = {"BLOCK": 128, "num_warps": 1}
    return Problem((batches, cdiv(d, 128)), (x, gate, out, length, d), meta, out, reference, 6 * x.numel(), 1e-2)


def depthwise_conv(images: int, h: int, w: int, channels: int) -> Problem:
    x, weight, out = randn(images, h, w, channels), randn(9, channels), empty(images, h, w, channels)

    def reference() -> torch.Tensor:
        filters = weight.double().T.reshape(channels, 1, 3, 3)
        return F.conv2d(x.double().permute(0, 3, 1, 2), filters, padding=1, groups=channels).permute(0, 2, 3, 1)

    meta = {"BLOCK_W": 16, "BLOCK_C": 128}
    grid = (images * h, cdiv(w, 16), cdiv(channels, 128))
    return Problem(grid, (x, weight, out, h, w, channels), meta, out, reference, 4 * x.numel())


def hadamard(rows: int, n: int) -> Problem:
    x, out = randn(rows, n), empty(rows, n)

    def reference() -> torch.Tensor:
        matrix = torch.ones(1, 1, dtype=torch.float64, device=x.device)
        while len(matrix) < n:
            matrix = torch.cat((torch.cat((matrix, matrix), 1), torch.cat((matrix, -matrix), 1)))
        return x.double() @ matrix * n**-0.5

    meta = {"N": n, "LEVELS": n.bit_length() - 1}
    return Problem((rows,), (x, out, n**-0.5), meta, out, reference, 4 * x.numel())


def divergence(rows: int, v: int) -> Problem:
    student, teacher, loss = randn(rows, v), randn(rows, v), empty(rows, dtype=F32)

    def reference() -> torch.Tensor:
        s, t = (F.log_softmax(x.double() / 2, 1) for x in (student, teacher))
        return (t.exp() * (t - s)).sum(1)

    args = (student, teacher, loss, v, 2.0)
    return Problem((rows,), args, {"BLOCK": 4096, "num_warps": 8}, loss, reference, 8 * rows * v)


def nearest(m: int, centres: int, k: int) -> Problem:
    c = randn(centres, k)
    x = c[integers(centres, m)] + randn(m, k) / 10  # far from all but one centre: fp16 decides no ties
    norms, index = c.float().square().sum(1), empty(m, dtype=torch.int32)
    reference = lambda: (norms.double() - 2 * x.double() @ c.double().T).argmin(1)
    args = (x, c, norms, index, m, centres)
    meta = {"K": k, "BLOCK_M": 128, "BLOCK_N": 128, "num_warps": 8}
    return Problem((cdiv(m, 128),), args, meta, index, reference, 2 * m * centres * k, 1e-6, unit="TFLOP/s")


def sparse_rows(rows: int, each: int, columns: int, n: int) -> Problem:
    sizes = integers(2 * each, rows, dtype=torch.int64)
    starts = torch.zeros(rows + 1, dtype=torch.int32, device=sizes.device)
    starts[1:] = sizes.cumsum(0)
    count = int(starts[-1])
    cols, values, x = integers(columns, count), randn(count, dtype=F32), randn(columns, n, dtype=F32)
    out = empty(rows, n, dtype=F32)

    def reference() -> torch.Tensor:
        row = torch.repeat_interleave(torch.arange(rows, device=x.device), sizes)
        result = torch.zeros(rows, n, dtype=torch.float64, device=x.device)
        return result.index_add_(0, row, values.double()[:, None] * x.double()[cols])

    args = (starts, cols, values, x, out, n)
    return Problem((rows, cdiv(n, 128)), args, {"BLOCK": 128, "num_warps": 1}, out, reference, 4 * count * n)


# A kernel, sizes on a GPU, and sizes for a check on the CPU.
CASES: tuple[tuple[Callable[..., Problem], tuple[int, ...], tuple[int, ...]], ...] = (
    (merge_states, (16384, 32, 128), (3, 2, 16)),
    (combine_splits, (256, 32, 32, 128), (3, 2, 5, 16)),
    (rotate_pairs, (16384, 32, 8, 128), (35, 3, 2, 16)),
    (quantize_groups, (16384, 4096), (3, 256)),
    (silu_quantize, (8192, 8192), (3, 1280)),
    (norm_quantize, (16384, 4096), (3, 100)),
    (gather_tokens, (8192, 4, 4096), (5, 2, 1100)),
    (sum_experts, (8192, 4, 4096), (5, 2, 1100)),
    (causal_conv, (4, 8192, 4096), (2, 37, 140)),
    (state_update, (256, 4096, 16), (2, 70, 16)),
    (recurrence, (16, 2048, 4096), (2, 9, 140)),
    (depthwise_conv, (32, 56, 56, 512), (2, 5, 19, 140)),
    (hadamard, (16384, 4096), (3, 64)),
    (divergence, (4096, 32000), (3, 5000)),
    (nearest, (65536, 1024, 128), (140, 150, 32)),
    (sparse_rows, (16384, 64, 16384, 256), (9, 5, 20, 140)),
)
