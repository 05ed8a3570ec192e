"""Kernels around products that are not layers: attention of other kinds, norms of pairs, triangles, transforms, scaled floats.

`everyday.py` times them.
"""

import tilewright as triton
import tilewright.language as tl

# ------------------------------------------------------------------------------------------------------ attention's kinds


@triton.jit
def latent_decode(q_ptr, kv_ptr, out_ptr, lse_ptr, length, scale, HEADS: tl.constexpr, RANK: tl.constexpr,
                  ROPE: tl.constexpr, SPLITS: tl.constexpr, BLOCK_H: tl.constexpr, BLOCK_N: tl.constexpr):  # fmt: skip
    """One query for each of HEADS heads over a cache of latent vectors, RANK wide and followed by ROPE rotated ones."""
    request = tl.program_id(0)
    heads = tl.program_id(1) * BLOCK_H + tl.arange(0, BLOCK_H)
    split = tl.program_id(2)
    rank = tl.arange(0, RANK)
    rope = RANK + tl.arange(0, ROPE)
    width: tl.constexpr = RANK + ROPE
    q_rows = q_ptr + (request * HEADS + heads[:, None]) * width
    q = tl.load(q_rows + rank[None, :])
    q_rope = tl.load(q_rows + rope[None, :])
    part = tl.cdiv(tl.cdiv(length, SPLITS), BLOCK_N) * BLOCK_N
    first = split * part
    last = min(first + part, length)
    top = tl.full((BLOCK_H,), -float("inf"), tl.float32)
    total = tl.zeros((BLOCK_H,), tl.float32)
    acc = tl.zeros((BLOCK_H, RANK), tl.float32)
    for start in range(first, last, BLOCK_N):
        n = start + tl.arange(0, BLOCK_N)
        rows = kv_ptr + (request.to(tl.int64) * length + n) * width
        live = n < last
        k = tl.load(rows[None, :] + rank[:, None], mask=live[None, :], other=0.0)
        scores = tl.dot(q, k)
        k_rope = tl.load(rows[None, :] + rope[:, None], mask=live[None, :], other=0.0)
        scores = tl.dot(q_rope, k_rope, scores) * scale
        scores = tl.where(live[None, :], scores, -float("inf"))
        new_top = tl.maximum(top, tl.max(scores, 1))
        old = tl.exp2(top - new_top)
        p = tl.exp2(scores - new_top[:, None])
        acc = acc * old[:, None]
        acc = tl.dot(p.to(k.dtype), tl.trans(k), acc)
        total = total * old + tl.sum(p, 1)
        top = new_top
    place = (request * HEADS + heads) * SPLITS + split
    tl.store(out_ptr + place[:, None] * RANK + rank[None, :], acc / total[:, None])
    tl.store(lse_ptr + place, top + tl.log2(total))


@triton.jit
def bias_attention(q_ptr, k_ptr, v_ptr, bias_ptr, out_ptr, length, scale, DIM: tl.constexpr, BLOCK_M: tl.constexpr,
                   BLOCK_N: tl.constexpr):  # fmt: skip
    head = tl.program_id(1)
    m = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    d = tl.arange(0, DIM)
    base = head.to(tl.int64) * length * DIM
    q = tl.load(q_ptr + base + m[:, None] * DIM + d[None, :])
    top = tl.full((BLOCK_M,), -float("inf"), tl.float32)
    total = tl.zeros((BLOCK_M,), tl.float32)
    acc = tl.zeros((BLOCK_M, DIM), tl.float32)
    bias_rows = bias_ptr + (head.to(tl.int64) * length + m)[:, None] * length
    for start in range(0, length, BLOCK_N):
        n = start + tl.arange(0, BLOCK_N)
        k = tl.load(k_ptr + base + n[None, :] * DIM + d[:, None])
        bias = tl.load(bias_rows + n[None, :]).to(tl.float32)
        scores = tl.dot(q, k) * scale + bias * 1.4426950408889634
        new_top = tl.maximum(top, tl.max(scores, 1))
        p = tl.exp2(scores - new_top[:, None])
        old = tl.exp2(top - new_top)
        total = total * old + tl.sum(p, 1)
        v = tl.load(v_ptr + base + n[:, None] * DIM + d[None, :])
        acc = tl.dot(p.to(v.dtype), v, acc * old[:, None])
        top = new_top
    tl.store(out_ptr + base + m[:, None] * DIM + d[None, :], (acc / total[:, None]).to(tl.bfloat16))


