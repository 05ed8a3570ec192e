"""Simple kernels of more kinds for `more_shapes.py`: products, attention, pictures, atomics, indices, integers."""

import tilewright as triton
import tilewright.language as tl


@triton.jit
def attention(
    q_ptr, k_ptr, v_ptr, out_ptr, L, scale, D: tl.constexpr, CAUSAL: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr
):
    """Attention of one head a program, of any length."""
    head, m, d = tl.program_id(1) * L * D, tl.program_id(0) * BM + tl.arange(0, BM), tl.arange(0, D)
    q = tl.load(q_ptr + head + m[:, None] * D + d[None, :], mask=m[:, None] < L, other=0.0)
    top, below = tl.full((BM,), -float("inf"), tl.float32), tl.zeros((BM,), tl.float32)
    acc = tl.zeros((BM, D), tl.float32)
    end = tl.minimum(L, (tl.program_id(0) + 1) * BM) if CAUSAL else L
    for start in range(0, end, BN):
        n = start + tl.arange(0, BN)
        k = tl.load(k_ptr + head + n[:, None] * D + d[None, :], mask=n[:, None] < L, other=0.0)
        v = tl.load(v_ptr + head + n[:, None] * D + d[None, :], mask=n[:, None] < L, other=0.0)
        s = tl.dot(q, tl.trans(k)) * scale
        seen = (n[None, :] < L) & (m[:, None] >= n[None, :]) if CAUSAL else n[None, :] < L
        s = tl.where(seen, s, -float("inf"))
        now = tl.maximum(top, tl.max(s, 1))
        p = tl.exp(s - now[:, None])
        less = tl.exp(top - now)
        below = below * less + tl.sum(p, 1)
        acc = acc * less[:, None] + tl.dot(p.to(v.dtype), v)
        top = now
    tl.store(
        out_ptr + head + m[:, None] * D + d[None, :],
        (acc / below[:, None]).to(out_ptr.dtype.element_ty),
        mask=m[:, None] < L,
    )


