"""The problems of `everyday.py` for `everyday_steps.py`: what its kernels get, and what must come of it."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import torch
import torch.nn.functional as F
from everyday_cases import DEVICE, Problem, cdiv, empty, integers, power, randn
from everyday_layers_cases import BF16, F32

WORD = 1 << 31
TFLOPS = "TFLOP/s"


def zeros(*shape: int, dtype: torch.dtype = F32) -> torch.Tensor:
    """An array of zeros."""
    return torch.zeros(*shape, device=DEVICE[0], dtype=dtype)


# ---------------------------------------------------------------------------------------------- gradients, optimizers


def rms_norm_backward(m: int, n: int) -> Problem:
    x, w, dy, dx = randn(m, n, dtype=BF16), randn(n, dtype=BF16), randn(m, n, dtype=BF16), empty(m, n, dtype=BF16)
    programs = min(m, 264)
    dw = empty(programs, n, dtype=F32)

    def reference() -> torch.Tensor:
        x64 = x.double().requires_grad_()
        y = x64 * (x64.square().mean(1, keepdim=True) + 1e-6).rsqrt() * w.double()
        return torch.autograd.grad(y, x64, dy.double())[0]

    meta = {"BLOCK": power(n), "num_warps": 8}
    return Problem((programs,), (x, w, dy, dx, dw, m, n, 1e-6), meta, dx, reference, 6 * m * n, 1e-2)


def softmax_backward(m: int, n: int) -> Problem:
    y, dy, dx = torch.softmax(randn(m, n, dtype=F32), 1).half(), randn(m, n), empty(m, n)
    reference = lambda: y.double() * (dy.double() - (y.double() * dy.double()).sum(1, keepdim=True))
    return Problem((m,), (y, dy, dx, n), {"BLOCK": power(n), "num_warps": 8}, dx, reference, 6 * m * n, 1e-2)


def swiglu_packed_backward(m: int, n: int) -> Problem:
    x, dy, dx = randn(m, 2 * n, dtype=BF16), randn(m, n, dtype=BF16), empty(m, 2 * n, dtype=BF16)

    def reference() -> torch.Tensor:
        x64 = x.double().requires_grad_()
        y = F.silu(x64[:, :n]) * x64[:, n:]
        return torch.autograd.grad(y, x64, dy.double())[0]

    return Problem((m, cdiv(n, 1024)), (x, dy, dx, n), {"BLOCK": 1024}, dx, reference, 10 * m * n, 1e-2)


def lion_step(n: int) -> Problem:
    p, g, m, out = (randn(n, dtype=F32) for _ in range(4))
    args = (p, g, m, out, n, 1e-3, 0.9, 0.99, 0.1)
    reference = lambda: p.double() * (1 - 1e-3 * 0.1) - 1e-3 * torch.sign(m.double() * 0.9 + g.double() * 0.1)
    return Problem((cdiv(n, 1024),), args, {"BLOCK": 1024}, out, reference, 20 * n)


def stochastic_round(n: int) -> Problem:
    x, y = randn(n, dtype=F32), empty(n, dtype=BF16)

    def reference() -> torch.Tensor:
        h = (torch.arange(n, device=x.device) ^ 1234567) & 0xFFFFFFFF
        h = ((h ^ (h >> 16)) * 0x7FEB352D) & 0xFFFFFFFF
        h = ((h ^ (h >> 15)) * (0x846CA68B - (1 << 32))) & 0xFFFFFFFF
        h = h ^ (h >> 16)
        bits = ((x.view(torch.int32).long() & 0xFFFFFFFF) + (h & 0xFFFF)) & 0xFFFF0000
        return torch.where(bits >= WORD, bits - 2 * WORD, bits).int().view(F32)

    return Problem((cdiv(n, 1024),), (x, y, n, 1234567), {"BLOCK": 1024}, y, reference, 6 * n, 1e-6)


def contrastive(n: int, d: int) -> Problem:
    a, b, lse = randn(n, d), randn(n, d), empty(n, dtype=F32)
    reference = lambda: torch.logsumexp(a.double() @ b.double().T * (d**-0.5), 1)
    args, meta = (a, b, lse, n, d, d**-0.5), {"BM": 128, "BN": 64, "num_warps": 8, "num_stages": 3}
    return Problem((cdiv(n, 128),), args, meta, lse, reference, 2 * n * n * d, unit=TFLOPS)


def newton_schulz(m: int, n: int) -> Problem:
    x = randn(m, n, dtype=BF16) * (m + n) ** -0.5
    a, out = (x @ x.T).contiguous(), empty(m, m, dtype=BF16)
    reference = lambda: -4.775 * a.double() + 2.0315 * a.double() @ a.double()
    meta = {"BM": 128, "BN": 128, "BK": 64, "num_warps": 8, "num_stages": 3}
    args = (x, a, out, m, n, -4.775, 2.0315)
    return Problem((m // 128, m // 128), args, meta, out, reference, 2 * m**3, 2e-2, unit=TFLOPS)


# ------------------------------------------------------------------------------------------------------- physics


def lattice_boltzmann(h: int, w: int) -> Problem:
    f, g, omega = torch.rand(9, h, w, device=DEVICE[0]) * 0.1 + 0.1, empty(9, h, w, dtype=F32), 1.2
    moves = ((0, 0), (0, 1), (1, 0), (0, -1), (-1, 0), (1, 1), (1, -1), (-1, -1), (-1, 1))

    def reference() -> torch.Tensor:
        here = torch.stack([torch.roll(f[i].double(), move, (0, 1)) for i, move in enumerate(moves)])
        rho = here.sum(0)
        ux = sum(here[i] * move[1] for i, move in enumerate(moves)) / rho
        uy = sum(here[i] * move[0] for i, move in enumerate(moves)) / rho
        mixed = []
        for i, (dy, dx) in enumerate(moves):
            along = dx * ux + dy * uy
            weight = (4 / 9, 1 / 9, 1 / 36)[abs(dx) + abs(dy)]
            rest = weight * rho * (1 + 3 * along + 4.5 * along**2 - 1.5 * (ux**2 + uy**2))
            mixed.append(here[i] + omega * (rest - here[i]))
        return torch.stack(mixed)

    return Problem((h, cdiv(w, 256)), (f, g, h, w, omega), {"BLOCK": 256}, g, reference, 72 * h * w)


def wave_step(h: int, w: int) -> Problem:
    u, before, out = randn(h, w, dtype=F32), randn(h, w, dtype=F32), empty(h, w, dtype=F32)

    def reference() -> torch.Tensor:
        x, old = u.double(), before.double()
        result = zeros(h, w, dtype=torch.float64)
        near = x[2:-2, 1:-3] + x[2:-2, 3:-1] + x[1:-3, 2:-2] + x[3:-1, 2:-2]
        far = x[2:-2, :-4] + x[2:-2, 4:] + x[:-4, 2:-2] + x[4:, 2:-2]
        middle = x[2:-2, 2:-2]
        result[2:-2, 2:-2] = 2 * middle - old[2:-2, 2:-2] + 0.25 * (near * 4 / 3 - far / 12 - 5 * middle)
        return result

    grid, meta = (cdiv(h, 8), cdiv(w, 128)), {"BY": 8, "BX": 128}
    return Problem(grid, (u, before, out, h, w, 0.25), meta, out, reference, 12 * h * w)


def red_black(h: int, w: int) -> Problem:
    u, f, out = randn(h, w, dtype=F32), randn(h, w, dtype=F32), empty(h - 2, w // 2 - 1, dtype=F32)

    def reference() -> torch.Tensor:
        x = u.double()
        total = torch.roll(x, 1, 0) + torch.roll(x, -1, 0) + torch.roll(x, 1, 1) + torch.roll(x, -1, 1)
        inner = (0.25 * (total - f.double()))[1:-1, 1:-1].reshape(h - 2, w // 2 - 1, 2)
        odd = torch.arange(h - 2, device=u.device)[:, None] % 2 == 1
        return torch.where(odd, inner[:, :, 1], inner[:, :, 0])

    return Problem((h - 2, cdiv(w // 2, 256)), (u, f, out, h, w, 1), {"BLOCK": 256}, out, reference, 14 * h * w)


def black_scholes(n: int) -> Problem:
    s, k, t = (torch.rand(n, device=DEVICE[0]) * 0.5 + low for low in (0.8, 0.8, 0.5))
    call, put = empty(n, dtype=F32), empty(n, dtype=F32)

    def reference() -> torch.Tensor:
        s64, k64, t64 = s.double(), k.double(), t.double()
        d1 = (torch.log(s64 / k64) + (0.02 + 0.5 * 0.09) * t64) / (0.3 * t64.sqrt())
        d2 = d1 - 0.3 * t64.sqrt()
        return s64 * torch.special.ndtr(d1) - k64 * torch.exp(-0.02 * t64) * torch.special.ndtr(d2)

    return Problem((cdiv(n, 1024),), (s, k, t, call, put, n, 0.02, 0.3), {"BLOCK": 1024}, call, reference, 20 * n)


# -------------------------------------------------------------------------------------------- ragged batches, hashes


def ragged(batch: int, longest: int) -> torch.Tensor:
    """Where sequences of random lengths start, and the end of the last."""
    lengths = integers(longest + 1, batch, low=longest // 4)
    return F.pad(lengths.cumsum(0), (1, 0)).int()


def jagged_to_padded(batch: int, longest: int, d: int) -> Problem:
    starts = ragged(batch, longest)
    ends = starts.tolist()
    values, out = randn(ends[-1], d), empty(batch, longest, d)

    def reference() -> torch.Tensor:
        parts = [values[a:b].double() for a, b in itertools.pairwise(ends)]
        return torch.stack([F.pad(part, (0, 0, 0, longest - len(part))) for part in parts])

    grid = (batch, cdiv(longest, 32))
    work = 2 * (values.numel() + out.numel())
    return Problem(grid, (values, starts, out, longest), {"D": d, "BL": 32}, out, reference, work)


def jagged_softmax(batch: int, longest: int, d: int) -> Problem:
    starts = ragged(batch, longest)
    ends = starts.tolist()
    x, out = randn(ends[-1], d, dtype=F32), empty(ends[-1], d, dtype=F32)
    reference = lambda: torch.cat([torch.softmax(x[a:b].double(), 0) for a, b in itertools.pairwise(ends)])
    return Problem((batch,), (x, starts, out), {"D": d, "BL": 32}, out, reference, 12 * x.numel())


def index_add_rows(n: int, d: int, rows: int) -> Problem:
    x, index, out = randn(n, d, dtype=F32), integers(rows, n), zeros(rows, d)

    def reference() -> torch.Tensor:
        return zeros(rows, d, dtype=torch.float64).index_add_(0, index.long(), x.double())

    args = (x, index, out, n, d, 16)
    return Problem((cdiv(n, 16),), args, {}, out, reference, 12 * n * d, zeroed=True)


# ------------------------------------------------------------------------------------------------------ images


def yuv_of_rgb(h: int, w: int) -> Problem:
    rgb = integers(256, h * w, 3, dtype=torch.uint8)
    planes = empty(3, h * w, dtype=torch.uint8)

    def reference() -> torch.Tensor:
        r, g, b = rgb.long().unbind(1)
        y = ((66 * r + 129 * g + 25 * b + 128) >> 8) + 16
        u = ((-38 * r - 74 * g + 112 * b + 128) >> 8) + 128
        v = ((112 * r - 94 * g - 18 * b + 128) >> 8) + 128
        return torch.stack([y, u, v])

    args = (rgb, planes[0], planes[1], planes[2], h * w)
    return Problem((cdiv(h * w, 1024),), args, {"BLOCK": 1024}, planes, reference, 6 * h * w, 1e-9)


def dilate(h: int, w: int) -> Problem:
    x, out = integers(256, h, w, dtype=torch.uint8), empty(h, w, dtype=torch.uint8)
    reference = lambda: F.max_pool2d(x.double()[None, None], 3, 1, 1)[0, 0]
    return Problem((cdiv(h, 8), cdiv(w, 256)), (x, out, h, w), {"BY": 8, "BX": 256}, out, reference, 2 * h * w, 1e-9)


def warp_affine(h: int, w: int) -> Problem:
    x, out = randn(h, w, dtype=F32), empty(h, w, dtype=F32)
    turn = (0.9659258, -0.2588190, 0.1 * w, 0.2588190, 0.9659258, -0.1 * h)

    def reference() -> torch.Tensor:
        a, b, c, d, e, f = turn
        ys, xs = torch.meshgrid(torch.arange(h), torch.arange(w), indexing="ij")
        ys, xs = ys.double().to(x.device), xs.double().to(x.device)
        sx, sy = a * xs + b * ys + c, d * xs + e * ys + f
        grid = torch.stack([(2 * sx + 1) / w - 1, (2 * sy + 1) / h - 1], -1)[None]
        return F.grid_sample(x.double()[None, None], grid, align_corners=False)[0, 0]

    grid, meta = (cdiv(h, 16), cdiv(w, 64)), {"BY": 16, "BX": 64}
    return Problem(grid, (x, out, h, w, *turn), meta, out, reference, 8 * h * w)


def pixel_shuffle(images: int, c: int, h: int, w: int) -> Problem:
    x, out = randn(images, c * 4, h, w), empty(images, c, 2 * h, 2 * w)
    grid, args = (images * c * h * 2, cdiv(2 * w, 512)), (x, out, c, h, w)
    return Problem(grid, args, {"R": 2, "BLOCK": 512}, out, lambda: F.pixel_shuffle(x.double(), 2), 4 * x.numel())


def scale_residual(images: int, c: int, hw: int) -> Problem:
    x, y, gamma, out = randn(images, c, hw), randn(images, c, hw), randn(c), empty(images, c, hw)
    reference = lambda: x.double() + gamma.double()[:, None] * F.gelu(y.double())
    grid, args = (images * c, cdiv(hw, 1024)), (x, y, gamma, out, c, hw)
    return Problem(grid, args, {"BLOCK": 1024}, out, reference, 6 * x.numel())


def conv_transpose(images: int, h: int, w: int, ci: int, co: int) -> Problem:
    x, weights = randn(images, h, w, ci), randn(2, 2, ci, co) * ci**-0.5
    out = empty(images, 2 * h, 2 * w, co)

    def reference() -> torch.Tensor:
        y = F.conv_transpose2d(x.double().permute(0, 3, 1, 2), weights.double().permute(2, 3, 0, 1), stride=2)
        return y.permute(0, 2, 3, 1)

    grid, meta = (images * h, cdiv(w, 128)), {"CI": ci, "CO": co, "BX": 128, "num_warps": 8}
    return Problem(grid, (x, weights, out, h, w), meta, out, reference, 8 * images * h * w * ci * co, unit=TFLOPS)


# -------------------------------------------------------------------------------------------------- models, algebra


def pack_fp4(n: int) -> Problem:
    x, out = randn(n, 32, dtype=BF16), empty(n, 16, dtype=torch.uint8)
    scales = empty(n, dtype=torch.uint8)

    def reference() -> torch.Tensor:
        exponent = torch.floor(torch.log2(x.float().abs().amax(1))).int() + 127 - 2
        y = x.double() * torch.exp2(127.0 - exponent.double())[:, None]
        ties = torch.tensor([0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5.0], dtype=torch.float64, device=x.device)
        low, high = torch.searchsorted(ties, y.abs()), torch.searchsorted(ties, y.abs(), right=True)
        code = torch.where(low % 2 == 0, low, high) + 8 * (y < 0)
        return code[:, 0::2] | code[:, 1::2] << 4

    return Problem((cdiv(n, 64),), (x, out, scales, n), {"GROUP": 32, "BG": 64}, out, reference, 81 * n, 1e-9)


def gru_cell(m: int, d: int) -> Problem:
    gx, gh, h, out = randn(m, 3 * d), randn(m, 3 * d), randn(m, d), empty(m, d)

    def reference() -> torch.Tensor:
        (xr, xz, xn), (hr, hz, hn) = gx.double().chunk(3, 1), gh.double().chunk(3, 1)
        r, z = torch.sigmoid(xr + hr), torch.sigmoid(xz + hz)
        n = torch.tanh(xn + r * hn)
        return n + z * (h.double() - n)

    return Problem((m, cdiv(d, 1024)), (gx, gh, h, out, d), {"BLOCK": 1024}, out, reference, 16 * m * d)


def triangular_solve(count: int, n: int, k: int) -> Problem:
    lower = torch.tril(randn(count, n, n, dtype=F32) * 0.1) + torch.eye(n, device=DEVICE[0])
    b, x = randn(count, n, k, dtype=F32), empty(count, n, k, dtype=F32)
    reference = lambda: torch.linalg.solve_triangular(lower.double(), b.double(), upper=False)
    meta = {"N": n, "K": k, "num_warps": 1}
    return Problem((count,), (lower, b, x), meta, x, reference, 4 * count * (n * n + 2 * n * k))


def grouped_decode(pairs: int, g: int, length: int, d: int) -> Problem:
    q, k, v = randn(pairs, g, d), randn(pairs, length, d), randn(pairs, length, d)
    out = empty(pairs, g, d)

    def reference() -> torch.Tensor:
        weights = torch.softmax(q.double() @ k.double().mT * d**-0.5, 2)
        return weights @ v.double()

    args, meta = (q, k, v, out, length, g, d, d**-0.5), {"BL": 32}
    return Problem((pairs,), args, meta, out, reference, 4 * pairs * length * d)


def rotary_heads(batch: int, s: int, heads: int, d: int) -> Problem:
    q, out = randn(batch, s, heads, d, dtype=BF16), empty(batch, s, heads, d, dtype=BF16)
    angle = torch.arange(s, device=q.device)[:, None] * 10000 ** (-torch.arange(0, d, 2, device=q.device) / d)
    cos, sin = angle.cos(), angle.sin()

    def reference() -> torch.Tensor:
        x0, x1 = q.double().chunk(2, 3)
        c, n = cos.double()[:, None], sin.double()[:, None]
        return torch.cat([x0 * c - x1 * n, x1 * c + x0 * n], 3)

    meta = {"HEADS": heads, "D": d, "BS": 16}
    return Problem((cdiv(s, 16), batch), (q, cos, sin, out, s), meta, out, reference, 4 * q.numel(), 1e-2)


def power_iteration(count: int, n: int, steps: int) -> Problem:
    a = randn(count, n, n, dtype=F32)
    a, x, out = a @ a.mT, randn(count, n, dtype=F32), empty(count, n, dtype=F32)

    def reference() -> torch.Tensor:
        y = x.double()
        for _ in range(steps):
            y = F.normalize((a.double() @ y[..., None])[..., 0], dim=1)
        return y

    return Problem((count,), (a, x, out, n, steps), {}, out, reference, 2 * count * steps * n * n, unit=TFLOPS)


# A function that makes the problem, and the sizes to time and to check on the CPU.
CASES: tuple[tuple[Callable[..., Problem], tuple[int, ...], tuple[int, ...]], ...] = (
    (rms_norm_backward, (16384, 4096), (9, 200)),
    (softmax_backward, (16384, 4096), (3, 200)),
    (swiglu_packed_backward, (8192, 11008), (3, 200)),
    (lion_step, (1 << 26,), (3000,)),
    (stochastic_round, (1 << 27,), (3000,)),
    (contrastive, (16384, 128), (200, 64)),
    (newton_schulz, (4096, 4096), (128, 64)),
    (lattice_boltzmann, (4096, 4096), (5, 300)),
    (wave_step, (8192, 8192), (20, 150)),
    (red_black, (8192, 8192), (10, 40)),
    (black_scholes, (1 << 26,), (3000,)),
    (jagged_to_padded, (512, 1024, 256), (3, 40, 32)),
    (jagged_softmax, (1024, 1024, 128), (3, 70, 32)),
    (index_add_rows, (1 << 19, 128, 1 << 16), (40, 32, 7)),
    (yuv_of_rgb, (8192, 8192), (20, 70)),
    (dilate, (8192, 8192), (20, 300)),
    (warp_affine, (8192, 8192), (30, 70)),
    (pixel_shuffle, (16, 64, 256, 256), (2, 3, 5, 20)),
    (scale_residual, (32, 768, 3136), (2, 3, 1100)),
    (conv_transpose, (16, 128, 128, 128, 64), (1, 3, 20, 32, 32)),
    (pack_fp4, (1 << 21,), (100,)),
    (gru_cell, (16384, 1024), (3, 300)),
    (triangular_solve, (16384, 32, 32), (2, 16, 16)),
    (grouped_decode, (256, 4, 4096, 128), (2, 4, 70, 32)),
    (rotary_heads, (8, 2048, 32, 128), (2, 20, 2, 32)),
    (power_iteration, (8192, 128, 10), (2, 32, 3)),
)
