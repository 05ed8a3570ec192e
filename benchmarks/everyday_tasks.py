"""Kernels of tasks: losses of detection and ranking, sampling, statistics, simulations, graphs, layers of models.

`everyday.py` times them.
"""

import tilewright as triton
import tilewright.language as tl


@triton.jit
def dice_loss(x_ptr, t_ptr, out_ptr, n, BLOCK: tl.constexpr):
    """For each picture sums of products, of predictions and of targets, by atomics."""
    image = tl.program_id(0)
    offs = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    p = tl.sigmoid(tl.load(x_ptr + image * n + offs, mask=mask, other=float("-inf")).to(tl.float32))
    t = tl.load(t_ptr + image * n + offs, mask=mask, other=0).to(tl.float32)
    tl.atomic_add(out_ptr + image * 3, tl.sum(p * t, 0))
    tl.atomic_add(out_ptr + image * 3 + 1, tl.sum(p, 0))
    tl.atomic_add(out_ptr + image * 3 + 2, tl.sum(t, 0))


@triton.jit
def giou(a_ptr, b_ptr, out_ptr, n, BLOCK: tl.constexpr):
    """Generalised overlaps of pairs of boxes, four numbers each."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    ax0 = tl.load(a_ptr + 4 * i, mask=mask, other=0.0)
    ay0 = tl.load(a_ptr + 4 * i + 1, mask=mask, other=0.0)
    ax1 = tl.load(a_ptr + 4 * i + 2, mask=mask, other=0.0)
    ay1 = tl.load(a_ptr + 4 * i + 3, mask=mask, other=0.0)
    bx0 = tl.load(b_ptr + 4 * i, mask=mask, other=0.0)
    by0 = tl.load(b_ptr + 4 * i + 1, mask=mask, other=0.0)
    bx1 = tl.load(b_ptr + 4 * i + 2, mask=mask, other=0.0)
    by1 = tl.load(b_ptr + 4 * i + 3, mask=mask, other=0.0)
    inter = tl.maximum(tl.minimum(ax1, bx1) - tl.maximum(ax0, bx0), 0.0)
    inter *= tl.maximum(tl.minimum(ay1, by1) - tl.maximum(ay0, by0), 0.0)
    union = (ax1 - ax0) * (ay1 - ay0) + (bx1 - bx0) * (by1 - by0) - inter
    hull = (tl.maximum(ax1, bx1) - tl.minimum(ax0, bx0)) * (tl.maximum(ay1, by1) - tl.minimum(ay0, by0))
    tl.store(out_ptr + i, inter / union - (hull - union) / hull, mask=mask)


@triton.jit
def pairwise_rank(score_ptr, label_ptr, out_ptr, n, BI: tl.constexpr, BJ: tl.constexpr):
    """Sums of the logistic losses of all pairs of a list that are in order."""
    query = tl.program_id(0)
    i = tl.program_id(1) * BI + tl.arange(0, BI)
    s_i = tl.load(score_ptr + query * n + i, mask=i < n, other=0.0)
    l_i = tl.load(label_ptr + query * n + i, mask=i < n, other=-1)
    total = tl.zeros((BI,), tl.float32)
    for j0 in range(0, n, BJ):
        j = j0 + tl.arange(0, BJ)
        s_j = tl.load(score_ptr + query * n + j, mask=j < n, other=0.0)
        l_j = tl.load(label_ptr + query * n + j, mask=j < n, other=1 << 20)
        loss = tl.log(1.0 + tl.exp(s_j[None, :] - s_i[:, None]))
        total += tl.sum(tl.where(l_i[:, None] > l_j[None, :], loss, 0.0), 1)
    tl.store(out_ptr + query * n + i, total, mask=i < n)


@triton.jit
def gumbel_argmax(logits_ptr, out_ptr, n_cols, seed, BLOCK: tl.constexpr):
    """A sample of each row: the largest of logits plus noise that a hash gives."""
    row = tl.program_id(0)
    best = tl.full((BLOCK,), float("-inf"), tl.float32)
    where = tl.zeros((BLOCK,), tl.int32)
    for c0 in range(0, n_cols, BLOCK):
        cols = c0 + tl.arange(0, BLOCK)
        x = tl.load(logits_ptr + row * n_cols + cols, mask=cols < n_cols, other=float("-inf")).to(tl.float32)
        h = ((row * n_cols + cols) ^ seed).to(tl.uint32)
        h = (h ^ (h >> 16)) * 0x7FEB352D
        h = (h ^ (h >> 15)) * 0x846CA68B
        h = h ^ (h >> 16)
        u = ((h >> 8).to(tl.float32) + 0.5) * 5.9604645e-08
        x -= tl.log(-tl.log(u))
        where = tl.where(x > best, cols, where)
        best = tl.maximum(x, best)
    top = tl.argmax(best, 0)
    tl.store(out_ptr + row, tl.sum(tl.where(tl.arange(0, BLOCK) == top, where, 0), 0))


@triton.jit
def penalize(logits_ptr, out_ptr, ids_ptr, n_cols, n_ids, penalty, BLOCK: tl.constexpr):
    """Logits of letters that were there before become smaller."""
    row = tl.program_id(0)
    at = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    ids = tl.load(ids_ptr + row * n_ids + at, mask=at < n_ids, other=0)
    x = tl.load(logits_ptr + row * n_cols + ids, mask=at < n_ids, other=0.0)
    tl.store(out_ptr + row * n_cols + ids, tl.where(x > 0, x / penalty, x * penalty), mask=at < n_ids)


@triton.jit
def standardize_columns(x_ptr, out_ptr, n_rows, n_cols, BR: tl.constexpr, BC: tl.constexpr):
    """Columns with mean 0 and variance 1, by two passes over the rows."""
    cols = tl.program_id(0) * BC + tl.arange(0, BC)
    rows = tl.arange(0, BR)
    total = tl.zeros((BR, BC), tl.float32)
    squares = tl.zeros((BR, BC), tl.float32)
    for r0 in range(0, n_rows, BR):
        at = (r0 + rows)[:, None] * n_cols + cols[None, :]
        mask = ((r0 + rows)[:, None] < n_rows) & (cols[None, :] < n_cols)
        x = tl.load(x_ptr + at, mask=mask, other=0.0)
        total += x
        squares += x * x
    mean = tl.sum(total, 0) / n_rows
    rstd = tl.rsqrt(tl.sum(squares, 0) / n_rows - mean * mean + 1e-5)
    for r0 in range(0, n_rows, BR):
        at = (r0 + rows)[:, None] * n_cols + cols[None, :]
        mask = ((r0 + rows)[:, None] < n_rows) & (cols[None, :] < n_cols)
        x = tl.load(x_ptr + at, mask=mask, other=0.0)
        tl.store(out_ptr + at, (x - mean[None, :]) * rstd[None, :], mask=mask)


@triton.jit
def moments(x_ptr, out_ptr, n_cols, BLOCK: tl.constexpr):
    """Mean, variance, skewness and kurtosis of a row, in two passes over it."""
    row = tl.program_id(0)
    total = tl.zeros((BLOCK,), tl.float32)
    for c0 in range(0, n_cols, BLOCK):
        cols = c0 + tl.arange(0, BLOCK)
        total += tl.load(x_ptr + row * n_cols + cols, mask=cols < n_cols, other=0.0)
    mean = tl.sum(total, 0) / n_cols
    second = tl.zeros((BLOCK,), tl.float32)
    third = tl.zeros((BLOCK,), tl.float32)
    fourth = tl.zeros((BLOCK,), tl.float32)
    for c0 in range(0, n_cols, BLOCK):
        cols = c0 + tl.arange(0, BLOCK)
        d = tl.load(x_ptr + row * n_cols + cols, mask=cols < n_cols, other=0.0) - mean
        d = tl.where(cols < n_cols, d, 0.0)
        second += d * d
        third += d * d * d
        fourth += d * d * d * d
    m2 = tl.sum(second, 0) / n_cols
    tl.store(out_ptr + row * 4, mean)
    tl.store(out_ptr + row * 4 + 1, m2)
    tl.store(out_ptr + row * 4 + 2, tl.sum(third, 0) / n_cols / (m2 * tl.sqrt(m2)))
    tl.store(out_ptr + row * 4 + 3, tl.sum(fourth, 0) / n_cols / (m2 * m2))


@triton.jit
def lennard_jones(pos_ptr, near_ptr, force_ptr, n, K: tl.constexpr, cutoff, BLOCK: tl.constexpr):
    """Forces of each particle's K neighbours, from a list; positions have four numbers."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    x = tl.load(pos_ptr + 4 * i, mask=mask, other=0.0)
    y = tl.load(pos_ptr + 4 * i + 1, mask=mask, other=0.0)
    z = tl.load(pos_ptr + 4 * i + 2, mask=mask, other=0.0)
    fx = tl.zeros((BLOCK,), tl.float32)
    fy = tl.zeros((BLOCK,), tl.float32)
    fz = tl.zeros((BLOCK,), tl.float32)
    for k in range(K):
        j = tl.load(near_ptr + k * n + i, mask=mask, other=0)
        dx = x - tl.load(pos_ptr + 4 * j)
        dy = y - tl.load(pos_ptr + 4 * j + 1)
        dz = z - tl.load(pos_ptr + 4 * j + 2)
        r2 = dx * dx + dy * dy + dz * dz + 0.25
        inv2 = 1.0 / r2
        inv6 = inv2 * inv2 * inv2
        f = tl.where(r2 < cutoff, 24.0 * inv2 * inv6 * (2.0 * inv6 - 1.0), 0.0)
        fx += f * dx
        fy += f * dy
        fz += f * dz
    tl.store(force_ptr + 4 * i, fx, mask=mask)
    tl.store(force_ptr + 4 * i + 1, fy, mask=mask)
    tl.store(force_ptr + 4 * i + 2, fz, mask=mask)


