"""The problems of `everyday.py` for `everyday_tasks.py`: what its kernels get, and what must come of it."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from everyday_cases import DEVICE, Problem, cdiv, empty, integers, randn
from everyday_layers_cases import BF16, F32
from everyday_steps_cases import TFLOPS, zeros


def uniform(*shape: int) -> torch.Tensor:
    """Numbers between 0 and 1."""
    return torch.rand(*shape, device=DEVICE[0])


def hashed(numbers: torch.Tensor, seed: int) -> torch.Tensor:
    """What the kernels' hash makes of numbers, its upper 24 bits."""
    h = (numbers ^ seed) & 0xFFFFFFFF
    h = ((h ^ (h >> 16)) * 0x7FEB352D) & 0xFFFFFFFF
    h = ((h ^ (h >> 15)) * (0x846CA68B - (1 << 32))) & 0xFFFFFFFF
    return ((h ^ (h >> 16)) & 0xFFFFFFFF) >> 8


# -------------------------------------------------------------------------------------------------- losses, sampling


def dice_loss(images: int, n: int) -> Problem:
    x, t, out = randn(images, n), integers(2, images, n, dtype=torch.uint8), zeros(images, 3)

    def reference() -> torch.Tensor:
        p = torch.sigmoid(x.double())
        return torch.stack([(p * t).sum(1), p.sum(1), t.double().sum(1)], 1)

    return Problem((images, cdiv(n, 4096)), (x, t, out, n), {"BLOCK": 4096}, out, reference, 3 * x.numel(), zeroed=True)


def giou(n: int) -> Problem:
    corners = [(uniform(n, 2) * 0.5, uniform(n, 2) * 0.4 + 0.05) for _ in range(2)]
    a, b = (torch.cat([low, low + size], 1).contiguous() for low, size in corners)
    out = empty(n, dtype=F32)

    def reference() -> torch.Tensor:
        p, q = a.double(), b.double()
        area = lambda box: (box[:, 2:] - box[:, :2]).prod(1)
        inter = (torch.minimum(p[:, 2:], q[:, 2:]) - torch.maximum(p[:, :2], q[:, :2])).clamp(min=0).prod(1)
        union = area(p) + area(q) - inter
        hull = (torch.maximum(p[:, 2:], q[:, 2:]) - torch.minimum(p[:, :2], q[:, :2])).prod(1)
        return inter / union - (hull - union) / hull

    return Problem((cdiv(n, 512),), (a, b, out, n), {"BLOCK": 512}, out, reference, 36 * n)


def pairwise_rank(queries: int, n: int) -> Problem:
    score, label = randn(queries, n, dtype=F32), integers(5, queries, n)
    out = empty(queries, n, dtype=F32)

    def reference() -> torch.Tensor:
        rows = []
        for s, r in zip(score.double(), label, strict=True):
            rows.append((F.softplus(s[None] - s[:, None]) * (r[:, None] > r[None])).sum(1))
        return torch.stack(rows)

    grid, meta = (queries, cdiv(n, 64)), {"BI": 64, "BJ": 64}
    return Problem(grid, (score, label, out, n), meta, out, reference, 8 * queries * n * n, unit="Top/s")


def gumbel_argmax(m: int, n: int) -> Problem:
    logits, out = randn(m, n), empty(m, dtype=torch.int32)

    def reference() -> torch.Tensor:
        u = (hashed(torch.arange(m * n, device=logits.device).reshape(m, n), 99).double() + 0.5) * 2.0**-24
        return (logits.double() - torch.log(-torch.log(u))).argmax(1)

    return Problem((m,), (logits, out, n, 99), {"BLOCK": 1024}, out, reference, 2 * m * n, 0.2)


def penalize(m: int, n: int, ids: int) -> Problem:
    logits, out = randn(m, n, dtype=F32), zeros(m, n)
    seen = torch.stack([torch.randperm(n, device=DEVICE[0])[:ids] for _ in range(m)]).int()

    def reference() -> torch.Tensor:
        x = logits.double()
        smaller = torch.where(x > 0, x / 1.25, x * 1.25)
        return torch.where(zeros(m, n).scatter(1, seen.long(), 1.0) > 0, smaller, 0.0)

    grid, args = (m, cdiv(ids, 1024)), (logits, out, seen, n, ids, 1.25)
    return Problem(grid, args, {"BLOCK": 1024}, out, reference, 12 * m * ids, zeroed=True)


def fused_bias_dropout(m: int, n: int) -> Problem:
    x, b, r, out = randn(m, n, dtype=BF16), randn(n, dtype=BF16), randn(m, n, dtype=BF16), empty(m, n, dtype=BF16)

    def reference() -> torch.Tensor:
        u = hashed(torch.arange(m * n, device=x.device).reshape(m, n), 77).double() * 2.0**-24
        kept = torch.where(u > 0.1, (x.double() + b.double()) / 0.9, 0.0)
        return kept + r.double()

    grid, args = (m, cdiv(n, 1024)), (x, b, r, out, n, 77, 0.1)
    return Problem(grid, args, {"BLOCK": 1024}, out, reference, 6 * m * n, 1e-2)


