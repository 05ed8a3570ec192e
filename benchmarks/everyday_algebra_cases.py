"""The problems of `everyday.py` around products: what kernels of `everyday_algebra.py` get, and what must come of it."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
import torch.nn.functional as F
from everyday_cases import Problem, cdiv, empty, integers, randn
from everyday_layers_cases import BF16, F32, tiles

F8 = torch.float8_e4m3fn
LOG2E = math.log2(math.e)


def latent_decode(requests: int, heads: int, length: int, splits: int) -> Problem:
    rank, rope = (512, 64) if heads > 16 else (64, 16)
    q, kv = randn(requests, heads, rank + rope, dtype=BF16), randn(requests, length, rank + rope, dtype=BF16)
    out, lse = empty(requests, heads, splits, rank, dtype=F32), empty(requests, heads, splits, dtype=F32)
    scale = LOG2E / math.sqrt(rank + rope)
    part = cdiv(cdiv(length, splits), 32) * 32

    def reference() -> torch.Tensor:
        scores = torch.einsum("rhd,rnd->rhn", q.double(), kv.double()) * (scale / LOG2E)
        parts = [slice(s * part, min((s + 1) * part, length)) for s in range(splits)]
        results = [scores[..., p].softmax(-1) @ kv[:, p, :rank].double() for p in parts]
        return torch.stack(results, 2)

    meta = {"HEADS": heads, "RANK": rank, "ROPE": rope, "SPLITS": splits, "BLOCK_H": 16, "BLOCK_N": 32}
    grid = (requests, heads // 16, splits)
    work = 2 * requests * length * (rank + rope)
    args = (q, kv, out, lse, length, scale)
    return Problem(grid, args, meta | {"num_warps": 4, "num_stages": 2}, out, reference, work, 1e-2)


def bias_attention(heads: int, length: int, dim: int) -> Problem:
    q, k, v = (randn(heads, length, dim, dtype=BF16) for _ in range(3))
    bias, out = randn(heads, length, length, dtype=BF16), empty(heads, length, dim, dtype=BF16)

    def reference() -> torch.Tensor:
        alone = lambda h: F.scaled_dot_product_attention(
            *(t[h, None].double() for t in (q, k, v)), attn_mask=bias[h].double()
        )
        return torch.cat([alone(h) for h in range(heads)])

    meta = {"DIM": dim, "BLOCK_M": 128, "BLOCK_N": 64, "num_warps": 8, "num_stages": 3}
    args = (q, k, v, bias, out, length, LOG2E / math.sqrt(dim))
    work = 4 * heads * length * length * dim
    return Problem((cdiv(length, 128), heads), args, meta, out, reference, work, 1e-2, unit="TFLOP/s")


def packed_attention(sequences: int, heads: int, group: int, longest: int, dim: int) -> Problem:
    lengths = torch.linspace(longest // 4, longest, sequences).long()
    starts = torch.cat([torch.zeros(1, dtype=torch.long), lengths.cumsum(0)]).tolist()
    tokens = starts[-1]
    q, out = randn(tokens, heads, dim, dtype=BF16), empty(tokens, heads, dim, dtype=BF16)
    k, v = (randn(tokens, heads // group, dim, dtype=BF16) for _ in range(2))

    def reference() -> torch.Tensor:
        results = []
        for first, last in zip(starts, starts[1:], strict=False):
            part = [t[first:last].transpose(0, 1)[None].double() for t in (q, k, v)]
            results.append(F.scaled_dot_product_attention(*part, is_causal=True, enable_gqa=True)[0].transpose(0, 1))
        return torch.cat(results)

    meta = {"HEADS": heads, "GROUP": group, "DIM": dim, "BLOCK_M": 128, "BLOCK_N": 64, "num_warps": 8, "num_stages": 2}
    at = torch.tensor(starts, device=q.device, dtype=torch.int32)
    work = sum(2 * heads * dim * int(n) ** 2 for n in lengths)
    grid = (cdiv(longest, 128), heads, sequences)
    args = (q, k, v, out, at, LOG2E / math.sqrt(dim))
    return Problem(grid, args, meta, out, reference, work, 1e-2, unit="TFLOP/s")


def int8_attention(heads: int, length: int, dim: int) -> Problem:
    q, k = (integers(128, heads, length, dim, low=-127, dtype=torch.int8) for _ in range(2))
    v, out = randn(heads, length, dim), empty(heads, length, dim)
    m, n = cdiv(length, 128), cdiv(length, 64)
    q_scale = randn(heads, m, dtype=F32).abs() * (0.01 * LOG2E / math.sqrt(dim))
    k_scale = randn(heads, n, dtype=F32).abs() * 0.01

    def reference() -> torch.Tensor:
        results = []
        for h in range(heads):
            rows = q[h].double() * q_scale[h].double().repeat_interleave(128)[:length, None]
            columns = k[h].double() * k_scale[h].double().repeat_interleave(64)[:length, None]
            results.append((rows @ columns.T / LOG2E).softmax(1) @ v[h].double())
        return torch.stack(results)

    meta = {"DIM": dim, "BLOCK_M": 128, "BLOCK_N": 64, "num_warps": 8 if dim > 64 else 4, "num_stages": 3}
    work = 4 * heads * length * length * dim
    args = (q, q_scale, k, k_scale, v, out, length)
    return Problem((m, heads), args, meta, out, reference, work, 1e-2, unit="TFLOP/s")


def row_products(m: int, k: int) -> Problem:
    x, out = randn(m, k, dtype=BF16), empty(m, m, dtype=BF16)
    meta = {"BLOCK": 128, "BLOCK_K": 64, "num_warps": 8, "num_stages": 4}
    grid = (m // 128, m // 128)
    return Problem(grid, (x, out, m, k), meta, out, lambda: x.double() @ x.double().T, m * m * k, 2e-2, unit="TFLOP/s")


def kernel_sums(m: int, n: int, dim: int) -> Problem:
    x, y, w, out = randn(m, dim) * 0.3, randn(n, dim) * 0.3, randn(n, dtype=F32).abs(), empty(m, dtype=F32)
    gamma = 0.5

    def reference() -> torch.Tensor:
        rows = x.double().split(2048)
        return torch.cat([torch.exp(-gamma * torch.cdist(part, y.double()).square()) @ w.double() for part in rows])

    meta = {"DIM": dim, "BLOCK_M": 128, "BLOCK_N": 128, "num_warps": 8, "num_stages": 3}
    return Problem((m // 128,), (x, y, w, out, n, gamma), meta, out, reference, 2 * m * n * dim, unit="TFLOP/s")


def logit_sums(m: int, n: int, k: int) -> Problem:
    x, w, out = randn(m, k, dtype=BF16) * 0.1, randn(n, k, dtype=BF16) * 0.3, empty(m, dtype=F32)
    reference = lambda: torch.cat([(part @ w.double().T).logsumexp(1) for part in x.double().split(1024)])
    meta = tiles(128, 128, 64, 8, 3)
    return Problem((m // 128,), (x, w, out, n, k), meta, out, reference, 2 * m * n * k, unit="TFLOP/s")


def covariance(m: int, n: int, parts: int) -> Problem:
    x, out = randn(m, n, dtype=F32) + 1.0, empty(n, n, dtype=F32)
    mean = x.mean(0)
    rows = cdiv(cdiv(m, parts), 32) * 32
    reference = lambda: (x.double() - mean.double()).T @ (x.double() - mean.double())
    meta = {"ROWS": rows, "BLOCK": 64, "BLOCK_K": 32, "num_warps": 4, "num_stages": 3}
    grid = (n // 64, n // 64, parts)
    return Problem(grid, (x, mean, out, m, n), meta, out, reference, 2 * m * n * n, zeroed=True, unit="TFLOP/s")


def invert_triangles(count: int, side: int) -> Problem:
    a, out = randn(count, side, side, dtype=F32) * 0.2, empty(count, side, side, dtype=F32)
    eye = torch.eye(side, device=a.device, dtype=torch.float64)
    reference = lambda: torch.linalg.inv(a.double().tril(-1) + eye)
    return Problem((count,), (a, out), {"SIDE": side, "num_warps": 1}, out, reference, 8 * a.numel())


def running_sums(batch: int, t: int, d: int) -> Problem:
    x, out = randn(batch, t, d), empty(batch, t, d, dtype=F32)
    meta = {"BLOCK_T": 64, "BLOCK_D": 64, "num_warps": 4, "num_stages": 3}
    return Problem((d // 64, batch), (x, out, t, d), meta, out, lambda: x.double().cumsum(1), 6 * x.numel())


def complex_product(m: int, n: int, k: int) -> Problem:
    a, b_re, b_im, out = randn(m, k, 2), randn(k, n), randn(k, n), empty(m, n, 2)

    def reference() -> torch.Tensor:
        b = torch.complex(b_re.double(), b_im.double())
        return torch.view_as_real(torch.view_as_complex(a.double()) @ b)

    meta, grid = tiles(128, 64, 64, 8, 3), (m // 128, n // 64)
    return Problem(grid, (a, b_re, b_im, out, m, n, k), meta, out, reference, 8 * m * n * k, unit="TFLOP/s")


def short_convolution(batch: int, channels: int, length: int, stride: int) -> Problem:
    x, w, out = (
        randn(batch, channels, length),
        randn(5, channels, channels) * 0.1,
        empty(batch, channels, length // stride),
    )
    reference = lambda: F.relu(F.conv1d(x.double(), w.double().permute(1, 2, 0), stride=stride, padding=2))
    meta = {"IN": channels, "TAPS": 5, "STRIDE": stride, "BLOCK_L": 128, "BLOCK_O": 64, "num_warps": 4, "num_stages": 2}
    grid = (batch, cdiv(length // stride, 128), channels // 64)
    work = 2 * out.numel() * channels * 5
    return Problem(grid, (x, w, out, length, channels), meta, out, reference, work, unit="TFLOP/s")


def fp8_blocks(m: int, n: int, k: int) -> Problem:
    a, b, out = randn(m, k, dtype=F8), randn(n, k, dtype=F8), empty(m, n, dtype=BF16)
    a_scale = randn(m, cdiv(k, 128), dtype=F32).abs()
    b_scale = randn(cdiv(n, 128), cdiv(k, 128), dtype=F32).abs()

    def reference() -> torch.Tensor:
        rows = a.double() * a_scale.double().repeat_interleave(128, 1)[:, :k]
        columns = b.double() * b_scale.double().repeat_interleave(128, 0)[:n].repeat_interleave(128, 1)[:, :k]
        return rows @ columns.T

    meta = tiles(128, 128, 128, 8, 3) if m > 64 else tiles(64, 128, 128, 4, 3)
    grid = (cdiv(m, meta["BLOCK_M"]), cdiv(n, 128))
    args = (a, a_scale, b, b_scale, out, m, n, k)
    return Problem(grid, args, meta, out, reference, 2 * m * n * k, 1e-2, unit="TFLOP/s")


def int8_scaled(m: int, n: int, k: int) -> Problem:
    a, b = (integers(128, *shape, low=-127, dtype=torch.int8) for shape in ((m, k), (n, k)))
    a_scale, b_scale, bias = randn(m, dtype=F32).abs(), randn(n, dtype=F32).abs() * 0.01, randn(n, dtype=F32)
    out = empty(m, n, dtype=BF16)
    reference = lambda: (a.double() @ b.double().T) * a_scale.double()[:, None] * b_scale.double() + bias.double()
    meta, grid = tiles(128, 128, 128, 8, 3), (cdiv(m, 128), cdiv(n, 128))
    args = (a, a_scale, b, b_scale, bias, out, m, n, k)
    return Problem(grid, args, meta, out, reference, 2 * m * n * k, 1e-2, unit="TFLOP/s")


def mx_weights(m: int, n: int, k: int) -> Problem:
    x, w = randn(m, k, dtype=BF16), integers(256, n, k // 2, dtype=torch.uint8)
    scale, out = integers(130, n, k // 32, low=120, dtype=torch.uint8), empty(m, n, dtype=BF16)
    values = torch.tensor([0, 0.5, 1, 1.5, 2, 3, 4, 6], device=x.device, dtype=torch.float64)

    def reference() -> torch.Tensor:
        numbers = torch.stack([w & 15, w >> 4], 2).reshape(n, k).long()
        floats = values[numbers % 8] * torch.where(numbers >= 8, -1.0, 1.0)
        return x.double() @ (floats * torch.exp2(scale.double() - 127).repeat_interleave(32, 1)).T

    meta = tiles(16, 64, 128, 4, 3) if m <= 16 else tiles(128, 128, 64, 8, 3)
    grid = (cdiv(m, meta["BLOCK_M"]), cdiv(n, meta["BLOCK_N"]))
    work, unit = (n * k / 2, "TB/s") if m <= 16 else (2 * m * n * k, "TFLOP/s")
    return Problem(grid, (x, w, scale, out, m, n, k), meta, out, reference, work, 1e-2, unit=unit)


CASES: tuple[tuple[Callable[..., Problem], tuple[int, ...], tuple[int, ...]], ...] = (
    (latent_decode, (32, 128, 4096, 2), (2, 16, 150, 2)),
    (bias_attention, (16, 4096, 64), (2, 256, 32)),
    (packed_attention, (8, 32, 4, 4096, 128), (3, 4, 2, 200, 32)),
    (int8_attention, (32, 8192, 128), (2, 200, 32)),
    (row_products, (4096, 4096), (256, 128)),
    (kernel_sums, (16384, 16384, 64), (256, 300, 32)),
    (logit_sums, (16384, 32000, 1024), (256, 300, 128)),
    (covariance, (262144, 256, 16), (300, 64, 2)),
    (invert_triangles, (65536, 16), (5, 16)),
    (invert_triangles, (8192, 64), (3, 32)),
    (running_sums, (32, 4096, 1024), (2, 128, 64)),
    (complex_product, (4096, 4096, 2048), (128, 64, 128)),
    (short_convolution, (64, 128, 8192, 1), (2, 64, 200, 1)),
    (short_convolution, (64, 128, 8192, 2), (2, 64, 200, 2)),
    (fp8_blocks, (4096, 4096, 7168), (70, 200, 256)),
    (fp8_blocks, (64, 7168, 4096), (64, 200, 256)),
    (int8_scaled, (4096, 4096, 4096), (70, 150, 200)),
    (mx_weights, (16, 8192, 8192), (5, 64, 128)),
    (mx_weights, (4096, 4096, 4096), (70, 128, 128)),
)