@triton.jit
def advect(f_ptr, u_ptr, v_ptr, out_ptr, H, W, dt, BY: tl.constexpr, BX: tl.constexpr):
    """A field carried along by a flow: where each place came from, between four neighbours."""
    y = (tl.program_id(0) * BY + tl.arange(0, BY))[:, None]
    x = (tl.program_id(1) * BX + tl.arange(0, BX))[None, :]
    mask = (y < H) & (x < W)
    at = y * W + x
    px = x - dt * tl.load(u_ptr + at, mask=mask, other=0.0)
    py = y - dt * tl.load(v_ptr + at, mask=mask, other=0.0)
    px = tl.minimum(tl.maximum(px, 0.0), W - 1.0)
    py = tl.minimum(tl.maximum(py, 0.0), H - 1.0)
    x0, y0 = tl.minimum(px.to(tl.int32), W - 2), tl.minimum(py.to(tl.int32), H - 2)
    wx, wy = px - x0, py - y0
    corner = f_ptr + y0 * W + x0
    f00 = tl.load(corner, mask=mask, other=0.0)
    f01 = tl.load(corner + 1, mask=mask, other=0.0)
    f10 = tl.load(corner + W, mask=mask, other=0.0)
    f11 = tl.load(corner + W + 1, mask=mask, other=0.0)
    upper = f00 + wx * (f01 - f00)
    lower = f10 + wx * (f11 - f10)
    tl.store(out_ptr + at, upper + wy * (lower - upper), mask=mask)


