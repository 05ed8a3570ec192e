"""Kernels of training loops and of numerical programs: short rows, statistics, optimisers, stencils, pairs, bits.

`everyday.py` times them.
"""

import tilewright as triton
import tilewright.language as tl

# ----------------------------------------------------------------------------------------------------- rows and columns


@triton.jit
def head_norm(x_ptr, w_ptr, out_ptr, ROWS, eps, DIM: tl.constexpr, BLOCK: tl.constexpr):
    rows = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    cols = tl.arange(0, DIM)
    offs = rows[:, None] * DIM + cols[None, :]
    x = tl.load(x_ptr + offs, mask=rows[:, None] < ROWS, other=0.0).to(tl.float32)
    scale = tl.rsqrt(tl.sum(x * x, axis=1) / DIM + eps)
    w = tl.load(w_ptr + cols).to(tl.float32)
    tl.store(out_ptr + offs, x * scale[:, None] * w[None, :], mask=rows[:, None] < ROWS)


@triton.jit
def layer_norm_rows(x_ptr, w_ptr, b_ptr, out_ptr, stride, N, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    mask = cols < N
    x = tl.load(x_ptr + row * stride + cols, mask=mask, other=0.0).to(tl.float32)
    mean = tl.sum(x, axis=0) / N
    centred = tl.where(mask, x - mean, 0.0)
    scale = 1 / tl.sqrt(tl.sum(centred * centred, axis=0) / N + eps)
    w = tl.load(w_ptr + cols, mask=mask)
    b = tl.load(b_ptr + cols, mask=mask)
    tl.store(out_ptr + row * stride + cols, centred * scale * w + b, mask=mask)


@triton.jit
def softmax_columns(x_ptr, out_ptr, N, C, BLOCK_N: tl.constexpr, BLOCK_C: tl.constexpr):
    cols = tl.program_id(0) * BLOCK_C + tl.arange(0, BLOCK_C)
    rows = tl.arange(0, BLOCK_N)
    mask = (rows[:, None] < N) & (cols[None, :] < C)
    offs = rows[:, None] * C + cols[None, :]
    x = tl.load(x_ptr + offs, mask=mask, other=-float("inf")).to(tl.float32)
    x = tl.exp(x - tl.max(x, axis=0)[None, :])
    tl.store(out_ptr + offs, x / tl.sum(x, axis=0)[None, :], mask=mask)


@triton.jit
def batch_norm_gradients(
    x_ptr, dy_ptr, mean_ptr, rstd_ptr, dw_ptr, db_ptr, IMAGES, CHANNELS, PIXELS, BLOCK: tl.constexpr
):
    channel = tl.program_id(0)
    mean = tl.load(mean_ptr + channel)
    rstd = tl.load(rstd_ptr + channel)
    dw = tl.zeros([BLOCK], dtype=tl.float32)
    db = tl.zeros([BLOCK], dtype=tl.float32)
    for image in range(IMAGES):
        start = (image * CHANNELS + channel) * PIXELS
        for first in range(0, PIXELS, BLOCK):
            offs = first + tl.arange(0, BLOCK)
            mask = offs < PIXELS
            x = tl.load(x_ptr + start + offs, mask=mask, other=0.0).to(tl.float32)
            dy = tl.load(dy_ptr + start + offs, mask=mask, other=0.0).to(tl.float32)
            dw += dy * (x - mean) * rstd
            db += dy
    tl.store(dw_ptr + channel, tl.sum(dw))
    tl.store(db_ptr + channel, tl.sum(db))


@triton.jit
def mean_pool(x_ptr, lengths_ptr, out_ptr, S, D, BLOCK_S: tl.constexpr, BLOCK_D: tl.constexpr):
    batch = tl.program_id(0)
    cols = tl.program_id(1) * BLOCK_D + tl.arange(0, BLOCK_D)
    length = tl.load(lengths_ptr + batch)
    total = tl.zeros([BLOCK_D], dtype=tl.float32)
    for first in range(0, length, BLOCK_S):
        rows = first + tl.arange(0, BLOCK_S)
        mask = (rows[:, None] < length) & (cols[None, :] < D)
        x = tl.load(x_ptr + (batch * S + rows[:, None]) * D + cols[None, :], mask=mask, other=0.0)
        total += tl.sum(x.to(tl.float32), axis=0)
    tl.store(out_ptr + batch * D + cols, total / length, mask=cols < D)


# ------------------------------------------------------------------------------------------------------------- training


@triton.jit
def cross_entropy_gradient(x_ptr, target_ptr, loss_ptr, gradient_ptr, V, scale, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    x_ptr += row * V
    gradient_ptr += row * V
    target = tl.load(target_ptr + row)
    chosen = tl.load(x_ptr + target).to(tl.float32)
    most = -float("inf")
    total = 0.0
    for first in range(0, V, BLOCK):
        offs = first + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + offs, mask=offs < V, other=-float("inf")).to(tl.float32)
        now = tl.maximum(most, tl.max(x))
        total = total * tl.exp(most - now) + tl.sum(tl.exp(x - now))
        most = now
    for first in range(0, V, BLOCK):
        offs = first + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + offs, mask=offs < V, other=-float("inf")).to(tl.float32)
        share = tl.exp(x - most) / total
        gradient = tl.where(offs == target, share - 1.0, share) * scale
        tl.store(gradient_ptr + offs, gradient, mask=offs < V)
    tl.store(loss_ptr + row, most + tl.log(total) - chosen)


