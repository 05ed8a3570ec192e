"""Kernels that users write every day, around products: layers, attention against a cache, experts. `everyday.py` times them."""

import tilewright as triton
import tilewright.language as tl


@triton.jit
def linear_gelu(
    a_ptr, b_ptr, bias_ptr, c_ptr, M, N, K, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr
):
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    k = tl.arange(0, BLOCK_K)
    a_ptrs = a_ptr + rows[:, None] * K + k[None, :]
    b_ptrs = b_ptr + cols[None, :] * K + k[:, None]
    total = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for start in range(0, K, BLOCK_K):
        a = tl.load(a_ptrs, mask=(rows < M)[:, None] & (start + k < K)[None, :], other=0.0)
        b = tl.load(b_ptrs, mask=(cols < N)[None, :] & (start + k < K)[:, None], other=0.0)
        total = tl.dot(a, b, total)
        a_ptrs += BLOCK_K
        b_ptrs += BLOCK_K
    total += tl.load(bias_ptr + cols, mask=cols < N, other=0.0)[None, :]
    total = total * tl.sigmoid(1.702 * total)
    mask = (rows < M)[:, None] & (cols < N)[None, :]
    tl.store(c_ptr + rows[:, None] * N + cols[None, :], total.to(tl.float16), mask=mask)


@triton.jit
def int8_weights(
    a_ptr, b_ptr, scale_ptr, c_ptr, M, N, K, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr
):
    rows = tl.program_id(1) * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    total = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for start in range(0, K, BLOCK_K):
        k = start + tl.arange(0, BLOCK_K)
        a = tl.load(a_ptr + rows[:, None] * K + k[None, :], mask=(rows < M)[:, None] & (k < K)[None, :], other=0.0)
        b = tl.load(b_ptr + k[:, None] * N + cols[None, :], mask=(k < K)[:, None] & (cols < N)[None, :], other=0)
        total += tl.dot(a, b.to(tl.bfloat16))
    total *= tl.load(scale_ptr + cols, mask=cols < N, other=0.0)[None, :]
    mask = (rows < M)[:, None] & (cols < N)[None, :]
    tl.store(c_ptr + rows[:, None] * N + cols[None, :], total.to(tl.bfloat16), mask=mask)


@triton.jit
def int8_product(a_ptr, b_ptr, a_scale_ptr, b_scale_ptr, c_ptr, M, N, K, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
                 BLOCK_K: tl.constexpr):  # fmt: skip
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    total = tl.zeros((BLOCK_M, BLOCK_N), tl.int32)
    for start in range(0, K, BLOCK_K):
        k = start + tl.arange(0, BLOCK_K)
        a = tl.load(a_ptr + rows[:, None] * K + k[None, :], mask=(rows < M)[:, None] & (k < K)[None, :], other=0)
        b = tl.load(b_ptr + cols[None, :] * K + k[:, None], mask=(cols < N)[None, :] & (k < K)[:, None], other=0)
        total = tl.dot(a, b, total, out_dtype=tl.int32)
    row_scale = tl.load(a_scale_ptr + rows, mask=rows < M, other=0.0)
    col_scale = tl.load(b_scale_ptr + cols, mask=cols < N, other=0.0)
    c = total.to(tl.float32) * row_scale[:, None] * col_scale[None, :]
    tl.store(
        c_ptr + rows[:, None] * N + cols[None, :], c.to(tl.bfloat16), mask=(rows < M)[:, None] & (cols < N)[None, :]
    )