# ------------------------------------------------------------------------------------------------------ statistics


def standardize_columns(rows: int, cols: int) -> Problem:
    x, out = randn(rows, cols, dtype=F32), empty(rows, cols, dtype=F32)
    reference = lambda: (x.double() - x.double().mean(0)) * (x.double().var(0, unbiased=False) + 1e-5).rsqrt()
    grid, meta = (cdiv(cols, 32),), {"BR": 64, "BC": 32}
    return Problem(grid, (x, out, rows, cols), meta, out, reference, 12 * x.numel())


def moments(rows: int, cols: int) -> Problem:
    x, out = randn(rows, cols, dtype=F32).exp(), empty(rows, 4, dtype=F32)

    def reference() -> torch.Tensor:
        mean = x.double().mean(1, keepdim=True)
        d = x.double() - mean
        m2, m3, m4 = (d.pow(k).mean(1) for k in (2, 3, 4))
        return torch.stack([mean[:, 0], m2, m3 / m2**1.5, m4 / m2**2], 1)

    return Problem((rows,), (x, out, cols), {"BLOCK": 1024}, out, reference, 8 * x.numel())


def absmax_columns(rows: int, cols: int) -> Problem:
    x, out = randn(rows, cols), zeros(cols)
    grid, meta = (cdiv(cols, 64), cdiv(rows, 128)), {"BR": 128, "BC": 64}
    reference = lambda: x.double().abs().amax(0)
    return Problem(grid, (x, out, rows, cols), meta, out, reference, 2 * x.numel(), zeroed=True)


# ------------------------------------------------------------------------------------------------------ simulations


def lennard_jones(n: int, k: int) -> Problem:
    position, near = randn(n, 4, dtype=F32), integers(n, k, n)
    force = empty(n, 4, dtype=F32)

    def reference() -> torch.Tensor:
        p, total = position.double()[:, :3], zeros(n, 3, dtype=torch.float64)
        for row in near.long():
            d = p - p[row]
            r2 = d.square().sum(1) + 0.25
            f = torch.where(r2 < 9, 24 / r2**4 * (2 / r2**3 - 1), 0)
            total += f[:, None] * d
        return total

    args, meta = (position, near, force, n, k, 9.0), {"BLOCK": 256}
    return Problem((cdiv(n, 256),), args, meta, force[:, :3], reference, (20 * k + 24) * n, 1e-2)


def advect(h: int, w: int) -> Problem:
    f, u, v, out = randn(h, w, dtype=F32), randn(h, w, dtype=F32), randn(h, w, dtype=F32), empty(h, w, dtype=F32)

    def reference() -> torch.Tensor:
        y, x = torch.meshgrid(torch.arange(h, device=f.device), torch.arange(w, device=f.device), indexing="ij")
        px, py = (x - 2 * u).float().clamp(0, w - 1).double(), (y - 2 * v).float().clamp(0, h - 1).double()
        x0, y0 = px.long().clamp(max=w - 2), py.long().clamp(max=h - 2)
        at = lambda dy, dx: f.double()[y0 + dy, x0 + dx]
        upper = at(0, 0) + (px - x0) * (at(0, 1) - at(0, 0))
        lower = at(1, 0) + (px - x0) * (at(1, 1) - at(1, 0))
        return upper + (py - y0) * (lower - upper)

    grid, args = (cdiv(h, 8), cdiv(w, 64)), (f, u, v, out, h, w, 2.0)
    return Problem(grid, args, {"BY": 8, "BX": 64}, out, reference, 16 * h * w)


def pressure_rhs(h: int, w: int) -> Problem:
    u, v, out = randn(h, w + 1, dtype=F32), randn(h + 1, w, dtype=F32), empty(h, w, dtype=F32)
    reference = lambda: 3.5 * (u.double().diff(dim=1) + v.double().diff(dim=0))
    return Problem((h, cdiv(w, 1024)), (u, v, out, h, w, 3.5), {"BLOCK": 1024}, out, reference, 12 * h * w)


def ising_step(h: int, w: int) -> Problem:
    spin, out = 2 * integers(2, h, w, dtype=torch.int8) - 1, empty(h, w, dtype=torch.int8)

    def reference() -> torch.Tensor:
        s = spin.double()
        near = sum(torch.roll(s, by, axis) for by in (1, -1) for axis in (0, 1))
        u = hashed(torch.arange(h * w, device=s.device).reshape(h, w), 4242).double() * 2.0**-24
        color = (torch.arange(h, device=s.device)[:, None] + torch.arange(w, device=s.device)[None]) % 2
        return torch.where((u < torch.exp(-0.88 * s * near)) & (color == 0), -s, s)

    args = (spin, out, h, w, 0, 0.44, 4242)
    return Problem((h, cdiv(w, 1024)), args, {"BLOCK": 1024}, out, reference, 2 * h * w, 1e-3)


