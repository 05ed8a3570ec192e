"""Kernels of steps: gradients, optimizers, losses, physics on grids, images, ragged batches.

`everyday.py` times them.
"""

import tilewright as triton
import tilewright.language as tl


@triton.jit
def rms_norm_backward(x_ptr, w_ptr, dy_ptr, dx_ptr, dw_ptr, M, N: tl.constexpr, eps, BLOCK: tl.constexpr):
    """Each program sums its rows' share of the weights' gradient."""
    pid = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    mask = cols < N
    w = tl.load(w_ptr + cols, mask=mask, other=0.0).to(tl.float32)
    dw = tl.zeros((BLOCK,), tl.float32)
    for row in range(pid, M, tl.num_programs(0)):
        x = tl.load(x_ptr + row * N + cols, mask=mask, other=0.0).to(tl.float32)
        dy = tl.load(dy_ptr + row * N + cols, mask=mask, other=0.0).to(tl.float32)
        rstd = tl.rsqrt(tl.sum(x * x, 0) / N + eps)
        wdy = w * dy
        dot = tl.sum(wdy * x, 0)
        dx = rstd * (wdy - x * (rstd * rstd * dot / N))
        tl.store(dx_ptr + row * N + cols, dx.to(dx_ptr.dtype.element_ty), mask=mask)
        dw += dy * x * rstd
    tl.store(dw_ptr + pid * N + cols, dw, mask=mask)


