"""Kernels of many fields: packed weights, attention of other kinds, recurrences, stencils, graphs.

`everyday.py` times them.
"""

import tilewright as triton
import tilewright.language as tl


@triton.jit
def ternary_product(x_ptr, w_ptr, y_ptr, M, N, K, s, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """Weights of -1, 0 and 1, four along K in a byte."""
    rm = tl.program_id(0) * BM + tl.arange(0, BM)
    rn = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), tl.float32)
    for k0 in range(0, K, BK):
        rk = k0 + tl.arange(0, BK)
        x = tl.load(x_ptr + rm[:, None] * K + rk[None, :], mask=rm[:, None] < M, other=0.0)
        w = tl.load(w_ptr + (rk // 4)[:, None] * N + rn[None, :])
        w = ((w >> ((rk % 4) * 2)[:, None]) & 3).to(tl.int8) - 1
        acc += tl.dot(x, w.to(tl.float16))
    tl.store(y_ptr + rm[:, None] * N + rn[None, :], (acc * s).to(tl.float16), mask=rm[:, None] < M)


@triton.jit
def awq_product(
    x_ptr,
    w_ptr,
    s_ptr,
    z_ptr,
    y_ptr,
    M,
    N,
    K,
    GROUP: tl.constexpr,
    BM: tl.constexpr,
    BN: tl.constexpr,
    BK: tl.constexpr,
):
    """Weights of 4 bits, eight along N in a word that is doubled three times, as AWQ's kernels unpack it."""
    pid_m, pid_n = tl.program_id(0), tl.program_id(1)
    rm = pid_m * BM + tl.arange(0, BM)
    rn = pid_n * BN + tl.arange(0, BN)
    rp = pid_n * (BN // 8) + tl.arange(0, BN // 8)
    order = (tl.arange(0, 2) * 4)[None, :] + tl.arange(0, 4)[:, None]
    shifts = tl.reshape(order, (8,)) * 4
    shifts = tl.reshape(tl.broadcast_to(shifts[None, :], (BK * (BN // 8), 8)), (BK, BN))
    acc = tl.zeros((BM, BN), tl.float32)
    for k0 in range(0, K, BK):
        rk = k0 + tl.arange(0, BK)
        x = tl.load(x_ptr + rm[:, None] * K + rk[None, :], mask=rm[:, None] < M, other=0.0)
        w = tl.load(w_ptr + rk[:, None] * (N // 8) + rp[None, :])
        w = tl.interleave(w, w)
        w = tl.interleave(w, w)
        w = tl.interleave(w, w)
        g = k0 // GROUP
        z = tl.load(z_ptr + g * (N // 8) + rp[None, :])
        z = tl.interleave(z, z)
        z = tl.interleave(z, z)
        z = tl.interleave(z, z)
        z = tl.broadcast_to(z, (BK, BN))
        s = tl.load(s_ptr + g * N + rn[None, :])
        w = (((w >> shifts) & 15) - ((z >> shifts) & 15)).to(tl.float16) * s
        acc = tl.dot(x, w, acc)
    tl.store(y_ptr + rm[:, None] * N + rn[None, :], acc.to(tl.float16), mask=rm[:, None] < M)


@triton.jit
def gptq_gidx(x_ptr, w_ptr, s_ptr, z_ptr, g_ptr, y_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """Weights of 4 bits, eight along K in a word, whose groups a list gives."""
    rm = tl.program_id(0) * BM + tl.arange(0, BM)
    rn = tl.program_id(1) * BN + tl.arange(0, BN)
    rk = tl.arange(0, BK)
    xp = x_ptr + rm[:, None] * K + rk[None, :]
    wp = w_ptr + (rk[:, None] // 8) * N + rn[None, :]
    gp = g_ptr + rk
    sp = s_ptr + rn[None, :]
    zp = z_ptr + rn[None, :] // 8
    shifter = (rk % 8) * 4
    zshift = (rn % 8) * 4
    acc = tl.zeros((BM, BN), tl.float32)
    for _ in range(0, tl.cdiv(K, BK)):
        g = tl.load(gp)
        s = tl.load(sp + g[:, None] * N)
        z = tl.load(zp + g[:, None] * (N // 8))
        z = ((z >> zshift[None, :]) & 15) + 1
        x = tl.load(xp, mask=rm[:, None] < M, other=0.0)
        w = tl.load(wp)
        w = (w >> shifter[:, None]) & 15
        w = (w - z) * s
        acc += tl.dot(x, w.to(tl.float16))
        xp += BK
        wp += (BK // 8) * N
        gp += BK
    tl.store(y_ptr + rm[:, None] * N + rn[None, :], acc.to(tl.float16), mask=rm[:, None] < M)


@triton.jit
def nf4_product(
    x_ptr, q_ptr, code_ptr, absmax_ptr, y_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr
):
    """Weights of 4 bits by a table, two along K in a byte."""
    # weights [N, K/2], absmax per 64 along K
    rm = tl.program_id(0) * BM + tl.arange(0, BM)
    rn = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), tl.float32)
    for k0 in range(0, K, BK):
        rk = k0 + tl.arange(0, BK)
        x = tl.load(x_ptr + rm[:, None] * K + rk[None, :], mask=rm[:, None] < M, other=0.0)
        q = tl.load(q_ptr + rn[None, :] * (K // 2) + rk[:, None] // 2)
        idx = tl.where((rk % 2)[:, None] == 0, q >> 4, q & 15)
        w = tl.load(code_ptr + idx)
        a = tl.load(absmax_ptr + rn[None, :] * (K // 64) + rk[:, None] // 64)
        acc = tl.dot(x, (w * a).to(tl.bfloat16), acc)
    tl.store(y_ptr + rm[:, None] * N + rn[None, :], acc.to(tl.bfloat16), mask=rm[:, None] < M)


@triton.jit
def w8_groups(x_ptr, w_ptr, s_ptr, y_ptr, M, N, K, GROUP: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    """Weights of 8 bits with a scale for each group along K, on the sums."""
    rm = tl.program_id(0) * BM + tl.arange(0, BM)
    rn = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), tl.float32)
    for g in range(K // GROUP):
        rk = g * GROUP + tl.arange(0, GROUP)
        x = tl.load(x_ptr + rm[:, None] * K + rk[None, :], mask=rm[:, None] < M, other=0.0)
        w = tl.load(w_ptr + rn[None, :] * K + rk[:, None])
        s = tl.load(s_ptr + rn * (K // GROUP) + g)
        acc += tl.dot(x, w.to(tl.bfloat16)) * s[None, :]
    tl.store(y_ptr + rm[:, None] * N + rn[None, :], acc.to(tl.bfloat16), mask=rm[:, None] < M)


@triton.jit
def kv8_decode(
    q_ptr, k_ptr, ks_ptr, v_ptr, vs_ptr, o_ptr, n_ctx, scale, G: tl.constexpr, D: tl.constexpr, BLOCK_N: tl.constexpr
):
    """Attention of few queries to keys and values of 8 bits."""
    bh = tl.program_id(0)
    g = tl.arange(0, G)
    d = tl.arange(0, D)
    q = tl.load(q_ptr + (bh * G + g[:, None]) * D + d[None, :])
    m = tl.full((G,), float("-inf"), tl.float32)
    l = tl.zeros((G,), tl.float32)
    acc = tl.zeros((G, D), tl.float32)
    for start in range(0, n_ctx, BLOCK_N):
        n = start + tl.arange(0, BLOCK_N)
        ok = n < n_ctx
        k8 = tl.load(k_ptr + (bh * n_ctx + n[None, :]) * D + d[:, None], mask=ok[None, :], other=0)
        ks = tl.load(ks_ptr + bh * n_ctx + n, mask=ok, other=0.0)
        s = tl.dot(q, k8.to(tl.float16)) * (ks * scale)[None, :]
        s = tl.where(ok[None, :], s, float("-inf"))
        m_new = tl.maximum(m, tl.max(s, 1))
        p = tl.exp(s - m_new[:, None])
        a = tl.exp(m - m_new)
        l = l * a + tl.sum(p, 1)
        v8 = tl.load(v_ptr + (bh * n_ctx + n[:, None]) * D + d[None, :], mask=ok[:, None], other=0)
        vs = tl.load(vs_ptr + bh * n_ctx + n, mask=ok, other=0.0)
        acc = acc * a[:, None] + tl.dot((p * vs[None, :]).to(tl.float16), v8.to(tl.float16))
        m = m_new
    tl.store(o_ptr + (bh * G + g[:, None]) * D + d[None, :], (acc / l[:, None]).to(tl.float16))


@triton.jit
def t5_attention(q_ptr, k_ptr, v_ptr, table_ptr, o_ptr, T, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    """Attention with a number for each difference of positions."""
    bh = tl.program_id(1)
    rm = tl.program_id(0) * BM + tl.arange(0, BM)
    d = tl.arange(0, D)
    base = bh * T * D
    q = tl.load(q_ptr + base + rm[:, None] * D + d[None, :])
    m = tl.full((BM,), float("-inf"), tl.float32)
    l = tl.zeros((BM,), tl.float32)
    acc = tl.zeros((BM, D), tl.float32)
    for n0 in range(0, T, BN):
        rn = n0 + tl.arange(0, BN)
        k = tl.load(k_ptr + base + rn[None, :] * D + d[:, None])
        s = tl.dot(q, k)
        rel = rn[None, :] - rm[:, None] + T
        s += tl.load(table_ptr + bh % 8 * (2 * T) + rel)
        new = tl.maximum(m, tl.max(s, 1))
        p = tl.exp(s - new[:, None])
        a = tl.exp(m - new)
        l = l * a + tl.sum(p, 1)
        v = tl.load(v_ptr + base + rn[:, None] * D + d[None, :])
        acc = acc * a[:, None] + tl.dot(p.to(v.dtype), v)
        m = new
    tl.store(o_ptr + base + rm[:, None] * D + d[None, :], (acc / l[:, None]).to(q.dtype))


@triton.jit
def diff_attention(
    q1_ptr, q2_ptr, k1_ptr, k2_ptr, v_ptr, o_ptr, T, lam, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr
):
    """The difference of two attentions with the same values."""
    bh = tl.program_id(1)
    rm = tl.program_id(0) * BM + tl.arange(0, BM)
    d = tl.arange(0, D)
    base = bh * T * D
    q1 = tl.load(q1_ptr + base + rm[:, None] * D + d[None, :])
    q2 = tl.load(q2_ptr + base + rm[:, None] * D + d[None, :])
    m1 = tl.full((BM,), float("-inf"), tl.float32)
    m2 = tl.full((BM,), float("-inf"), tl.float32)
    l1 = tl.zeros((BM,), tl.float32)
    l2 = tl.zeros((BM,), tl.float32)
    acc1 = tl.zeros((BM, D), tl.float32)
    acc2 = tl.zeros((BM, D), tl.float32)
    for n0 in range(0, T, BN):
        rn = n0 + tl.arange(0, BN)
        k1 = tl.load(k1_ptr + base + rn[None, :] * D + d[:, None])
        k2 = tl.load(k2_ptr + base + rn[None, :] * D + d[:, None])
        v = tl.load(v_ptr + base + rn[:, None] * D + d[None, :])
        s1 = tl.dot(q1, k1)
        n1 = tl.maximum(m1, tl.max(s1, 1))
        p1 = tl.exp(s1 - n1[:, None])
        a1 = tl.exp(m1 - n1)
        l1 = l1 * a1 + tl.sum(p1, 1)
        acc1 = acc1 * a1[:, None] + tl.dot(p1.to(v.dtype), v)
        m1 = n1
        s2 = tl.dot(q2, k2)
        n2 = tl.maximum(m2, tl.max(s2, 1))
        p2 = tl.exp(s2 - n2[:, None])
        a2 = tl.exp(m2 - n2)
        l2 = l2 * a2 + tl.sum(p2, 1)
        acc2 = acc2 * a2[:, None] + tl.dot(p2.to(v.dtype), v)
        m2 = n2
    out = acc1 / l1[:, None] - lam * acc2 / l2[:, None]
    tl.store(o_ptr + base + rm[:, None] * D + d[None, :], out.to(q1.dtype))


@triton.jit
def fused_mlp(x_ptr, w1_ptr, w2_ptr, y_ptr, M, D: tl.constexpr, F, BM: tl.constexpr, BF: tl.constexpr):
    """Two products with an activation between them."""
    rm = tl.program_id(0) * BM + tl.arange(0, BM)
    d = tl.arange(0, D)
    x = tl.load(x_ptr + rm[:, None] * D + d[None, :], mask=rm[:, None] < M, other=0.0)
    acc = tl.zeros((BM, D), tl.float32)
    for f0 in range(0, F, BF):
        f = f0 + tl.arange(0, BF)
        w1 = tl.load(w1_ptr + d[:, None] * F + f[None, :])
        h = tl.dot(x, w1)
        h = h * tl.sigmoid(h)
        w2 = tl.load(w2_ptr + f[:, None] * D + d[None, :])
        acc += tl.dot(h.to(tl.bfloat16), w2)
    tl.store(y_ptr + rm[:, None] * D + d[None, :], acc.to(tl.bfloat16), mask=rm[:, None] < M)


@triton.jit
def rnn_steps(x_ptr, w_ptr, h_ptr, T, B, H: tl.constexpr, BB: tl.constexpr):
    """A recurrent network, whose state is multiplied with the same weights in each step."""
    b = tl.program_id(0) * BB + tl.arange(0, BB)
    j = tl.arange(0, H)
    w = tl.load(w_ptr + j[:, None] * H + j[None, :])
    h = tl.zeros((BB, H), tl.float16)
    for t in range(T):
        x = tl.load(x_ptr + (t * B + b[:, None]) * H + j[None, :]).to(tl.float32)
        z = tl.dot(h, w) + x
        e = tl.exp(-2 * tl.abs(z))
        y = (1 - e) / (1 + e)
        h = tl.where(z < 0, -y, y).to(tl.float16)
        tl.store(h_ptr + (t * B + b[:, None]) * H + j[None, :], h)


@triton.jit
def selective_scan(x_ptr, dt_ptr, A_ptr, B_ptr, C_ptr, D_ptr, y_ptr, L, D, N: tl.constexpr, BLOCK_D: tl.constexpr):
    """Mamba's states, step by step."""
    b = tl.program_id(1)
    d = tl.program_id(0) * BLOCK_D + tl.arange(0, BLOCK_D)
    n = tl.arange(0, N)
    a = tl.load(A_ptr + d[:, None] * N + n[None, :])
    skip = tl.load(D_ptr + d)
    h = tl.zeros((BLOCK_D, N), tl.float32)
    for t in range(L):
        x = tl.load(x_ptr + (b * L + t) * D + d).to(tl.float32)
        dt = tl.load(dt_ptr + (b * L + t) * D + d).to(tl.float32)
        dt = tl.where(dt > 20, dt, tl.log(1 + tl.exp(dt)))
        bt = tl.load(B_ptr + (b * L + t) * N + n).to(tl.float32)
        ct = tl.load(C_ptr + (b * L + t) * N + n).to(tl.float32)
        h = h * tl.exp(dt[:, None] * a) + (dt * x)[:, None] * bt[None, :]
        y = tl.sum(h * ct[None, :], axis=1) + skip * x
        tl.store(y_ptr + (b * L + t) * D + d, y)


@triton.jit
def tridiagonal(a_ptr, b_ptr, c_ptr, d_ptr, cp_ptr, x_ptr, n, batch, BLOCK: tl.constexpr):
    """Systems of equations, forwards and backwards."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    ok = i < batch
    cp = tl.zeros((BLOCK,), tl.float32)
    dp = tl.zeros((BLOCK,), tl.float32)
    for r in range(n):
        a = tl.load(a_ptr + r * batch + i, mask=ok, other=0.0)
        b = tl.load(b_ptr + r * batch + i, mask=ok, other=1.0)
        c = tl.load(c_ptr + r * batch + i, mask=ok, other=0.0)
        d = tl.load(d_ptr + r * batch + i, mask=ok, other=0.0)
        m = 1.0 / (b - a * cp)
        dp = (d - a * dp) * m
        cp = c * m
        tl.store(cp_ptr + r * batch + i, cp, mask=ok)
        tl.store(x_ptr + r * batch + i, dp, mask=ok)
    x = tl.zeros((BLOCK,), tl.float32)
    for k in range(n):
        r = n - 1 - k
        cc = tl.load(cp_ptr + r * batch + i, mask=ok, other=0.0)
        dd = tl.load(x_ptr + r * batch + i, mask=ok, other=0.0)
        x = dd - cc * x
        tl.store(x_ptr + r * batch + i, x, mask=ok)


@triton.jit
def edge_softmax(ptr_ptr, score_ptr, out_ptr, H: tl.constexpr, BLOCK: tl.constexpr):
    """Softmax over the edges of each node."""
    node = tl.program_id(0)
    start = tl.load(ptr_ptr + node)
    end = tl.load(ptr_ptr + node + 1)
    h = tl.arange(0, H)
    top = tl.full((H,), float("-inf"), tl.float32)
    total = tl.zeros((H,), tl.float32)
    for e0 in range(start, end, BLOCK):
        e = e0 + tl.arange(0, BLOCK)
        s = tl.load(score_ptr + e[:, None] * H + h[None, :], mask=e[:, None] < end, other=float("-inf"))
        new = tl.maximum(top, tl.max(s, axis=0))
        total = total * tl.exp(top - new) + tl.sum(tl.exp(s - new[None, :]), axis=0)
        top = new
    for e0 in range(start, end, BLOCK):
        e = e0 + tl.arange(0, BLOCK)
        s = tl.load(score_ptr + e[:, None] * H + h[None, :], mask=e[:, None] < end, other=float("-inf"))
        tl.store(
            out_ptr + e[:, None] * H + h[None, :], tl.exp(s - top[None, :]) / total[None, :], mask=e[:, None] < end
        )


@triton.jit
def heat3d(u_ptr, out_ptr, NX, NY, NZ, alpha, BY: tl.constexpr, BZ: tl.constexpr):
    """A stencil of seven points."""
    x = tl.program_id(2)
    y = tl.program_id(1) * BY + tl.arange(0, BY)[:, None]
    z = tl.program_id(0) * BZ + tl.arange(0, BZ)[None, :]
    inside = (y < NY) & (z < NZ)
    at = (x * NY + y) * NZ + z
    u = tl.load(u_ptr + at, mask=inside, other=0.0)
    xm = tl.load(u_ptr + at - NY * NZ, mask=inside & (x > 0), other=0.0)
    xp = tl.load(u_ptr + at + NY * NZ, mask=inside & (x + 1 < NX), other=0.0)
    ym = tl.load(u_ptr + at - NZ, mask=inside & (y > 0), other=0.0)
    yp = tl.load(u_ptr + at + NZ, mask=inside & (y + 1 < NY), other=0.0)
    zm = tl.load(u_ptr + at - 1, mask=inside & (z > 0), other=0.0)
    zp = tl.load(u_ptr + at + 1, mask=inside & (z + 1 < NZ), other=0.0)
    tl.store(out_ptr + at, u + alpha * (xm + xp + ym + yp + zm + zp - 6.0 * u), mask=inside)


@triton.jit
def blur_columns(x_ptr, w_ptr, y_ptr, H, W, R: tl.constexpr, BH: tl.constexpr, BW: tl.constexpr):
    """A filter along columns."""
    y0 = tl.program_id(1) * BH
    x = tl.program_id(0) * BW + tl.arange(0, BW)
    y = y0 + tl.arange(0, BH)
    acc = tl.zeros((BH, BW), tl.float32)
    for r in range(-R, R + 1):
        yy = y + r
        v = tl.load(
            x_ptr + yy[:, None] * W + x[None, :],
            mask=(yy[:, None] >= 0) & (yy[:, None] < H) & (x[None, :] < W),
            other=0.0,
        )
        acc += tl.load(w_ptr + r + R) * v
    tl.store(y_ptr + y[:, None] * W + x[None, :], acc, mask=(y[:, None] < H) & (x[None, :] < W))


@triton.jit
def im2col(x_ptr, y_ptr, C, H, W, OH, OW, KS: tl.constexpr, BLOCK: tl.constexpr):
    """Windows of a picture as columns."""
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    ck = tl.program_id(1)
    c = ck // (KS * KS)
    kh = ck // KS % KS
    kw = ck % KS
    oh = o // OW
    ow = o % OW
    x = tl.load(x_ptr + (c * H + oh + kh) * W + ow + kw, mask=o < OH * OW, other=0.0)
    tl.store(y_ptr + ck * OH * OW + o, x, mask=o < OH * OW)


@triton.jit
def roi_align(x_ptr, roi_ptr, y_ptr, C, H, W, P: tl.constexpr, BLOCK: tl.constexpr):
    """Bilinear means of regions."""
    roi = tl.program_id(0)
    c = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    ok = c < C
    x1 = tl.load(roi_ptr + roi * 4)
    y1 = tl.load(roi_ptr + roi * 4 + 1)
    x2 = tl.load(roi_ptr + roi * 4 + 2)
    y2 = tl.load(roi_ptr + roi * 4 + 3)
    bw = (x2 - x1) / P
    bh = (y2 - y1) / P
    for py in range(P):
        for px in range(P):
            fx = x1 + (px + 0.5) * bw
            fy = y1 + (py + 0.5) * bh
            ix = fx.to(tl.int32)
            iy = fy.to(tl.int32)
            ax = fx - ix
            ay = fy - iy
            p = x_ptr + (iy * W + ix) * C + c
            v00 = tl.load(p, mask=ok, other=0.0).to(tl.float32)
            v01 = tl.load(p + C, mask=ok, other=0.0).to(tl.float32)
            v10 = tl.load(p + W * C, mask=ok, other=0.0).to(tl.float32)
            v11 = tl.load(p + W * C + C, mask=ok, other=0.0).to(tl.float32)
            v = (1 - ay) * ((1 - ax) * v00 + ax * v01) + ay * ((1 - ax) * v10 + ax * v11)
            tl.store(y_ptr + ((roi * P + py) * P + px) * C + c, v.to(tl.float16), mask=ok)


@triton.jit
def cholesky16(a_ptr, l_ptr, N: tl.constexpr):
    """Factors of many small matrices, one in a warp."""
    b = tl.program_id(0)
    i = tl.arange(0, N)
    at = b * N * N + i[:, None] * N + i[None, :]
    a = tl.load(a_ptr + at)
    for j in range(N):
        col = tl.sum(tl.where(i[None, :] == j, a, 0.0), axis=1)
        pivot = tl.sqrt(tl.sum(tl.where(i == j, col, 0.0)))
        col = tl.where(i >= j, col / pivot, 0.0)
        a = tl.where((i[None, :] > j) & (i[:, None] > j), a - col[:, None] * col[None, :], a)
        a = tl.where(i[None, :] == j, col[:, None], a)
    tl.store(l_ptr + at, tl.where(i[:, None] >= i[None, :], a, 0.0))


@triton.jit
def hamming(a_ptr, b_ptr, out_ptr, M, N, W: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    """Different bits of codes, counted as before there were instructions for it."""
    rm = tl.program_id(0) * BM + tl.arange(0, BM)
    rn = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), tl.int32)
    for w in range(W):
        a = tl.load(a_ptr + rm * W + w, mask=rm < M, other=0)
        b = tl.load(b_ptr + rn * W + w, mask=rn < N, other=0)
        x = a[:, None] ^ b[None, :]
        x = x - ((x >> 1) & 0x55555555)
        x = (x & 0x33333333) + ((x >> 2) & 0x33333333)
        x = (x + (x >> 4)) & 0x0F0F0F0F
        acc += (x * 0x01010101 >> 24) & 0xFF
    tl.store(out_ptr + rm[:, None] * N + rn[None, :], acc, mask=(rm[:, None] < M) & (rn[None, :] < N))


@triton.jit
def lcg_monte_carlo(seed_ptr, out_ptr, steps, n, BLOCK: tl.constexpr):
    """Points by a generator of random numbers, in the circle or not."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    s = tl.load(seed_ptr + i, mask=i < n, other=1).to(tl.uint32)
    hits = tl.zeros((BLOCK,), tl.int32)
    for _ in range(steps):
        s = s * 1664525 + 1013904223
        x = (s >> 8).to(tl.float32) * 5.9604645e-08
        s = s * 1664525 + 1013904223
        y = (s >> 8).to(tl.float32) * 5.9604645e-08
        hits += (x * x + y * y < 1.0).to(tl.int32)
    tl.store(out_ptr + i, hits, mask=i < n)