def quaternion_rotate(n: int) -> Problem:
    q, v, out = F.normalize(randn(n, 4, dtype=F32), dim=1), randn(n, 3, dtype=F32), empty(n, 3, dtype=F32)

    def reference() -> torch.Tensor:
        t = 2 * torch.cross(q.double()[:, 1:], v.double(), dim=1)
        return v.double() + q.double()[:, :1] * t + torch.cross(q.double()[:, 1:], t, dim=1)

    return Problem((cdiv(n, 512),), (q, v, out, n), {"BLOCK": 512}, out, reference, 40 * n)


# ----------------------------------------------------------------------------------------------------------- graphs


def neighbours(n: int, most: int) -> tuple[torch.Tensor, torch.Tensor]:
    """For each vertex where its list of neighbours starts, and all lists."""
    starts = F.pad(integers(most + 1, n).cumsum(0), (1, 0)).int()
    return starts, integers(n, int(starts[-1]))


def graph_mean(n: int, most: int, d: int) -> Problem:
    starts, index = neighbours(n, most)
    x, out = randn(n, d), empty(n, d)

    def reference() -> torch.Tensor:
        counts = starts.diff()
        vertex = torch.repeat_interleave(torch.arange(n, device=x.device), counts)
        total = zeros(n, d, dtype=torch.float64).index_add_(0, vertex, x.double()[index.long()])
        return total / counts.clamp(min=1)[:, None]

    return Problem((n,), (x, starts, index, out), {"D": d, "num_warps": 1}, out, reference, 2 * len(index) * d)


def edge_messages(n: int, edges: int, d: int) -> Problem:
    x, w, out = randn(n, d, dtype=F32), randn(edges, dtype=F32), zeros(n, d)
    source, end = integers(n, edges), integers(n, edges)

    def reference() -> torch.Tensor:
        rows = x.double()[source.long()] * w.double()[:, None]
        return zeros(n, d, dtype=torch.float64).index_add_(0, end.long(), rows)

    args = (x, source, end, w, out, edges)
    return Problem((cdiv(edges, 32),), args, {"D": d, "BE": 32}, out, reference, 8 * edges * d, zeroed=True)


def distance_matrix_min(n: int, m: int, d: int) -> Problem:
    a, b, out = randn(n, d), randn(m, d), empty(n, dtype=F32)
    reference = lambda: torch.cat([torch.cdist(part, b.double()).amin(1) for part in a.double().split(4096)])
    meta = {"D": d, "BN": 128, "BM": 64, "num_warps": 8}
    args = (a, b, out, n, m)
    return Problem((cdiv(n, 128),), args, meta, out, reference, 2 * n * m * d, 1e-2, unit=TFLOPS)


# --------------------------------------------------------------------------------------------------- images, models