@triton.jit
def batched_product(a_ptr, b_ptr, c_ptr, M, N, K, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
    batch = tl.program_id(2)
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    a_ptr += batch * M * K
    b_ptr += batch * K * N
    total = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for start in range(0, K, BLOCK_K):
        k = start + tl.arange(0, BLOCK_K)
        a = tl.load(a_ptr + rows[:, None] * K + k[None, :], mask=(rows < M)[:, None] & (k < K)[None, :], other=0.0)
        b = tl.load(b_ptr + k[:, None] * N + cols[None, :], mask=(k < K)[:, None] & (cols < N)[None, :], other=0.0)
        total = tl.dot(a, b, total)
    mask = (rows < M)[:, None] & (cols < N)[None, :]
    tl.store(c_ptr + batch * M * N + rows[:, None] * N + cols[None, :], total.to(tl.float16), mask=mask)


@triton.jit
def convolution(x_ptr, w_ptr, out_ptr, H, W, C, OUT, PIXELS, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
                BLOCK_K: tl.constexpr):  # fmt: skip
    pixel = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    image = pixel // (H * W)
    y = pixel // W % H
    x = pixel % W
    total = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for tap in range(9):
        row = y + tap // 3 - 1
        col = x + tap % 3 - 1
        inside = (pixel < PIXELS) & (row >= 0) & (row < H) & (col >= 0) & (col < W)
        start = ((image * H + row) * W + col) * C
        for first in range(0, C, BLOCK_K):
            c = first + tl.arange(0, BLOCK_K)
            a = tl.load(x_ptr + start[:, None] + c[None, :], mask=inside[:, None] & (c < C)[None, :], other=0.0)
            b = tl.load(w_ptr + (tap * C + c)[:, None] * OUT + cols[None, :],
                        mask=(c < C)[:, None] & (cols < OUT)[None, :], other=0.0)  # fmt: skip
            total = tl.dot(a, b, total)
    mask = (pixel < PIXELS)[:, None] & (cols < OUT)[None, :]
    tl.store(out_ptr + pixel[:, None] * OUT + cols[None, :], total.to(tl.float16), mask=mask)


@triton.jit
def lora_shrink(
    x_ptr, a_ptr, out_ptr, M, R, K, PART, BLOCK_M: tl.constexpr, BLOCK_R: tl.constexpr, BLOCK_K: tl.constexpr
):
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    ranks = tl.arange(0, BLOCK_R)
    first = tl.program_id(1) * PART
    total = tl.zeros((BLOCK_M, BLOCK_R), tl.float32)
    for start in range(first, first + PART, BLOCK_K):
        k = start + tl.arange(0, BLOCK_K)
        x = tl.load(x_ptr + rows[:, None] * K + k[None, :], mask=(rows < M)[:, None] & (k < K)[None, :], other=0.0)
        a = tl.load(a_ptr + ranks[None, :] * K + k[:, None], mask=(ranks < R)[None, :] & (k < K)[:, None], other=0.0)
        total = tl.dot(x, a, total)
    mask = (rows < M)[:, None] & (ranks < R)[None, :]
    tl.atomic_add(out_ptr + rows[:, None] * R + ranks[None, :], total, mask=mask)


@triton.jit
def decode(q_ptr, k_ptr, v_ptr, out_ptr, most_ptr, total_ptr, length, scale, GROUP, PART: tl.constexpr,
           BLOCK_G: tl.constexpr, BLOCK_N: tl.constexpr, D: tl.constexpr):  # fmt: skip
    head = tl.program_id(0)
    part = tl.program_id(1)
    g = tl.arange(0, BLOCK_G)
    d = tl.arange(0, D)
    q = tl.load(q_ptr + (head * GROUP + g)[:, None] * D + d[None, :], mask=(g < GROUP)[:, None], other=0.0)
    most = tl.full([BLOCK_G], -float("inf"), tl.float32)
    total = tl.zeros([BLOCK_G], tl.float32)
    out = tl.zeros([BLOCK_G, D], tl.float32)
    end = tl.minimum((part + 1) * PART, length)
    for start in range(part * PART, end, BLOCK_N):
        n = start + tl.arange(0, BLOCK_N)
        k = tl.load(k_ptr + (head * length + n)[None, :] * D + d[:, None], mask=(n < end)[None, :], other=0.0)
        scores = tl.where((n < end)[None, :], tl.dot(q, k) * scale, -float("inf"))
        new = tl.maximum(most, tl.max(scores, axis=1))
        p = tl.exp(scores - new[:, None])
        old = tl.exp(most - new)
        v = tl.load(v_ptr + (head * length + n)[:, None] * D + d[None, :], mask=(n < end)[:, None], other=0.0)
        out = out * old[:, None] + tl.dot(p.to(v.dtype), v)
        total = total * old + tl.sum(p, axis=1)
        most = new
    place = (head * tl.num_programs(1) + part) * GROUP + g
    tl.store(out_ptr + place[:, None] * D + d[None, :], out / total[:, None], mask=(g < GROUP)[:, None])
    tl.store(most_ptr + place, most, mask=g < GROUP)
    tl.store(total_ptr + place, total, mask=g < GROUP)


@triton.jit
def paged_decode(q_ptr, k_ptr, v_ptr, table_ptr, lengths_ptr, out_ptr, pages_most, scale, heads, GROUP,
                 PAGE: tl.constexpr, BLOCK_G: tl.constexpr, D: tl.constexpr):  # fmt: skip
    request = tl.program_id(0)
    head = tl.program_id(1)
    g = tl.arange(0, BLOCK_G)
    d = tl.arange(0, D)
    n = tl.arange(0, PAGE)
    place = (request * heads + head) * GROUP + g
    q = tl.load(q_ptr + place[:, None] * D + d[None, :], mask=(g < GROUP)[:, None], other=0.0)
    length = tl.load(lengths_ptr + request)
    most = tl.full([BLOCK_G], -float("inf"), tl.float32)
    total = tl.zeros([BLOCK_G], tl.float32)
    out = tl.zeros([BLOCK_G, D], tl.float32)
    for i in range(0, tl.cdiv(length, PAGE)):
        page = tl.load(table_ptr + request * pages_most + i).to(tl.int64)
        offsets = ((page * PAGE + n) * heads + head)[:, None] * D + d[None, :]
        k = tl.load(k_ptr + offsets)
        v = tl.load(v_ptr + offsets)
        scores = tl.where((i * PAGE + n < length)[None, :], tl.dot(q, tl.trans(k)) * scale, -float("inf"))
        new = tl.maximum(most, tl.max(scores, axis=1))
        p = tl.exp(scores - new[:, None])
        old = tl.exp(most - new)
        out = out * old[:, None] + tl.dot(p.to(v.dtype), v)
        total = total * old + tl.sum(p, axis=1)
        most = new
    tl.store(out_ptr + place[:, None] * D + d[None, :], (out / total[:, None]).to(q.dtype), mask=(g < GROUP)[:, None])


@triton.jit
def experts(x_ptr, w_ptr, out_ptr, tokens_ptr, expert_ptr, M, N, K, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
            BLOCK_K: tl.constexpr):  # fmt: skip
    slots = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    token = tl.load(tokens_ptr + slots)
    known = token < M
    expert = tl.load(expert_ptr + tl.program_id(0)).to(tl.int64)
    k = tl.arange(0, BLOCK_K)
    x_ptrs = x_ptr + token[:, None] * K + k[None, :]
    w_ptrs = w_ptr + expert * N * K + cols[None, :] * K + k[:, None]
    total = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for start in range(0, K, BLOCK_K):
        x = tl.load(x_ptrs, mask=known[:, None] & (start + k < K)[None, :], other=0.0)
        w = tl.load(w_ptrs, mask=(start + k < K)[:, None], other=0.0)
        total = tl.dot(x, w, total)
        x_ptrs += BLOCK_K
        w_ptrs += BLOCK_K
    tl.store(out_ptr + token[:, None] * N + cols[None, :], total.to(tl.bfloat16), mask=known[:, None])


@triton.jit
def linear_attention(q_ptr, k_ptr, v_ptr, out_ptr, length, CHUNK: tl.constexpr, D: tl.constexpr, DV: tl.constexpr):
    head = tl.program_id(0)
    d = tl.arange(0, D)
    dv = tl.program_id(1) * DV + tl.arange(0, DV)
    i = tl.arange(0, CHUNK)
    width = tl.num_programs(1) * DV
    state = tl.zeros((D, DV), tl.float32)
    for start in range(0, length, CHUNK):
        row = head * length + start + i
        q = tl.load(q_ptr + row[:, None] * D + d[None, :])
        k = tl.load(k_ptr + row[:, None] * D + d[None, :])
        v = tl.load(v_ptr + row[:, None] * width + dv[None, :])
        scores = tl.dot(q, tl.trans(k))
        scores = tl.where(i[:, None] >= i[None, :], scores, 0.0)
        out = tl.dot(scores.to(v.dtype), v)
        out = tl.dot(q, state.to(q.dtype), out)
        state = tl.dot(tl.trans(k), v, state)
        tl.store(out_ptr + row[:, None] * width + dv[None, :], out.to(q.dtype))
