"""The problems of `everyday.py` for `everyday_signals.py`: what its kernels get, and what must come of it."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from everyday_cases import DEVICE, Problem, cdiv, empty, integers, randn
from everyday_layers_cases import BF16, F32
from everyday_steps_cases import TFLOPS, WORD, zeros
from everyday_tasks_cases import uniform


def row_hash(n: int, words: int) -> Problem:
    x, out = integers(WORD - 1, n, words), empty(n, dtype=torch.int32)

    def reference() -> torch.Tensor:
        low = 0xFFFFFFFF
        h = torch.full((n,), 0x811C9DC5, dtype=torch.int64, device=x.device)
        for i in range(words):
            h = h ^ ((x[:, i].long() * (0xCC9E2D51 - (1 << 32))) & low)
            h = ((h << 13) | (h >> 19)) & low
            h = (h * 5 + 0xE6546B64) & low
        h = ((h ^ (h >> 16)) * (0x85EBCA6B - (1 << 32))) & low
        h = h ^ (h >> 13)
        return torch.where(h >= WORD, h - 2 * WORD, h)

    return Problem((cdiv(n, 256),), (x, out, n), {"W": words, "BLOCK": 256}, out, reference, 4 * n * words, 1e-9)


def edit_distance(n: int, length: int) -> Problem:
    a = integers(4, length, n, dtype=torch.int8)
    b = torch.where(torch.rand(length, n, device=DEVICE[0]) < 0.7, a, integers(4, length, n, dtype=torch.int8))
    out = empty(n, length + 1, dtype=torch.int32)

    def reference() -> torch.Tensor:
        row = torch.arange(length + 1, device=a.device).expand(n, -1).clone()
        for i in range(length):
            new = [torch.full((n,), i + 1, device=a.device)]
            for j in range(length):
                cost = (a[i] != b[j]).long()
                new.append(torch.minimum(torch.minimum(row[:, j + 1], new[-1]) + 1, row[:, j] + cost))
            row = torch.stack(new, 1)
        return row

    args = (a, b, out, n, length, 128)
    return Problem((cdiv(n, 128),), args, {}, out, reference, 8 * n * length * length, 1e-9, unit="Top/s")


def ctc_forward(batch: int, steps: int, letters: int, places: int) -> Problem:
    logp = torch.log_softmax(randn(batch, steps, letters, dtype=F32), 2)
    labels = integers(letters, batch, places // 2, low=1)
    out = empty(batch, places + 2, dtype=F32)

    def reference() -> torch.Tensor:
        label = F.pad(labels.long()[:, :, None], (1, 0)).reshape(batch, places)
        skips = F.pad((label[:, 2:] != label[:, :-2]) & (label[:, 2:] > 0), (2, 0))
        at = lambda t: logp[:, t].double().gather(1, label)
        alpha = torch.where(torch.arange(places, device=logp.device) < 2, at(0), -1e30)
        for t in range(1, steps):
            one = F.pad(alpha[:, :-1], (1, 0), value=-1e30)
            two = torch.where(skips, F.pad(alpha[:, :-2], (2, 0), value=-1e30), -1e30)
            alpha = torch.logsumexp(torch.stack([alpha, one, two]), 0) + at(t)
        return alpha

    args = (logp, labels, out, steps, letters, places, places // 2)
    return Problem((batch,), args, {}, out[:, 2:], reference, 4 * batch * steps * places)


def fir_bank(t: int, filters: int, taps: int) -> Problem:
    x, w, out = randn(t, dtype=F32), randn(filters, taps, dtype=F32), empty(filters, t, dtype=F32)
    reference = lambda: F.conv1d(F.pad(x.double(), (taps - 1, 0))[None, None], w.double().flip(1)[:, None])[0]
    grid, meta = (cdiv(t, 256), filters // 8), {"TAPS": taps, "BT": 256, "BF": 8}
    return Problem(grid, (x, w, out, t), meta, out, reference, 2 * t * filters * taps, unit=TFLOPS)


def ema_scan(batch: int, t: int, c: int) -> Problem:
    x, a, out = randn(batch, t, c), uniform(c), empty(batch, t, c)

    def reference() -> torch.Tensor:
        state, rows = zeros(batch, c, dtype=torch.float64), []
        for i in range(t):
            state = a.double() * state + (1 - a.double()) * x[:, i].double()
            rows.append(state)
        return torch.stack(rows, 1)

    grid, meta = (cdiv(c, 128), batch), {"BC": 128, "num_warps": 4}
    return Problem(grid, (x, a, out, t, c), meta, out, reference, 4 * x.numel(), 1e-2)


def glu_conv_tail(batch: int, t: int, c: int, k: int) -> Problem:
    x, w, b, out = randn(batch, t, 2 * c), randn(k, c, dtype=F32) * k**-0.5, randn(c, dtype=F32), empty(batch, t, c)

    def reference() -> torch.Tensor:
        y = (x[..., :c].double() * torch.sigmoid(x[..., c:].double())).mT
        return F.silu(F.conv1d(y, w.double().T[:, None], b.double(), padding=k // 2, groups=c)).mT

    grid, meta = (cdiv(t, 32), c // 64, batch), {"K": k, "BT": 32, "BC": 64}
    return Problem(grid, (x, w, b, out, t, c), meta, out, reference, 6 * batch * t * c, 1e-2)


def spectrogram_power(frames: int, bins: int, mels: int) -> Problem:
    re, im, mel = randn(frames, bins, dtype=BF16), randn(frames, bins, dtype=BF16), uniform(bins, mels).to(BF16)
    out = empty(frames, mels, dtype=F32)
    reference = lambda: torch.log((re.double() ** 2 + im.double() ** 2) @ mel.double())
    args, meta = (re, im, mel, out, frames, bins), {"MELS": mels, "BF": 64, "BB": 64}
    return Problem((cdiv(frames, 64),), args, meta, out, reference, 4 * re.numel())


def find_runs(n: int) -> Problem:
    x, out = integers(2, n), empty(n, dtype=torch.int32)

    def reference() -> torch.Tensor:
        length, going = torch.zeros(n, device=x.device), torch.ones(n, dtype=torch.bool, device=x.device)
        for step in range(1, 33):
            length += going
            going = going & (F.pad(x, (0, step), value=-1)[step:] == x)
        return length

    return Problem((cdiv(n, 1024),), (x, out, n), {"BLOCK": 1024}, out, reference, 8 * n, 1e-9)


# A function that makes the problem, and the sizes to time and to check on the CPU.
CASES: tuple[tuple[Callable[..., Problem], tuple[int, ...], tuple[int, ...]], ...] = (
    (row_hash, (1 << 22, 16), (300, 4)),
    (edit_distance, (1 << 17, 24), (150, 4)),
    (ctc_forward, (256, 512, 64, 256), (2, 6, 10, 16)),
    (fir_bank, (1 << 20, 32, 32), (600, 8, 5)),
    (find_runs, (1 << 24,), (1500,)),
    (spectrogram_power, (1 << 17, 513, 128), (70, 100, 64)),
    (glu_conv_tail, (16, 4096, 512, 7), (2, 40, 64, 3)),
    (ema_scan, (64, 2048, 1024), (2, 20, 200)),
)