@triton.jit
def persistent_product(a_ptr, b_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """A product by programs that take tile after tile."""
    tiles_n = tl.cdiv(N, BN)
    for tile in range(tl.program_id(0), tl.cdiv(M, BM) * tiles_n, tl.num_programs(0)):
        m = tile // tiles_n * BM + tl.arange(0, BM)
        n = tile % tiles_n * BN + tl.arange(0, BN)
        acc = tl.zeros((BM, BN), tl.float32)
        for start in range(0, K, BK):
            k = start + tl.arange(0, BK)
            a = tl.load(a_ptr + m[:, None] * K + k[None, :], mask=(m[:, None] < M) & (k[None, :] < K), other=0.0)
            b = tl.load(b_ptr + k[:, None] * N + n[None, :], mask=(k[:, None] < K) & (n[None, :] < N), other=0.0)
            acc = tl.dot(a, b, acc)
        mask = (m[:, None] < M) & (n[None, :] < N)
        tl.store(c_ptr + m[:, None] * N + n[None, :], acc.to(c_ptr.dtype.element_ty), mask=mask)


@triton.jit
def linear_gelu(x_ptr, w_ptr, b_ptr, y_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """A layer with weights [N, K], a bias and an activation."""
    m, n, k = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN), tl.arange(0, BK)
    acc = tl.zeros((BM, BN), tl.float32)
    for start in range(0, K, BK):
        x = tl.load(
            x_ptr + m[:, None] * K + start + k[None, :], mask=(m[:, None] < M) & (start + k[None, :] < K), other=0.0
        )
        w = tl.load(
            w_ptr + n[None, :] * K + start + k[:, None], mask=(n[None, :] < N) & (start + k[:, None] < K), other=0.0
        )
        acc += tl.dot(x, w)
    y = acc + tl.load(b_ptr + n, mask=n < N, other=0.0).to(tl.float32)[None, :]
    y = 0.5 * y * (1 + tl.erf(y * 0.70710678))
    tl.store(
        y_ptr + m[:, None] * N + n[None, :], y.to(y_ptr.dtype.element_ty), mask=(m[:, None] < M) & (n[None, :] < N)
    )


@triton.jit
def batched_product(a_ptr, b_ptr, c_ptr, S: tl.constexpr, P: tl.constexpr):
    """Small square products, one a program, padded to P."""
    i, j = tl.arange(0, P), tl.arange(0, P)
    base = tl.program_id(0) * S * S
    at, mask = base + i[:, None] * S + j[None, :], (i[:, None] < S) & (j[None, :] < S)
    a, b = tl.load(a_ptr + at, mask=mask, other=0.0), tl.load(b_ptr + at, mask=mask, other=0.0)
    tl.store(c_ptr + at, tl.dot(a, b).to(c_ptr.dtype.element_ty), mask=mask)


@triton.jit
def integer_product(a_ptr, b_ptr, s_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """A product of bytes with weights [N, K] and a scale for each column."""
    m, n, k = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN), tl.arange(0, BK)
    acc = tl.zeros((BM, BN), tl.int32)
    for start in range(0, K, BK):
        a = tl.load(
            a_ptr + m[:, None] * K + start + k[None, :], mask=(m[:, None] < M) & (start + k[None, :] < K), other=0
        )
        b = tl.load(
            b_ptr + n[None, :] * K + start + k[:, None], mask=(n[None, :] < N) & (start + k[:, None] < K), other=0
        )
        acc += tl.dot(a, b)
    s = tl.load(s_ptr + n, mask=n < N, other=0.0)
    tl.store(
        c_ptr + m[:, None] * N + n[None, :], acc.to(tl.float32) * s[None, :], mask=(m[:, None] < M) & (n[None, :] < N)
    )


@triton.jit
def split_product(
    a_ptr, b_ptr, c_ptr, M, N, K, SPLIT: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr
):
    """A product whose sum several programs share, by atomic additions."""
    m, n = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), tl.float32)
    for start in range(tl.program_id(2) * BK, K, SPLIT * BK):
        k = start + tl.arange(0, BK)
        a = tl.load(a_ptr + m[:, None] * K + k[None, :], mask=(m[:, None] < M) & (k[None, :] < K), other=0.0)
        b = tl.load(b_ptr + k[:, None] * N + n[None, :], mask=(k[:, None] < K) & (n[None, :] < N), other=0.0)
        acc += tl.dot(a, b)
    tl.atomic_add(c_ptr + m[:, None] * N + n[None, :], acc, mask=(m[:, None] < M) & (n[None, :] < N))