@triton.jit
def softmax_backward(y_ptr, dy_ptr, dx_ptr, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    y = tl.load(y_ptr + row * n_cols + cols, mask=mask, other=0.0).to(tl.float32)
    dy = tl.load(dy_ptr + row * n_cols + cols, mask=mask, other=0.0).to(tl.float32)
    dx = y * (dy - tl.sum(y * dy, 0))
    tl.store(dx_ptr + row * n_cols + cols, dx.to(dx_ptr.dtype.element_ty), mask=mask)


@triton.jit
def swiglu_packed_backward(x_ptr, dy_ptr, dx_ptr, n_cols, BLOCK: tl.constexpr):
    """Gate and value lie side by side in a row."""
    row = tl.program_id(0).to(tl.int64)
    cols = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = cols < n_cols
    gate = tl.load(x_ptr + row * 2 * n_cols + cols, mask=mask, other=0.0).to(tl.float32)
    value = tl.load(x_ptr + row * 2 * n_cols + n_cols + cols, mask=mask, other=0.0).to(tl.float32)
    dy = tl.load(dy_ptr + row * n_cols + cols, mask=mask, other=0.0).to(tl.float32)
    sig = tl.sigmoid(gate)
    silu = gate * sig
    dgate = dy * value * (sig + silu * (1 - sig))
    tl.store(dx_ptr + row * 2 * n_cols + cols, dgate.to(dx_ptr.dtype.element_ty), mask=mask)
    tl.store(dx_ptr + row * 2 * n_cols + n_cols + cols, (dy * silu).to(dx_ptr.dtype.element_ty), mask=mask)


@triton.jit
def lion_step(p_ptr, g_ptr, m_ptr, out_ptr, n, lr, beta1, beta2, decay, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    p = tl.load(p_ptr + offs, mask=mask)
    g = tl.load(g_ptr + offs, mask=mask)
    m = tl.load(m_ptr + offs, mask=mask)
    update = m * beta1 + g * (1 - beta1)
    sign = tl.where(update > 0, 1.0, tl.where(update < 0, -1.0, 0.0))
    tl.store(out_ptr + offs, p * (1 - lr * decay) - lr * sign, mask=mask)
    tl.store(g_ptr + offs, m * beta2 + g * (1 - beta2), mask=mask)


@triton.jit
def stochastic_round(x_ptr, y_ptr, n, seed, BLOCK: tl.constexpr):
    """float32 to bfloat16, rounded up as often as what is cut off says."""
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    bits = tl.load(x_ptr + offs, mask=mask).to(tl.uint32, bitcast=True)
    h = (offs ^ seed).to(tl.uint32)
    h = (h ^ (h >> 16)) * 0x7FEB352D
    h = (h ^ (h >> 15)) * 0x846CA68B
    h = h ^ (h >> 16)
    bits = (bits + (h & 0xFFFF)) & 0xFFFF0000
    tl.store(y_ptr + offs, bits.to(tl.float32, bitcast=True).to(tl.bfloat16), mask=mask)


@triton.jit
def contrastive(a_ptr, b_ptr, lse_ptr, N, D: tl.constexpr, scale, BM: tl.constexpr, BN: tl.constexpr):
    """The logarithm of sums of exponentials of all products of a row with the rows of the other."""
    rm = tl.program_id(0) * BM + tl.arange(0, BM)
    rd = tl.arange(0, D)
    a = tl.load(a_ptr + rm[:, None] * D + rd[None, :], mask=rm[:, None] < N, other=0.0)
    top = tl.full((BM,), float("-inf"), tl.float32)
    total = tl.zeros((BM,), tl.float32)
    for n0 in range(0, N, BN):
        rn = n0 + tl.arange(0, BN)
        b = tl.load(b_ptr + rn[:, None] * D + rd[None, :], mask=rn[:, None] < N, other=0.0)
        s = tl.dot(a, tl.trans(b)) * scale
        s = tl.where(rn[None, :] < N, s, float("-inf"))
        new = tl.maximum(top, tl.max(s, 1))
        total = total * tl.exp(top - new) + tl.sum(tl.exp(s - new[:, None]), 1)
        top = new
    tl.store(lse_ptr + rm, top + tl.log(total), mask=rm < N)


@triton.jit
def lattice_boltzmann(f_ptr, g_ptr, H, W, omega, BLOCK: tl.constexpr):
    """D2Q9 with relaxation: nine populations stream in from the neighbours and are mixed."""
    y = tl.program_id(0)
    x = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = x < W
    up = tl.where(y == 0, H - 1, y - 1)
    down = tl.where(y == H - 1, 0, y + 1)
    left = tl.where(x == 0, W - 1, x - 1)
    right = tl.where(x == W - 1, 0, x + 1)
    plane = H * W
    f0 = tl.load(f_ptr + y * W + x, mask=mask, other=0.0)
    f1 = tl.load(f_ptr + plane + y * W + left, mask=mask, other=0.0)
    f2 = tl.load(f_ptr + 2 * plane + up * W + x, mask=mask, other=0.0)
    f3 = tl.load(f_ptr + 3 * plane + y * W + right, mask=mask, other=0.0)
    f4 = tl.load(f_ptr + 4 * plane + down * W + x, mask=mask, other=0.0)
    f5 = tl.load(f_ptr + 5 * plane + up * W + left, mask=mask, other=0.0)
    f6 = tl.load(f_ptr + 6 * plane + up * W + right, mask=mask, other=0.0)
    f7 = tl.load(f_ptr + 7 * plane + down * W + right, mask=mask, other=0.0)
    f8 = tl.load(f_ptr + 8 * plane + down * W + left, mask=mask, other=0.0)
    rho = f0 + f1 + f2 + f3 + f4 + f5 + f6 + f7 + f8
    ux = (f1 + f5 + f8 - f3 - f6 - f7) / rho
    uy = (f2 + f5 + f6 - f4 - f7 - f8) / rho
    base = 1.0 - 1.5 * (ux * ux + uy * uy)
    out = g_ptr + y * W + x
    straight, diagonal = rho / 9, rho / 36
    tl.store(out, f0 + omega * (rho * 4 / 9 * base - f0), mask=mask)
    tl.store(out + plane, f1 + omega * (straight * (base + 3 * ux + 4.5 * ux * ux) - f1), mask=mask)
    tl.store(out + 2 * plane, f2 + omega * (straight * (base + 3 * uy + 4.5 * uy * uy) - f2), mask=mask)
    tl.store(out + 3 * plane, f3 + omega * (straight * (base - 3 * ux + 4.5 * ux * ux) - f3), mask=mask)
    tl.store(out + 4 * plane, f4 + omega * (straight * (base - 3 * uy + 4.5 * uy * uy) - f4), mask=mask)
    s, d = ux + uy, ux - uy
    tl.store(out + 5 * plane, f5 + omega * (diagonal * (base + 3 * s + 4.5 * s * s) - f5), mask=mask)
    tl.store(out + 6 * plane, f6 + omega * (diagonal * (base - 3 * d + 4.5 * d * d) - f6), mask=mask)
    tl.store(out + 7 * plane, f7 + omega * (diagonal * (base - 3 * s + 4.5 * s * s) - f7), mask=mask)
    tl.store(out + 8 * plane, f8 + omega * (diagonal * (base + 3 * d + 4.5 * d * d) - f8), mask=mask)


@triton.jit
def wave_step(u_ptr, before_ptr, out_ptr, H, W, c2, BY: tl.constexpr, BX: tl.constexpr):
    """The wave equation with differences of fourth order; the edge stays at rest."""
    y = tl.program_id(0) * BY + tl.arange(0, BY)[:, None]
    x = tl.program_id(1) * BX + tl.arange(0, BX)[None, :]
    inside = (y >= 2) & (y < H - 2) & (x >= 2) & (x < W - 2)
    at = u_ptr + y * W + x
    u = tl.load(at, mask=inside, other=0.0)
    near = tl.load(at - 1, mask=inside, other=0.0) + tl.load(at + 1, mask=inside, other=0.0)
    near += tl.load(at - W, mask=inside, other=0.0) + tl.load(at + W, mask=inside, other=0.0)
    far = tl.load(at - 2, mask=inside, other=0.0) + tl.load(at + 2, mask=inside, other=0.0)
    far += tl.load(at - 2 * W, mask=inside, other=0.0) + tl.load(at + 2 * W, mask=inside, other=0.0)
    before = tl.load(before_ptr + y * W + x, mask=inside, other=0.0)
    laplacian = near * 1.3333333 - far * 0.083333336 - 5.0 * u
    tl.store(out_ptr + y * W + x, 2 * u - before + c2 * laplacian, mask=(y < H) & (x < W))


@triton.jit
def red_black(u_ptr, f_ptr, out_ptr, H, W, color, BLOCK: tl.constexpr):
    """One color of a Gauss-Seidel step, its places side by side in the result."""
    y = tl.program_id(0) + 1
    j = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    x = 1 + ((y + color) & 1) + 2 * j
    mask = x < W - 1
    at = u_ptr + y * W + x
    total = tl.load(at - 1, mask=mask, other=0.0) + tl.load(at + 1, mask=mask, other=0.0)
    total += tl.load(at - W, mask=mask, other=0.0) + tl.load(at + W, mask=mask, other=0.0)
    f = tl.load(f_ptr + y * W + x, mask=mask, other=0.0)
    tl.store(out_ptr + (y - 1) * (W // 2 - 1) + j, 0.25 * (total - f), mask=mask)


@triton.jit
def black_scholes(s_ptr, k_ptr, t_ptr, call_ptr, put_ptr, n, r, v, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    s = tl.load(s_ptr + offs, mask=mask, other=1.0)
    k = tl.load(k_ptr + offs, mask=mask, other=1.0)
    t = tl.load(t_ptr + offs, mask=mask, other=1.0)
    root = tl.sqrt(t)
    d1 = (tl.log(s / k) + (r + 0.5 * v * v) * t) / (v * root)
    d2 = d1 - v * root
    n1 = 0.5 * (1 + tl.erf(d1 * 0.70710678))
    n2 = 0.5 * (1 + tl.erf(d2 * 0.70710678))
    paid = k * tl.exp(-r * t)
    tl.store(call_ptr + offs, s * n1 - paid * n2, mask=mask)
    tl.store(put_ptr + offs, paid * (1 - n2) - s * (1 - n1), mask=mask)


@triton.jit
def jagged_to_padded(values_ptr, starts_ptr, out_ptr, L, D: tl.constexpr, BL: tl.constexpr):
    """Rows of each sequence, filled up with zeros."""
    b = tl.program_id(0)
    rows = tl.program_id(1) * BL + tl.arange(0, BL)
    start = tl.load(starts_ptr + b)
    count = tl.load(starts_ptr + b + 1) - start
    cols = tl.arange(0, D)
    x = tl.load(values_ptr + (start + rows)[:, None] * D + cols[None, :], mask=rows[:, None] < count, other=0.0)
    tl.store(out_ptr + (b * L + rows[:, None]) * D + cols[None, :], x, mask=rows[:, None] < L)


@triton.jit
def jagged_softmax(x_ptr, starts_ptr, out_ptr, D: tl.constexpr, BL: tl.constexpr):
    """Along the rows of a sequence, for each column, in two passes."""
    b = tl.program_id(0)
    cols = tl.arange(0, D)
    start, end = tl.load(starts_ptr + b), tl.load(starts_ptr + b + 1)
    top = tl.full((D,), float("-inf"), tl.float32)
    total = tl.zeros((D,), tl.float32)
    for r0 in range(start, end, BL):
        rows = r0 + tl.arange(0, BL)
        x = tl.load(x_ptr + rows[:, None] * D + cols[None, :], mask=rows[:, None] < end, other=float("-inf"))
        new = tl.maximum(top, tl.max(x, 0))
        total = total * tl.exp(top - new) + tl.sum(tl.exp(x - new[None, :]), 0)
        top = new
    for r0 in range(start, end, BL):
        rows = r0 + tl.arange(0, BL)
        x = tl.load(x_ptr + rows[:, None] * D + cols[None, :], mask=rows[:, None] < end, other=float("-inf"))
        y = tl.exp(x - top[None, :]) / total[None, :]
        tl.store(out_ptr + rows[:, None] * D + cols[None, :], y, mask=rows[:, None] < end)


@triton.jit
def yuv_of_rgb(rgb_ptr, y_ptr, u_ptr, v_ptr, n, BLOCK: tl.constexpr):
    """Interleaved bytes to three planes of bytes."""
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    r = tl.load(rgb_ptr + offs * 3, mask=mask, other=0).to(tl.int32)
    g = tl.load(rgb_ptr + offs * 3 + 1, mask=mask, other=0).to(tl.int32)
    b = tl.load(rgb_ptr + offs * 3 + 2, mask=mask, other=0).to(tl.int32)
    y = ((66 * r + 129 * g + 25 * b + 128) >> 8) + 16
    u = ((-38 * r - 74 * g + 112 * b + 128) >> 8) + 128
    v = ((112 * r - 94 * g - 18 * b + 128) >> 8) + 128
    tl.store(y_ptr + offs, y.to(tl.uint8), mask=mask)
    tl.store(u_ptr + offs, u.to(tl.uint8), mask=mask)
    tl.store(v_ptr + offs, v.to(tl.uint8), mask=mask)


@triton.jit
def dilate(x_ptr, out_ptr, H, W, BY: tl.constexpr, BX: tl.constexpr):
    """The largest of 3 x 3 bytes; outside of the picture is 0."""
    y = tl.program_id(0) * BY + tl.arange(0, BY)
    x = tl.program_id(1) * BX + tl.arange(0, BX)
    best = tl.zeros((BY, BX), tl.uint8)
    for dy in tl.static_range(-1, 2):
        for dx in tl.static_range(-1, 2):
            yy, xx = y + dy, x + dx
            mask = (yy[:, None] >= 0) & (yy[:, None] < H) & (xx[None, :] >= 0) & (xx[None, :] < W)
            best = tl.maximum(best, tl.load(x_ptr + yy[:, None] * W + xx[None, :], mask=mask, other=0))
    tl.store(out_ptr + y[:, None] * W + x[None, :], best, mask=(y[:, None] < H) & (x[None, :] < W))


@triton.jit
def warp_affine(x_ptr, out_ptr, H, W, a, b, c, d, e, f, BY: tl.constexpr, BX: tl.constexpr):
    """A picture turned and moved, between its neighbours in proportion."""
    y = (tl.program_id(0) * BY + tl.arange(0, BY))[:, None]
    x = (tl.program_id(1) * BX + tl.arange(0, BX))[None, :]
    sx = a * x + b * y + c
    sy = d * x + e * y + f
    fx, fy = tl.floor(sx), tl.floor(sy)
    x0, y0 = fx.to(tl.int32), fy.to(tl.int32)
    wx, wy = sx - fx, sy - fy
    left, right = (x0 >= 0) & (x0 < W), (x0 >= -1) & (x0 < W - 1)
    top, bottom = (y0 >= 0) & (y0 < H), (y0 >= -1) & (y0 < H - 1)
    at = x_ptr + y0 * W + x0
    v00 = tl.load(at, mask=top & left, other=0.0)
    v01 = tl.load(at + 1, mask=top & right, other=0.0)
    v10 = tl.load(at + W, mask=bottom & left, other=0.0)
    v11 = tl.load(at + W + 1, mask=bottom & right, other=0.0)
    upper = v00 + (v01 - v00) * wx
    lower = v10 + (v11 - v10) * wx
    tl.store(out_ptr + y * W + x, upper + (lower - upper) * wy, mask=(y < H) & (x < W))


@triton.jit
def pixel_shuffle(x_ptr, out_ptr, C, H, W, R: tl.constexpr, BLOCK: tl.constexpr):
    """Channels of a place become R x R places, for each channel of the result."""
    row = tl.program_id(0)  # image * C + channel, then row of the result
    plane, oy = row // (H * R), row % (H * R)
    ox = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = ox < W * R
    channel = plane * R * R + (oy % R) * R + ox % R
    x = tl.load(x_ptr + (channel * H + oy // R) * W + ox // R, mask=mask)
    tl.store(out_ptr + (plane * H * R + oy) * W * R + ox, x, mask=mask)


@triton.jit
def scale_residual(x_ptr, y_ptr, gamma_ptr, out_ptr, C, HW, BLOCK: tl.constexpr):
    """A layer's scale for each channel, added to what went around it."""
    row = tl.program_id(0)
    offs = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < HW
    gamma = tl.load(gamma_ptr + row % C).to(tl.float32)
    x = tl.load(x_ptr + row * HW + offs, mask=mask, other=0.0).to(tl.float32)
    y = tl.load(y_ptr + row * HW + offs, mask=mask, other=0.0).to(tl.float32)
    y = 0.5 * y * (1 + tl.erf(y * 0.70710678))
    tl.store(out_ptr + row * HW + offs, (x + gamma * y).to(out_ptr.dtype.element_ty), mask=mask)


@triton.jit
def pack_fp4(x_ptr, out_ptr, scale_ptr, n_groups, GROUP: tl.constexpr, BG: tl.constexpr):
    """Groups to e2m1, two in a byte, with a scale of a power of two, as MXFP4 has them."""
    groups = tl.program_id(0) * BG + tl.arange(0, BG)
    pairs = tl.arange(0, GROUP // 2)
    at = x_ptr + groups[:, None] * GROUP + 2 * pairs[None, :]
    mask = groups[:, None] < n_groups
    even = tl.load(at, mask=mask, other=0.0).to(tl.float32)
    odd = tl.load(at + 1, mask=mask, other=0.0).to(tl.float32)
    top = tl.max(tl.maximum(tl.abs(even), tl.abs(odd)), 1)
    exponent = tl.maximum((top.to(tl.int32, bitcast=True) >> 23) - 2, 1)
    inverse = ((254 - exponent) << 23).to(tl.float32, bitcast=True)[:, None]
    low = _e2m1(even * inverse)
    high = _e2m1(odd * inverse)
    tl.store(out_ptr + groups[:, None] * (GROUP // 2) + pairs[None, :], (low | (high << 4)).to(tl.uint8), mask=mask)
    tl.store(scale_ptr + groups, exponent.to(tl.uint8), mask=groups < n_groups)


@triton.jit
def _e2m1(x):
    """The number of the nearest of 0, 0.5, 1, 1.5, 2, 3, 4, 6, and the sign in front."""
    a = tl.abs(x)
    code = (a > 0.25).to(tl.int32) + (a >= 0.75) + (a > 1.25) + (a >= 1.75) + (a > 2.5) + (a >= 3.5) + (a > 5.0)
    return code | tl.where(x < 0, 8, 0)


@triton.jit
def gru_cell(gx_ptr, gh_ptr, h_ptr, out_ptr, D, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = cols < D
    gx, gh = gx_ptr + row * 3 * D + cols, gh_ptr + row * 3 * D + cols
    r = tl.sigmoid(tl.load(gx, mask=mask, other=0.0).to(tl.float32) + tl.load(gh, mask=mask, other=0.0))
    z = tl.sigmoid(tl.load(gx + D, mask=mask, other=0.0).to(tl.float32) + tl.load(gh + D, mask=mask, other=0.0))
    candidate = tl.load(gx + 2 * D, mask=mask, other=0.0).to(tl.float32) + r * tl.load(gh + 2 * D, mask=mask, other=0.0)
    n = 2 * tl.sigmoid(2 * candidate) - 1
    h = tl.load(h_ptr + row * D + cols, mask=mask, other=0.0).to(tl.float32)
    tl.store(out_ptr + row * D + cols, (n + z * (h - n)).to(out_ptr.dtype.element_ty), mask=mask)


@triton.jit
def triangular_solve(l_ptr, b_ptr, x_ptr, N: tl.constexpr, K: tl.constexpr):
    """A lower triangle of N x N and K right sides for each program, forwards."""
    p = tl.program_id(0)
    rows, cols = tl.arange(0, N), tl.arange(0, K)
    lower = tl.load(l_ptr + p * N * N + rows[:, None] * N + rows[None, :])
    b = tl.load(b_ptr + p * N * K + rows[:, None] * K + cols[None, :])
    for i in range(N):
        column = tl.sum(tl.where(rows[None, :] == i, lower, 0.0), 1)
        pivot = tl.sum(tl.where(rows == i, column, 0.0), 0)
        solved = tl.sum(tl.where(rows[:, None] == i, b, 0.0), 0) / pivot
        rest = b - column[:, None] * solved[None, :]
        b = tl.where(rows[:, None] == i, solved[None, :], tl.where(rows[:, None] > i, rest, b))
    tl.store(x_ptr + p * N * K + rows[:, None] * K + cols[None, :], b)


@triton.jit
def grouped_decode(q_ptr, k_ptr, v_ptr, out_ptr, L, G: tl.constexpr, D: tl.constexpr, scale, BL: tl.constexpr):
    """One token's attention: G heads of a query share a head of keys, without a product of matrices."""
    p = tl.program_id(0)
    d = tl.arange(0, D)
    heads = tl.arange(0, G)
    q = tl.load(q_ptr + (p * G + heads[:, None]) * D + d[None, :]).to(tl.float32) * scale
    top = tl.full((G,), float("-inf"), tl.float32)
    total = tl.zeros((G,), tl.float32)
    acc = tl.zeros((G, D), tl.float32)
    for l0 in range(0, L, BL):
        rows = l0 + tl.arange(0, BL)
        at = (p * L + rows[:, None]) * D + d[None, :]
        k = tl.load(k_ptr + at, mask=rows[:, None] < L, other=0.0).to(tl.float32)
        s = tl.sum(q[:, None, :] * k[None, :, :], 2)
        s = tl.where(rows[None, :] < L, s, float("-inf"))
        new = tl.maximum(top, tl.max(s, 1))
        shrink = tl.exp(top - new)
        w = tl.exp(s - new[:, None])
        v = tl.load(v_ptr + at, mask=rows[:, None] < L, other=0.0).to(tl.float32)
        acc = acc * shrink[:, None] + tl.sum(w[:, :, None] * v[None, :, :], 1)
        total = total * shrink + tl.sum(w, 1)
        top = new
    tl.store(out_ptr + (p * G + heads[:, None]) * D + d[None, :], (acc / total[:, None]).to(tl.float16))


@triton.jit
def newton_schulz(x_ptr, a_ptr, out_ptr, M, N, b, c, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """A symmetric A and its square, b * A + c * A @ A, for Muon's orthogonal steps."""
    rm = tl.program_id(0) * BM + tl.arange(0, BM)
    rn = tl.program_id(1) * BN + tl.arange(0, BN)
    rk = tl.arange(0, BK)
    left = a_ptr + rm[:, None] * M + rk[None, :]
    right = a_ptr + rn[None, :] * M + rk[:, None]
    acc = tl.zeros((BM, BN), tl.float32)
    for k in range(0, M, BK):
        acc = tl.dot(tl.load(left + k), tl.load(right + k), acc)
    at = rm[:, None] * M + rn[None, :]
    acc = c * acc + b * tl.load(a_ptr + at).to(tl.float32)
    tl.store(out_ptr + at, acc.to(tl.bfloat16))


@triton.jit
def conv_transpose(x_ptr, w_ptr, out_ptr, H, W, CI: tl.constexpr, CO: tl.constexpr, BX: tl.constexpr):
    """Channels last, a kernel of 2 x 2 with stride 2: a product for each of four places."""
    row = tl.program_id(0)
    x = tl.program_id(1) * BX + tl.arange(0, BX)
    ci, co = tl.arange(0, CI), tl.arange(0, CO)
    a = tl.load(x_ptr + (row * W + x[:, None]) * CI + ci[None, :], mask=x[:, None] < W, other=0.0)
    image, y = row // H, row % H
    for dy in tl.static_range(2):
        for dx in tl.static_range(2):
            w = tl.load(w_ptr + ((dy * 2 + dx) * CI + ci[:, None]) * CO + co[None, :])
            acc = tl.dot(a, w)
            at = ((image * 2 * H + 2 * y + dy) * 2 * W + 2 * x[:, None] + dx) * CO + co[None, :]
            tl.store(out_ptr + at, acc.to(tl.float16), mask=x[:, None] < W)


@triton.jit
def index_add_rows(x_ptr, index_ptr, out_ptr, n, D: tl.constexpr, BR: tl.constexpr):
    """Rows of float32 added to where an index says."""
    rows = tl.program_id(0) * BR + tl.arange(0, BR)
    cols = tl.arange(0, D)
    to = tl.load(index_ptr + rows, mask=rows < n, other=0)
    x = tl.load(x_ptr + rows[:, None] * D + cols[None, :], mask=rows[:, None] < n, other=0.0)
    tl.atomic_add(out_ptr + to[:, None] * D + cols[None, :], x, mask=rows[:, None] < n)


@triton.jit
def rotary_heads(q_ptr, cos_ptr, sin_ptr, out_ptr, S, HEADS: tl.constexpr, D: tl.constexpr, BS: tl.constexpr):
    """Halves of each head turned by a table, all heads of some places at once."""
    b = tl.program_id(1)
    s = tl.program_id(0) * BS + tl.arange(0, BS)
    d = tl.arange(0, D // 2)
    angle = s[:, None] * (D // 2) + d[None, :]
    cos = tl.load(cos_ptr + angle, mask=s[:, None] < S, other=0.0)
    sin = tl.load(sin_ptr + angle, mask=s[:, None] < S, other=0.0)
    for head in range(HEADS):
        at = ((b * S + s[:, None]) * HEADS + head) * D + d[None, :]
        x0 = tl.load(q_ptr + at, mask=s[:, None] < S, other=0.0).to(tl.float32)
        x1 = tl.load(q_ptr + at + D // 2, mask=s[:, None] < S, other=0.0).to(tl.float32)
        tl.store(out_ptr + at, (x0 * cos - x1 * sin).to(tl.bfloat16), mask=s[:, None] < S)
        tl.store(out_ptr + at + D // 2, (x1 * cos + x0 * sin).to(tl.bfloat16), mask=s[:, None] < S)


@triton.jit
def power_iteration(a_ptr, x_ptr, out_ptr, N: tl.constexpr, STEPS: tl.constexpr):
    """The vector that a symmetric matrix of each program tends to."""
    p = tl.program_id(0)
    rows = tl.arange(0, N)
    a = tl.load(a_ptr + p * N * N + rows[:, None] * N + rows[None, :])
    x = tl.load(x_ptr + p * N + rows)
    for _ in range(STEPS):
        y = tl.sum(a * x[:, None], 0)
        x = y * tl.rsqrt(tl.sum(y * y, 0))
    tl.store(out_ptr + p * N + rows, x)