@triton.jit
def packed_attention(q_ptr, k_ptr, v_ptr, out_ptr, starts_ptr, scale, HEADS: tl.constexpr, GROUP: tl.constexpr,
                     DIM: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):  # fmt: skip
    """Causal, over sequences that stand behind one another; GROUP heads share keys and values."""
    sequence = tl.program_id(2)
    head = tl.program_id(1)
    first = tl.load(starts_ptr + sequence)
    length = tl.load(starts_ptr + sequence + 1) - first
    start_m = tl.program_id(0) * BLOCK_M
    if start_m >= length:
        return
    m = start_m + tl.arange(0, BLOCK_M)
    d = tl.arange(0, DIM)
    q_rows = (first + m)[:, None] * (HEADS * DIM) + head * DIM
    q = tl.load(q_ptr + q_rows + d[None, :], mask=m[:, None] < length, other=0.0)
    kv = head // GROUP * DIM
    kv_width: tl.constexpr = HEADS // GROUP * DIM
    top = tl.full((BLOCK_M,), -float("inf"), tl.float32)
    total = tl.zeros((BLOCK_M,), tl.float32)
    acc = tl.zeros((BLOCK_M, DIM), tl.float32)
    for start_n in range(0, min(start_m + BLOCK_M, length), BLOCK_N):
        n = start_n + tl.arange(0, BLOCK_N)
        live = n < length
        k = tl.load(k_ptr + (first + n)[None, :] * kv_width + kv + d[:, None], mask=live[None, :], other=0.0)
        scores = tl.dot(q, k) * scale
        scores = tl.where((m[:, None] >= n[None, :]) & live[None, :], scores, -1.0e6)
        new_top = tl.maximum(top, tl.max(scores, 1))
        p = tl.exp2(scores - new_top[:, None])
        old = tl.exp2(top - new_top)
        total = total * old + tl.sum(p, 1)
        acc = acc * old[:, None]
        v = tl.load(v_ptr + (first + n)[:, None] * kv_width + kv + d[None, :], mask=live[:, None], other=0.0)
        acc += tl.dot(p.to(tl.bfloat16), v)
        top = new_top
    tl.store(out_ptr + q_rows + d[None, :], (acc / total[:, None]).to(tl.bfloat16), mask=m[:, None] < length)


@triton.jit
def int8_attention(q_ptr, q_scale_ptr, k_ptr, k_scale_ptr, v_ptr, out_ptr, length, DIM: tl.constexpr,
                   BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):  # fmt: skip
    """Scores of 8-bit queries and keys, which have a scale for each block, and values of 16 bits."""
    head = tl.program_id(1)
    block = tl.program_id(0)
    m = block * BLOCK_M + tl.arange(0, BLOCK_M)
    d = tl.arange(0, DIM)
    base = head.to(tl.int64) * length * DIM
    q = tl.load(q_ptr + base + m[:, None] * DIM + d[None, :], mask=m[:, None] < length, other=0)
    q_scale = tl.load(q_scale_ptr + head * tl.cdiv(length, BLOCK_M) + block)
    k_scales = k_scale_ptr + head * tl.cdiv(length, BLOCK_N)
    top = tl.full((BLOCK_M,), -float("inf"), tl.float32)
    total = tl.zeros((BLOCK_M,), tl.float32)
    acc = tl.zeros((BLOCK_M, DIM), tl.float32)
    n = tl.arange(0, BLOCK_N)
    k_ptrs = k_ptr + base + n[None, :] * DIM + d[:, None]
    v_ptrs = v_ptr + base + n[:, None] * DIM + d[None, :]
    for start in range(0, length, BLOCK_N):
        live = n < length - start
        k = tl.load(k_ptrs, mask=live[None, :], other=0)
        k_scale = tl.load(k_scales)
        scores = tl.dot(q, k).to(tl.float32) * (q_scale * k_scale)
        scores = tl.where(live[None, :], scores, -1.0e6)
        new_top = tl.maximum(top, tl.max(scores, 1))
        p = tl.exp2(scores - new_top[:, None])
        old = tl.exp2(top - new_top)
        total = total * old + tl.sum(p, 1)
        v = tl.load(v_ptrs, mask=live[:, None], other=0.0)
        acc = acc * old[:, None] + tl.dot(p.to(tl.float16), v)
        top = new_top
        k_ptrs += BLOCK_N * DIM
        k_scales += 1
        v_ptrs += BLOCK_N * DIM
    tl.store(out_ptr + base + m[:, None] * DIM + d[None, :], acc / total[:, None], mask=m[:, None] < length)


