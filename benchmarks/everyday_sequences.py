"""Kernels of servers and of sequence models: caches, quantised activations, tokens of experts, states, convolutions.

`everyday.py` times them.
"""

import tilewright as triton
import tilewright.language as tl

# ------------------------------------------------------------------------------------------------------ attention's parts


@triton.jit
def merge_states(a_ptr, a_lse_ptr, b_ptr, b_lse_ptr, out_ptr, lse_ptr, HEADS, DIM: tl.constexpr):
    token = tl.program_id(0).to(tl.int64)
    head = tl.program_id(1)
    a_lse = tl.load(a_lse_ptr + token * HEADS + head)
    b_lse = tl.load(b_lse_ptr + token * HEADS + head)
    top = tl.maximum(a_lse, b_lse)
    a_weight, b_weight = tl.exp(a_lse - top), tl.exp(b_lse - top)
    total = a_weight + b_weight
    offs = (token * HEADS + head) * DIM + tl.arange(0, DIM)
    a = tl.load(a_ptr + offs).to(tl.float32)
    b = tl.load(b_ptr + offs).to(tl.float32)
    tl.store(out_ptr + offs, a * (a_weight / total) + b * (b_weight / total))
    tl.store(lse_ptr + token * HEADS + head, top + tl.log(total))


@triton.jit
def combine_splits(
    parts_ptr, lse_ptr, out_ptr, length_ptr, SPLITS: tl.constexpr, CHUNK: tl.constexpr, DIM: tl.constexpr
):
    request = tl.program_id(0)
    head = tl.program_id(1)
    heads = tl.num_programs(1)
    length = tl.load(length_ptr + request)
    dims = tl.arange(0, DIM)
    top = -float("inf")
    total = 0.0
    acc = tl.zeros([DIM], dtype=tl.float32)
    for split in range(tl.cdiv(length, CHUNK)):
        place = (request * heads + head) * SPLITS + split
        lse = tl.load(lse_ptr + place)
        part = tl.load(parts_ptr + place * DIM + dims)
        new_top = tl.maximum(top, lse)
        old, new = tl.exp(top - new_top), tl.exp(lse - new_top)
        acc = acc * old + part * new
        total = total * old + new
        top = new_top
    tl.store(out_ptr + (request * heads + head) * DIM + dims, acc / total)


@triton.jit
def rotate_pairs(q_ptr, k_ptr, q_out_ptr, k_out_ptr, cos_ptr, sin_ptr, positions_ptr, T, Q_HEADS: tl.constexpr,
                 K_HEADS: tl.constexpr, DIM: tl.constexpr, BLOCK_T: tl.constexpr):  # fmt: skip
    tokens = tl.program_id(0) * BLOCK_T + tl.arange(0, BLOCK_T)
    head = tl.program_id(1)
    half: tl.constexpr = DIM // 2
    pairs = tl.arange(0, half)
    live = tokens < T
    positions = tl.load(positions_ptr + tokens, mask=live, other=0)
    cos = tl.load(cos_ptr + positions[:, None] * half + pairs[None, :], mask=live[:, None], other=1.0)
    sin = tl.load(sin_ptr + positions[:, None] * half + pairs[None, :], mask=live[:, None], other=0.0)
    if head < Q_HEADS:
        offs = (tokens[:, None] * Q_HEADS + head) * DIM + 2 * pairs[None, :]
        source, target = q_ptr + offs, q_out_ptr + offs
    else:
        offs = (tokens[:, None] * K_HEADS + (head - Q_HEADS)) * DIM + 2 * pairs[None, :]
        source, target = k_ptr + offs, k_out_ptr + offs
    x = tl.load(source, mask=live[:, None], other=0.0).to(tl.float32)
    y = tl.load(source + 1, mask=live[:, None], other=0.0).to(tl.float32)
    tl.store(target, x * cos - y * sin, mask=live[:, None])
    tl.store(target + 1, x * sin + y * cos, mask=live[:, None])


# ------------------------------------------------------------------------------------------------- quantised activations


