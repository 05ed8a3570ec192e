"""Kernels of signals and sequences: filters, spectra, sums and edits along time, runs, hashes of rows.

`everyday.py` times them.
"""

import tilewright as triton
import tilewright.language as tl


@triton.jit
def row_hash(x_ptr, out_ptr, n_rows, W: tl.constexpr, BLOCK: tl.constexpr):
    """FNV-like with rotations, one row of words for each place in the tile."""
    rows = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = rows < n_rows
    h = tl.full((BLOCK,), 0x811C9DC5, tl.uint32)
    for i in range(W):
        word = tl.load(x_ptr + rows * W + i, mask=mask, other=0).to(tl.uint32)
        h = h ^ (word * 0xCC9E2D51)
        h = (h << 13) | (h >> 19)
        h = h * 5 + 0xE6546B64
    h = (h ^ (h >> 16)) * 0x85EBCA6B
    tl.store(out_ptr + rows, (h ^ (h >> 13)).to(tl.int32, bitcast=True), mask=mask)


@triton.jit
def edit_distance(a_ptr, b_ptr, out_ptr, n, L: tl.constexpr, BLOCK: tl.constexpr):
    """Two strings of L letters for each place in the tile, row by row of the table; rows lie in global memory."""
    pair = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = pair < n
    row = out_ptr + pair * (L + 1)
    for j in range(L + 1):
        tl.store(row + j, tl.zeros((BLOCK,), tl.int32) + j, mask=mask)
    for i in range(1, L + 1):
        letter = tl.load(a_ptr + (i - 1) * n + pair, mask=mask, other=0)
        corner = tl.load(row, mask=mask, other=0)
        left = tl.zeros((BLOCK,), tl.int32) + i
        tl.store(row, left, mask=mask)
        for j in range(1, L + 1):
            above = tl.load(row + j, mask=mask, other=0)
            other = tl.load(b_ptr + (j - 1) * n + pair, mask=mask, other=0)
            cost = tl.minimum(tl.minimum(above, left) + 1, corner + (letter != other).to(tl.int32))
            tl.store(row + j, cost, mask=mask)
            corner, left = above, cost