# ------------------------------------------------------------------------------------------------------- pairs and triangles


@triton.jit
def row_products(x_ptr, out_ptr, M, K, BLOCK: tl.constexpr, BLOCK_K: tl.constexpr):
    """X @ x.T, of which each block below the diagonal is computed and stored twice."""
    i = tl.program_id(0)
    j = tl.program_id(1)
    if i < j:
        return
    rows = i * BLOCK + tl.arange(0, BLOCK)
    cols = j * BLOCK + tl.arange(0, BLOCK)
    k = tl.arange(0, BLOCK_K)
    a_ptrs = x_ptr + rows[:, None] * K + k[None, :]
    b_ptrs = x_ptr + cols[:, None] * K + k[None, :]
    acc = tl.zeros((BLOCK, BLOCK), tl.float32)
    for _ in range(0, tl.cdiv(K, BLOCK_K)):
        acc = tl.dot(tl.load(a_ptrs), tl.trans(tl.load(b_ptrs)), acc)
        a_ptrs += BLOCK_K
        b_ptrs += BLOCK_K
    out = acc.to(tl.bfloat16)
    tl.store(out_ptr + rows[:, None] * M + cols[None, :], out)
    if i != j:
        tl.store(out_ptr + cols[:, None] * M + rows[None, :], tl.trans(out))


@triton.jit
def kernel_sums(
    x_ptr, y_ptr, w_ptr, out_ptr, N, gamma, DIM: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr
):
    """Sums over n of exp(-gamma * |x_m - y_n|^2) * w_n."""
    m = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    d = tl.arange(0, DIM)
    x = tl.load(x_ptr + m[:, None] * DIM + d[None, :])
    x_norm = tl.sum(x.to(tl.float32) * x.to(tl.float32), 1)
    total = tl.zeros((BLOCK_M,), tl.float32)
    for start in range(0, N, BLOCK_N):
        n = start + tl.arange(0, BLOCK_N)
        y = tl.load(y_ptr + n[:, None] * DIM + d[None, :], mask=n[:, None] < N, other=0.0)
        y_norm = tl.sum(y.to(tl.float32) * y.to(tl.float32), 1)
        w = tl.load(w_ptr + n, mask=n < N, other=0.0)
        square = x_norm[:, None] + y_norm[None, :] - 2.0 * tl.dot(x, tl.trans(y))
        total += tl.sum(tl.exp(-gamma * tl.maximum(square, 0.0)) * w[None, :], 1)
    tl.store(out_ptr + m, total)