@triton.jit
def layer_norm_rows(x_ptr, w_ptr, b_ptr, y_ptr, M, N, eps, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    """Layer norm of several rows a program."""
    r, c = tl.program_id(0) * ROWS + tl.arange(0, ROWS), tl.arange(0, BLOCK)
    at, mask = r[:, None] * N + c[None, :], (r[:, None] < M) & (c[None, :] < N)
    x = tl.load(x_ptr + at, mask=mask, other=0.0).to(tl.float32)
    mean = tl.sum(x, 1) / N
    off = tl.where(c[None, :] < N, x - mean[:, None], 0.0)
    rstd = 1 / tl.sqrt(tl.sum(off * off, 1) / N + eps)
    w, b = tl.load(w_ptr + c, mask=c < N).to(tl.float32), tl.load(b_ptr + c, mask=c < N).to(tl.float32)
    tl.store(y_ptr + at, off * rstd[:, None] * w[None, :] + b[None, :], mask=mask)


@triton.jit
def swiglu_packed(x_ptr, y_ptr, N, BLOCK: tl.constexpr):
    """The gated half of each row."""
    row, c = tl.program_id(0), tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    gate = tl.load(x_ptr + row * 2 * N + c, mask=c < N).to(tl.float32)
    up = tl.load(x_ptr + row * 2 * N + N + c, mask=c < N).to(tl.float32)
    tl.store(y_ptr + row * N + c, gate * tl.sigmoid(gate) * up, mask=c < N)


@triton.jit
def rotate_half(x_ptr, cos_ptr, sin_ptr, y_ptr, HEADS: tl.constexpr, D: tl.constexpr):
    """Rotary embedding of all heads of a token."""
    token, h, d = tl.program_id(0), tl.arange(0, HEADS), tl.arange(0, D // 2)
    cos, sin = tl.load(cos_ptr + token * (D // 2) + d)[None, :], tl.load(sin_ptr + token * (D // 2) + d)[None, :]
    at = token * HEADS * D + h[:, None] * D + d[None, :]
    low, high = tl.load(x_ptr + at).to(tl.float32), tl.load(x_ptr + at + D // 2).to(tl.float32)
    tl.store(y_ptr + at, low * cos - high * sin)
    tl.store(y_ptr + at + D // 2, high * cos + low * sin)


@triton.jit
def best_of_row(x_ptr, place_ptr, M, N, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    """Where the largest number of each row stands, in blocks."""
    r, c = tl.program_id(0) * ROWS + tl.arange(0, ROWS), tl.arange(0, BLOCK)
    best, place = tl.full((ROWS,), -float("inf"), tl.float32), tl.zeros((ROWS,), tl.int32)
    for start in range(0, N, BLOCK):
        mask = (r[:, None] < M) & (start + c[None, :] < N)
        x = tl.load(x_ptr + r[:, None] * N + start + c[None, :], mask=mask, other=-float("inf")).to(tl.float32)
        value, at = tl.max(x, 1, return_indices=True)
        better = value > best
        best, place = tl.where(better, value, best), tl.where(better, at + start, place)
    tl.store(place_ptr + r, place.to(tl.int64), mask=r < M)


@triton.jit
def counts(x_ptr, out_ptr, N, BINS: tl.constexpr, BLOCK: tl.constexpr):
    """How often each number occurs, by atomic additions."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < N, other=0)
    tl.atomic_add(out_ptr + x % BINS, 1, mask=at < N)


@triton.jit
def rows_added(x_ptr, place_ptr, out_ptr, M, D, BM: tl.constexpr, BD: tl.constexpr):
    """Rows that are added to rows anywhere."""
    r, d = tl.program_id(0) * BM + tl.arange(0, BM), tl.arange(0, BD)
    place, mask = tl.load(place_ptr + r, mask=r < M, other=0), (r[:, None] < M) & (d[None, :] < D)
    x = tl.load(x_ptr + r[:, None] * D + d[None, :], mask=mask, other=0.0)
    tl.atomic_add(out_ptr + place[:, None] * D + d[None, :], x.to(tl.float32), mask=mask)


@triton.jit
def max_pool(x_ptr, y_ptr, H, W, BH: tl.constexpr, BW: tl.constexpr):
    """The largest of each 2 x 2."""
    h, w = tl.program_id(0) * BH + tl.arange(0, BH), tl.program_id(1) * BW + tl.arange(0, BW)
    mask = (h[:, None] < H // 2) & (w[None, :] < W // 2)
    at = x_ptr + tl.program_id(2) * H * W + h[:, None] * 2 * W + w[None, :] * 2
    a, b = tl.load(at, mask=mask), tl.load(at + 1, mask=mask)
    c, d = tl.load(at + W, mask=mask), tl.load(at + W + 1, mask=mask)
    y = tl.maximum(tl.maximum(a, b), tl.maximum(c, d))
    tl.store(y_ptr + tl.program_id(2) * (H // 2) * (W // 2) + h[:, None] * (W // 2) + w[None, :], y, mask=mask)


@triton.jit
def filter_rows(x_ptr, w_ptr, y_ptr, C, L, TAPS: tl.constexpr, BLOCK: tl.constexpr):
    """A causal filter of each channel."""
    channel, t = tl.program_id(1), tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for tap in range(TAPS):
        at = t - (TAPS - 1) + tap
        x = tl.load(x_ptr + channel * L + at, mask=(at >= 0) & (at < L), other=0.0).to(tl.float32)
        total += x * tl.load(w_ptr + channel % C * TAPS + tap).to(tl.float32)
    tl.store(y_ptr + channel * L + t, total, mask=t < L)


@triton.jit
def convolution(x_ptr, w_ptr, y_ptr, C, H, W, O, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """A 3 x 3 convolution with padding, pictures and weights with channels last."""
    m, n = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN)
    h, w = m // W, m % W
    acc = tl.zeros((BM, BN), tl.float32)
    for tap in range(9):
        hh, ww = h + tap // 3 - 1, w + tap % 3 - 1
        inside = (hh >= 0) & (hh < H) & (ww >= 0) & (ww < W)
        for start in range(0, C, BK):
            k = start + tl.arange(0, BK)
            x = tl.load(
                x_ptr + (hh * W + ww)[:, None] * C + k[None, :], mask=inside[:, None] & (k[None, :] < C), other=0.0
            )
            f = tl.load(
                w_ptr + (tap * C + k)[:, None] * O + n[None, :], mask=(k[:, None] < C) & (n[None, :] < O), other=0.0
            )
            acc = tl.dot(x, f, acc)
    tl.store(
        y_ptr + m[:, None] * O + n[None, :],
        acc.to(y_ptr.dtype.element_ty),
        mask=(m[:, None] < H * W) & (n[None, :] < O),
    )


@triton.jit
def column_stats(x_ptr, mean_ptr, var_ptr, M, N, BM: tl.constexpr, BN: tl.constexpr):
    """Mean and variance of each column."""
    r, c = tl.arange(0, BM), tl.program_id(0) * BN + tl.arange(0, BN)
    s, q = tl.zeros((BM, BN), tl.float32), tl.zeros((BM, BN), tl.float32)
    for start in range(0, M, BM):
        mask = (start + r[:, None] < M) & (c[None, :] < N)
        x = tl.load(x_ptr + (start + r)[:, None] * N + c[None, :], mask=mask, other=0.0).to(tl.float32)
        s += x
        q += x * x
    mean = tl.sum(s, 0) / M
    tl.store(mean_ptr + c, mean, mask=c < N)
    tl.store(var_ptr + c, tl.sum(q, 0) / M - mean * mean, mask=c < N)


@triton.jit
def integers_mixed(x_ptr, y_ptr, N, BLOCK: tl.constexpr):
    """A hash of integers of any width."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < N)
    x = (x ^ (x >> 3)) * 5 + (x & 15)
    tl.store(y_ptr + at, tl.where(x > 40, x - 40, x), mask=at < N)


@triton.jit
def axes_swapped(x_ptr, y_ptr, B, C, D, s0, s1, s2, BC: tl.constexpr, BD: tl.constexpr):
    """A copy of an array of three axes with any strides."""
    b, c, d = tl.program_id(2), tl.program_id(0) * BC + tl.arange(0, BC), tl.program_id(1) * BD + tl.arange(0, BD)
    mask = (c[:, None] < C) & (d[None, :] < D)
    x = tl.load(x_ptr + b * s0 + c[:, None] * s1 + d[None, :] * s2, mask=mask)
    tl.store(y_ptr + (b * C + c[:, None]) * D + d[None, :], x, mask=mask)


@triton.jit
def cross_entropy(x_ptr, label_ptr, loss_ptr, N, BLOCK: tl.constexpr):
    """The loss of a row in blocks, with a running maximum."""
    row, c = tl.program_id(0).to(tl.int64), tl.arange(0, BLOCK)
    top, below = -float("inf"), 0.0
    for start in range(0, N, BLOCK):
        x = tl.load(x_ptr + row * N + start + c, mask=start + c < N, other=-float("inf")).to(tl.float32)
        now = tl.maximum(top, tl.max(x, 0))
        below = below * tl.exp(top - now) + tl.sum(tl.exp(x - now), 0)
        top = now
    label = tl.load(label_ptr + row)
    tl.store(loss_ptr + row, top + tl.log(below) - tl.load(x_ptr + row * N + label).to(tl.float32))


@triton.jit
def quantized(x_ptr, q_ptr, s_ptr, M, N, ROWS: tl.constexpr, GROUP: tl.constexpr):
    """Groups of each row to bytes with a scale."""
    r, g = tl.program_id(0) * ROWS + tl.arange(0, ROWS), tl.program_id(1)
    c = g * GROUP + tl.arange(0, GROUP)
    mask = (r[:, None] < M) & (c[None, :] < N)
    x = tl.load(x_ptr + r[:, None] * N + c[None, :], mask=mask, other=0.0).to(tl.float32)
    scale = tl.max(tl.abs(x), 1) / 127 + 1e-8
    q = x / scale[:, None]
    tl.store(q_ptr + r[:, None] * N + c[None, :], (q + tl.where(q < 0, -0.5, 0.5)).to(tl.int8), mask=mask)
    tl.store(s_ptr + r * tl.num_programs(1) + g, scale, mask=r < M)
