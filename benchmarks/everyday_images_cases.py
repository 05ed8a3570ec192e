"""The problems of `everyday.py` around images and choices: what kernels of `everyday_images.py` get, and what must come of it."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from everyday_cases import Problem, cdiv, empty, integers, power, randn
from everyday_layers_cases import BF16, F32


def normalize_image(images: int, side: int) -> Problem:
    x, out = integers(256, images, side, side, 3, dtype=torch.uint8), empty(images, 3, side, side)
    mean, std = randn(3, dtype=F32), randn(3, dtype=F32).abs() + 0.5
    reference = lambda: ((x.double() / 255 - mean.double()) / std.double()).permute(0, 3, 1, 2)
    grid = (cdiv(side * side, 1024), images)
    return Problem(grid, (x, mean, std, out, side * side), {"BLOCK": 1024}, out, reference, 3 * x.numel())


def bilateral(h: int, w: int) -> Problem:
    x, out = randn(h, w, dtype=F32), empty(h, w, dtype=F32)
    space, tone = 0.1, 0.5

    def reference() -> torch.Tensor:
        padded = F.pad(x.double()[None, None], (2, 2, 2, 2), value=float("nan"))[0, 0]
        total, weight = torch.zeros_like(x.double()), torch.zeros_like(x.double())
        for r in range(5):
            for c in range(5):
                near = padded[r : r + h, c : c + w]
                part = torch.exp(
                    -tone * (near - x.double()).square() - space * ((r - 2) ** 2 + (c - 2) ** 2)
                ).nan_to_num()
                total, weight = total + part * near.nan_to_num(), weight + part
        return total / weight

    grid = (cdiv(h, 16), cdiv(w, 64))
    return Problem(grid, (x, out, h, w, space, tone), {"BLOCK_H": 16, "BLOCK_W": 64}, out, reference, 8 * h * w)


def median(h: int, w: int) -> Problem:
    x, out = integers(256, h, w, dtype=torch.uint8), empty(h, w, dtype=torch.uint8)

    def reference() -> torch.Tensor:
        padded = F.pad(x.float()[None, None], (1, 1, 1, 1), mode="replicate")[0, 0]
        near = torch.stack([padded[r : r + h, c : c + w] for r in range(3) for c in range(3)])
        return near.median(0).values.double()

    return Problem((h, cdiv(w, 1024)), (x, out, h, w), {"BLOCK": 1024}, out, reference, 2 * h * w, 1e-9)


def wide_depthwise(images: int, side: int, channels: int) -> Problem:
    x, out = randn(images, side, side, channels), empty(images, side, side, channels)
    w, bias = randn(7, 7, channels) * 0.1, randn(channels)

    def reference() -> torch.Tensor:
        planes, taps = x.double().permute(0, 3, 1, 2), w.double().permute(2, 0, 1)[:, None]
        return F.conv2d(planes, taps, bias.double(), padding=3, groups=channels).permute(0, 2, 3, 1)

    meta = {"TAPS": 7, "BLOCK_W": 16, "BLOCK_C": 64}
    grid = (side, cdiv(side, 16) * (channels // 64), images)
    return Problem(grid, (x, w, bias, out, side, side, channels), meta, out, reference, 4 * x.numel())


def box_overlaps(n: int, m: int) -> Problem:
    corners = [randn(count, 2, dtype=F32) for count in (n, m)]
    a, b = (torch.cat([corner, corner + randn(*corner.shape, dtype=F32).abs()], 1) for corner in corners)
    out = empty(n, m, dtype=F32)

    def reference() -> torch.Tensor:
        low = torch.maximum(a[:, None, :2], b[None, :, :2]).double()
        high = torch.minimum(a[:, None, 2:], b[None, :, 2:]).double()
        common = (high - low).clamp_min(0).prod(2)
        area_a, area_b = ((boxes[:, 2:] - boxes[:, :2]).double().prod(1) for boxes in (a, b))
        return common / (area_a[:, None] + area_b - common + 1e-7)

    meta, grid = {"BLOCK_N": 32, "BLOCK_M": 128}, (cdiv(n, 32), cdiv(m, 128))
    return Problem(grid, (a, b, out, n, m), meta, out, reference, 4 * n * m)


def splat_points(n: int, h: int, w: int) -> Problem:
    x, y = torch.rand(n, device="cpu") * w - 0.5, torch.rand(n, device="cpu") * h - 0.5
    value, out = randn(n, dtype=F32).abs(), empty(h, w, dtype=F32)
    x, y = x.to(value.device), y.to(value.device)

    def reference() -> torch.Tensor:
        result = torch.zeros(h * w, dtype=torch.float64, device=x.device)
        left, top = x.floor().long(), y.floor().long()
        for dr in range(2):
            for dc in range(2):
                r, c = top + dr, left + dc
                share = (1 - (y.double() - r).abs()) * (1 - (x.double() - c).abs()) * value.double()
                inside = (r >= 0) & (r < h) & (c >= 0) & (c < w)
                result.index_add_(0, (r * w + c)[inside], share[inside])
        return result.view(h, w)

    return Problem((cdiv(n, 512),), (x, y, value, out, n, h, w), {"BLOCK": 512}, out, reference, 28 * n, zeroed=True)


def largest_few(m: int, n: int, few: int) -> Problem:
    x = torch.stack([torch.randperm(n, device="cpu") for _ in range(min(m, 64))]).repeat(cdiv(m, 64), 1)[:m]
    x = x.to(randn(1).device, torch.float32)
    out, index = empty(m, few, dtype=F32), empty(m, few, dtype=torch.int32)
    reference = lambda: x.double().topk(few, 1).values
    meta = {"FEW": few, "BLOCK": power(n)}
    return Problem((m,), (x, out, index, n), meta, out, reference, 4 * m * n, 1e-9)


def sparse_weights(m: int, n: int) -> Problem:
    x, out = randn(m, n), empty(m, n)

    def reference() -> torch.Tensor:
        ordered = x.double().sort(1, descending=True).values
        ranks = torch.arange(1, n + 1, device=x.device)
        sums = ordered.cumsum(1) - 1
        count = (ordered * ranks > sums).sum(1, keepdim=True)
        return (x.double() - sums.gather(1, count - 1) / count).clamp_min(0)

    return Problem((m,), (x, out, n), {"STEPS": 20, "BLOCK": power(n)}, out, reference, 4 * m * n)


def nucleus(m: int, n: int) -> Problem:
    logits, out = randn(m, n) * 4, empty(m, n)

    def reference() -> torch.Tensor:
        p = torch.softmax(logits.double(), 1)
        ordered = p.sort(1, descending=True).values
        count = (ordered.cumsum(1) < 0.9).sum(1, keepdim=True)
        kept = torch.where(p >= ordered.gather(1, count), p, 0.0)
        return kept / kept.sum(1, keepdim=True)

    meta = {"STEPS": 24, "BLOCK": power(n), "num_warps": 16 if n > 4096 else 4}
    return Problem((m,), (logits, out, n, 0.9), meta, out, reference, 4 * m * n, 1e-2)


def assign_clusters(n: int, clusters: int, dim: int) -> Problem:
    x, centres = randn(n, dim), randn(clusters, dim)
    sums, counts = empty(clusters, dim, dtype=F32), empty(clusters, dtype=torch.int32)

    def reference() -> torch.Tensor:
        nearest = torch.cdist(x.double(), centres.double()).argmin(1)
        return torch.zeros(clusters, dim, dtype=torch.float64, device=x.device).index_add_(0, nearest, x.double())

    meta = {"CLUSTERS": clusters, "DIM": dim, "BLOCK": 128, "num_warps": 4}
    args = (x, centres, sums, counts, n)
    return Problem((cdiv(n, 128),), args, meta, sums, reference, 2 * n * dim, 1e-2, zeroed=True)


def pack_weights(m: int, k: int) -> Problem:
    x, q = randn(m, k, dtype=BF16), empty(m, k // 2, dtype=torch.uint8)
    scale = empty(m, k // 128, dtype=F32)

    def reference() -> torch.Tensor:
        groups = x.float().view(m, -1, 128)
        each = groups.abs().amax(2, keepdim=True).clamp_min(1e-8) / 7
        numbers = torch.floor(groups / each + 8.5).int().view(m, k // 2, 2)
        return (numbers[..., 0] | numbers[..., 1] << 4).double()

    meta = {"GROUP": 128, "GROUPS": 16 if k >= 2048 else 2}
    grid = (m, k // (128 * meta["GROUPS"]))
    return Problem(grid, (x, q, scale, k), meta, q, reference, 2.5 * m * k, 1e-2)


def gated_group_norm(m: int, n: int) -> Problem:
    x, gate, w, out = randn(m, n, dtype=BF16), randn(m, n, dtype=BF16), randn(n, dtype=F32), empty(m, n, dtype=BF16)
    group = n // 8

    def reference() -> torch.Tensor:
        y = (x.double() * F.silu(gate.double())).view(m, 8, group)
        y = y * (y.square().mean(2, keepdim=True) + 1e-5).rsqrt()
        return y.view(m, n) * w.double()

    meta = {"GROUP": group, "GROUPS": 8, "num_warps": 8 if n > 2048 else 4}
    return Problem((m,), (x, gate, w, out, n, 1e-5), meta, out, reference, 6 * m * n, 1e-2)


def quantile_loss(m: int, levels: int) -> Problem:
    x, target, out = randn(m, levels, dtype=F32), randn(m, levels, dtype=F32), empty(m, dtype=F32)
    taus = (torch.arange(levels, device=x.device) + 0.5) / levels

    def reference() -> torch.Tensor:
        error = target.double()[:, None, :] - x.double()[:, :, None]
        huber = torch.where(error.abs() <= 1, error.square() / 2, error.abs() - 0.5)
        weight = (taus.double()[None, :, None] - (error < 0).double()).abs()
        return (weight * huber).sum(2).mean(1)

    return Problem(
        (cdiv(m, 8),), (x, target, taus, out, m), {"LEVELS": levels, "BLOCK": 8}, out, reference, 8 * m * levels
    )


CASES: tuple[tuple[Callable[..., Problem], tuple[int, ...], tuple[int, ...]], ...] = (
    (normalize_image, (256, 512), (2, 37)),
    (bilateral, (4096, 4096), (37, 70)),
    (median, (8192, 8192), (37, 1100)),
    (wide_depthwise, (32, 56, 128), (1, 19, 64)),
    (box_overlaps, (8192, 8192), (70, 150)),
    (splat_points, (1 << 22, 1024, 1024), (1000, 40, 40)),
    (largest_few, (16384, 4000, 8), (5, 300, 8)),
    (sparse_weights, (8192, 4096), (5, 300)),
    (nucleus, (1024, 32000), (5, 300)),
    (assign_clusters, (1 << 20, 64, 128), (300, 64, 32)),
    (pack_weights, (8192, 8192), (5, 512)),
    (gated_group_norm, (16384, 4096), (5, 512)),
    (quantile_loss, (65536, 64), (37, 32)),
)
