"""The problems of `everyday.py` of many fields: what kernels of `everyday_fields.py` get, and what must come of it."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from everyday_cases import DEVICE, Problem, cdiv, empty, integers, randn
from everyday_layers_cases import BF16, F32

TFLOPS = "TFLOP/s"
WORD = 1 << 31  # above the largest int32


def uniform(*shape: int) -> torch.Tensor:
    """Numbers from 0 to 1."""
    return torch.rand(*shape, device=DEVICE[0])


def numbers(*order: int) -> torch.Tensor:
    """Some integers where the arrays are."""
    return torch.tensor(order, device=DEVICE[0])


def words(*shape: int) -> torch.Tensor:
    """Any bits."""
    return integers(WORD - 1, *shape, low=-WORD)


def product_tiles(m: int, depth: int = 128) -> dict[str, int]:
    """Tiles and options of a product with few rows, or with many."""
    few = {"BM": 16, "BN": 64, "BK": depth, "num_warps": 4, "num_stages": 4}
    return few if m <= 16 else {"BM": 128, "BN": 128, "BK": 64, "num_warps": 8, "num_stages": 3}


def product(m: int, n: int, meta: dict[str, int], args: tuple[object, ...], out: torch.Tensor,
            reference: Callable[[], torch.Tensor], work: float) -> Problem:  # fmt: skip
    """A launch of one program for each tile of a product."""
    grid = (cdiv(m, meta["BM"]), cdiv(n, meta["BN"]))
    return Problem(grid, args, meta, out, reference, work, 1e-2, unit=TFLOPS)


# ----------------------------------------------------------------------------------------------------- packed weights


def ternary_product(m: int, n: int, k: int) -> Problem:
    x, w, y = randn(m, k), integers(256, k // 4, n, dtype=torch.uint8), empty(m, n)
    shifts = numbers(0, 2, 4, 6)
    w = torch.where(((w[..., None] >> shifts) & 3).eq(3).any(-1), torch.full_like(w, 0b01100100), w)
    weights = lambda: (((w[:, None] >> shifts[:, None]) & 3).double() - 1).reshape(k, n)
    args = (x, w, y, m, n, k, 0.5)
    return product(m, n, product_tiles(m), args, y, lambda: x.double() @ weights() * 0.5, 2 * m * n * k)


def awq_product(m: int, n: int, k: int) -> Problem:
    x, w, y = randn(m, k), words(k, n // 8), empty(m, n)
    scales, zeros, shifts = randn(k // 128, n).abs() * 0.1, words(k // 128, n // 8), numbers(0, 4, 1, 5, 2, 6, 3, 7) * 4

    def reference() -> torch.Tensor:
        unpacked = ((w[..., None] >> shifts) & 15).reshape(k, n).double()
        offsets = ((zeros[..., None] >> shifts) & 15).reshape(-1, n).double().repeat_interleave(128, 0)
        return x.double() @ ((unpacked - offsets) * scales.double().repeat_interleave(128, 0))

    args = (x, w, scales, zeros, y, m, n, k)
    return product(m, n, product_tiles(m) | {"GROUP": 128}, args, y, reference, 2 * m * n * k)


def gptq_gidx(m: int, n: int, k: int) -> Problem:
    x, w, y = randn(m, k), words(k // 8, n), empty(m, n)
    scales, zeros, shifts = (
        randn(k // 128, n).abs() * 0.1,
        words(k // 128, n // 8),
        torch.arange(0, 32, 4, device=DEVICE[0]),
    )
    groups = (torch.arange(k, device=DEVICE[0]) // 128).to(torch.int32)

    def reference() -> torch.Tensor:
        unpacked = ((w[:, None] >> shifts[:, None]) & 15).reshape(k, n).double()
        offsets = ((zeros[..., None] >> shifts) & 15).reshape(-1, n).double() + 1
        return x.double() @ ((unpacked - offsets[groups.long()]) * scales.double()[groups.long()])

    args = (x, w, scales, zeros, groups, y, m, n, k)
    return product(m, n, product_tiles(m), args, y, reference, 2 * m * n * k)


def nf4_product(m: int, n: int, k: int) -> Problem:
    x, q, y = randn(m, k, dtype=BF16), integers(256, n, k // 2, dtype=torch.uint8), empty(m, n, dtype=BF16)
    code, largest = torch.linspace(-1, 1, 16, device=DEVICE[0]), uniform(n, k // 64)

    def reference() -> torch.Tensor:
        weights = torch.stack([code[(q >> 4).long()], code[(q & 15).long()]], -1).reshape(n, k).double()
        return x.double() @ (weights * largest.double().repeat_interleave(64, 1)).T

    args = (x, q, code, largest, y, m, n, k)
    return product(m, n, product_tiles(m, 64), args, y, reference, 2 * m * n * k)


def w8_groups(m: int, n: int, k: int) -> Problem:
    x, w, y = randn(m, k, dtype=BF16), integers(128, n, k, low=-128, dtype=torch.int8), empty(m, n, dtype=BF16)
    scales, meta = uniform(n, k // 128), product_tiles(m)
    meta = {key: value for key, value in meta.items() if key != "BK"} | {"GROUP": 128, "num_stages": 2}
    weights = lambda: w.double() * scales.double().repeat_interleave(128, 1)
    return product(m, n, meta, (x, w, scales, y, m, n, k), y, lambda: x.double() @ weights().T, 2 * m * n * k)


# ---------------------------------------------------------------------------------------------- attention, networks


def attended(scores: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """What scores in float64 take of values."""
    return scores.softmax(-1) @ v.double()


def kv8_decode(heads: int, group: int, keys: int, depth: int) -> Problem:
    q, out = randn(heads, group, depth), empty(heads, group, depth)
    k, v = (integers(128, heads, keys, depth, low=-127, dtype=torch.int8) for _ in range(2))
    k_scale, v_scale = uniform(heads, keys) / 100, uniform(heads, keys) / 100

    def reference() -> torch.Tensor:
        scores = q.double() @ (k.double() * k_scale.double()[..., None]).mT * 0.1
        return attended(scores, v.double() * v_scale.double()[..., None])

    args, meta = (q, k, k_scale, v, v_scale, out, keys, 0.1), {"G": group, "D": depth, "BLOCK_N": 64}
    return Problem((heads,), args, meta, out, reference, 2 * heads * keys * depth, 1e-2)


def t5_attention(heads: int, length: int, depth: int) -> Problem:
    q, k, v = (randn(heads, length, depth) for _ in range(3))
    q, out, table = q * 0.1, empty(heads, length, depth), randn(8, 2 * length, dtype=F32)
    places = torch.arange(length, device=DEVICE[0])
    differences = places[None, :] - places[:, None] + length

    def reference() -> torch.Tensor:
        scores = (q[h].double() @ k[h].double().T + table[h % 8].double()[differences] for h in range(heads))
        return torch.stack([attended(one, v[h]) for h, one in enumerate(scores)])

    meta = {"D": depth, "BM": 128, "BN": 64, "num_warps": 8}
    work = 4 * heads * length * length * depth
    return Problem((length // 128, heads), (q, k, v, table, out, length), meta, out, reference, work, 1e-2, unit=TFLOPS)


def diff_attention(heads: int, length: int, depth: int) -> Problem:
    q, other_q, k, other_k, v = (randn(heads, length, depth) for _ in range(5))
    q, other_q, out = q * 0.1, other_q * 0.1, empty(heads, length, depth)

    def reference() -> torch.Tensor:
        first, second = (
            (lambda h: q[h].double() @ k[h].double().T),
            (lambda h: other_q[h].double() @ other_k[h].double().T),
        )
        return torch.stack([attended(first(h), v[h]) - 0.3 * attended(second(h), v[h]) for h in range(heads)])

    args, meta = (q, other_q, k, other_k, v, out, length, 0.3), {"D": depth, "BM": 128, "BN": 64, "num_warps": 8}
    work = 8 * heads * length * length * depth
    return Problem((length // 128, heads), args, meta, out, reference, work, 1e-2, unit=TFLOPS)


def fused_mlp(m: int, depth: int, inner: int) -> Problem:
    x, up, down = (randn(*s, dtype=BF16) * 0.1 for s in ((m, depth), (depth, inner), (inner, depth)))
    y, meta = (
        empty(m, depth, dtype=BF16),
        {"D": depth, "F": inner, "BM": 128, "BF": 64, "num_warps": 8, "num_stages": 2},
    )
    reference = lambda: F.silu(x.double() @ up.double()) @ down.double()
    return Problem((cdiv(m, 128),), (x, up, down, y, m), meta, y, reference, 4 * m * depth * inner, 2e-2, unit=TFLOPS)


def rnn_steps(steps: int, batch: int, width: int, rows: int) -> Problem:
    x, w, out = randn(steps, batch, width), randn(width, width) * 0.05, empty(steps, batch, width)

    def reference() -> torch.Tensor:
        state, found = torch.zeros(batch, width, dtype=torch.float64, device=x.device), []
        for step in range(steps):
            state = torch.tanh(state @ w.double() + x[step].double()).half().double()
            found.append(state)
        return torch.stack(found)

    args, meta = (x, w, out, steps, batch), {"H": width, "BB": rows, "num_warps": 8}
    return Problem((batch // rows,), args, meta, out, reference, 2 * steps * batch * width**2, 2e-2, unit=TFLOPS)


def selective_scan(batch: int, length: int, width: int, states: int) -> Problem:
    x, dt = randn(batch, length, width), randn(batch, length, width)
    a, b, c, d = (
        -uniform(width, states) - 0.1,
        randn(batch, length, states),
        randn(batch, length, states),
        uniform(width),
    )
    y = empty(batch, length, width, dtype=F32)

    def reference() -> torch.Tensor:
        state, found = torch.zeros(batch, width, states, dtype=torch.float64, device=x.device), []
        steps = F.softplus(dt.double())
        for t in range(length):
            taken = (steps[:, t] * x[:, t].double())[..., None] * b[:, t, None].double()
            state = state * torch.exp(steps[:, t, :, None] * a.double()) + taken
            found.append((state * c[:, t, None].double()).sum(-1) + d.double() * x[:, t].double())
        return torch.stack(found, 1)

    args, meta = (x, dt, a, b, c, d, y, length, width), {"N": states, "BLOCK_D": 64}
    return Problem((width // 64, batch), args, meta, y, reference, 8 * batch * length * width)


# ----------------------------------------------------------------------------------- systems, graphs, stencils, numbers


def tridiagonal(n: int, batch: int) -> Problem:
    a, b, c, d = uniform(n, batch), uniform(n, batch) + 3, uniform(n, batch), randn(n, batch, dtype=F32)
    upper, x = empty(n, batch, dtype=F32), empty(n, batch, dtype=F32)

    def reference() -> torch.Tensor:
        below, middle, above = (F.pad(one.double()[rows], pad) for one, rows, pad in (
            (a, slice(1, None), (0, 0, 1, 0)), (b, slice(None), (0, 0, 0, 0)), (c, slice(None, -1), (0, 0, 0, 1))
        ))  # fmt: skip
        found = [torch.zeros_like(below[0])] * n
        factors, sums = [], []
        p = q = torch.zeros_like(below[0])
        for row in range(n):
            m = 1 / (middle[row] - below[row] * p)
            q, p = (d[row].double() - below[row] * q) * m, above[row] * m
            factors.append(p)
            sums.append(q)
        last = torch.zeros_like(p)
        for row in reversed(range(n)):
            last = sums[row] - factors[row] * last
            found[row] = last
        return torch.stack(found)

    a[0], c[-1] = 0, 0
    args = (a, b, c, d, upper, x, n, batch)
    return Problem((cdiv(batch, 128),), args, {"BLOCK": 128}, x, reference, 36 * n * batch)


def edge_softmax(nodes: int, degree: int, heads: int) -> Problem:
    counts = integers(2 * degree, nodes, low=1).long()
    starts = F.pad(counts.cumsum(0), (1, 0)).to(torch.int32)
    edges = int(starts[-1])
    scores, out = randn(edges, heads, dtype=F32), empty(edges, heads, dtype=F32)

    def reference() -> torch.Tensor:
        node = torch.repeat_interleave(torch.arange(nodes, device=counts.device), counts)
        each = scores.double().exp()
        sums = torch.zeros(nodes, heads, dtype=torch.float64, device=counts.device).index_add_(0, node, each)
        return each / sums[node]

    meta = {"H": heads, "BLOCK": 32, "num_warps": 1}
    return Problem((nodes,), (starts, scores, out), meta, out, reference, 12 * edges * heads)


def heat3d(nx: int, ny: int, nz: int) -> Problem:
    u, out = randn(nx, ny, nz, dtype=F32), empty(nx, ny, nz, dtype=F32)

    def reference() -> torch.Tensor:
        p, around = F.pad(u.double(), (1,) * 6), 0
        for axis in range(3):
            for shift in (1, -1):
                around = around + torch.roll(p, shift, axis)
        return u.double() + 0.1 * (around[1:-1, 1:-1, 1:-1] - 6 * u.double())

    grid = (cdiv(nz, 128), cdiv(ny, 8), nx)
    return Problem(grid, (u, out, nx, ny, nz, 0.1), {"BY": 8, "BZ": 128}, out, reference, 8 * nx * ny * nz)


def blur_columns(h: int, w: int, reach: int) -> Problem:
    x, weights, y = randn(h, w, dtype=F32), uniform(2 * reach + 1), empty(h, w, dtype=F32)
    reference = lambda: F.conv2d(x.double()[None, None], weights.double()[None, None, :, None], padding=(reach, 0))[
        0, 0
    ]
    meta = {"R": reach, "BH": 16, "BW": 128}
    return Problem((cdiv(w, 128), cdiv(h, 16)), (x, weights, y, h, w), meta, y, reference, 8 * h * w)


def im2col(channels: int, h: int, w: int, side: int) -> Problem:
    oh, ow = h - side + 1, w - side + 1
    x, y = randn(channels, h, w), empty(channels * side * side, oh * ow)
    args, grid = (x, y, channels, h, w, oh, ow), (cdiv(oh * ow, 1024), channels * side * side)
    work = 2 * (x.numel() + y.numel())
    return Problem(grid, args, {"KS": side, "BLOCK": 1024}, y, lambda: F.unfold(x.double()[None], side)[0], work)


def roi_align(regions: int, channels: int, h: int, w: int, side: int) -> Problem:
    x, y = randn(h, w, channels), empty(regions, side, side, channels)
    room = numbers(w, h) / 2
    first = uniform(regions, 2) * room
    regions_of = torch.cat([first, first + uniform(regions, 2) * (room - 2)], 1).contiguous()

    def reference() -> torch.Tensor:
        steps = (regions_of[:, 2:] - regions_of[:, :2]) / side
        middle = torch.arange(side, device=x.device) + 0.5
        fx, fy = (regions_of[:, axis : axis + 1] + middle * steps[:, axis : axis + 1] for axis in (0, 1))
        ix, iy = fx.long(), fy.long()
        at = lambda dy, dx: x.double()[(iy + dy)[:, :, None], (ix + dx)[:, None, :]]
        ax, ay = (fx - ix).double()[:, None, :, None], (fy - iy).double()[:, :, None, None]
        return (1 - ay) * ((1 - ax) * at(0, 0) + ax * at(0, 1)) + ay * ((1 - ax) * at(1, 0) + ax * at(1, 1))

    args, meta = (x, regions_of, y, channels, h, w), {"P": side, "BLOCK": 256}
    return Problem((regions, cdiv(channels, 256)), args, meta, y, reference, 10 * y.numel(), 1e-2)


def cholesky16(count: int, n: int) -> Problem:
    a, out = randn(count, n, n, dtype=F32), empty(count, n, n, dtype=F32)
    a = a @ a.mT + n * torch.eye(n, device=a.device)
    meta = {"N": n, "num_warps": 1}
    return Problem((count,), (a, out), meta, out, lambda: torch.linalg.cholesky(a.double()), 8 * count * n * n)


def hamming(m: int, n: int, length: int) -> Problem:
    a, b, out = words(m, length), words(n, length), empty(m, n, dtype=torch.int32)

    def reference() -> torch.Tensor:
        of = lambda codes: (
            ((codes[..., None] >> torch.arange(32, device=a.device)) & 1).reshape(len(codes), -1).double()
        )
        return of(a) @ (1 - of(b)).T + (1 - of(a)) @ of(b).T

    grid, meta = (cdiv(m, 64), cdiv(n, 64)), {"W": length, "BM": 64, "BN": 64}
    return Problem(grid, (a, b, out, m, n), meta, out, reference, 12 * m * n * length, unit="Top/s")


def lcg_monte_carlo(n: int, steps: int) -> Problem:
    seeds, out = integers(WORD - 1, n), empty(n, dtype=torch.int32)

    def reference() -> torch.Tensor:
        state, hits = seeds.long(), torch.zeros(n, dtype=torch.float64, device=seeds.device)
        for _ in range(steps):
            point = []
            for _ in range(2):
                state = (state * 1664525 + 1013904223) & 0xFFFFFFFF
                point.append((state >> 8).float() * 5.9604645e-08)
            hits += (point[0] * point[0] + point[1] * point[1] < 1).double()
        return hits

    return Problem(
        (cdiv(n, 256),), (seeds, out, steps, n), {"BLOCK": 256}, out, reference, 12 * n * steps, unit="Top/s"
    )


# A function that makes the problem, and the sizes to time and to check on the CPU.
CASES: tuple[tuple[Callable[..., Problem], tuple[int, ...], tuple[int, ...]], ...] = (
    (ternary_product, (4096, 4096, 4096), (130, 128, 128)),
    (awq_product, (16, 8192, 8192), (3, 64, 256)),
    (awq_product, (4096, 4096, 4096), (130, 128, 256)),
    (gptq_gidx, (16, 8192, 8192), (3, 64, 256)),
    (gptq_gidx, (4096, 4096, 4096), (130, 128, 256)),
    (nf4_product, (16, 8192, 8192), (3, 64, 256)),
    (nf4_product, (4096, 4096, 4096), (130, 128, 256)),
    (w8_groups, (16, 8192, 8192), (3, 64, 256)),
    (w8_groups, (4096, 4096, 4096), (130, 128, 256)),
    (kv8_decode, (264, 16, 4096, 128), (2, 16, 100, 64)),
    (t5_attention, (64, 2048, 64), (2, 256, 64)),
    (diff_attention, (64, 2048, 64), (2, 256, 64)),
    (fused_mlp, (16384, 128, 4096), (130, 64, 128)),
    (rnn_steps, (256, 4096, 128, 32), (4, 32, 64, 32)),
    (selective_scan, (8, 1024, 4096, 16), (1, 8, 64, 16)),
    (tridiagonal, (256, 65536), (7, 150)),
    (edge_softmax, (131072, 20, 8), (10, 20, 8)),
    (heat3d, (256, 512, 512), (4, 9, 130)),
    (blur_columns, (4096, 4096, 7), (20, 140, 3)),
    (im2col, (64, 256, 256, 3), (2, 10, 12, 3)),
    (roi_align, (1000, 256, 200, 304, 7), (3, 256, 20, 30, 3)),
    (cholesky16, (65536, 16), (3, 16)),
    (hamming, (8192, 8192, 16), (70, 70, 4)),
    (lcg_monte_carlo, (1 << 22, 256), (300, 5)),
)