@triton.jit
def pressure_rhs(u_ptr, v_ptr, out_ptr, H, W, scale, BLOCK: tl.constexpr):
    """The divergence of a flow on a staggered grid."""
    y = tl.program_id(0)
    x = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = x < W
    u0 = tl.load(u_ptr + y * (W + 1) + x, mask=mask, other=0.0)
    u1 = tl.load(u_ptr + y * (W + 1) + x + 1, mask=mask, other=0.0)
    v0 = tl.load(v_ptr + y * W + x, mask=mask, other=0.0)
    v1 = tl.load(v_ptr + (y + 1) * W + x, mask=mask, other=0.0)
    tl.store(out_ptr + y * W + x, scale * (u1 - u0 + v1 - v0), mask=mask)


@triton.jit
def ising_step(spin_ptr, out_ptr, H, W, color, beta, seed, BLOCK: tl.constexpr):
    """Half of a checkerboard of spins, each turned with the probability that its neighbours give."""
    y = tl.program_id(0)
    x = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = x < W
    up, down = tl.where(y == 0, H - 1, y - 1), tl.where(y == H - 1, 0, y + 1)
    left, right = tl.where(x == 0, W - 1, x - 1), tl.where(x == W - 1, 0, x + 1)
    s = tl.load(spin_ptr + y * W + x, mask=mask, other=0).to(tl.int32)
    near = tl.load(spin_ptr + up * W + x, mask=mask, other=0).to(tl.int32)
    near += tl.load(spin_ptr + down * W + x, mask=mask, other=0).to(tl.int32)
    near += tl.load(spin_ptr + y * W + left, mask=mask, other=0).to(tl.int32)
    near += tl.load(spin_ptr + y * W + right, mask=mask, other=0).to(tl.int32)
    h = ((y * W + x) ^ seed).to(tl.uint32)
    h = (h ^ (h >> 16)) * 0x7FEB352D
    h = (h ^ (h >> 15)) * 0x846CA68B
    u = ((h ^ (h >> 16)) >> 8).to(tl.float32) * 5.9604645e-08
    turn = (u < tl.exp(-2.0 * beta * (s * near).to(tl.float32))) & (((y + x) & 1) == color)
    tl.store(out_ptr + y * W + x, tl.where(turn, -s, s).to(tl.int8), mask=mask)


