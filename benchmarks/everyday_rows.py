"""Kernels that users write every day, without products: rows, images, tables. `everyday.py` times them."""

import tilewright as triton
import tilewright.language as tl

# ------------------------------------------------------------------------------------------------- rows at once


@triton.jit
def add_rms_norm(x_ptr, residual_ptr, w_ptr, sum_ptr, out_ptr, N, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    mask = cols < N
    x = tl.load(x_ptr + row * N + cols, mask=mask, other=0.0).to(tl.float32)
    x += tl.load(residual_ptr + row * N + cols, mask=mask, other=0.0).to(tl.float32)
    tl.store(sum_ptr + row * N + cols, x, mask=mask)
    scale = tl.rsqrt(tl.sum(x * x, axis=0) / N + eps)
    w = tl.load(w_ptr + cols, mask=mask, other=0.0).to(tl.float32)
    tl.store(out_ptr + row * N + cols, x * scale * w, mask=mask)


@triton.jit
def masked_softmax(x_ptr, out_ptr, L, scale, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    start = (tl.program_id(1) * L + row).to(tl.int64) * L
    x = tl.load(x_ptr + start + cols, mask=cols < L, other=-float("inf")).to(tl.float32) * scale
    x = tl.where(cols <= row, x, -float("inf"))
    e = tl.exp(x - tl.max(x, axis=0))
    tl.store(out_ptr + start + cols, e / tl.sum(e, axis=0), mask=cols < L)


@triton.jit
def quantize_rows(x_ptr, q_ptr, scale_ptr, N, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * N + cols, mask=cols < N, other=0.0).to(tl.float32)
    scale = tl.maximum(tl.max(tl.abs(x), axis=0), 1e-12) / 448.0
    tl.store(q_ptr + row * N + cols, (x / scale).to(tl.float8e4nv), mask=cols < N)
    tl.store(scale_ptr + row, scale)


@triton.jit
def cosine(x_ptr, y_ptr, out_ptr, M, N, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    cols = tl.arange(0, BLOCK)
    mask = (rows < M)[:, None] & (cols < N)[None, :]
    offsets = rows[:, None] * N + cols[None, :]
    x = tl.load(x_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
    y = tl.load(y_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
    norms = tl.sqrt(tl.sum(x * x, axis=1) * tl.sum(y * y, axis=1))
    tl.store(out_ptr + rows, tl.sum(x * y, axis=1) / norms, mask=rows < M)


@triton.jit
def route(logits_ptr, expert_ptr, weight_ptr, M, E, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    cols = tl.arange(0, BLOCK)
    mask = (rows < M)[:, None] & (cols < E)[None, :]
    x = tl.load(logits_ptr + rows[:, None] * E + cols[None, :], mask=mask, other=-float("inf")).to(tl.float32)
    total = tl.sum(tl.exp(x - tl.max(x, axis=1)[:, None]), axis=1)
    best, first = tl.max(x, axis=1, return_indices=True)
    x = tl.where(cols[None, :] == first[:, None], -float("inf"), x)
    second_best, second = tl.max(x, axis=1, return_indices=True)
    tl.store(expert_ptr + rows * 2, first, mask=rows < M)
    tl.store(expert_ptr + rows * 2 + 1, second, mask=rows < M)
    tl.store(weight_ptr + rows * 2, 1.0 / total, mask=rows < M)
    tl.store(weight_ptr + rows * 2 + 1, tl.exp(second_best - best) / total, mask=rows < M)


# ------------------------------------------------------------------------------------------ rows, block by block


@triton.jit
def layer_norm_blocks(x_ptr, w_ptr, b_ptr, out_ptr, N, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    x_ptr += row * N
    out_ptr += row * N
    total = tl.zeros([BLOCK], tl.float32)
    for start in range(0, N, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        total += tl.load(x_ptr + cols, mask=cols < N, other=0.0).to(tl.float32)
    mean = tl.sum(total, axis=0) / N
    squares = tl.zeros([BLOCK], tl.float32)
    for start in range(0, N, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + cols, mask=cols < N, other=0.0).to(tl.float32)
        x = tl.where(cols < N, x - mean, 0.0)
        squares += x * x
    rstd = 1 / tl.sqrt(tl.sum(squares, axis=0) / N + eps)
    for start in range(0, N, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        mask = cols < N
        w = tl.load(w_ptr + cols, mask=mask)
        b = tl.load(b_ptr + cols, mask=mask)
        x = tl.load(x_ptr + cols, mask=mask, other=0.0).to(tl.float32)
        tl.store(out_ptr + cols, (x - mean) * rstd * w + b, mask=mask)


@triton.jit
def softmax_blocks(x_ptr, out_ptr, N, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    largest = -float("inf")
    total = 0.0
    for start in range(0, N, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * N + cols, mask=cols < N, other=-float("inf")).to(tl.float32)
        new = tl.maximum(largest, tl.max(x, axis=0))
        total = total * tl.exp(largest - new) + tl.sum(tl.exp(x - new), axis=0)
        largest = new
    for start in range(0, N, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * N + cols, mask=cols < N, other=-float("inf")).to(tl.float32)
        tl.store(out_ptr + row * N + cols, tl.exp(x - largest) / total, mask=cols < N)


@triton.jit
def cross_entropy(x_ptr, target_ptr, loss_ptr, N, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    target = tl.load(target_ptr + row)
    largest = -float("inf")
    total = 0.0
    for start in range(0, N, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * N + cols, mask=cols < N, other=-float("inf")).to(tl.float32)
        new = tl.maximum(largest, tl.max(x))
        total = total * tl.exp(largest - new) + tl.sum(tl.exp(x - new))
        largest = new
    wanted = tl.load(x_ptr + row * N + target).to(tl.float32)
    tl.store(loss_ptr + row, tl.log(total) + largest - wanted)


@triton.jit
def argmax_blocks(x_ptr, out_ptr, N, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    best = tl.full([BLOCK], -float("inf"), tl.float32)
    where = tl.zeros([BLOCK], tl.int32)
    for start in range(0, N, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * N + cols, mask=cols < N, other=-float("inf")).to(tl.float32)
        where = tl.where(x > best, cols, where)
        best = tl.maximum(x, best)
    lane = tl.argmax(best, axis=0)
    tl.store(out_ptr + row, tl.sum(tl.where(tl.arange(0, BLOCK) == lane, where, 0), axis=0))


@triton.jit
def group_norm(x_ptr, w_ptr, b_ptr, out_ptr, GROUP, CHANNEL, groups, eps, BLOCK: tl.constexpr):
    group = tl.program_id(0)
    x_ptr += group.to(tl.int64) * GROUP
    out_ptr += group.to(tl.int64) * GROUP
    total = tl.zeros([BLOCK], tl.float32)
    squares = tl.zeros([BLOCK], tl.float32)
    for start in range(0, GROUP, BLOCK):
        i = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + i, mask=i < GROUP, other=0.0).to(tl.float32)
        total += x
        squares += x * x
    mean = tl.sum(total) / GROUP
    rstd = tl.rsqrt(tl.sum(squares) / GROUP - mean * mean + eps)
    first_channel = group % groups * (GROUP // CHANNEL)
    for start in range(0, GROUP, BLOCK):
        i = start + tl.arange(0, BLOCK)
        channel = first_channel + i // CHANNEL
        x = tl.load(x_ptr + i, mask=i < GROUP, other=0.0).to(tl.float32)
        w = tl.load(w_ptr + channel, mask=i < GROUP)
        b = tl.load(b_ptr + channel, mask=i < GROUP)
        tl.store(out_ptr + i, (x - mean) * rstd * w + b, mask=i < GROUP)


@triton.jit
def column_sums(x_ptr, out_ptr, M, N, ROWS: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    cols = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    total = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)
    first = tl.program_id(1) * ROWS
    for start in range(first, first + ROWS, BLOCK_M):
        rows = start + tl.arange(0, BLOCK_M)
        mask = (rows < M)[:, None] & (cols < N)[None, :]
        total += tl.load(x_ptr + rows[:, None] * N + cols[None, :], mask=mask, other=0.0)
    tl.atomic_add(out_ptr + cols, tl.sum(total, axis=0), mask=cols < N)


@triton.jit
def gemv(w_ptr, x_ptr, out_ptr, M, K, BLOCK_M: tl.constexpr, BLOCK_K: tl.constexpr):
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    total = tl.zeros([BLOCK_M, BLOCK_K], tl.float32)
    for start in range(0, K, BLOCK_K):
        cols = start + tl.arange(0, BLOCK_K)
        mask = (rows < M)[:, None] & (cols < K)[None, :]
        w = tl.load(w_ptr + rows[:, None] * K + cols[None, :], mask=mask, other=0.0).to(tl.float32)
        x = tl.load(x_ptr + cols, mask=cols < K, other=0.0).to(tl.float32)
        total += w * x[None, :]
    tl.store(out_ptr + rows, tl.sum(total, axis=1), mask=rows < M)


# --------------------------------------------------------------------------------------------------- elementwise


@triton.jit
def swiglu(x_ptr, out_ptr, N, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    gate = tl.load(x_ptr + row * 2 * N + cols, mask=cols < N).to(tl.float32)
    up = tl.load(x_ptr + row * 2 * N + N + cols, mask=cols < N)
    tl.store(out_ptr + row * N + cols, (gate * tl.sigmoid(gate)).to(up.dtype) * up, mask=cols < N)


@triton.jit
def adamw(p_ptr, g_ptr, m_ptr, v_ptr, out_ptr, n, lr, beta1, beta2, eps, decay, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    p = tl.load(p_ptr + i, mask=mask).to(tl.float32)
    g = tl.load(g_ptr + i, mask=mask).to(tl.float32)
    m = beta1 * tl.load(m_ptr + i, mask=mask) + (1 - beta1) * g
    v = beta2 * tl.load(v_ptr + i, mask=mask) + (1 - beta2) * g * g
    tl.store(out_ptr + i, p * (1 - lr * decay) - lr * m / (tl.sqrt(v) + eps), mask=mask)
    tl.store(out_ptr + n + i, m, mask=mask)
    tl.store(out_ptr + 2 * n + i, v, mask=mask)


@triton.jit
def rope(x_ptr, cos_ptr, sin_ptr, out_ptr, heads, HALF: tl.constexpr, HEADS: tl.constexpr):
    token = tl.program_id(0)
    half = tl.arange(0, HALF)
    head = tl.arange(0, HEADS)
    cos = tl.load(cos_ptr + token * HALF + half)[None, :]
    sin = tl.load(sin_ptr + token * HALF + half)[None, :]
    offsets = (token * heads + head)[:, None] * (2 * HALF) + half[None, :]
    mask = (head < heads)[:, None]
    left = tl.load(x_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
    right = tl.load(x_ptr + offsets + HALF, mask=mask, other=0.0).to(tl.float32)
    tl.store(out_ptr + offsets, left * cos - right * sin, mask=mask)
    tl.store(out_ptr + offsets + HALF, right * cos + left * sin, mask=mask)


@triton.jit
def transpose(x_ptr, out_ptr, M, N, BLOCK: tl.constexpr):
    rows = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    cols = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + rows[:, None] * N + cols[None, :], mask=(rows < M)[:, None] & (cols < N)[None, :])
    tl.store(out_ptr + cols[:, None] * M + rows[None, :], tl.trans(x), mask=(cols < N)[:, None] & (rows < M)[None, :])


@triton.jit
def dequantize_int4(
    packed_ptr, scale_ptr, out_ptr, N, GROUP: tl.constexpr, BLOCK_K: tl.constexpr, BLOCK_N: tl.constexpr
):
    rows = tl.program_id(0) * BLOCK_K + tl.arange(0, BLOCK_K)
    cols = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    mask = (cols < N)[None, :]
    packed = tl.load(packed_ptr + (rows // 8)[:, None] * N + cols[None, :], mask=mask, other=0)
    scale = tl.load(scale_ptr + (rows // GROUP)[:, None] * N + cols[None, :], mask=mask, other=0.0)
    weight = ((packed >> (rows % 8 * 4)[:, None]) & 15) - 8
    tl.store(out_ptr + rows[:, None] * N + cols[None, :], weight.to(tl.float16) * scale, mask=mask)


# ------------------------------------------------------------------------------------------------ images, tables


@triton.jit
def max_pool(x_ptr, out_ptr, H, W, OUT_H, OUT_W, total, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    col = i % OUT_W
    row = i // OUT_W % OUT_H
    image = i // (OUT_W * OUT_H)
    best = tl.full([BLOCK], -float("inf"), tl.float32)
    for dy in tl.static_range(3):
        for dx in tl.static_range(3):
            y = row * 2 + dy - 1
            x = col * 2 + dx - 1
            inside = (y >= 0) & (y < H) & (x >= 0) & (x < W) & (i < total)
            best = tl.maximum(best, tl.load(x_ptr + (image * H + y) * W + x, mask=inside, other=-float("inf")))
    tl.store(out_ptr + i, best, mask=i < total)


@triton.jit
def upsample(x_ptr, out_ptr, H, W, total, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < total
    x = tl.maximum((i % (2 * W)).to(tl.float32) * 0.5 - 0.25, 0.0)
    y = tl.maximum((i // (2 * W) % (2 * H)).to(tl.float32) * 0.5 - 0.25, 0.0)
    image = i // (4 * W * H) * (H * W)
    left = x.to(tl.int32)
    top = y.to(tl.int32)
    right = tl.minimum(left + 1, W - 1)
    below = tl.minimum(top + 1, H - 1)
    fx = x - left
    fy = y - top
    upper = tl.load(x_ptr + image + top * W + left, mask=mask) * (1 - fx)
    upper += tl.load(x_ptr + image + top * W + right, mask=mask) * fx
    lower = tl.load(x_ptr + image + below * W + left, mask=mask) * (1 - fx)
    lower += tl.load(x_ptr + image + below * W + right, mask=mask) * fx
    tl.store(out_ptr + i, upper * (1 - fy) + lower * fy, mask=mask)


@triton.jit
def batch_norm_stats(x_ptr, mean_ptr, var_ptr, IMAGES, CHANNELS, PIXELS, BLOCK: tl.constexpr):
    channel = tl.program_id(0)
    total = tl.zeros([BLOCK], tl.float32)
    squares = tl.zeros([BLOCK], tl.float32)
    for image in range(IMAGES):
        start = x_ptr + (image * CHANNELS + channel) * PIXELS
        for first in range(0, PIXELS, BLOCK):
            i = first + tl.arange(0, BLOCK)
            x = tl.load(start + i, mask=i < PIXELS, other=0.0).to(tl.float32)
            total += x
            squares += x * x
    mean = tl.sum(total) / (IMAGES * PIXELS)
    tl.store(mean_ptr + channel, mean)
    tl.store(var_ptr + channel, tl.sum(squares) / (IMAGES * PIXELS) - mean * mean)


@triton.jit
def embedding(ids_ptr, table_ptr, out_ptr, N, BLOCK: tl.constexpr):
    token = tl.program_id(0)
    row = tl.load(ids_ptr + token)
    cols = tl.arange(0, BLOCK)
    tl.store(out_ptr + token * N + cols, tl.load(table_ptr + row * N + cols, mask=cols < N), mask=cols < N)


@triton.jit
def embedding_bag(ids_ptr, offsets_ptr, table_ptr, out_ptr, N, BLOCK: tl.constexpr):
    bag = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    total = tl.zeros([BLOCK], tl.float32)
    for i in range(tl.load(offsets_ptr + bag), tl.load(offsets_ptr + bag + 1)):
        row = tl.load(ids_ptr + i)
        total += tl.load(table_ptr + row * N + cols, mask=cols < N, other=0.0)
    tl.store(out_ptr + bag * N + cols, total, mask=cols < N)


@triton.jit
def embedding_backward(ids_ptr, grad_ptr, out_ptr, total, N: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    row = tl.load(ids_ptr + i // N, mask=i < total, other=0)
    grad = tl.load(grad_ptr + i, mask=i < total)
    tl.atomic_add(out_ptr + row * N + i % N, grad, mask=i < total, sem="relaxed")


@triton.jit
def segment_sum(x_ptr, segment_ptr, out_ptr, M, N, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    cols = tl.arange(0, BLOCK)
    mask = (rows < M)[:, None] & (cols < N)[None, :]
    segment = tl.load(segment_ptr + rows, mask=rows < M, other=0)
    x = tl.load(x_ptr + rows[:, None] * N + cols[None, :], mask=mask, other=0.0)
    tl.atomic_add(out_ptr + segment[:, None] * N + cols[None, :], x, mask=mask)


@triton.jit
def csr_times_vector(starts_ptr, cols_ptr, values_ptr, x_ptr, out_ptr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    total = tl.zeros([BLOCK], tl.float32)
    end = tl.load(starts_ptr + row + 1)
    for start in range(tl.load(starts_ptr + row), end, BLOCK):
        i = start + tl.arange(0, BLOCK)
        col = tl.load(cols_ptr + i, mask=i < end, other=0)
        total += tl.load(values_ptr + i, mask=i < end, other=0.0) * tl.load(x_ptr + col)
    tl.store(out_ptr + row, tl.sum(total))


@triton.jit
def write_cache(k_ptr, slots_ptr, cache_ptr, N, BLOCK: tl.constexpr):
    token = tl.program_id(0)
    slot = tl.load(slots_ptr + token)
    if slot >= 0:
        cols = tl.arange(0, BLOCK)
        tl.store(cache_ptr + slot * N + cols, tl.load(k_ptr + token * N + cols, mask=cols < N), mask=cols < N)


@triton.jit
def histogram(x_ptr, bins_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x_ptr + i, mask=i < n, other=0)
    tl.atomic_add(bins_ptr + value, 1, mask=i < n)