@triton.jit
def focal_loss(x_ptr, target_ptr, loss_ptr, n, alpha, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    x = tl.load(x_ptr + offs, mask=mask, other=0.0).to(tl.float32)
    target = tl.load(target_ptr + offs, mask=mask, other=0).to(tl.float32)
    entropy = tl.maximum(x, 0.0) - x * target + tl.log(1.0 + tl.exp(-tl.abs(x)))
    share = tl.sigmoid(x)
    missed = share * (1.0 - target) + (1.0 - share) * target
    loss = (alpha * target + (1.0 - alpha) * (1.0 - target)) * missed * missed * entropy
    tl.atomic_add(loss_ptr, tl.sum(tl.where(mask, loss, 0.0)))


@triton.jit
def adam_8bit(p_ptr, g_ptr, m_ptr, v_ptr, scales_ptr, code_ptr, out_ptr, new_m_ptr, new_v_ptr, new_scales_ptr, groups_all,
              lr, beta1, beta2, eps, GROUPS: tl.constexpr, GROUP: tl.constexpr):  # fmt: skip
    groups = tl.program_id(0) * GROUPS + tl.arange(0, GROUPS)
    offs = groups[:, None] * GROUP + tl.arange(0, GROUP)[None, :]
    g = tl.load(g_ptr + offs).to(tl.float32)
    m = tl.load(code_ptr + tl.load(m_ptr + offs).to(tl.int32)) * tl.load(scales_ptr + groups)[:, None]
    v = tl.load(v_ptr + offs).to(tl.float32) / 255 * tl.load(scales_ptr + groups_all + groups)[:, None]
    m = beta1 * m + (1 - beta1) * g
    v = beta2 * v + (1 - beta2) * g * g
    p = tl.load(p_ptr + offs) - lr * m / (tl.sqrt(v) + eps)
    tl.store(out_ptr + offs, p)
    m_scale = tl.max(tl.abs(m), axis=1)
    v_scale = tl.max(v, axis=1)
    tl.store(new_scales_ptr + groups, m_scale)
    tl.store(new_scales_ptr + groups_all + groups, v_scale)
    tl.store(new_m_ptr + offs, (m / m_scale[:, None] * 127 + 128).to(tl.uint8))
    tl.store(new_v_ptr + offs, (v / v_scale[:, None] * 255).to(tl.uint8))


@triton.jit
def lstm_cell(gates_ptr, c_ptr, h_ptr, new_c_ptr, H, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = cols < H
    gates = gates_ptr + row * 4 * H + cols
    enter = tl.sigmoid(tl.load(gates, mask=mask, other=0.0).to(tl.float32))
    forget = tl.sigmoid(tl.load(gates + H, mask=mask, other=0.0).to(tl.float32))
    cell = 2 * tl.sigmoid(2 * tl.load(gates + 2 * H, mask=mask, other=0.0).to(tl.float32)) - 1
    out = tl.sigmoid(tl.load(gates + 3 * H, mask=mask, other=0.0).to(tl.float32))
    c = forget * tl.load(c_ptr + row * H + cols, mask=mask, other=0.0) + enter * cell
    tl.store(new_c_ptr + row * H + cols, c, mask=mask)
    tl.store(h_ptr + row * H + cols, out * (2 * tl.sigmoid(2 * c) - 1), mask=mask)


@triton.jit
def philox_dropout(x_ptr, out_ptr, n, seed, keep, BLOCK: tl.constexpr):
    words = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    c0 = words.to(tl.uint32)
    c1 = tl.zeros([BLOCK], tl.uint32)
    c2 = tl.zeros([BLOCK], tl.uint32)
    c3 = tl.zeros([BLOCK], tl.uint32)
    k0 = seed.to(tl.uint32)
    k1 = k0 * 0 + 1
    for _ in tl.static_range(10):
        b0, b1 = c0, c2
        c0 = tl.umulhi(b1, 0xCD9E8D57) ^ c1 ^ k0
        c2 = tl.umulhi(b0, 0xD2511F53) ^ c3 ^ k1
        c1 = b1 * 0xCD9E8D57
        c3 = b0 * 0xD2511F53
        k0 += 0x9E3779B9
        k1 += 0xBB67AE85
    for part in tl.static_range(4):
        if part == 0:
            bits = c0
        elif part == 1:
            bits = c1
        elif part == 2:
            bits = c2
        else:
            bits = c3
        offs = (tl.program_id(0) * 4 + part) * BLOCK + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + offs, mask=offs < n, other=0.0)
        kept = (bits >> 8).to(tl.float32) * (1.0 / (1 << 24)) < keep
        tl.store(out_ptr + offs, tl.where(kept, x / keep, 0.0), mask=offs < n)


# ------------------------------------------------------------------------------------------------------ numerical programs


@triton.jit
def jacobi(u_ptr, f_ptr, out_ptr, H, W, BLOCK_H: tl.constexpr, BLOCK_W: tl.constexpr):
    rows = tl.program_id(1) * BLOCK_H + tl.arange(0, BLOCK_H)
    cols = tl.program_id(0) * BLOCK_W + tl.arange(0, BLOCK_W)
    y, x = rows[:, None], cols[None, :]
    centre = u_ptr + y * W + x
    inside = (y < H) & (x < W)
    up = tl.load(centre - W, mask=inside & (y > 0), other=0.0)
    down = tl.load(centre + W, mask=inside & (y < H - 1), other=0.0)
    left = tl.load(centre - 1, mask=inside & (x > 0), other=0.0)
    right = tl.load(centre + 1, mask=inside & (x < W - 1), other=0.0)
    f = tl.load(f_ptr + y * W + x, mask=inside, other=0.0)
    tl.store(out_ptr + y * W + x, 0.25 * (up + down + left + right - f), mask=inside)


@triton.jit
def forces(position_ptr, mass_ptr, out_ptr, n, softening, BLOCK_I: tl.constexpr, BLOCK_J: tl.constexpr):
    i = tl.program_id(0) * BLOCK_I + tl.arange(0, BLOCK_I)
    live = i < n
    x = tl.load(position_ptr + i, mask=live, other=0.0)
    y = tl.load(position_ptr + n + i, mask=live, other=0.0)
    z = tl.load(position_ptr + 2 * n + i, mask=live, other=0.0)
    fx = tl.zeros([BLOCK_I], tl.float32)
    fy = tl.zeros([BLOCK_I], tl.float32)
    fz = tl.zeros([BLOCK_I], tl.float32)
    for first in range(0, n, BLOCK_J):
        j = first + tl.arange(0, BLOCK_J)
        mass = tl.load(mass_ptr + j, mask=j < n, other=0.0)
        dx = tl.load(position_ptr + j, mask=j < n, other=0.0)[None, :] - x[:, None]
        dy = tl.load(position_ptr + n + j, mask=j < n, other=0.0)[None, :] - y[:, None]
        dz = tl.load(position_ptr + 2 * n + j, mask=j < n, other=0.0)[None, :] - z[:, None]
        inverse = tl.rsqrt(dx * dx + dy * dy + dz * dz + softening)
        pull = mass[None, :] * inverse * inverse * inverse
        fx += tl.sum(pull * dx, axis=1)
        fy += tl.sum(pull * dy, axis=1)
        fz += tl.sum(pull * dz, axis=1)
    tl.store(out_ptr + i, fx, mask=live)
    tl.store(out_ptr + n + i, fy, mask=live)
    tl.store(out_ptr + 2 * n + i, fz, mask=live)


@triton.jit
def mandelbrot(out_ptr, W, H, STEPS, BLOCK: tl.constexpr):
    pixels = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    cx = (pixels % W).to(tl.float32) / W * 3.0 - 2.0
    cy = (pixels // W).to(tl.float32) / H * 2.0 - 1.0
    x = tl.zeros([BLOCK], tl.float32)
    y = tl.zeros([BLOCK], tl.float32)
    count = tl.zeros([BLOCK], tl.int32)
    for _ in range(STEPS):
        xx, yy = x * x, y * y
        inside = xx + yy < 4.0
        y = tl.where(inside, 2.0 * x * y + cy, y)
        x = tl.where(inside, xx - yy + cx, x)
        count += inside.to(tl.int32)
    tl.store(out_ptr + pixels, count, mask=pixels < W * H)


@triton.jit
def manhattan(x_ptr, y_ptr, out_ptr, M, N, K, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    total = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)
    for first in range(0, K, BLOCK_K):
        k = first + tl.arange(0, BLOCK_K)
        x = tl.load(x_ptr + rows[:, None] * K + k[None, :], mask=(rows[:, None] < M) & (k[None, :] < K), other=0.0)
        y = tl.load(y_ptr + cols[:, None] * K + k[None, :], mask=(cols[:, None] < N) & (k[None, :] < K), other=0.0)
        total += tl.sum(tl.abs(x[:, None, :] - y[None, :, :]), axis=2)
    tl.store(out_ptr + rows[:, None] * N + cols[None, :], total, mask=(rows[:, None] < M) & (cols[None, :] < N))


@triton.jit
def grid_sample(x_ptr, grid_ptr, out_ptr, C, H, W, PIXELS, BLOCK: tl.constexpr):
    image = tl.program_id(1)
    pixels = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    live = pixels < PIXELS
    place = grid_ptr + (image * PIXELS + pixels) * 2
    x = (tl.load(place, mask=live, other=0.0) + 1.0) * 0.5 * (W - 1)
    y = (tl.load(place + 1, mask=live, other=0.0) + 1.0) * 0.5 * (H - 1)
    left, top = tl.floor(x), tl.floor(y)
    right_share, lower_share = x - left, y - top
    x0, y0 = left.to(tl.int32), top.to(tl.int32)
    for channel in range(C):
        start = x_ptr + (image * C + channel) * H * W
        total = tl.zeros([BLOCK], tl.float32)
        for dy in tl.static_range(2):
            for dx in tl.static_range(2):
                column, row = x0 + dx, y0 + dy
                inside = live & (column >= 0) & (column < W) & (row >= 0) & (row < H)
                share = (right_share if dx else 1.0 - right_share) * (lower_share if dy else 1.0 - lower_share)
                total += share * tl.load(start + row * W + column, mask=inside, other=0.0)
        tl.store(out_ptr + (image * C + channel) * PIXELS + pixels, total, mask=live)


@triton.jit
def pack_signs(x_ptr, out_ptr, words, BLOCK: tl.constexpr):
    word = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    bit = tl.arange(0, 32)
    x = tl.load(x_ptr + word[:, None] * 32 + bit[None, :], mask=word[:, None] < words, other=0.0)
    bits = (x > 0).to(tl.int32) << bit[None, :]
    tl.store(out_ptr + word, tl.sum(bits, axis=1), mask=word < words)
