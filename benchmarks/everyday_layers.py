"""Kernels of layers with more around a product than an epilogue: two weights, packed or sparse ones, norms, chains, windows.

`everyday.py` times them.
"""

import tilewright as triton
import tilewright.language as tl

# ------------------------------------------------------------------------------------------------- products with two weights


@triton.jit
def gated_product(x_ptr, gate_ptr, up_ptr, out_ptr, M, N, K, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
                  BLOCK_K: tl.constexpr):  # fmt: skip
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    k = tl.arange(0, BLOCK_K)
    x_ptrs = x_ptr + rows[:, None] * K + k[None, :]
    gate_ptrs = gate_ptr + k[:, None] * N + cols[None, :]
    up_ptrs = up_ptr + k[:, None] * N + cols[None, :]
    gate = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    up = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for _ in range(0, tl.cdiv(K, BLOCK_K)):
        x = tl.load(x_ptrs, mask=rows[:, None] < M, other=0.0)
        gate += tl.dot(x, tl.load(gate_ptrs, mask=cols[None, :] < N, other=0.0))
        up += tl.dot(x, tl.load(up_ptrs, mask=cols[None, :] < N, other=0.0))
        x_ptrs += BLOCK_K
        gate_ptrs += BLOCK_K * N
        up_ptrs += BLOCK_K * N
    out = gate * tl.sigmoid(gate) * up
    mask = (rows[:, None] < M) & (cols[None, :] < N)
    tl.store(out_ptr + rows[:, None] * N + cols[None, :], out.to(tl.bfloat16), mask=mask)


@triton.jit
def lora_product(x_ptr, w_ptr, a_ptr, b_ptr, out_ptr, M, N, K, scale, RANK: tl.constexpr, BLOCK_M: tl.constexpr,
                 BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):  # fmt: skip
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    rank = tl.arange(0, RANK)
    total = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    low = tl.zeros((BLOCK_M, RANK), tl.float32)
    for first in range(0, K, BLOCK_K):
        k = first + tl.arange(0, BLOCK_K)
        x = tl.load(x_ptr + rows[:, None] * K + k[None, :], mask=(rows < M)[:, None] & (k < K)[None, :], other=0.0)
        w = tl.load(w_ptr + k[:, None] * N + cols[None, :], mask=(k < K)[:, None] & (cols < N)[None, :], other=0.0)
        a = tl.load(a_ptr + k[:, None] * RANK + rank[None, :], mask=(k < K)[:, None], other=0.0)
        total = tl.dot(x, w, total)
        low = tl.dot(x, a, low)
    b = tl.load(b_ptr + rank[:, None] * N + cols[None, :], mask=cols[None, :] < N, other=0.0)
    total += scale * tl.dot(low.to(tl.float16), b)
    mask = (rows[:, None] < M) & (cols[None, :] < N)
    tl.store(out_ptr + rows[:, None] * N + cols[None, :], total.to(tl.float16), mask=mask)


# ------------------------------------------------------------------------------------------------- packed and sparse weights


