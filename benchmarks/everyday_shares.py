"""Kernels that share work in equal parts, find elements that lie anywhere, count by atomics, and add to products.

`everyday.py` times them.
"""

import tilewright as triton
import tilewright.language as tl


@triton.jit
def stream_k(a_ptr, b_ptr, c_ptr, M, N, K, total, per, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """Each program takes as many trips of K as every other, whatever tile they are of."""
    pid = tl.program_id(0)
    start = pid * per
    end = tl.minimum(start + per, total)
    trips = tl.cdiv(K, BK)
    while start < end:
        tile = start // trips
        first = start % trips
        last = tl.minimum(trips, first + end - start)
        pm = tile // tl.cdiv(N, BN)
        pn = tile % tl.cdiv(N, BN)
        rm = pm * BM + tl.arange(0, BM)
        rn = pn * BN + tl.arange(0, BN)
        k = tl.arange(0, BK)
        acc = tl.zeros((BM, BN), tl.float32)
        for i in range(first, last):
            a = tl.load(a_ptr + rm[:, None] * K + (i * BK + k)[None, :])
            b = tl.load(b_ptr + (i * BK + k)[:, None] * N + rn[None, :])
            acc += tl.dot(a, b)
        tl.atomic_add(c_ptr + rm[:, None] * N + rn[None, :], acc, sem="relaxed")
        start += last - first


@triton.jit
def stream_k_rest(
    a_ptr,
    b_ptr,
    c_ptr,
    M,
    N,
    K,
    stride_am,
    stride_ak,
    stride_bk,
    stride_bn,
    stride_cm,
    stride_cn,
    sms,
    tiles_sk,
    BM: tl.constexpr,
    BN: tl.constexpr,
    BK: tl.constexpr,
    GROUP: tl.constexpr,
):
    """Whole tiles by turns, then the rest of the work in equal parts."""
    pid = tl.program_id(0)
    num_m = tl.cdiv(M, BM)
    num_n = tl.cdiv(N, BN)
    trips = tl.cdiv(K, BK)
    total = num_m * num_n
    full = total - tiles_sk
    for tile in range(pid, full, sms):
        width = GROUP * num_n
        group = tile // width
        first_m = group * GROUP
        size = min(num_m - first_m, GROUP)
        pm = first_m + (tile % width) % size
        pn = (tile % width) // size
        rm = (pm * BM + tl.arange(0, BM)) % M
        rn = (pn * BN + tl.arange(0, BN)) % N
        rk = tl.arange(0, BK)
        a = a_ptr + rm[:, None] * stride_am + rk[None, :] * stride_ak
        b = b_ptr + rk[:, None] * stride_bk + rn[None, :] * stride_bn
        acc = tl.zeros((BM, BN), dtype=tl.float32)
        for _ in range(trips):
            acc += tl.dot(tl.load(a), tl.load(b))
            a += BK * stride_ak
            b += BK * stride_bk
        rm = pm * BM + tl.arange(0, BM)
        rn = pn * BN + tl.arange(0, BN)
        tl.store(
            c_ptr + rm[:, None] * stride_cm + rn[None, :] * stride_cn, acc, mask=(rm < M)[:, None] & (rn < N)[None, :]
        )
    work = tiles_sk * trips
    per = work // sms
    rest = work % sms
    start = full * trips + pid * per + tl.minimum(pid, rest)
    last = full * trips + (pid + 1) * per + tl.minimum(pid + 1, rest)
    while start < last:
        rem = start % trips
        end = tl.minimum(start + (trips - rem), last)
        tile = start // trips
        width = GROUP * num_n
        group = tile // width
        first_m = group * GROUP
        size = min(num_m - first_m, GROUP)
        pm = first_m + (tile % width) % size
        pn = (tile % width) // size
        rm = (pm * BM + tl.arange(0, BM)) % M
        rn = (pn * BN + tl.arange(0, BN)) % N
        rk = tl.arange(0, BK)
        a = a_ptr + rm[:, None] * stride_am + rk[None, :] * stride_ak + BK * stride_ak * rem
        b = b_ptr + rk[:, None] * stride_bk + rn[None, :] * stride_bn + BK * stride_bk * rem
        acc = tl.zeros((BM, BN), dtype=tl.float32)
        for _ in range(start, end):
            acc += tl.dot(tl.load(a), tl.load(b))
            a += BK * stride_ak
            b += BK * stride_bk
        rm = pm * BM + tl.arange(0, BM)
        rn = pn * BN + tl.arange(0, BN)
        tl.atomic_add(
            c_ptr + rm[:, None] * stride_cm + rn[None, :] * stride_cn, acc, mask=(rm < M)[:, None] & (rn < N)[None, :]
        )
        start = end


@triton.jit
def gemm_residual(x_ptr, w_ptr, r_ptr, y_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    pm = tl.program_id(0)
    pn = tl.program_id(1)
    rm = pm * BM + tl.arange(0, BM)
    rn = pn * BN + tl.arange(0, BN)
    k = tl.arange(0, BK)
    acc = tl.zeros((BM, BN), tl.float32)
    for i in range(0, K, BK):
        x = tl.load(x_ptr + rm[:, None] * K + i + k[None, :], mask=rm[:, None] < M, other=0.0)
        w = tl.load(w_ptr + (i + k)[:, None] * N + rn[None, :])
        acc += tl.dot(x, w)
    at = rm[:, None] * N + rn[None, :]
    r = tl.load(r_ptr + at, mask=rm[:, None] < M, other=0.0)
    tl.store(y_ptr + at, (acc + r.to(tl.float32)).to(y_ptr.dtype.element_ty), mask=rm[:, None] < M)


@triton.jit
def lora_expand(x_ptr, b_ptr, y_ptr, N, scale, R: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    r = tl.arange(0, R)
    x = tl.load(x_ptr + m[:, None] * R + r[None, :])
    b = tl.load(b_ptr + n[None, :] * R + r[:, None])
    at = y_ptr + m[:, None] * N + n[None, :]
    y = tl.load(at).to(tl.float32)
    tl.store(at, (y + tl.dot(x, b) * scale).to(y_ptr.dtype.element_ty))


@triton.jit
def conv2d_nchw(x_ptr, w_ptr, y_ptr, C, H, W, K, R: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """Implicit product over k = (c, r, s), as everybody writes it first."""
    n = tl.program_id(2)
    pix = tl.program_id(0) * BM + tl.arange(0, BM)
    ko = tl.program_id(1) * BN + tl.arange(0, BN)
    oh = pix // W
    ow = pix % W
    depth = C * R * R
    acc = tl.zeros((BM, BN), tl.float32)
    for k0 in range(0, depth, BK):
        k = k0 + tl.arange(0, BK)
        c = k // (R * R)
        r = k % (R * R) // R
        s = k % R
        ih = oh[:, None] + r[None, :] - R // 2
        iw = ow[:, None] + s[None, :] - R // 2
        ok = (ih >= 0) & (ih < H) & (iw >= 0) & (iw < W) & (k[None, :] < depth)
        x = tl.load(x_ptr + ((n * C + c[None, :]) * H + ih) * W + iw, mask=ok, other=0.0)
        w = tl.load(w_ptr + ko[None, :] * depth + k[:, None], mask=k[:, None] < depth, other=0.0)
        acc += tl.dot(x, w)
    tl.store(
        y_ptr + (n * K + ko[None, :]) * H * W + pix[:, None],
        acc.to(y_ptr.dtype.element_ty),
        mask=(pix < H * W)[:, None],
    )


@triton.jit
def latent_prefill(
    q_ptr,
    qr_ptr,
    k_ptr,
    kr_ptr,
    v_ptr,
    o_ptr,
    H,
    N,
    scale,
    D: tl.constexpr,
    R: tl.constexpr,
    BM: tl.constexpr,
    BN: tl.constexpr,
):
    """Keys have a part with positions, shared by all heads."""
    m = tl.program_id(0)
    h = tl.program_id(1)
    rows = m * BM + tl.arange(0, BM)
    d = tl.arange(0, D)
    r = tl.arange(0, R)
    q = tl.load(q_ptr + (rows[:, None] * H + h) * D + d[None, :])
    qr = tl.load(qr_ptr + (rows[:, None] * H + h) * R + r[None, :])
    acc = tl.zeros((BM, D), tl.float32)
    top = tl.full((BM,), float("-inf"), tl.float32)
    total = tl.zeros((BM,), tl.float32)
    for start in range(0, (m + 1) * BM, BN):
        cols = start + tl.arange(0, BN)
        k = tl.load(k_ptr + (cols[None, :] * H + h) * D + d[:, None])
        kr = tl.load(kr_ptr + cols[None, :] * R + r[:, None])
        s = tl.dot(q, k)
        s += tl.dot(qr, kr)
        s = tl.where(rows[:, None] >= cols[None, :], s * scale, float("-inf"))
        new = tl.maximum(top, tl.max(s, 1))
        p = tl.exp2(s - new[:, None])
        alpha = tl.exp2(top - new)
        total = total * alpha + tl.sum(p, 1)
        v = tl.load(v_ptr + (cols[:, None] * H + h) * D + d[None, :])
        acc = acc * alpha[:, None] + tl.dot(p.to(v.dtype), v)
        top = new
    acc = acc / total[:, None]
    tl.store(o_ptr + (rows[:, None] * H + h) * D + d[None, :], acc.to(o_ptr.dtype.element_ty))


@triton.jit
def selected_attention(
    q_ptr,
    k_ptr,
    v_ptr,
    idx_ptr,
    o_ptr,
    T,
    H: tl.constexpr,
    S,
    scale,
    D: tl.constexpr,
    G: tl.constexpr,
    BS: tl.constexpr,
):
    """Each token's group of heads attends to the S blocks that were chosen for it."""
    t = tl.program_id(0)
    kvh = tl.program_id(1)
    g = tl.arange(0, G)
    d = tl.arange(0, D)
    n = tl.arange(0, BS)
    q = tl.load(q_ptr + (t * H * G + kvh * G + g[:, None]) * D + d[None, :])
    q = (q * scale).to(q.dtype)
    acc = tl.zeros((G, D), tl.float32)
    top = tl.full((G,), float("-inf"), tl.float32)
    total = tl.zeros((G,), tl.float32)
    for s in range(S):
        b = tl.load(idx_ptr + (t * H + kvh) * S + s) * BS
        if b <= t and b >= 0:
            k = tl.load(k_ptr + ((b + n[None, :]) * H + kvh) * D + d[:, None], mask=(b + n[None, :]) < T, other=0.0)
            v = tl.load(v_ptr + ((b + n[:, None]) * H + kvh) * D + d[None, :], mask=(b + n[:, None]) < T, other=0.0)
            w = tl.dot(q, k)
            w = tl.where((b + n)[None, :] <= t, w, float("-inf"))
            new = tl.maximum(top, tl.max(w, 1))
            p = tl.exp(w - new[:, None])
            alpha = tl.exp(top - new)
            total = total * alpha + tl.sum(p, 1)
            acc = acc * alpha[:, None] + tl.dot(p.to(v.dtype), v)
            top = new
    tl.store(
        o_ptr + (t * H * G + kvh * G + g[:, None]) * D + d[None, :], (acc / total[:, None]).to(o_ptr.dtype.element_ty)
    )


@triton.jit
def ssd_chunk_scan(
    cb_ptr,
    x_ptr,
    dt_ptr,
    da_ptr,
    c_ptr,
    prev_ptr,
    d_ptr,
    o_ptr,
    L,
    H,
    P: tl.constexpr,
    N: tl.constexpr,
    C: tl.constexpr,
    BM: tl.constexpr,
    BK: tl.constexpr,
):
    """Mamba 2: outputs of chunks, from the state before and inside of the chunk."""
    m = tl.program_id(0)
    c = tl.program_id(1)
    h = tl.program_id(2)
    i = m * BM + tl.arange(0, BM)
    p = tl.arange(0, P)
    n = tl.arange(0, N)
    k = tl.arange(0, BK)
    da_m = tl.load(da_ptr + h * L + c * C + i)
    cc = tl.load(c_ptr + (c * C + i[:, None]) * N + n[None, :])
    prev = tl.load(prev_ptr + ((c * H + h) * P + p[None, :]) * N + n[:, None]).to(cc.dtype)
    acc = tl.dot(cc, prev) * tl.exp(da_m)[:, None]
    for j in range(0, (m + 1) * BM, BK):
        cb = tl.load(cb_ptr + (c * C + i[:, None]) * C + j + k[None, :]).to(tl.float32)
        da_k = tl.load(da_ptr + h * L + c * C + j + k)
        dt_k = tl.load(dt_ptr + h * L + c * C + j + k)
        cb *= tl.exp(tl.minimum(da_m[:, None] - da_k[None, :], 0.0))
        cb *= dt_k[None, :]
        cb = tl.where(i[:, None] >= j + k[None, :], cb, 0.0)
        x = tl.load(x_ptr + ((c * C + j + k[:, None]) * H + h) * P + p[None, :])
        acc += tl.dot(cb.to(x.dtype), x)
    x = tl.load(x_ptr + ((c * C + i[:, None]) * H + h) * P + p[None, :]).to(tl.float32)
    acc += x * tl.load(d_ptr + h)
    tl.store(o_ptr + ((c * C + i[:, None]) * H + h) * P + p[None, :], acc.to(o_ptr.dtype.element_ty))


@triton.jit
def count_experts(ids_ptr, count_ptr, n, E: tl.constexpr, BLOCK: tl.constexpr):
    """How many tokens each expert gets from this block."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    ids = tl.load(ids_ptr + i, mask=i < n, other=E)
    e = tl.arange(0, E)
    hit = (ids[:, None] == e[None, :]).to(tl.int32)
    tl.atomic_add(count_ptr + e, tl.sum(hit, 0))


@triton.jit
def spmv_coo(r_ptr, c_ptr, v_ptr, x_ptr, y_ptr, nnz, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    ok = i < nnz
    r = tl.load(r_ptr + i, mask=ok, other=0)
    c = tl.load(c_ptr + i, mask=ok, other=0)
    v = tl.load(v_ptr + i, mask=ok, other=0.0)
    x = tl.load(x_ptr + c, mask=ok, other=0.0)
    tl.atomic_add(y_ptr + r, v * x, mask=ok, sem="relaxed")


@triton.jit
def cubic_rows(x_ptr, y_ptr, W, OW, scale, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    o = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    f = (o + 0.5) * scale - 0.5
    i = tl.floor(f)
    t = f - i
    i = i.to(tl.int32)
    acc = tl.zeros((BLOCK,), tl.float32)
    for k in tl.static_range(-1, 3):
        u = tl.abs(t - k)
        w = tl.where(u <= 1, (1.25 * u - 2.25) * u * u + 1, ((-0.75 * u + 3.75) * u - 6) * u + 3)
        p = tl.minimum(tl.maximum(i + k, 0), W - 1)
        acc += w * tl.load(x_ptr + row * W + p, mask=o < OW, other=0.0)
    tl.store(y_ptr + row * OW + o, acc, mask=o < OW)


@triton.jit
def cost_volume(a_ptr, b_ptr, o_ptr, C, H, W, D: tl.constexpr, BW: tl.constexpr):
    """Products of features of two rows, shifted by 0 to D - 1."""
    y = tl.program_id(0)
    x = tl.program_id(1) * BW + tl.arange(0, BW)
    d = tl.arange(0, D)
    acc = tl.zeros((D, BW), tl.float32)
    src = x[None, :] - d[:, None]
    ok = (src >= 0) & (x[None, :] < W)
    for c in range(C):
        a = tl.load(a_ptr + (c * H + y) * W + x, mask=x < W, other=0.0).to(tl.float32)
        b = tl.load(b_ptr + (c * H + y) * W + src, mask=ok, other=0.0).to(tl.float32)
        acc += a[None, :] * b
    tl.store(o_ptr + (d[:, None] * H + y) * W + x[None, :], acc / C, mask=(x < W)[None, :])


@triton.jit
def viterbi(e_ptr, t_ptr, s_ptr, back_ptr, T, S: tl.constexpr):
    b = tl.program_id(0)
    i = tl.arange(0, S)
    trans = tl.load(t_ptr + i[:, None] * S + i[None, :])
    score = tl.load(e_ptr + b * T * S + i)
    for t in range(1, T):
        all_ = tl.reshape(score, (S, 1)) + trans
        best, arg = tl.max(all_, 0, return_indices=True)
        score = best + tl.load(e_ptr + (b * T + t) * S + i)
        tl.store(back_ptr + (b * T + t) * S + i, arg)
    tl.store(s_ptr + b * S + i, score)


@triton.jit
def batch_norm_train(x_ptr, y_ptr, w_ptr, b_ptr, B, C, S, eps, BLOCK: tl.constexpr):
    """One program for a channel: statistics over batch and space, then the same walk again."""
    c = tl.program_id(0)
    total = tl.zeros((BLOCK,), tl.float32)
    square = tl.zeros((BLOCK,), tl.float32)
    for b in range(B):
        for s in range(0, S, BLOCK):
            o = s + tl.arange(0, BLOCK)
            x = tl.load(x_ptr + (b * C + c) * S + o, mask=o < S, other=0.0).to(tl.float32)
            total += x
            square += x * x
    mean = tl.sum(total) / (B * S)
    var = tl.sum(square) / (B * S) - mean * mean
    scale = tl.load(w_ptr + c) / tl.sqrt(var + eps)
    shift = tl.load(b_ptr + c) - mean * scale
    for b in range(B):
        for s in range(0, S, BLOCK):
            o = s + tl.arange(0, BLOCK)
            x = tl.load(x_ptr + (b * C + c) * S + o, mask=o < S, other=0.0).to(tl.float32)
            tl.store(y_ptr + (b * C + c) * S + o, (x * scale + shift).to(y_ptr.dtype.element_ty), mask=o < S)


@triton.jit
def label_logprobs(logits_ptr, label_ptr, out_ptr, V, BLOCK: tl.constexpr):
    """Log-probabilities of the labels, and the entropy, in one pass."""
    row = tl.program_id(0).to(tl.int64)
    label = tl.load(label_ptr + row)
    if label == -100:
        tl.store(out_ptr + row * 2, 0.0)
        tl.store(out_ptr + row * 2 + 1, 0.0)
        return
    base = logits_ptr + row * V
    m = float("-inf")
    s = 0.0
    e = 0.0
    for i in range(0, V, BLOCK):
        c = i + tl.arange(0, BLOCK)
        x = tl.load(base + c, mask=c < V, other=float("-inf")).to(tl.float32)
        new = tl.maximum(m, tl.max(x))
        w = tl.exp(x - new)
        a = tl.exp(m - new)
        s = s * a + tl.sum(w)
        e = e * a + tl.sum(tl.where(c < V, w * x, 0.0))
        m = new
    lse = m + tl.log(s)
    tl.store(out_ptr + row * 2, tl.load(base + label).to(tl.float32) - lse)
    tl.store(out_ptr + row * 2 + 1, lse - e / s)


@triton.jit
def quantize_columns(x_ptr, q_ptr, s_ptr, M, N, G: tl.constexpr, BN: tl.constexpr):
    """fp8 with a scale for each column of G rows, written as rows of the transposed array."""
    g = tl.program_id(0)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    m = g * G + tl.arange(0, G)
    x = tl.load(x_ptr + m[:, None] * N + n[None, :]).to(tl.float32)
    s = tl.maximum(tl.max(tl.abs(x), 0), 1e-4) / 448.0
    q = (x / s[None, :]).to(q_ptr.dtype.element_ty)
    tl.store(q_ptr + n[None, :] * M + m[:, None], q)
    tl.store(s_ptr + g * N + n, s)


@triton.jit
def histogram_rows(x_ptr, h_ptr, n, BINS: tl.constexpr, BLOCK: tl.constexpr):
    """Bins of a row by comparing with all of them."""
    row = tl.program_id(0)
    b = tl.arange(0, BINS)
    count = tl.zeros((BINS,), tl.int32)
    for s in range(0, n, BLOCK):
        o = s + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * n + o, mask=o < n, other=255).to(tl.int32)
        hit = (x[:, None] == b[None, :]) & (o < n)[:, None]
        count += tl.sum(hit.to(tl.int32), 0)
    tl.store(h_ptr + row * BINS + b, count)


@triton.jit
def searchsorted(a_ptr, x_ptr, o_ptr, n, m, STEPS: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    ok = i < m
    x = tl.load(x_ptr + i, mask=ok, other=0.0)
    lo = tl.zeros((BLOCK,), tl.int32)
    hi = tl.zeros((BLOCK,), tl.int32) + n
    for _ in range(STEPS):
        mid = (lo + hi) // 2
        v = tl.load(a_ptr + mid, mask=ok & (mid < n), other=float("inf"))
        go = (v < x) & (lo < hi)
        lo = tl.where(go, mid + 1, lo)
        hi = tl.where(go, hi, mid)
    tl.store(o_ptr + i, lo, mask=ok)