@triton.jit
def graph_mean(x_ptr, starts_ptr, index_ptr, out_ptr, D: tl.constexpr):
    """The mean of each vertex's neighbours, one program a vertex."""
    v = tl.program_id(0)
    cols = tl.arange(0, D)
    start, end = tl.load(starts_ptr + v), tl.load(starts_ptr + v + 1)
    total = tl.zeros((D,), tl.float32)
    for e in range(start, end):
        j = tl.load(index_ptr + e)
        total += tl.load(x_ptr + j * D + cols).to(tl.float32)
    count = tl.maximum(end - start, 1)
    tl.store(out_ptr + v * D + cols, (total / count).to(tl.float16))


@triton.jit
def edge_messages(x_ptr, src_ptr, dst_ptr, w_ptr, out_ptr, n, D: tl.constexpr, BE: tl.constexpr):
    """Weighted rows of edges' sources, added to their ends."""
    e = tl.program_id(0) * BE + tl.arange(0, BE)
    cols = tl.arange(0, D)
    src = tl.load(src_ptr + e, mask=e < n, other=0)
    dst = tl.load(dst_ptr + e, mask=e < n, other=0)
    w = tl.load(w_ptr + e, mask=e < n, other=0.0)
    x = tl.load(x_ptr + src[:, None] * D + cols[None, :], mask=e[:, None] < n, other=0.0)
    tl.atomic_add(out_ptr + dst[:, None] * D + cols[None, :], x * w[:, None], mask=e[:, None] < n, sem="relaxed")