def unfold_patches(images: int, c: int, h: int, w: int, p: int) -> Problem:
    x = randn(images, c, h, w)
    out = empty(images, h // p * (w // p), p * p * c)
    rows = lambda: x.double().reshape(images, c, h // p, p, w // p, p).permute(0, 2, 4, 3, 5, 1).reshape(out.shape)
    grid, meta = (h // p * (w // p), images, cdiv(p * p * c, 256)), {"P": p, "BLOCK": 256}
    return Problem(grid, (x, out, c, h, w), meta, out, rows, 4 * x.numel(), 1e-9)


def space_norm(images: int, c: int, hw: int) -> Problem:
    x, w, out = randn(images, c, hw), randn(c), empty(images, c, hw)
    reference = lambda: x.double() * (x.double().square().mean(1, True) + 1e-6).rsqrt() * w.double()[:, None]
    grid, args = (cdiv(hw, 32), images), (x, w, out, hw, c, 1e-6)
    return Problem(grid, args, {"BP": 32}, out, reference, 4 * x.numel(), 1e-2)


def blend_experts(n: int, k: int, d: int) -> Problem:
    x, w, out = randn(n, k, d, dtype=BF16), uniform(n, k), empty(n, d, dtype=BF16)
    reference = lambda: (x.double() * w.double()[..., None]).sum(1)
    grid, meta = (n, cdiv(d, 1024)), {"K": k, "BLOCK": 1024}
    return Problem(grid, (x, w, out, n, d), meta, out, reference, 2 * (k + 1) * n * d, 1e-2)


def kv_append(tokens: int, heads: int, d: int) -> Problem:
    k, v = randn(tokens, heads, d), randn(tokens, heads, d)
    slots = torch.randperm(tokens, device=DEVICE[0])
    cache, scales = empty(tokens, heads, 2, d, dtype=torch.int8), empty(tokens, heads, 2, dtype=F32)

    def reference() -> torch.Tensor:
        both = torch.stack([k.float(), v.float()], 2)
        scale = both.abs().amax(3, keepdim=True) / 127.0 + 1e-8
        result = zeros(tokens, heads, 2, d, dtype=torch.float64)
        result[slots] = torch.floor(both / scale + 0.5).double()
        return result

    args, meta = (k, v, slots, cache, scales), {"H": heads, "D": d}
    return Problem((tokens,), args, meta, cache, reference, 6 * tokens * heads * d, 1e-2)


def bmm_small(n: int, s: int) -> Problem:
    a, b, out = randn(n, s, s, dtype=F32), randn(n, s, s, dtype=F32), empty(n, s, s, dtype=F32)
    reference = lambda: a.double() @ b.double()
    return Problem((cdiv(n, 16),), (a, b, out, n), {"S": s, "BB": 16}, out, reference, 12 * n * s * s)


def cross_product_attention(heads: int, length: int, d: int, w: int) -> Problem:
    q, k, v, out = (randn(heads, length, d) for _ in range(4))

    def reference() -> torch.Tensor:
        score = q.double() @ k.double().mT * 0.125
        i = torch.arange(length, device=q.device)
        far = (i[:, None] - i[None]).abs() > w
        return torch.softmax(score.masked_fill(far, -torch.inf), 2) @ v.double()

    grid, meta = (cdiv(length, 32), heads), {"D": d, "W": w, "BQ": 32}
    return Problem(grid, (q, k, v, out, length), meta, out, reference, 8 * heads * length * d, 1e-2)


def mask_tokens(m: int, n: int) -> Problem:
    ids, lengths, out = integers(50000, m, n), integers(n + 1, m), empty(m, n, dtype=torch.int32)

    def reference() -> torch.Tensor:
        cols, pad = torch.arange(n, device=ids.device)[None], (n - lengths)[:, None]
        return torch.where(cols >= pad, ids.gather(1, (cols - pad).clamp(min=0)), -7)

    return Problem((m, cdiv(n, 1024)), (ids, out, lengths, n, -7), {"BLOCK": 1024}, out, reference, 6 * m * n, 1e-9)


def matrix_exp_step(count: int, n: int, terms: int) -> Problem:
    a, x, out = randn(count, n, n) * 0.5 * n**-0.5, randn(count, n, 16), empty(count, n, 16, dtype=F32)

    def reference() -> torch.Tensor:
        return torch.linalg.matrix_exp(a.double()) @ x.double()

    args, meta = (a, x, out), {"N": n, "TERMS": terms}
    return Problem((count,), args, meta, out, reference, 32 * count * terms * n * n, 1e-2, unit=TFLOPS)


# A function that makes the problem, and the sizes to time and to check on the CPU.
CASES: tuple[tuple[Callable[..., Problem], tuple[int, ...], tuple[int, ...]], ...] = (
    (dice_loss, (64, 1 << 20), (2, 5000)),
    (giou, (1 << 23,), (700,)),
    (pairwise_rank, (256, 1024), (2, 100)),
    (gumbel_argmax, (4096, 32768), (3, 1500)),
    (penalize, (1024, 32768, 4096), (2, 300, 100)),
    (fused_bias_dropout, (16384, 4096), (3, 200)),
    (standardize_columns, (8192, 8192), (100, 40)),
    (moments, (8192, 8192), (3, 1500)),
    (absmax_columns, (16384, 8192), (150, 70)),
    (lennard_jones, (1 << 20, 32), (300, 5)),
    (advect, (8192, 8192), (20, 70)),
    (pressure_rhs, (8192, 8192), (5, 300)),
    (ising_step, (16384, 16384), (6, 128)),
    (quaternion_rotate, (1 << 23,), (700,)),
    (graph_mean, (1 << 17, 32, 128), (20, 5, 64)),
    (edge_messages, (1 << 16, 1 << 20, 64), (20, 50, 32)),
    (distance_matrix_min, (16384, 16384, 64), (150, 100, 32)),
    (unfold_patches, (64, 3, 448, 448, 14), (2, 3, 12, 12, 4)),
    (space_norm, (16, 256, 16384), (2, 32, 70)),
    (blend_experts, (16384, 4, 4096), (5, 2, 300)),
    (kv_append, (32768, 8, 128), (5, 2, 64)),
    (bmm_small, (1 << 19, 8), (40, 8)),
    (cross_product_attention, (64, 4096, 64, 16), (2, 70, 32, 3)),
    (mask_tokens, (16384, 4096), (3, 1200)),
    (matrix_exp_step, (8192, 64, 8), (2, 32, 6)),
)
