"""The problems of `everyday.py` around neighbours: what kernels of `everyday_neighbours.py` get, and what must come of it."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
import torch.nn.functional as F
from everyday_cases import DEVICE, Problem, cdiv, empty, integers, randn
from everyday_layers_cases import BF16, F32


def nf4_dequantize(n: int, group: int) -> Problem:
    q, out = integers(256, n // 2, dtype=torch.uint8), empty(n, dtype=BF16)
    code, largest = torch.linspace(-1, 1, 16, device=DEVICE[0]), torch.rand(n // group, device=DEVICE[0])

    def reference() -> torch.Tensor:
        values = torch.stack([code[(q >> 4).long()], code[(q & 15).long()]], -1).reshape(-1)
        return values.double() * largest.repeat_interleave(group).double()

    args, meta = (q, code, largest, out, n // 2), {"BLOCK": 1024, "GROUP": group}
    return Problem((cdiv(n // 2, 1024),), args, meta, out, reference, 5 * n // 2, 1e-2)


def int4_unpack_rows(k: int, n: int, group: int) -> Problem:
    q, scale, out = integers(256, k, n // 2, dtype=torch.uint8), randn(k // group, n), empty(k, n)

    def reference() -> torch.Tensor:
        weights = torch.stack([(q & 15).double() - 8, (q >> 4).double() - 8], -1).reshape(k, n)
        return weights * scale.double().repeat_interleave(group, 0)

    meta = {"G": group, "BLOCK_K": 32, "BLOCK_N": 64}
    return Problem((cdiv(k, 32), cdiv(n // 2, 64)), (q, scale, out, k, n), meta, out, reference, 5 * k * n // 2, 1e-2)


def complex_scale(n: int) -> Problem:
    x, y, out = randn(n, 2, dtype=F32), randn(n, 2, dtype=F32), empty(n, 2, dtype=F32)
    reference = lambda: torch.view_as_real(torch.view_as_complex(x.double()) * torch.view_as_complex(y.double()))
    return Problem((cdiv(n, 1024),), (x, y, out, n), {"BLOCK": 1024}, out, reference, 24 * n)


def geglu_interleaved(rows: int, n: int) -> Problem:
    x, out = randn(rows, n, 2, dtype=BF16), empty(rows, n, dtype=BF16)

    def reference() -> torch.Tensor:
        gate, up = x.double().unbind(-1)
        return gate * torch.sigmoid(1.702 * gate) * (up + 1)

    return Problem((rows, cdiv(n, 1024)), (x, out, n), {"BLOCK": 1024}, out, reference, 6 * rows * n, 1e-2)


def fft_stage(rows: int, n: int, half: int) -> Problem:
    x, out = randn(rows, n, 2, dtype=F32), empty(rows, n, 2, dtype=F32)
    angles = -math.pi * torch.arange(half, device=DEVICE[0]) / half
    w = torch.stack([angles.cos(), angles.sin()], -1).contiguous()

    def reference() -> torch.Tensor:
        z = torch.view_as_complex(x.double()).reshape(rows, -1, 2, half)
        turned = z[:, :, 1] * torch.view_as_complex(w.double())
        return torch.view_as_real(torch.stack([z[:, :, 0] + turned, z[:, :, 0] - turned], 2).reshape(rows, n))

    grid = (cdiv(n // 2, 512), rows)
    return Problem(grid, (x, w, out, half, n), {"BLOCK": 512}, out, reference, 16 * rows * n)


def haar2d(planes: int, side: int) -> Problem:
    x = randn(planes, side, side, dtype=F32)
    outs = [empty(planes, side // 2, side // 2, dtype=F32) for _ in range(4)]
    reference = lambda: F.avg_pool2d(x.double(), 2) * 2
    grid = (cdiv(side // 2, 8), cdiv(side // 2, 128), planes)
    return Problem(grid, (x, *outs, side, side), {"BH": 8, "BW": 128}, outs[0], reference, 8 * x.numel())


def avg_pool2d(planes: int, side: int, window: int, step: int) -> Problem:
    x, out_side = randn(planes, side, side), (side - window) // step + 1
    out = empty(planes, out_side, out_side)
    reference = lambda: F.avg_pool2d(x.double(), window, step)
    args, meta = (x, out, side, side, out_side, out_side), {"KS": window, "ST": step, "BLOCK": 512}
    work = 2 * (x.numel() + out.numel())
    return Problem((planes, cdiv(out_side * out_side, 512)), args, meta, out, reference, work, 1e-2)


def sobel(side: int) -> Problem:
    x, out = integers(256, side, side, dtype=torch.uint8), empty(side, side, dtype=torch.uint8)

    def reference() -> torch.Tensor:
        taps = torch.tensor([[-1.0, 0, 1], [-2, 0, 2], [-1, 0, 1]], device=x.device)
        both = F.conv2d(x.float()[None, None], torch.stack([taps, taps.T])[:, None], padding=1)[0]
        return both.square().sum(0).sqrt().clamp(max=255).to(torch.uint8)

    grid = (side, cdiv(side, 1024))
    return Problem(grid, (x, out, side, side), {"BLOCK": 1024}, out, reference, 2 * side * side, 2e-2)


def life(side: int) -> Problem:
    x, out = integers(2, side, side, dtype=torch.int8), empty(side, side, dtype=torch.int8)

    def reference() -> torch.Tensor:
        around = [(i, j) for i in (-1, 0, 1) for j in (-1, 0, 1) if i or j]
        living = sum(torch.roll(x, shift, (0, 1)) for shift in around)
        return (living == 3) | ((living == 2) & (x == 1))

    grid = (cdiv(side, 16), cdiv(side, 128))
    return Problem(grid, (x, out, side, side), {"BH": 16, "BW": 128}, out, reference, 2 * side * side)


def small_batched(batches: int, side: int) -> Problem:
    a, b, out = randn(batches, side, side), randn(batches, side, side), empty(batches, side, side)
    args, meta = (a, b, out, batches), {"S": side, "PER": 4}
    reference = lambda: a.double() @ b.double()
    return Problem((cdiv(batches, 4),), args, meta, out, reference, 6 * batches * side * side)


def sinkhorn(batches: int, side: int, times: int) -> Problem:
    x, out = randn(batches, side, side, dtype=F32), empty(batches, side, side, dtype=F32)

    def reference() -> torch.Tensor:
        z = x.double()
        for _ in range(times):
            z = z - z.logsumexp(2, keepdim=True)
            z = z - z.logsumexp(1, keepdim=True)
        return z.exp()

    return Problem((batches,), (x, out), {"ITERS": times, "N": side}, out, reference, 8 * x.numel(), 1e-3)


def chamfer(n: int, others: int) -> Problem:
    a, b, out = randn(n, 3, dtype=F32), randn(others, 3, dtype=F32), empty(n, dtype=F32)

    def reference() -> torch.Tensor:
        return torch.cat([torch.cdist(part.double(), b.double()).square().amin(1) for part in a.split(1024)])

    meta = {"BA": 64, "BB": 64}
    return Problem((cdiv(n, 64),), (a, b, out, others), meta, out, reference, 8 * n * others, 1e-2, unit="TFLOP/s")


def masked_mean_pool(batches: int, length: int, width: int) -> Problem:
    x, out = randn(batches, length, width), empty(batches, width)
    lengths = integers(length, batches, low=length // 2, dtype=torch.int32)
    reference = lambda: torch.stack([x[i, : lengths[i]].double().mean(0) for i in range(batches)])
    args, meta = (x, lengths, out, length, width), {"BLOCK_T": 32, "BLOCK_D": 128}
    return Problem((batches, cdiv(width, 128)), args, meta, out, reference, 3 * x.numel() // 2, 1e-2)


def knn_scores(n: int, others: int, depth: int) -> Problem:
    q, p, best, place = randn(n, depth), randn(others, depth), empty(n, dtype=F32), empty(n, dtype=torch.int32)
    reference = lambda: (p.double().square().sum(-1) - 2 * q.double() @ p.double().T).amin(1)
    meta = {"D": depth, "BQ": 128, "BP": 64, "num_stages": 3}
    work = 2 * n * others * depth
    return Problem((cdiv(n, 128),), (q, p, best, place, others), meta, best, reference, work, 1e-3, unit="TFLOP/s")


def syrk(n: int, k: int) -> Problem:
    a, c = randn(n, k), empty(n, n)
    meta = {"BN": 128, "BK": 64, "num_warps": 8, "num_stages": 3}
    grid = (cdiv(n, 128), cdiv(n, 128))
    return Problem(grid, (a, c, n, k), meta, c, lambda: a.double() @ a.double().T, n * n * k, 1e-2, unit="TFLOP/s")


CASES: tuple[tuple[Callable[..., Problem], tuple[int, ...], tuple[int, ...]], ...] = (
    (nf4_dequantize, (1 << 28, 64), (1 << 12, 64)),
    (int4_unpack_rows, (8192, 8192, 128), (64, 256, 32)),
    (complex_scale, (1 << 25,), (3000,)),
    (geglu_interleaved, (8192, 11008), (3, 1500)),
    (fft_stage, (4096, 4096, 512), (2, 2048, 256)),
    (haar2d, (64, 1024), (2, 50)),
    (avg_pool2d, (2048, 224, 3, 2), (2, 33, 3, 2)),
    (sobel, (8192,), (48,)),
    (life, (16384,), (128,)),
    (small_batched, (65536, 32), (6, 32)),
    (small_batched, (16384, 64), (6, 64)),
    (sinkhorn, (4096, 64, 10), (2, 64, 3)),
    (chamfer, (32768, 32768), (64, 128)),
    (masked_mean_pool, (256, 1024, 1024), (3, 100, 128)),
    (knn_scores, (16384, 16384, 128), (128, 128, 128)),
    (syrk, (4096, 4096), (256, 128)),
)