@triton.jit
def gptq_product(x_ptr, words_ptr, scales_ptr, zeros_ptr, out_ptr, M, N, K, GROUP: tl.constexpr, BLOCK_M: tl.constexpr,
                 BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):  # fmt: skip
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    k = tl.arange(0, BLOCK_K)
    x_ptrs = x_ptr + rows[:, None] * K + k[None, :]
    word_ptrs = words_ptr + (k[:, None] // 8) * N + cols[None, :]
    shifts = (k % 8) * 4
    zero_shifts = (cols % 8) * 4
    total = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for step in range(0, K // BLOCK_K):
        group = step * BLOCK_K // GROUP
        scales = tl.load(scales_ptr + group * N + cols)
        zeros = (tl.load(zeros_ptr + group * (N // 8) + cols // 8) >> zero_shifts) & 15
        x = tl.load(x_ptrs, mask=rows[:, None] < M, other=0.0)
        w = (tl.load(word_ptrs) >> shifts[:, None]) & 15
        w = (w - zeros[None, :]).to(tl.float16) * scales[None, :]
        total += tl.dot(x, w)
        x_ptrs += BLOCK_K
        word_ptrs += (BLOCK_K // 8) * N
    mask = (rows[:, None] < M) & (cols[None, :] < N)
    tl.store(out_ptr + rows[:, None] * N + cols[None, :], total.to(tl.float16), mask=mask)


@triton.jit
def block_sparse_product(x_ptr, blocks_ptr, starts_ptr, places_ptr, out_ptr, M, N, K, BLOCK_M: tl.constexpr,
                         BLOCK: tl.constexpr):  # fmt: skip
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    column = tl.program_id(1)
    inner = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK_M, BLOCK), tl.float32)
    for i in range(tl.load(starts_ptr + column), tl.load(starts_ptr + column + 1)):
        k = tl.load(places_ptr + i) * BLOCK + inner
        x = tl.load(x_ptr + rows[:, None] * K + k[None, :], mask=rows[:, None] < M, other=0.0)
        w = tl.load(blocks_ptr + i * BLOCK * BLOCK + inner[:, None] * BLOCK + inner[None, :])
        total = tl.dot(x, w, total)
    cols = column * BLOCK + inner
    tl.store(out_ptr + rows[:, None] * N + cols[None, :], total.to(tl.float16), mask=rows[:, None] < M)


# ------------------------------------------------------------------------------------------------------- products and norms


@triton.jit
def normed_product(x_ptr, g_ptr, w_ptr, out_ptr, M, N, K, eps, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
                   BLOCK_K: tl.constexpr):  # fmt: skip
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    total = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    squares = tl.zeros((BLOCK_M,), tl.float32)
    for first in range(0, K, BLOCK_K):
        k = first + tl.arange(0, BLOCK_K)
        x = tl.load(x_ptr + rows[:, None] * K + k[None, :], mask=(rows < M)[:, None] & (k < K)[None, :], other=0.0)
        g = tl.load(g_ptr + k, mask=k < K, other=0.0)
        w = tl.load(w_ptr + k[:, None] * N + cols[None, :], mask=(k < K)[:, None] & (cols < N)[None, :], other=0.0)
        squares += tl.sum(x.to(tl.float32) * x.to(tl.float32), axis=1)
        total = tl.dot((x * g[None, :]), w, total)
    total *= tl.rsqrt(squares / K + eps)[:, None]
    mask = (rows[:, None] < M) & (cols[None, :] < N)
    tl.store(out_ptr + rows[:, None] * N + cols[None, :], total.to(tl.float16), mask=mask)


@triton.jit
def linear_norm(x_ptr, w_ptr, bias_ptr, residual_ptr, out_ptr, M, K, eps, BLOCK_M: tl.constexpr, N: tl.constexpr,
                BLOCK_K: tl.constexpr):  # fmt: skip
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = tl.arange(0, N)
    total = tl.zeros((BLOCK_M, N), tl.float32)
    for first in range(0, K, BLOCK_K):
        k = first + tl.arange(0, BLOCK_K)
        x = tl.load(x_ptr + rows[:, None] * K + k[None, :], mask=rows[:, None] < M, other=0.0)
        w = tl.load(w_ptr + k[:, None] * N + cols[None, :])
        total = tl.dot(x, w, total)
    offs = rows[:, None] * N + cols[None, :]
    total += tl.load(bias_ptr + cols)[None, :]
    total += tl.load(residual_ptr + offs, mask=rows[:, None] < M, other=0.0)
    centred = total - (tl.sum(total, axis=1) / N)[:, None]
    normal = centred * tl.rsqrt(tl.sum(centred * centred, axis=1) / N + eps)[:, None]
    tl.store(out_ptr + offs, normal.to(tl.float16), mask=rows[:, None] < M)


# -------------------------------------------------------------------------------------- chains, windows, sums over pixels


@triton.jit
def mlp(x_ptr, up_ptr, down_ptr, out_ptr, M, HIDDEN, DIM: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_H: tl.constexpr):
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    dims = tl.arange(0, DIM)
    x = tl.load(x_ptr + rows[:, None] * DIM + dims[None, :], mask=rows[:, None] < M, other=0.0)
    total = tl.zeros((BLOCK_M, DIM), tl.float32)
    for first in range(0, HIDDEN, BLOCK_H):
        hidden = first + tl.arange(0, BLOCK_H)
        up = tl.load(up_ptr + dims[:, None] * HIDDEN + hidden[None, :])
        down = tl.load(down_ptr + hidden[:, None] * DIM + dims[None, :])
        h = tl.dot(x, up)
        h = h * tl.sigmoid(1.702 * h)
        total = tl.dot(h.to(tl.float16), down, total)
    tl.store(out_ptr + rows[:, None] * DIM + dims[None, :], total.to(tl.float16), mask=rows[:, None] < M)


@triton.jit
def window_attention(q_ptr, k_ptr, v_ptr, out_ptr, length, scale, WINDOW: tl.constexpr, DIM: tl.constexpr,
                     BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):  # fmt: skip
    first = tl.program_id(0) * BLOCK_M
    start = tl.program_id(1).to(tl.int64) * length * DIM
    rows = first + tl.arange(0, BLOCK_M)
    dims = tl.arange(0, DIM)
    q = tl.load(q_ptr + start + rows[:, None] * DIM + dims[None, :], mask=rows[:, None] < length, other=0.0)
    most = tl.full((BLOCK_M,), -1e30, tl.float32)
    total = tl.zeros((BLOCK_M,), tl.float32)
    acc = tl.zeros((BLOCK_M, DIM), tl.float32)
    begin = tl.maximum(first - WINDOW + 1, 0) // BLOCK_N * BLOCK_N
    for j in range(begin, tl.minimum(first + BLOCK_M, length), BLOCK_N):
        cols = j + tl.arange(0, BLOCK_N)
        k = tl.load(k_ptr + start + cols[:, None] * DIM + dims[None, :], mask=cols[:, None] < length, other=0.0)
        v = tl.load(v_ptr + start + cols[:, None] * DIM + dims[None, :], mask=cols[:, None] < length, other=0.0)
        s = tl.dot(q, tl.trans(k)) * scale
        seen = (cols[None, :] <= rows[:, None]) & (cols[None, :] > rows[:, None] - WINDOW)
        s = tl.where(seen, s, -1e30)
        now = tl.maximum(most, tl.max(s, 1))
        p = tl.exp2(s - now[:, None])
        old = tl.exp2(most - now)
        total = total * old + tl.sum(p, 1)
        acc = tl.dot(p.to(tl.bfloat16), v, acc * old[:, None])
        most = now
    offs = start + rows[:, None] * DIM + dims[None, :]
    tl.store(out_ptr + offs, (acc / total[:, None]).to(tl.bfloat16), mask=rows[:, None] < length)


@triton.jit
def interaction(x_ptr, out_ptr, FEATURES, DIM: tl.constexpr, BLOCK: tl.constexpr):
    sample = tl.program_id(0)
    rows = tl.arange(0, BLOCK)
    dims = tl.arange(0, DIM)
    x_ptr += sample * FEATURES * DIM
    x = tl.load(x_ptr + rows[:, None] * DIM + dims[None, :], mask=rows[:, None] < FEATURES, other=0.0)
    products = tl.dot(x, tl.trans(x))
    below = (rows[:, None] > rows[None, :]) & (rows[:, None] < FEATURES)
    place = rows[:, None] * (rows[:, None] - 1) // 2 + rows[None, :]
    out_ptr += sample * (FEATURES * (FEATURES - 1) // 2)
    tl.store(out_ptr + place, products.to(tl.float16), mask=below)


@triton.jit
def convolution_gradient(x_ptr, dy_ptr, dw_ptr, H, W, C, OUT, PIXELS, PART, BLOCK_C: tl.constexpr, BLOCK_OUT: tl.constexpr,
                         BLOCK_P: tl.constexpr):  # fmt: skip
    channels = tl.program_id(0) * BLOCK_C + tl.arange(0, BLOCK_C)
    outs = tl.arange(0, BLOCK_OUT)
    tap = tl.program_id(1)
    down, right = tap // 3 - 1, tap % 3 - 1
    first = tl.program_id(2) * PART
    total = tl.zeros((BLOCK_C, BLOCK_OUT), tl.float32)
    for start in range(first, tl.minimum(first + PART, PIXELS), BLOCK_P):
        pixels = start + tl.arange(0, BLOCK_P)
        column, row = pixels % W + right, pixels // W % H + down
        inside = (pixels < PIXELS) & (column >= 0) & (column < W) & (row >= 0) & (row < H)
        place = pixels + down * W + right
        x_mask = inside[None, :] & (channels < C)[:, None]
        x = tl.load(x_ptr + place[None, :] * C + channels[:, None], mask=x_mask, other=0.0)
        dy_mask = (pixels < PIXELS)[:, None] & (outs < OUT)[None, :]
        dy = tl.load(dy_ptr + pixels[:, None] * OUT + outs[None, :], mask=dy_mask, other=0.0)
        total = tl.dot(x, dy, total)
    target = dw_ptr + (tap * C + channels[:, None]) * OUT + outs[None, :]
    tl.atomic_add(target, total, mask=(channels < C)[:, None] & (outs < OUT)[None, :])
