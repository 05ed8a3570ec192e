"""Kernels of neighbours: every second element, windows, small matrices, points.

`everyday.py` times them.
"""

import tilewright as triton
import tilewright.language as tl


@triton.jit
def nf4_dequantize(q_ptr, code_ptr, absmax_ptr, out_ptr, n, BLOCK: tl.constexpr, GROUP: tl.constexpr):
    """Weights of 4 bits, two in a byte, by a table."""
    pid = tl.program_id(0)
    at = pid * BLOCK + tl.arange(0, BLOCK)
    packed = tl.load(q_ptr + at, mask=at < n, other=0)
    scale = tl.load(absmax_ptr + at * 2 // GROUP, mask=at < n, other=0.0)
    high = tl.load(code_ptr + (packed >> 4)) * scale
    low = tl.load(code_ptr + (packed & 15)) * scale
    tl.store(out_ptr + 2 * at, high.to(tl.bfloat16), mask=at < n)
    tl.store(out_ptr + 2 * at + 1, low.to(tl.bfloat16), mask=at < n)


@triton.jit
def int4_unpack_rows(q_ptr, s_ptr, o_ptr, K, N, G: tl.constexpr, BLOCK_K: tl.constexpr, BLOCK_N: tl.constexpr):
    """Weights of 4 bits, two in a byte, with a scale for each column of a group of rows."""
    rk = tl.program_id(0) * BLOCK_K + tl.arange(0, BLOCK_K)
    rn = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    q = tl.load(q_ptr + rk[:, None] * (N // 2) + rn[None, :])
    lo = ((q & 15).to(tl.int8) - 8).to(tl.float16)
    hi = ((q >> 4).to(tl.int8) - 8).to(tl.float16)
    s0 = tl.load(s_ptr + (rk // G)[:, None] * N + 2 * rn[None, :])
    s1 = tl.load(s_ptr + (rk // G)[:, None] * N + 2 * rn[None, :] + 1)
    tl.store(o_ptr + rk[:, None] * N + 2 * rn[None, :], lo * s0)
    tl.store(o_ptr + rk[:, None] * N + 2 * rn[None, :] + 1, hi * s1)


@triton.jit
def complex_scale(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    """Products of complex numbers."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = i < n
    a = tl.load(x_ptr + 2 * i, mask=m, other=0.0)
    b = tl.load(x_ptr + 2 * i + 1, mask=m, other=0.0)
    c = tl.load(y_ptr + 2 * i, mask=m, other=0.0)
    d = tl.load(y_ptr + 2 * i + 1, mask=m, other=0.0)
    tl.store(out_ptr + 2 * i, a * c - b * d, mask=m)
    tl.store(out_ptr + 2 * i + 1, a * d + b * c, mask=m)


@triton.jit
def geglu_interleaved(x_ptr, y_ptr, N, BLOCK: tl.constexpr):
    """Gates and values in turns, as GPT-OSS has them."""
    row = tl.program_id(0)
    cols = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    gate = tl.load(x_ptr + row * 2 * N + 2 * cols, mask=cols < N, other=0.0).to(tl.float32)
    up = tl.load(x_ptr + row * 2 * N + 2 * cols + 1, mask=cols < N, other=0.0).to(tl.float32)
    y = gate * tl.sigmoid(1.702 * gate) * (up + 1)
    tl.store(y_ptr + row * N + cols, y.to(tl.bfloat16), mask=cols < N)


@triton.jit
def fft_stage(x_ptr, w_ptr, o_ptr, half, n, BLOCK: tl.constexpr):
    """A stage of butterflies."""
    row = tl.program_id(1)
    j = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    k = j % half
    top = (j // half) * 2 * half + k
    base = row * n * 2
    ar = tl.load(x_ptr + base + 2 * top)
    ai = tl.load(x_ptr + base + 2 * top + 1)
    br = tl.load(x_ptr + base + 2 * (top + half))
    bi = tl.load(x_ptr + base + 2 * (top + half) + 1)
    wr = tl.load(w_ptr + 2 * k)
    wi = tl.load(w_ptr + 2 * k + 1)
    tr = br * wr - bi * wi
    ti = br * wi + bi * wr
    tl.store(o_ptr + base + 2 * top, ar + tr)
    tl.store(o_ptr + base + 2 * top + 1, ai + ti)
    tl.store(o_ptr + base + 2 * (top + half), ar - tr)
    tl.store(o_ptr + base + 2 * (top + half) + 1, ai - ti)


@triton.jit
def haar2d(x_ptr, ll_ptr, lh_ptr, hl_ptr, hh_ptr, H, W, BH: tl.constexpr, BW: tl.constexpr):
    """Sums and differences of 2 x 2 neighbours."""
    p = tl.program_id(2)
    r = tl.program_id(0) * BH + tl.arange(0, BH)
    c = tl.program_id(1) * BW + tl.arange(0, BW)
    m = (r[:, None] < H // 2) & (c[None, :] < W // 2)
    base = x_ptr + p * H * W + 2 * r[:, None] * W + 2 * c[None, :]
    a = tl.load(base, mask=m, other=0.0)
    b = tl.load(base + 1, mask=m, other=0.0)
    d = tl.load(base + W, mask=m, other=0.0)
    e = tl.load(base + W + 1, mask=m, other=0.0)
    o = p * (H // 2) * (W // 2) + r[:, None] * (W // 2) + c[None, :]
    tl.store(ll_ptr + o, (a + b + d + e) * 0.5, mask=m)
    tl.store(lh_ptr + o, (a - b + d - e) * 0.5, mask=m)
    tl.store(hl_ptr + o, (a + b - d - e) * 0.5, mask=m)
    tl.store(hh_ptr + o, (a - b - d + e) * 0.5, mask=m)


@triton.jit
def avg_pool2d(x_ptr, y_ptr, H, W, OH, OW, KS: tl.constexpr, ST: tl.constexpr, BLOCK: tl.constexpr):
    """Means of small windows."""
    plane = tl.program_id(0)
    o = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    oh, ow = o // OW, o % OW
    acc = tl.zeros((BLOCK,), tl.float32)
    for i in range(KS):
        for j in range(KS):
            h, w = oh * ST + i, ow * ST + j
            acc += tl.load(x_ptr + plane * H * W + h * W + w, mask=(o < OH * OW) & (h < H) & (w < W), other=0.0).to(
                tl.float32
            )
    tl.store(y_ptr + plane * OH * OW + o, acc / (KS * KS), mask=o < OH * OW)


@triton.jit
def sobel(x_ptr, y_ptr, H, W, BLOCK: tl.constexpr):
    """The gradient of a picture of bytes."""
    r = tl.program_id(0)
    c = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    gx = tl.zeros((BLOCK,), tl.float32)
    gy = tl.zeros((BLOCK,), tl.float32)
    for dr in tl.static_range(-1, 2):
        for dc in tl.static_range(-1, 2):
            rr, cc = r + dr, c + dc
            v = tl.load(x_ptr + rr * W + cc, mask=(rr >= 0) & (rr < H) & (cc >= 0) & (cc < W), other=0).to(tl.float32)
            gx += v * (dc * (2 - dr * dr))
            gy += v * (dr * (2 - dc * dc))
    mag = tl.minimum(tl.sqrt(gx * gx + gy * gy), 255.0)
    tl.store(y_ptr + r * W + c, mag.to(tl.uint8), mask=c < W)


@triton.jit
def life(x_ptr, y_ptr, H, W, BH: tl.constexpr, BW: tl.constexpr):
    """A generation of cells on a torus."""
    r = tl.program_id(0) * BH + tl.arange(0, BH)
    c = tl.program_id(1) * BW + tl.arange(0, BW)
    up = (r + H - 1) % H
    down = (r + 1) % H
    left = (c + W - 1) % W
    right = (c + 1) % W
    n = tl.load(x_ptr + up[:, None] * W + left[None, :]) + tl.load(x_ptr + up[:, None] * W + c[None, :])
    n += tl.load(x_ptr + up[:, None] * W + right[None, :]) + tl.load(x_ptr + r[:, None] * W + left[None, :])
    n += tl.load(x_ptr + r[:, None] * W + right[None, :]) + tl.load(x_ptr + down[:, None] * W + left[None, :])
    n += tl.load(x_ptr + down[:, None] * W + c[None, :]) + tl.load(x_ptr + down[:, None] * W + right[None, :])
    x = tl.load(x_ptr + r[:, None] * W + c[None, :])
    alive = (n == 3) | ((n == 2) & (x == 1))
    tl.store(y_ptr + r[:, None] * W + c[None, :], alive.to(tl.int8))


@triton.jit
def small_batched(a_ptr, b_ptr, c_ptr, batches, S: tl.constexpr, PER: tl.constexpr):
    """Products of small matrices, several to a program."""
    pid = tl.program_id(0)
    i = tl.arange(0, S)
    for n in range(PER):
        bid = pid * PER + n
        if bid < batches:
            base = bid * S * S
            at = base + i[:, None] * S + i[None, :]
            a = tl.load(a_ptr + at)
            b = tl.load(b_ptr + at)
            c = tl.dot(a, b)
            tl.store(c_ptr + at, c.to(tl.float16))


@triton.jit
def sinkhorn(x_ptr, y_ptr, ITERS: tl.constexpr, N: tl.constexpr):
    """Rows and columns normalised in turns."""
    b = tl.program_id(0)
    r = tl.arange(0, N)
    at = b * N * N + r[:, None] * N + r[None, :]
    x = tl.load(x_ptr + at)
    for _ in range(ITERS):
        m = tl.max(x, axis=1)
        x = x - (m + tl.log(tl.sum(tl.exp(x - m[:, None]), axis=1)))[:, None]
        m = tl.max(x, axis=0)
        x = x - (m + tl.log(tl.sum(tl.exp(x - m[None, :]), axis=0)))[None, :]
    tl.store(y_ptr + at, tl.exp(x))


@triton.jit
def chamfer(a_ptr, b_ptr, out_ptr, n, BA: tl.constexpr, BB: tl.constexpr):
    """The nearest of many points."""
    ra = tl.program_id(0) * BA + tl.arange(0, BA)
    ax = tl.load(a_ptr + ra * 3)
    ay = tl.load(a_ptr + ra * 3 + 1)
    az = tl.load(a_ptr + ra * 3 + 2)
    best = tl.full((BA,), 1e30, tl.float32)
    for s in range(0, n, BB):
        rb = s + tl.arange(0, BB)
        bx = tl.load(b_ptr + rb * 3)
        by = tl.load(b_ptr + rb * 3 + 1)
        bz = tl.load(b_ptr + rb * 3 + 2)
        dx = ax[:, None] - bx[None, :]
        dy = ay[:, None] - by[None, :]
        dz = az[:, None] - bz[None, :]
        d = dx * dx + dy * dy + dz * dz
        best = tl.minimum(best, tl.min(d, axis=1))
    tl.store(out_ptr + ra, best)


@triton.jit
def masked_mean_pool(x_ptr, len_ptr, y_ptr, T, D, BLOCK_T: tl.constexpr, BLOCK_D: tl.constexpr):
    """Means of sequences of different lengths."""
    b = tl.program_id(0)
    rd = tl.program_id(1) * BLOCK_D + tl.arange(0, BLOCK_D)
    n = tl.load(len_ptr + b)
    acc = tl.zeros((BLOCK_D,), tl.float32)
    for t in range(0, n, BLOCK_T):
        rt = t + tl.arange(0, BLOCK_T)
        x = tl.load(x_ptr + (b * T + rt)[:, None] * D + rd[None, :], mask=rt[:, None] < n, other=0.0)
        acc += tl.sum(x.to(tl.float32), axis=0)
    tl.store(y_ptr + b * D + rd, (acc / n).to(tl.float16))


@triton.jit
def knn_scores(q_ptr, p_ptr, best_ptr, arg_ptr, n, D: tl.constexpr, BQ: tl.constexpr, BP: tl.constexpr):
    """The nearest of many vectors."""
    rq = tl.program_id(0) * BQ + tl.arange(0, BQ)
    rd = tl.arange(0, D)
    q = tl.load(q_ptr + rq[:, None] * D + rd[None, :])
    best = tl.full((BQ,), float("inf"), tl.float32)
    arg = tl.zeros((BQ,), tl.int32)
    for s in range(0, n, BP):
        rp = s + tl.arange(0, BP)
        p = tl.load(p_ptr + rp[:, None] * D + rd[None, :])
        pn = tl.sum(p.to(tl.float32) * p.to(tl.float32), axis=1)
        d = pn[None, :] - 2.0 * tl.dot(q, tl.trans(p))
        v, a = tl.min(d, axis=1, return_indices=True)
        better = v < best
        arg = tl.where(better, s + a, arg)
        best = tl.where(better, v, best)
    tl.store(best_ptr + rq, best)
    tl.store(arg_ptr + rq, arg)


@triton.jit
def syrk(a_ptr, c_ptr, N, K, BN: tl.constexpr, BK: tl.constexpr):
    """A product with its own transpose: half of the tiles, each stored twice."""
    i = tl.program_id(0)
    j = tl.program_id(1)
    if j <= i:
        ri = i * BN + tl.arange(0, BN)
        rj = j * BN + tl.arange(0, BN)
        acc = tl.zeros((BN, BN), tl.float32)
        for k in range(0, K, BK):
            rk = k + tl.arange(0, BK)
            a = tl.load(a_ptr + ri[:, None] * K + rk[None, :])
            b = tl.load(a_ptr + rj[:, None] * K + rk[None, :])
            acc = tl.dot(a, b.T, acc)
        tl.store(c_ptr + ri[:, None] * N + rj[None, :], acc.to(tl.float16))
        tl.store(c_ptr + rj[:, None] * N + ri[None, :], tl.trans(acc).to(tl.float16))