@triton.jit
def quantize_groups(x_ptr, q_ptr, scale_ptr, groups, GROUP: tl.constexpr):
    group = tl.program_id(0).to(tl.int64)
    offs = group * GROUP + tl.arange(0, GROUP)
    x = tl.load(x_ptr + offs).to(tl.float32)
    largest = tl.maximum(tl.max(tl.abs(x)), 1e-10)
    scale = largest / 448.0
    tl.store(q_ptr + offs, tl.clamp(x / scale, -448.0, 448.0).to(tl.float8e4nv))
    tl.store(scale_ptr + group, scale)


@triton.jit
def silu_quantize(x_ptr, q_ptr, scale_ptr, N, GROUP: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = cols < N
    gate = tl.load(x_ptr + row * 2 * N + cols, mask=mask, other=0.0).to(tl.float32)
    up = tl.load(x_ptr + row * 2 * N + N + cols, mask=mask, other=0.0).to(tl.float32)
    y = tl.reshape(gate * tl.sigmoid(gate) * up, (BLOCK // GROUP, GROUP))
    scale = tl.maximum(tl.max(tl.abs(y), axis=1), 1e-10) / 127.0
    q = tl.extra.libdevice.rint(y / scale[:, None])
    tl.store(q_ptr + row * N + cols, tl.reshape(q, (BLOCK,)).to(tl.int8), mask=mask)
    group = tl.program_id(1) * (BLOCK // GROUP) + tl.arange(0, BLOCK // GROUP)
    tl.store(scale_ptr + row * (N // GROUP) + group, scale, mask=group < N // GROUP)


@triton.jit
def norm_quantize(x_ptr, residual_ptr, w_ptr, sum_ptr, q_ptr, scale_ptr, N, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    mask = cols < N
    x = tl.load(x_ptr + row * N + cols, mask=mask, other=0.0).to(tl.float32)
    x += tl.load(residual_ptr + row * N + cols, mask=mask, other=0.0).to(tl.float32)
    tl.store(sum_ptr + row * N + cols, x.to(tl.bfloat16), mask=mask)
    y = x * tl.rsqrt(tl.sum(x * x) / N + eps) * tl.load(w_ptr + cols, mask=mask, other=0.0)
    scale = tl.max(tl.abs(y)) / 127.0 + 1e-12
    tl.store(q_ptr + row * N + cols, (y / scale + tl.where(y >= 0, 0.5, -0.5)).to(tl.int8), mask=mask)
    tl.store(scale_ptr + row, scale)


# ----------------------------------------------------------------------------------------------------- tokens of experts


@triton.jit
def gather_tokens(x_ptr, order_ptr, out_ptr, N, EACH: tl.constexpr, BLOCK: tl.constexpr):
    place = tl.program_id(0).to(tl.int64)
    token = tl.load(order_ptr + place) // EACH
    for start in range(0, N, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        tl.store(out_ptr + place * N + cols, tl.load(x_ptr + token * N + cols, mask=cols < N), mask=cols < N)


@triton.jit
def sum_experts(y_ptr, place_ptr, weight_ptr, out_ptr, N, EACH: tl.constexpr, BLOCK: tl.constexpr):
    token = tl.program_id(0).to(tl.int64)
    cols = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    acc = tl.zeros((BLOCK,), tl.float32)
    for e in tl.static_range(EACH):
        place = tl.load(place_ptr + token * EACH + e).to(tl.int64)
        weight = tl.load(weight_ptr + token * EACH + e)
        acc += weight * tl.load(y_ptr + place * N + cols, mask=cols < N, other=0.0)
    tl.store(out_ptr + token * N + cols, acc, mask=cols < N)


# ------------------------------------------------------------------------------------------- states and convolutions


@triton.jit
def causal_conv(
    x_ptr, w_ptr, bias_ptr, out_ptr, L, D, WIDTH: tl.constexpr, BLOCK_L: tl.constexpr, BLOCK_D: tl.constexpr
):
    batch = tl.program_id(0)
    steps = tl.program_id(1) * BLOCK_L + tl.arange(0, BLOCK_L)
    channels = tl.program_id(2) * BLOCK_D + tl.arange(0, BLOCK_D)
    x_ptr += batch * L * D
    out_ptr += batch * L * D
    acc = tl.zeros((BLOCK_L, BLOCK_D), tl.float32) + tl.load(bias_ptr + channels, mask=channels < D, other=0.0)[None, :]
    for tap in tl.static_range(WIDTH):
        at = steps - (WIDTH - 1) + tap
        mask = (at >= 0)[:, None] & (at < L)[:, None] & (channels < D)[None, :]
        x = tl.load(x_ptr + at[:, None] * D + channels[None, :], mask=mask, other=0.0).to(tl.float32)
        acc += x * tl.load(w_ptr + tap * D + channels, mask=channels < D, other=0.0)[None, :]
    acc = acc * tl.sigmoid(acc)
    mask = (steps < L)[:, None] & (channels < D)[None, :]
    tl.store(out_ptr + steps[:, None] * D + channels[None, :], acc, mask=mask)


@triton.jit
def state_update(state_ptr, new_ptr, x_ptr, dt_ptr, a_ptr, b_ptr, c_ptr, d_ptr, out_ptr, D, STATE: tl.constexpr,
                 BLOCK: tl.constexpr):  # fmt: skip
    batch = tl.program_id(0)
    d = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    s = tl.arange(0, STATE)
    mask = d < D
    x = tl.load(x_ptr + batch * D + d, mask=mask, other=0.0).to(tl.float32)
    dt = tl.load(dt_ptr + batch * D + d, mask=mask, other=0.0).to(tl.float32)
    dt = tl.where(dt <= 20.0, tl.log(1.0 + tl.exp(dt)), dt)
    a = tl.load(a_ptr + d[:, None] * STATE + s[None, :], mask=mask[:, None], other=0.0)
    b = tl.load(b_ptr + batch * STATE + s).to(tl.float32)
    c = tl.load(c_ptr + batch * STATE + s).to(tl.float32)
    at = (batch * D + d)[:, None].to(tl.int64) * STATE + s[None, :]
    state = tl.load(state_ptr + at, mask=mask[:, None], other=0.0).to(tl.float32)
    state = state * tl.exp(a * dt[:, None]) + b[None, :] * (dt * x)[:, None]
    tl.store(new_ptr + at, state, mask=mask[:, None])
    y = tl.sum(state * c[None, :], axis=1) + x * tl.load(d_ptr + d, mask=mask, other=0.0)
    tl.store(out_ptr + batch * D + d, y, mask=mask)


@triton.jit
def recurrence(x_ptr, gate_ptr, out_ptr, L, D, BLOCK: tl.constexpr):
    batch = tl.program_id(0)
    d = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = d < D
    at = batch.to(tl.int64) * L * D + d
    h = tl.zeros((BLOCK,), tl.float32)
    for _ in range(L):
        gate = tl.sigmoid(tl.load(gate_ptr + at, mask=mask, other=0.0).to(tl.float32))
        h = gate * h + (1.0 - gate) * tl.load(x_ptr + at, mask=mask, other=0.0).to(tl.float32)
        tl.store(out_ptr + at, h, mask=mask)
        at += D


@triton.jit
def depthwise_conv(x_ptr, w_ptr, out_ptr, H, W, C, BLOCK_W: tl.constexpr, BLOCK_C: tl.constexpr):
    image, y = tl.program_id(0) // H, tl.program_id(0) % H
    columns = tl.program_id(1) * BLOCK_W + tl.arange(0, BLOCK_W)
    channels = tl.program_id(2) * BLOCK_C + tl.arange(0, BLOCK_C)
    acc = tl.zeros((BLOCK_W, BLOCK_C), tl.float32)
    for tap in tl.static_range(9):
        row = y + tap // 3 - 1
        column = columns + tap % 3 - 1
        inside = (row >= 0) & (row < H) & (column >= 0) & (column < W)
        offsets = ((image * H + row) * W + column)[:, None] * C + channels[None, :]
        x = tl.load(x_ptr + offsets, mask=inside[:, None] & (channels < C)[None, :], other=0.0)
        acc += x.to(tl.float32) * tl.load(w_ptr + tap * C + channels, mask=channels < C, other=0.0)[None, :]
    offsets = ((image * H + y) * W + columns)[:, None] * C + channels[None, :]
    tl.store(out_ptr + offsets, acc, mask=(columns < W)[:, None] & (channels < C)[None, :])


@triton.jit
def hadamard(x_ptr, out_ptr, scale, N: tl.constexpr, LEVELS: tl.constexpr):
    offs = tl.program_id(0).to(tl.int64) * N + tl.arange(0, N)
    x = tl.load(x_ptr + offs).to(tl.float32)
    for _ in tl.static_range(LEVELS):
        even, odd = tl.split(tl.reshape(x, (N // 2, 2)))
        x = tl.reshape(tl.permute(tl.join(even + odd, even - odd), (1, 0)), (N,))
    tl.store(out_ptr + offs, x * scale)


# -------------------------------------------------------------------------------------------------- losses and clusters


@triton.jit
def divergence(student_ptr, teacher_ptr, loss_ptr, V, temperature, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    s_top, t_top = -float("inf"), -float("inf")
    s_sum, t_sum = 0.0, 0.0
    for start in range(0, V, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        s = tl.load(student_ptr + row * V + cols, mask=cols < V, other=-float("inf")).to(tl.float32) / temperature
        t = tl.load(teacher_ptr + row * V + cols, mask=cols < V, other=-float("inf")).to(tl.float32) / temperature
        s_new, t_new = tl.maximum(s_top, tl.max(s)), tl.maximum(t_top, tl.max(t))
        s_sum = s_sum * tl.exp(s_top - s_new) + tl.sum(tl.exp(s - s_new))
        t_sum = t_sum * tl.exp(t_top - t_new) + tl.sum(tl.exp(t - t_new))
        s_top, t_top = s_new, t_new
    s_log, t_log = s_top + tl.log(s_sum), t_top + tl.log(t_sum)
    loss = 0.0
    for start in range(0, V, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        s = tl.load(student_ptr + row * V + cols, mask=cols < V, other=0.0).to(tl.float32) / temperature - s_log
        t = tl.load(teacher_ptr + row * V + cols, mask=cols < V, other=0.0).to(tl.float32) / temperature - t_log
        loss += tl.sum(tl.where(cols < V, tl.exp(t) * (t - s), 0.0))
    tl.store(loss_ptr + row, loss)


@triton.jit
def nearest(
    x_ptr, centre_ptr, norm_ptr, index_ptr, M, CENTRES, K: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr
):
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    k = tl.arange(0, K)
    x = tl.load(x_ptr + rows[:, None] * K + k[None, :], mask=(rows < M)[:, None], other=0.0)
    least = tl.full((BLOCK_M,), float("inf"), tl.float32)
    index = tl.zeros((BLOCK_M,), tl.int32)
    for start in range(0, CENTRES, BLOCK_N):
        cols = start + tl.arange(0, BLOCK_N)
        centres = tl.load(centre_ptr + cols[None, :] * K + k[:, None], mask=(cols < CENTRES)[None, :], other=0.0)
        norms = tl.load(norm_ptr + cols, mask=cols < CENTRES, other=float("inf"))
        distance = norms[None, :] - 2.0 * tl.dot(x, centres)
        best, at = tl.min(distance, axis=1, return_indices=True)
        index = tl.where(best < least, start + at, index)
        least = tl.minimum(best, least)
    tl.store(index_ptr + rows, index, mask=rows < M)


@triton.jit
def sparse_rows(starts_ptr, cols_ptr, values_ptr, x_ptr, out_ptr, N, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    n = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    acc = tl.zeros((BLOCK,), tl.float32)
    for place in range(tl.load(starts_ptr + row), tl.load(starts_ptr + row + 1)):
        col = tl.load(cols_ptr + place).to(tl.int64)
        acc += tl.load(values_ptr + place) * tl.load(x_ptr + col * N + n, mask=n < N, other=0.0)
    tl.store(out_ptr + row.to(tl.int64) * N + n, acc, mask=n < N)
