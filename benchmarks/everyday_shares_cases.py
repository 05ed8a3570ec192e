"""The problems of `everyday.py` for `everyday_shares.py`: what its kernels get, and what must come of it."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from everyday_cases import DEVICE, Problem, cdiv, empty, integers, randn
from everyday_fields_cases import TFLOPS, product, product_tiles, uniform
from everyday_layers_cases import BF16, F32

LOG2_E = 1.4426950408889634
SMS = 132  # programs, as many as multiprocessors


def triangle(n: int) -> torch.Tensor:
    """Where a row may look: at itself and what lies before."""
    return torch.ones(n, n, dtype=torch.bool, device=DEVICE[0]).tril()


def counted(n: int) -> torch.Tensor:
    """The integers below n."""
    return torch.arange(n, device=DEVICE[0])


# -------------------------------------------------------------------------------------------- products and attention


def stream_k(m: int, n: int, k: int) -> Problem:
    a, b, c = randn(m, k), randn(k, n) * k**-0.5, empty(m, n, dtype=F32)
    total = cdiv(m, 128) * cdiv(n, 128) * cdiv(k, 64)
    args = (a, b, c, m, n, k, total, cdiv(total, SMS))
    reference = lambda: a.double() @ b.double()
    return Problem((SMS,), args, product_tiles(m), c, reference, 2 * m * n * k, 1e-2, zeroed=True, unit=TFLOPS)


def stream_k_rest(m: int, n: int, k: int) -> Problem:
    a, b, c = randn(m, k), randn(k, n) * k**-0.5, empty(m, n, dtype=F32)
    tiles, programs = cdiv(m, 128) * cdiv(n, 128), SMS if m > 512 else 3
    shared = tiles % programs + (programs if tiles >= 2 * programs else 0)
    args, meta = (a, b, c, m, n, k, k, 1, n, 1, n, 1, programs, shared), {**product_tiles(m), "GROUP": 8}
    reference = lambda: a.double() @ b.double()
    return Problem((programs,), args, meta, c, reference, 2 * m * n * k, 1e-2, zeroed=True, unit=TFLOPS)


def gemm_residual(m: int, n: int, k: int) -> Problem:
    x, w, r, y = randn(m, k), randn(k, n) * k**-0.5, randn(m, n), empty(m, n)
    reference = lambda: x.double() @ w.double() + r.double()
    return product(m, n, product_tiles(m), (x, w, r, y, m, n, k), y, reference, 2 * m * n * k)


def lora_expand(m: int, n: int, r: int) -> Problem:
    x, b, y = randn(m, r), randn(n, r), empty(m, n)
    meta, reference = {"R": r, "BM": 64, "BN": 128}, lambda: x.double() @ b.double().T * 0.5
    return Problem((m // 64, n // 128), (x, b, y, n, 0.5), meta, y, reference, 4 * m * n, 1e-2, zeroed=True)


def conv2d_nchw(n: int, c: int, h: int, w: int, k: int) -> Problem:
    x, weights, y = randn(n, c, h, w), randn(k, c, 3, 3) * (9 * c) ** -0.5, empty(n, k, h, w)
    meta = {"R": 3, "BM": 128, "BN": 64, "BK": 32, "num_warps": 4, "num_stages": 3}
    reference = lambda: F.conv2d(x.double(), weights.double(), padding=1)
    grid, args = (cdiv(h * w, 128), k // 64, n), (x, weights, y, c, h, w, k)
    return Problem(grid, args, meta, y, reference, 18 * n * c * h * w * k, 1e-2, unit=TFLOPS)


def latent_prefill(h: int, n: int, d: int, r: int) -> Problem:
    q, q_rope, k, k_rope, v = randn(n, h, d), randn(n, h, r), randn(n, h, d), randn(n, r), randn(n, h, d)
    out, scale = empty(n, h, d), (d + r) ** -0.5

    def reference() -> torch.Tensor:
        scores = torch.einsum("ihd,jhd->hij", q.double(), k.double())
        scores += torch.einsum("ihd,jd->hij", q_rope.double(), k_rope.double())
        shares = torch.softmax((scores * scale).masked_fill(~triangle(n), -math.inf), 2)
        return torch.einsum("hij,jhd->ihd", shares, v.double())

    meta = {"D": d, "R": r, "BM": 128, "BN": 64, "num_warps": 8, "num_stages": 2}
    args, work = (q, q_rope, k, k_rope, v, out, h, n, scale * LOG2_E), h * n * n * (2 * d + r)
    return Problem((n // 128, h), args, meta, out, reference, work, 1e-2, unit=TFLOPS)


def selected_attention(t: int, heads: int, blocks: int) -> Problem:
    group, d, side = 16, 128, 64
    q, k, v, out = randn(t, heads * group, d), randn(t, heads, d), randn(t, heads, d), empty(t, heads * group, d)
    own = counted(t) // side
    chosen = (uniform(t, heads, blocks) * (own[:, None, None] + 1)).int()
    chosen[..., 0] = own[:, None]

    def reference() -> torch.Tensor:
        parts = []
        for first in range(0, t, 128):  # all at once would not fit
            places = chosen[first : first + 128].long()[..., None] * side + counted(side)
            places = places.flatten(2)
            later = places > counted(t)[first : first + 128, None, None]
            keys, values = (x.double()[places.clamp(max=t - 1), counted(heads)[:, None]] for x in (k, v))
            rows = q[first : first + 128].double().unflatten(1, (heads, group))
            scores = torch.einsum("mhgd,mhjd->mhgj", rows, keys) * d**-0.5
            shares = torch.softmax(scores.masked_fill(later[:, :, None], -math.inf), 3)
            parts.append(torch.einsum("mhgj,mhjd->mhgd", shares, values).flatten(1, 2))
        return torch.cat(parts)

    meta = {"H": heads, "S": blocks, "scale": d**-0.5, "D": d, "G": group, "BS": side, "num_warps": 4, "num_stages": 2}
    work = t * heads * blocks * side * group * d * 4
    return Problem((t, heads), (q, k, v, chosen, out, t), meta, out, reference, work, 1e-2, unit=TFLOPS)


def ssd_chunk_scan(length: int, h: int) -> Problem:
    p, n, chunk = 64, 128, 256
    chunks = length // chunk
    dt = uniform(h, length) * 0.1
    decay = (-dt.reshape(h, chunks, chunk)).cumsum(2).reshape(h, length).contiguous()
    cb, x, c = randn(length, chunk, dtype=BF16), randn(length, h, p, dtype=BF16), randn(length, n, dtype=BF16)
    states, skip, out = randn(chunks, h, p, n, dtype=F32), randn(h, dtype=F32), empty(length, h, p, dtype=BF16)

    def reference() -> torch.Tensor:
        a, inputs = decay.double().reshape(h, chunks, chunk), x.double().reshape(chunks, chunk, h, p)
        within = torch.exp((a[..., :, None] - a[..., None, :]).clamp(max=0)) * dt.double().reshape(h, chunks, 1, chunk)
        within = (within * cb.double().reshape(1, chunks, chunk, chunk)).masked_fill(~triangle(chunk), 0)
        y = torch.einsum("hcij,cjhp->cihp", within, inputs)
        y += torch.einsum("cin,chpn,hci->cihp", c.double().reshape(chunks, chunk, n), states.double(), torch.exp(a))
        return (y + inputs * skip.double()[:, None]).reshape(length, h, p)

    meta = {"P": p, "N": n, "C": chunk, "BM": 64, "BK": 64, "num_warps": 4, "num_stages": 3}
    args, work = (cb, x, dt, decay, c, states, skip, out, length, h), length * h * (chunk * p + 2 * n * p)
    return Problem((chunk // 64, chunks, h), args, meta, out, reference, work, 1e-2, unit=TFLOPS)


# ------------------------------------------------------------------------------------------ atomics and places found


def count_experts(n: int, experts: int) -> Problem:
    chosen, counts = integers(experts, n), empty(experts, dtype=torch.int32)
    reference = lambda: torch.bincount(chosen.long(), minlength=experts).double()
    meta = {"E": experts, "BLOCK": 256}
    return Problem((cdiv(n, 256),), (chosen, counts, n), meta, counts, reference, n * 4, zeroed=True)


def spmv_coo(n: int, entries: int) -> Problem:
    row, col, value = integers(n, entries).sort().values.int(), integers(n, entries), randn(entries, dtype=F32)
    x, y = randn(n, dtype=F32), empty(n, dtype=F32)

    def reference() -> torch.Tensor:
        products = value.double() * x.double()[col.long()]
        return torch.zeros(n, dtype=torch.float64, device=DEVICE[0]).index_add_(0, row.long(), products)

    args = (row, col, value, x, y, entries)
    return Problem((cdiv(entries, 1024),), args, {"BLOCK": 1024}, y, reference, entries * 16, zeroed=True)


def cubic_rows(rows: int, width: int, out_width: int) -> Problem:
    x, y = randn(rows, width, dtype=F32), empty(rows, out_width, dtype=F32)

    def reference() -> torch.Tensor:
        place = (counted(out_width).float() + 0.5) * (width / out_width) - 0.5
        first = place.floor()
        share, total = (place - first).double(), torch.zeros(rows, out_width, dtype=torch.float64, device=DEVICE[0])
        for tap in range(-1, 3):
            u = (share - tap).abs()
            near, far = (1.25 * u - 2.25) * u * u + 1, ((-0.75 * u + 3.75) * u - 6) * u + 3
            total += torch.where(u <= 1, near, far) * x.double()[:, (first.long() + tap).clamp(0, width - 1)]
        return total

    args, work = (x, y, width, out_width, width / out_width), rows * (width + out_width) * 4
    return Problem((rows, cdiv(out_width, 1024)), args, {"BLOCK": 1024}, y, reference, work, 1e-2)


def cost_volume(c: int, h: int, w: int) -> Problem:
    a, b, out = randn(c, h, w), randn(c, h, w), empty(16, h, w, dtype=F32)
    shifted = lambda shift: F.pad(b.double(), (shift, 0))[..., :w]
    reference = lambda: torch.stack([(a.double() * shifted(shift)).mean(0) for shift in range(16)])
    args, meta = (a, b, out, c, h, w), {"D": 16, "BW": 64}
    return Problem((h, cdiv(w, 64)), args, meta, out, reference, 32 * c * h * w, 1e-2, unit=TFLOPS)


def searchsorted(n: int, m: int) -> Problem:
    a, x, out = randn(n, dtype=F32).sort().values, randn(m, dtype=F32), empty(m, dtype=torch.int32)
    meta, reference = {"STEPS": n.bit_length(), "BLOCK": 512}, lambda: torch.searchsorted(a, x).double()
    return Problem((cdiv(m, 512),), (a, x, out, n, m), meta, out, reference, m * 8)


# ------------------------------------------------------------------------------------------------- rows and sequences


def viterbi(b: int, t: int, states: int) -> Problem:
    emitted, moves = randn(b, t, states, dtype=F32), randn(states, states, dtype=F32)
    scores, back = empty(b, states, dtype=F32), empty(b, t, states, dtype=torch.int32)

    def reference() -> torch.Tensor:
        best = emitted[:, 0].double()
        for step in range(1, t):
            best = (best[:, :, None] + moves.double()).max(1).values + emitted[:, step].double()
        return best

    args, meta = (emitted, moves, scores, back, t), {"S": states, "num_warps": 4}
    return Problem((b,), args, meta, scores, reference, b * t * states * 8)


def batch_norm_train(b: int, c: int, s: int) -> Problem:
    x, y, w, bias = randn(b, c, s), empty(b, c, s), randn(c, dtype=F32), randn(c, dtype=F32)
    reference = lambda: F.batch_norm(x.double(), None, None, w.double(), bias.double(), True, 0.0, 1e-5)
    meta = {"BLOCK": 1024, "num_warps": 8}
    return Problem((c,), (x, y, w, bias, b, c, s, 1e-5), meta, y, reference, 4 * b * c * s, 1e-2)


def label_logprobs(t: int, v: int) -> Problem:
    x, label, out = randn(t, v, dtype=BF16), integers(v, t, dtype=torch.int64), empty(t, 2, dtype=F32)
    label[::3] = -100

    def reference() -> torch.Tensor:
        logs = torch.log_softmax(x.double(), 1)
        own = logs.gather(1, label.clamp(min=0)[:, None])[:, 0]
        return torch.stack([own, -(logs.exp() * logs).sum(1)], 1) * (label != -100)[:, None]

    meta = {"BLOCK": 4096, "num_warps": 8}
    return Problem((t,), (x, label, out, v), meta, out, reference, 2 * t * v * 2 // 3)


def quantize_columns(m: int, n: int) -> Problem:
    x, q, scales = randn(m, n, dtype=BF16), empty(n, m, dtype=torch.float8_e4m3fn), empty(m // 128, n, dtype=F32)

    def reference() -> torch.Tensor:
        groups = x.double().unflatten(0, (m // 128, 128))
        return (groups / groups.abs().amax(1, keepdim=True) * 448).flatten(0, 1).T

    grid, meta = (m // 128, n // 64), {"G": 128, "BN": 64, "num_warps": 4}
    return Problem(grid, (x, q, scales, m, n), meta, q, reference, 3 * m * n, 5e-2)


def histogram_rows(rows: int, n: int) -> Problem:
    x, counts = integers(64, rows, n, dtype=torch.uint8), empty(rows, 64, dtype=torch.int32)
    reference = lambda: torch.stack([(x == value).sum(1) for value in range(64)], 1).double()
    return Problem((rows,), (x, counts, n), {"BINS": 64, "BLOCK": 256}, counts, reference, rows * n)


CASES = (
    (stream_k, (4096, 4096, 4096), (256, 128, 1088)),
    (stream_k, (1536, 1536, 8192), (256, 128, 320)),
    (stream_k_rest, (4096, 4096, 4096), (256, 384, 320)),
    (stream_k_rest, (1000, 1512, 8192), (250, 136, 1088)),
    (gemm_residual, (8192, 4096, 512), (130, 128, 64)),
    (lora_expand, (8192, 4096, 16), (64, 128, 16)),
    (conv2d_nchw, (16, 128, 56, 56, 128), (1, 5, 9, 10, 64)),
    (latent_prefill, (32, 4096, 128, 64), (1, 256, 128, 64)),
    (selected_attention, (4096, 4, 16), (80, 2, 3)),
    (ssd_chunk_scan, (16384, 64), (256, 1)),
    (count_experts, (1 << 20, 64), (700, 16)),
    (spmv_coo, (1 << 20, 1 << 24), (50, 1500)),
    (cubic_rows, (4096, 4096, 8192), (2, 50, 77)),
    (cost_volume, (128, 512, 1024), (3, 2, 70)),
    (searchsorted, (1 << 20, 1 << 22), (100, 700)),
    (viterbi, (1024, 512, 64), (2, 5, 16)),
    (batch_norm_train, (64, 256, 3136), (2, 3, 1100)),
    (label_logprobs, (4096, 128256), (4, 5000)),
    (quantize_columns, (8192, 8192), (128, 128)),
    (histogram_rows, (8192, 4096), (2, 300)),
)