@triton.jit
def ctc_forward(logp_ptr, labels_ptr, out_ptr, T, V, S: tl.constexpr, L):
    """The sums along time of CTC, places of the label beside each other in a tile; neighbours by a row in memory."""
    b = tl.program_id(0)
    s = tl.arange(0, S)
    label = tl.load(labels_ptr + b * L + s // 2, mask=(s % 2 == 1) & (s < 2 * L), other=0)
    before = tl.load(labels_ptr + b * L + s // 2 - 1, mask=(s % 2 == 1) & (s >= 3) & (s < 2 * L), other=0)
    skips = (s % 2 == 1) & (s >= 3) & (label != before)
    row = out_ptr + b * (S + 2) + 2
    first = tl.load(logp_ptr + b * T * V + label)
    alpha = tl.where(s < 2, first, -1e30)
    for t in range(1, T):
        tl.store(row + s, alpha)
        tl.debug_barrier()
        one = tl.load(row + s - 1, mask=s >= 1, other=-1e30)
        two = tl.load(row + s - 2, mask=skips, other=-1e30)
        tl.debug_barrier()
        top = tl.maximum(alpha, tl.maximum(one, two))
        total = tl.exp(alpha - top) + tl.exp(one - top) + tl.exp(two - top)
        alpha = top + tl.log(total) + tl.load(logp_ptr + (b * T + t) * V + label)
    tl.store(row + s, alpha)


@triton.jit
def fir_bank(x_ptr, taps_ptr, out_ptr, T, TAPS: tl.constexpr, BT: tl.constexpr, BF: tl.constexpr):
    """Several filters over one signal."""
    f = tl.program_id(1) * BF + tl.arange(0, BF)
    t = tl.program_id(0) * BT + tl.arange(0, BT)
    acc = tl.zeros((BF, BT), tl.float32)
    for i in range(TAPS):
        w = tl.load(taps_ptr + f * TAPS + i)
        x = tl.load(x_ptr + t - i, mask=(t >= i) & (t < T), other=0.0)
        acc += w[:, None] * x[None, :]
    tl.store(out_ptr + f[:, None] * T + t[None, :], acc, mask=t[None, :] < T)


@triton.jit
def ema_scan(x_ptr, a_ptr, out_ptr, T, C, BC: tl.constexpr):
    """A moving average along time for each channel, with a factor of its own."""
    c = tl.program_id(0) * BC + tl.arange(0, BC)
    batch = tl.program_id(1)
    mask = c < C
    a = tl.load(a_ptr + c, mask=mask, other=0.0)
    state = tl.zeros((BC,), tl.float32)
    for t in range(T):
        x = tl.load(x_ptr + (batch * T + t) * C + c, mask=mask, other=0.0).to(tl.float32)
        state = a * state + (1 - a) * x
        tl.store(out_ptr + (batch * T + t) * C + c, state.to(tl.float16), mask=mask)


@triton.jit
def glu_conv_tail(x_ptr, w_ptr, b_ptr, out_ptr, T, C, K: tl.constexpr, BT: tl.constexpr, BC: tl.constexpr):
    """A gated unit, then a filter along time for each channel: what a conformer's block does; channels last."""
    t = tl.program_id(0) * BT + tl.arange(0, BT)
    c = tl.program_id(1) * BC + tl.arange(0, BC)
    batch = tl.program_id(2)
    acc = tl.zeros((BT, BC), tl.float32) + tl.load(b_ptr + c)[None, :]
    for k in tl.static_range(K):
        tt = t + k - K // 2
        inside = (tt[:, None] >= 0) & (tt[:, None] < T)
        at = x_ptr + (batch * T + tt[:, None]) * 2 * C + c[None, :]
        value = tl.load(at, mask=inside, other=0.0).to(tl.float32)
        gate = tl.load(at + C, mask=inside, other=0.0).to(tl.float32)
        acc += value * tl.sigmoid(gate) * tl.load(w_ptr + k * C + c)[None, :]
    at = out_ptr + (batch * T + t[:, None]) * C + c[None, :]
    tl.store(at, (acc * tl.sigmoid(acc)).to(tl.float16), mask=t[:, None] < T)


@triton.jit
def spectrogram_power(re_ptr, im_ptr, mel_ptr, out_ptr, frames, bins, MELS: tl.constexpr, BF: tl.constexpr,
                      BB: tl.constexpr):  # fmt: skip
    """The logarithm of mel bands of a spectrum's power."""
    rf = tl.program_id(0) * BF + tl.arange(0, BF)
    rm = tl.arange(0, MELS)
    acc = tl.zeros((BF, MELS), tl.float32)
    for b0 in range(0, bins, BB):
        rb = b0 + tl.arange(0, BB)
        at = rf[:, None] * bins + rb[None, :]
        inside = (rf[:, None] < frames) & (rb[None, :] < bins)
        re = tl.load(re_ptr + at, mask=inside, other=0.0).to(tl.float32)
        im = tl.load(im_ptr + at, mask=inside, other=0.0).to(tl.float32)
        mel = tl.load(mel_ptr + rb[:, None] * MELS + rm[None, :], mask=rb[:, None] < bins, other=0.0)
        acc = tl.dot((re * re + im * im).to(tl.bfloat16), mel, acc)
    tl.store(out_ptr + rf[:, None] * MELS + rm[None, :], tl.log(tl.maximum(acc, 1e-10)), mask=rf[:, None] < frames)


@triton.jit
def find_runs(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    """How far each element's run of equal values goes, up to 32, by looking ahead."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0)
    going = i < n
    length = tl.zeros((BLOCK,), tl.int32)
    step = 1
    while (tl.max(going.to(tl.int32), 0) > 0) & (step <= 32):
        length += going.to(tl.int32)
        ahead = tl.load(x_ptr + i + step, mask=going & (i + step < n), other=-1)
        going = going & (ahead == x)
        step += 1
    tl.store(out_ptr + i, length, mask=i < n)