@triton.jit
def distance_matrix_min(a_ptr, b_ptr, out_ptr, n, m, D: tl.constexpr, BN: tl.constexpr, BM: tl.constexpr):
    """The least distance of each row of one set to those of another, by products and norms."""
    rn = tl.program_id(0) * BN + tl.arange(0, BN)
    rd = tl.arange(0, D)
    a = tl.load(a_ptr + rn[:, None] * D + rd[None, :], mask=rn[:, None] < n, other=0.0)
    a2 = tl.sum(a.to(tl.float32) * a.to(tl.float32), 1)
    best = tl.full((BN,), float("inf"), tl.float32)
    for m0 in range(0, m, BM):
        rm = m0 + tl.arange(0, BM)
        b = tl.load(b_ptr + rm[:, None] * D + rd[None, :], mask=rm[:, None] < m, other=0.0)
        b2 = tl.sum(b.to(tl.float32) * b.to(tl.float32), 1)
        d = a2[:, None] + b2[None, :] - 2.0 * tl.dot(a, tl.trans(b))
        best = tl.minimum(best, tl.min(tl.where(rm[None, :] < m, d, float("inf")), 1))
    tl.store(out_ptr + rn, tl.sqrt(tl.maximum(best, 0.0)), mask=rn < n)


@triton.jit
def unfold_patches(x_ptr, out_ptr, C, H, W, P: tl.constexpr, BLOCK: tl.constexpr):
    """Pictures [C, H, W] to rows of patches [P, P, C], for a vision transformer."""
    patch, image = tl.program_id(0), tl.program_id(1)
    across = W // P
    py, px = patch // across, patch % across
    i = tl.program_id(2) * BLOCK + tl.arange(0, BLOCK)
    c, rest = i % C, i // C
    dy, dx = rest // P, rest % P
    mask = i < P * P * C
    x = tl.load(x_ptr + ((image * C + c) * H + py * P + dy) * W + px * P + dx, mask=mask)
    tl.store(out_ptr + ((image * (H // P) + py) * across + px) * P * P * C + i, x, mask=mask)


@triton.jit
def space_norm(x_ptr, w_ptr, out_ptr, HW, C: tl.constexpr, eps, BP: tl.constexpr):
    """RMS norm over the channels of pictures [C, HW]."""
    image = tl.program_id(1)
    p = tl.program_id(0) * BP + tl.arange(0, BP)
    c = tl.arange(0, C)
    at = (image * C + c[:, None]) * HW + p[None, :]
    x = tl.load(x_ptr + at, mask=p[None, :] < HW, other=0.0).to(tl.float32)
    rms = tl.rsqrt(tl.sum(x * x, 0) / C + eps)
    w = tl.load(w_ptr + c).to(tl.float32)
    tl.store(out_ptr + at, (x * rms[None, :] * w[:, None]).to(tl.float16), mask=p[None, :] < HW)


@triton.jit
def blend_experts(x_ptr, w_ptr, out_ptr, n, D, K: tl.constexpr, BLOCK: tl.constexpr):
    """Outputs of K experts for each token, weighted and added."""
    token = tl.program_id(0)
    cols = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = cols < D
    acc = tl.zeros((BLOCK,), tl.float32)
    for k in tl.static_range(K):
        w = tl.load(w_ptr + token * K + k)
        acc += w * tl.load(x_ptr + (token * K + k) * D + cols, mask=mask, other=0.0).to(tl.float32)
    tl.store(out_ptr + token * D + cols, acc.to(tl.bfloat16), mask=mask)


@triton.jit
def kv_append(k_ptr, v_ptr, slot_ptr, cache_ptr, scale_ptr, H: tl.constexpr, D: tl.constexpr):
    """Keys and values of a token as int8 with a scale a head, side by side in a cache."""
    token = tl.program_id(0)
    slot = tl.load(slot_ptr + token).to(tl.int64)
    h, d = tl.arange(0, H), tl.arange(0, D)
    at = token * H * D + h[:, None] * D + d[None, :]
    k = tl.load(k_ptr + at).to(tl.float32)
    v = tl.load(v_ptr + at).to(tl.float32)
    ks = tl.max(tl.abs(k), 1) / 127.0 + 1e-8
    vs = tl.max(tl.abs(v), 1) / 127.0 + 1e-8
    kq = tl.floor(k / ks[:, None] + 0.5).to(tl.int8)
    vq = tl.floor(v / vs[:, None] + 0.5).to(tl.int8)
    to = cache_ptr + (slot * H + h[:, None]) * 2 * D + d[None, :]
    tl.store(to, kq)
    tl.store(to + D, vq)
    tl.store(scale_ptr + (slot * H + h) * 2, ks)
    tl.store(scale_ptr + (slot * H + h) * 2 + 1, vs)


@triton.jit
def bmm_small(a_ptr, b_ptr, out_ptr, n, S: tl.constexpr, BB: tl.constexpr):
    """Products of many small matrices, some for each program, without tensor cores."""
    p = tl.program_id(0) * BB + tl.arange(0, BB)
    i = tl.arange(0, S)
    acc = tl.zeros((BB, S, S), tl.float32)
    base = p[:, None, None] * S * S
    mask = p[:, None, None] < n
    for k in tl.static_range(S):
        a = tl.load(a_ptr + base + i[None, :, None] * S + k, mask=mask, other=0.0)
        b = tl.load(b_ptr + base + k * S + i[None, None, :], mask=mask, other=0.0)
        acc += a * b
    tl.store(out_ptr + base + i[None, :, None] * S + i[None, None, :], acc, mask=mask)


@triton.jit
def quaternion_rotate(q_ptr, v_ptr, out_ptr, n, BLOCK: tl.constexpr):
    """Vectors of three numbers turned by quaternions of four."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    w = tl.load(q_ptr + 4 * i, mask=mask, other=1.0)
    x = tl.load(q_ptr + 4 * i + 1, mask=mask, other=0.0)
    y = tl.load(q_ptr + 4 * i + 2, mask=mask, other=0.0)
    z = tl.load(q_ptr + 4 * i + 3, mask=mask, other=0.0)
    a = tl.load(v_ptr + 3 * i, mask=mask, other=0.0)
    b = tl.load(v_ptr + 3 * i + 1, mask=mask, other=0.0)
    c = tl.load(v_ptr + 3 * i + 2, mask=mask, other=0.0)
    tx, ty, tz = 2 * (y * c - z * b), 2 * (z * a - x * c), 2 * (x * b - y * a)
    tl.store(out_ptr + 3 * i, a + w * tx + y * tz - z * ty, mask=mask)
    tl.store(out_ptr + 3 * i + 1, b + w * ty + z * tx - x * tz, mask=mask)
    tl.store(out_ptr + 3 * i + 2, c + w * tz + x * ty - y * tx, mask=mask)


@triton.jit
def cross_product_attention(q_ptr, k_ptr, v_ptr, out_ptr, L, D: tl.constexpr, W: tl.constexpr, BQ: tl.constexpr):
    """Attention of each place to W places around it, by products of elements."""
    head = tl.program_id(1)
    i = tl.program_id(0) * BQ + tl.arange(0, BQ)
    d = tl.arange(0, D)
    base = head * L * D
    q = tl.load(q_ptr + base + i[:, None] * D + d[None, :], mask=i[:, None] < L, other=0.0).to(tl.float32)
    top = tl.full((BQ,), float("-inf"), tl.float32)
    total = tl.zeros((BQ,), tl.float32)
    acc = tl.zeros((BQ, D), tl.float32)
    for w in range(-W, W + 1):
        j = i + w
        inside = (j >= 0) & (j < L)
        at = base + j[:, None] * D + d[None, :]
        k = tl.load(k_ptr + at, mask=inside[:, None], other=0.0).to(tl.float32)
        s = tl.where(inside, tl.sum(q * k, 1) * 0.125, float("-inf"))
        new = tl.maximum(top, s)
        shrink = tl.where(new == float("-inf"), 0.0, tl.exp(top - new))
        p = tl.where(inside, tl.exp(s - new), 0.0)
        v = tl.load(v_ptr + at, mask=inside[:, None], other=0.0).to(tl.float32)
        acc = acc * shrink[:, None] + p[:, None] * v
        total = total * shrink + p
        top = new
    out = acc / total[:, None]
    tl.store(out_ptr + base + i[:, None] * D + d[None, :], out.to(tl.float16), mask=i[:, None] < L)


@triton.jit
def mask_tokens(ids_ptr, out_ptr, lengths_ptr, n_cols, keep_id, BLOCK: tl.constexpr):
    """Rows moved to the right end, filled up on the left."""
    row = tl.program_id(0)
    cols = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    pad = n_cols - tl.load(lengths_ptr + row)
    ids = tl.load(ids_ptr + row * n_cols + cols - pad, mask=(cols >= pad) & (cols < n_cols), other=0)
    tl.store(out_ptr + row * n_cols + cols, tl.where(cols >= pad, ids, keep_id), mask=cols < n_cols)


@triton.jit
def absmax_columns(x_ptr, out_ptr, n_rows, n_cols, BR: tl.constexpr, BC: tl.constexpr):
    """The largest magnitude of each column, as bits, by atomics over parts of the rows."""
    cols = tl.program_id(0) * BC + tl.arange(0, BC)
    rows = tl.program_id(1) * BR + tl.arange(0, BR)
    mask = (rows[:, None] < n_rows) & (cols[None, :] < n_cols)
    x = tl.load(x_ptr + rows[:, None] * n_cols + cols[None, :], mask=mask, other=0.0).to(tl.float32)
    top = tl.max(tl.abs(x), 0)
    tl.atomic_max(out_ptr + cols, top, mask=cols < n_cols)


@triton.jit
def fused_bias_dropout(x_ptr, b_ptr, r_ptr, out_ptr, n_cols, seed, p, BLOCK: tl.constexpr):
    """Bias, dropout by a hash, and what went around, for a row in pieces."""
    row = tl.program_id(0)
    cols = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * n_cols + cols, mask=mask, other=0.0).to(tl.float32)
    x += tl.load(b_ptr + cols, mask=mask, other=0.0).to(tl.float32)
    h = ((row * n_cols + cols) ^ seed).to(tl.uint32)
    h = (h ^ (h >> 16)) * 0x7FEB352D
    h = (h ^ (h >> 15)) * 0x846CA68B
    u = ((h ^ (h >> 16)) >> 8).to(tl.float32) * 5.9604645e-08
    x = tl.where(u > p, x / (1 - p), 0.0)
    x += tl.load(r_ptr + row * n_cols + cols, mask=mask, other=0.0).to(tl.float32)
    tl.store(out_ptr + row * n_cols + cols, x.to(tl.bfloat16), mask=mask)


@triton.jit
def matrix_exp_step(a_ptr, x_ptr, out_ptr, N: tl.constexpr, TERMS: tl.constexpr):
    """exp(A) applied to 16 columns by a Taylor series, a matrix for each program."""
    p = tl.program_id(0)
    i, c = tl.arange(0, N), tl.arange(0, 16)
    a = tl.load(a_ptr + p * N * N + i[:, None] * N + i[None, :])
    x = tl.load(x_ptr + p * N * 16 + i[:, None] * 16 + c[None, :])
    term = x
    total = x.to(tl.float32)
    for k in range(1, TERMS + 1):
        term = (tl.dot(a, term) / k).to(tl.float16)
        total += term.to(tl.float32)
    tl.store(out_ptr + p * N * 16 + i[:, None] * 16 + c[None, :], total)