@triton.jit
def logit_sums(x_ptr, w_ptr, out_ptr, N, K, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
    """The logarithm of each row's sum of exponentials of x @ w.T, without the logits in memory."""
    m = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    k = tl.arange(0, BLOCK_K)
    top = tl.full((BLOCK_M,), -float("inf"), tl.float32)
    total = tl.zeros((BLOCK_M,), tl.float32)
    for start in range(0, N, BLOCK_N):
        n = start + tl.arange(0, BLOCK_N)
        logits = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
        for step in range(0, tl.cdiv(K, BLOCK_K)):
            x = tl.load(x_ptr + m[:, None] * K + step * BLOCK_K + k[None, :])
            w = tl.load(w_ptr + n[:, None] * K + step * BLOCK_K + k[None, :], mask=n[:, None] < N, other=0.0)
            logits = tl.dot(x, w.T, logits)
        logits = tl.where(n[None, :] < N, logits, -float("inf"))
        new_top = tl.maximum(top, tl.max(logits, 1))
        total = total * tl.exp(top - new_top) + tl.sum(tl.exp(logits - new_top[:, None]), 1)
        top = new_top
    tl.store(out_ptr + m, top + tl.log(total))


@triton.jit
def covariance(x_ptr, mean_ptr, out_ptr, M, N, ROWS: tl.constexpr, BLOCK: tl.constexpr, BLOCK_K: tl.constexpr):
    """(x - mean).T @ (x - mean) of many rows, a part of them in each program, added up by atomics."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    j = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mean_i = tl.load(mean_ptr + i)
    mean_j = tl.load(mean_ptr + j)
    acc = tl.zeros((BLOCK, BLOCK), tl.float32)
    first = tl.program_id(2) * ROWS
    for start in range(first, first + ROWS, BLOCK_K):
        k = start + tl.arange(0, BLOCK_K)
        live = (k < M)[:, None]
        a = tl.load(x_ptr + k[:, None] * N + i[None, :], mask=live, other=0.0)
        b = tl.load(x_ptr + k[:, None] * N + j[None, :], mask=live, other=0.0)
        a = tl.where(live, a - mean_i[None, :], 0.0)
        b = tl.where(live, b - mean_j[None, :], 0.0)
        acc = tl.dot(tl.trans(a), b, acc, input_precision="tf32")
    tl.atomic_add(out_ptr + i[:, None] * N + j[None, :], acc, sem="relaxed")


@triton.jit
def invert_triangles(a_ptr, out_ptr, SIDE: tl.constexpr):
    """Inverses of unit lower triangles, row by row."""
    base = tl.program_id(0).to(tl.int64) * SIDE * SIDE
    i = tl.arange(0, SIDE)
    place = base + i[:, None] * SIDE + i[None, :]
    inverse = -tl.where(i[:, None] > i[None, :], tl.load(a_ptr + place), 0.0)
    for row in range(1, SIDE):
        a = -tl.load(a_ptr + base + row * SIDE + i)
        a = tl.where(i < row, a, 0.0)
        a = a + tl.sum(a[:, None] * inverse, 0)
        inverse = tl.where((i == row)[:, None], a[None, :], inverse)
    inverse += (i[:, None] == i[None, :]).to(tl.float32)
    tl.store(out_ptr + place, inverse)


@triton.jit
def running_sums(x_ptr, out_ptr, T, D, BLOCK_T: tl.constexpr, BLOCK_D: tl.constexpr):
    """Sums down each column so far, by products with a triangle of ones."""
    batch = tl.program_id(1)
    d = tl.program_id(0) * BLOCK_D + tl.arange(0, BLOCK_D)
    t = tl.arange(0, BLOCK_T)
    ones = tl.where(t[:, None] >= t[None, :], 1.0, 0.0).to(tl.float16)
    base = batch.to(tl.int64) * T * D
    before = tl.zeros((BLOCK_D,), tl.float32)
    for start in range(0, T, BLOCK_T):
        at = base + (start + t)[:, None] * D + d[None, :]
        x = tl.load(x_ptr + at)
        tl.store(out_ptr + at, tl.dot(ones, x) + before[None, :])
        before += tl.sum(x.to(tl.float32), 0)


# ----------------------------------------------------------------------------------------------------------------- transforms


@triton.jit
def complex_product(a_ptr, b_re_ptr, b_im_ptr, out_ptr, M, N, K, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
                    BLOCK_K: tl.constexpr):  # fmt: skip
    """A product of complex numbers: those of a and of the result lie beside one another, b's parts apart."""
    m = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    n = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    real = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    imaginary = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for start in range(0, K, BLOCK_K):
        k = start + tl.arange(0, BLOCK_K)
        pair = 2 * start + tl.arange(0, 2 * BLOCK_K)
        a = tl.load(a_ptr + m[:, None] * 2 * K + pair[None, :])
        a_re, a_im = tl.split(tl.reshape(a, (BLOCK_M, BLOCK_K, 2)))
        b_re = tl.load(b_re_ptr + k[:, None] * N + n[None, :])
        b_im = tl.load(b_im_ptr + k[:, None] * N + n[None, :])
        real += tl.dot(a_re, b_re) - tl.dot(a_im, b_im)
        imaginary += tl.dot(a_re, b_im) + tl.dot(a_im, b_re)
    out = tl.interleave(real, imaginary).to(tl.float16)
    cols = tl.program_id(1) * 2 * BLOCK_N + tl.arange(0, 2 * BLOCK_N)
    tl.store(out_ptr + m[:, None] * 2 * N + cols[None, :], out)


@triton.jit
def short_convolution(x_ptr, w_ptr, out_ptr, L, OUT, IN: tl.constexpr, TAPS: tl.constexpr, STRIDE: tl.constexpr,
                      BLOCK_L: tl.constexpr, BLOCK_O: tl.constexpr):  # fmt: skip
    """A convolution along L of x [batch, IN, L] with w [TAPS, OUT, IN]."""
    batch = tl.program_id(0)
    place = tl.program_id(1) * BLOCK_L + tl.arange(0, BLOCK_L)
    o = tl.program_id(2) * BLOCK_O + tl.arange(0, BLOCK_O)
    i = tl.arange(0, IN)
    out_length = L // STRIDE
    acc = tl.zeros((BLOCK_O, BLOCK_L), tl.float32)
    for tap in tl.static_range(TAPS):
        at = place * STRIDE + tap - TAPS // 2
        live = (at >= 0) & (at < L)
        x = tl.load(x_ptr + (batch * IN + i)[:, None] * L + at[None, :], mask=live[None, :], other=0.0)
        w = tl.load(w_ptr + (tap * OUT + o)[:, None] * IN + i[None, :])
        acc = tl.dot(w, x, acc)
    acc = tl.maximum(acc, 0.0)
    tl.store(
        out_ptr + (batch * OUT + o)[:, None] * out_length + place[None, :], acc, mask=(place < out_length)[None, :]
    )


# -------------------------------------------------------------------------------------------------------------- scaled floats


@triton.jit
def fp8_blocks(a_ptr, a_scale_ptr, b_ptr, b_scale_ptr, out_ptr, M, N, K, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
               BLOCK_K: tl.constexpr):  # fmt: skip
    """8-bit floats with a scale for BLOCK_K of a row of a, and for a square of b [N, K]."""
    m = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    n = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    k = tl.arange(0, BLOCK_K)
    steps = tl.cdiv(K, BLOCK_K)
    a_ptrs = a_ptr + (m % M)[:, None] * K + k[None, :]
    b_ptrs = b_ptr + (n % N)[None, :] * K + k[:, None]
    a_scales = a_scale_ptr + (m % M) * steps
    b_scales = b_scale_ptr + (n % N) // BLOCK_K * steps
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for step in range(steps):
        a = tl.load(a_ptrs, mask=k[None, :] < K - step * BLOCK_K, other=0.0)
        b = tl.load(b_ptrs, mask=k[:, None] < K - step * BLOCK_K, other=0.0)
        acc += tl.dot(a, b) * tl.load(a_scales + step)[:, None] * tl.load(b_scales + step)[None, :]
        a_ptrs += BLOCK_K
        b_ptrs += BLOCK_K
    mask = (m < M)[:, None] & (n < N)[None, :]
    tl.store(out_ptr + m[:, None] * N + n[None, :], acc.to(tl.bfloat16), mask=mask)


@triton.jit
def int8_scaled(a_ptr, a_scale_ptr, b_ptr, b_scale_ptr, bias_ptr, out_ptr, M, N, K, BLOCK_M: tl.constexpr,
                BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):  # fmt: skip
    """8-bit integers, a scale for each row of a and each row of b [N, K]."""
    m = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    n = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    k = tl.arange(0, BLOCK_K)
    a_ptrs = a_ptr + m[:, None] * K + k[None, :]
    b_ptrs = b_ptr + n[None, :] * K + k[:, None]
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.int32)
    for start in range(0, K, BLOCK_K):
        a = tl.load(a_ptrs, mask=(m < M)[:, None] & (k < K - start)[None, :], other=0)
        b = tl.load(b_ptrs, mask=(n < N)[None, :] & (k < K - start)[:, None], other=0)
        acc = tl.dot(a, b, acc, out_dtype=tl.int32)
        a_ptrs += BLOCK_K
        b_ptrs += BLOCK_K
    a_scale = tl.load(a_scale_ptr + m, mask=m < M, other=0.0)
    b_scale = tl.load(b_scale_ptr + n, mask=n < N, other=0.0)
    bias = tl.load(bias_ptr + n, mask=n < N, other=0.0)
    out = acc.to(tl.float32) * a_scale[:, None] * b_scale[None, :] + bias[None, :]
    mask = (m < M)[:, None] & (n < N)[None, :]
    tl.store(out_ptr + m[:, None] * N + n[None, :], out.to(tl.bfloat16), mask=mask)


@triton.jit
def mx_weights(x_ptr, w_ptr, scale_ptr, out_ptr, M, N, K, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
               BLOCK_K: tl.constexpr):  # fmt: skip
    """Weights of 4 bits, two along K in a byte, with an exponent for 32 of them."""
    m = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    n = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    k = tl.arange(0, BLOCK_K)
    half = tl.arange(0, BLOCK_K // 2)
    part = tl.arange(0, BLOCK_K // 32)
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for start in range(0, K, BLOCK_K):
        x = tl.load(x_ptr + m[:, None] * K + start + k[None, :], mask=m[:, None] < M, other=0.0)
        w = tl.load(w_ptr + n[None, :] * (K // 2) + start // 2 + half[:, None])
        scale = tl.load(scale_ptr + n[:, None] * (K // 32) + start // 32 + part[None, :])
        acc = tl.dot_scaled(x, None, "bf16", w, scale, "e2m1", acc)
    tl.store(out_ptr + m[:, None] * N + n[None, :], acc.to(tl.bfloat16), mask=m[:, None] < M)
