"""Kernels for images, boxes, choices and packing: filters, colours, pairs of boxes, thresholds by halving, bits of numbers.

`everyday.py` times them.
"""

import tilewright as triton
import tilewright.language as tl

# -------------------------------------------------------------------------------------------------------------------- images


@triton.jit
def normalize_image(x_ptr, mean_ptr, std_ptr, out_ptr, PIXELS, BLOCK: tl.constexpr):
    """Bytes of red, green and blue beside one another, as halves in planes."""
    image = tl.program_id(1)
    pixel = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    live = pixel < PIXELS
    for channel in tl.static_range(3):
        x = tl.load(x_ptr + (image * PIXELS + pixel) * 3 + channel, mask=live, other=0).to(tl.float32) / 255.0
        y = (x - tl.load(mean_ptr + channel)) / tl.load(std_ptr + channel)
        tl.store(out_ptr + (image * 3 + channel) * PIXELS + pixel, y.to(tl.float16), mask=live)


@triton.jit
def bilateral(x_ptr, out_ptr, H, W, space, tone, BLOCK_H: tl.constexpr, BLOCK_W: tl.constexpr):
    """A mean of 5 x 5 neighbours, by their distance in place and value."""
    r = tl.program_id(0) * BLOCK_H + tl.arange(0, BLOCK_H)[:, None]
    c = tl.program_id(1) * BLOCK_W + tl.arange(0, BLOCK_W)[None, :]
    live = (r < H) & (c < W)
    centre = tl.load(x_ptr + r * W + c, mask=live, other=0.0)
    total = tl.zeros((BLOCK_H, BLOCK_W), tl.float32)
    weight = tl.zeros((BLOCK_H, BLOCK_W), tl.float32)
    for dr in tl.static_range(-2, 3):
        for dc in tl.static_range(-2, 3):
            inside = (r + dr >= 0) & (r + dr < H) & (c + dc >= 0) & (c + dc < W)
            x = tl.load(x_ptr + (r + dr) * W + c + dc, mask=inside, other=0.0)
            w = tl.exp(-(x - centre) * (x - centre) * tone - (dr * dr + dc * dc) * space)
            w = tl.where(inside, w, 0.0)
            total += w * x
            weight += w
    tl.store(out_ptr + r * W + c, total / weight, mask=live)


@triton.jit
def order(a, b):
    return tl.minimum(a, b), tl.maximum(a, b)


@triton.jit
def median(x_ptr, out_ptr, H, W, BLOCK: tl.constexpr):
    """The median of 3 x 3 bytes; edges repeat."""
    r = tl.program_id(0)
    c = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    live = c < W
    above, below = tl.maximum(r - 1, 0), tl.minimum(r + 1, H - 1)
    left, right = tl.maximum(c - 1, 0), tl.minimum(c + 1, W - 1)
    a = tl.load(x_ptr + above * W + left, mask=live)
    b = tl.load(x_ptr + above * W + c, mask=live)
    d = tl.load(x_ptr + above * W + right, mask=live)
    e = tl.load(x_ptr + r * W + left, mask=live)
    f = tl.load(x_ptr + r * W + c, mask=live)
    g = tl.load(x_ptr + r * W + right, mask=live)
    h = tl.load(x_ptr + below * W + left, mask=live)
    i = tl.load(x_ptr + below * W + c, mask=live)
    j = tl.load(x_ptr + below * W + right, mask=live)
    b, d = order(b, d)
    f, g = order(f, g)
    i, j = order(i, j)
    a, b = order(a, b)
    e, f = order(e, f)
    h, i = order(h, i)
    b, d = order(b, d)
    f, g = order(f, g)
    i, j = order(i, j)
    middle = tl.maximum(tl.maximum(a, e), h)
    high = tl.minimum(tl.minimum(d, g), j)
    f, i = order(f, i)
    b = tl.maximum(b, f)
    b = tl.minimum(b, i)
    b, high = order(b, high)
    middle, b = order(middle, b)
    middle = tl.maximum(middle, tl.minimum(b, high))
    tl.store(out_ptr + r * W + c, middle, mask=live)


@triton.jit
def wide_depthwise(x_ptr, w_ptr, bias_ptr, out_ptr, H, W, C, TAPS: tl.constexpr, BLOCK_W: tl.constexpr,
                   BLOCK_C: tl.constexpr):  # fmt: skip
    """A convolution of TAPS squared taps within each channel; channels last."""
    row = tl.program_id(0)
    image = tl.program_id(2)
    parts = tl.cdiv(C, BLOCK_C)
    cols = tl.program_id(1) // parts * BLOCK_W + tl.arange(0, BLOCK_W)
    channels = tl.program_id(1) % parts * BLOCK_C + tl.arange(0, BLOCK_C)
    acc = tl.zeros((BLOCK_W, BLOCK_C), tl.float32) + tl.load(bias_ptr + channels)[None, :].to(tl.float32)
    for dr in range(TAPS):
        r = row + dr - TAPS // 2
        for dc in tl.static_range(TAPS):
            c = cols + dc - TAPS // 2
            live = (r >= 0) & (r < H) & (c >= 0) & (c < W)
            at = ((image * H + r) * W + c)[:, None] * C + channels[None, :]
            x = tl.load(x_ptr + at, mask=live[:, None], other=0.0).to(tl.float32)
            w = tl.load(w_ptr + (dr * TAPS + dc) * C + channels).to(tl.float32)
            acc += x * w[None, :]
    at = ((image * H + row) * W + cols)[:, None] * C + channels[None, :]
    tl.store(out_ptr + at, acc, mask=(cols < W)[:, None])


# --------------------------------------------------------------------------------------------------------------------- boxes


@triton.jit
def box_overlaps(a_ptr, b_ptr, out_ptr, N, M, BLOCK_N: tl.constexpr, BLOCK_M: tl.constexpr):
    """The part that two boxes (left, top, right, bottom) have in common, of each pair."""
    n = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    m = tl.program_id(1) * BLOCK_M + tl.arange(0, BLOCK_M)
    n_live, m_live = n < N, m < M
    al = tl.load(a_ptr + n * 4, mask=n_live, other=0.0)
    at = tl.load(a_ptr + n * 4 + 1, mask=n_live, other=0.0)
    ar = tl.load(a_ptr + n * 4 + 2, mask=n_live, other=0.0)
    ab = tl.load(a_ptr + n * 4 + 3, mask=n_live, other=0.0)
    bl = tl.load(b_ptr + m * 4, mask=m_live, other=0.0)
    bt = tl.load(b_ptr + m * 4 + 1, mask=m_live, other=0.0)
    br = tl.load(b_ptr + m * 4 + 2, mask=m_live, other=0.0)
    bb = tl.load(b_ptr + m * 4 + 3, mask=m_live, other=0.0)
    width = tl.maximum(tl.minimum(ar[:, None], br[None, :]) - tl.maximum(al[:, None], bl[None, :]), 0.0)
    height = tl.maximum(tl.minimum(ab[:, None], bb[None, :]) - tl.maximum(at[:, None], bt[None, :]), 0.0)
    common = width * height
    areas = ((ar - al) * (ab - at))[:, None] + ((br - bl) * (bb - bt))[None, :]
    mask = n_live[:, None] & m_live[None, :]
    tl.store(out_ptr + n[:, None] * M + m[None, :], common / (areas - common + 1e-7), mask=mask)


@triton.jit
def splat_points(x_ptr, y_ptr, value_ptr, out_ptr, N, H, W, BLOCK: tl.constexpr):
    """Adds each point's value to its four neighbours of an image."""
    p = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    live = p < N
    x = tl.load(x_ptr + p, mask=live, other=0.0)
    y = tl.load(y_ptr + p, mask=live, other=0.0)
    value = tl.load(value_ptr + p, mask=live, other=0.0)
    left, top = tl.floor(x), tl.floor(y)
    right, below = x - left, y - top
    c, r = left.to(tl.int32), top.to(tl.int32)
    for dr in tl.static_range(2):
        for dc in tl.static_range(2):
            w = (below if dr == 1 else 1.0 - below) * (right if dc == 1 else 1.0 - right)
            inside = live & (r + dr >= 0) & (r + dr < H) & (c + dc >= 0) & (c + dc < W)
            tl.atomic_add(out_ptr + (r + dr) * W + c + dc, value * w, mask=inside, sem="relaxed")


# ------------------------------------------------------------------------------------------------------------------- choices


@triton.jit
def largest_few(x_ptr, value_ptr, index_ptr, N, FEW: tl.constexpr, BLOCK: tl.constexpr):
    """The FEW largest of each row, in order."""
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * N + cols, mask=cols < N, other=-float("inf")).to(tl.float32)
    for rank in tl.static_range(FEW):
        value, place = tl.max(x, 0, return_indices=True)
        tl.store(value_ptr + row * FEW + rank, value)
        tl.store(index_ptr + row * FEW + rank, place)
        x = tl.where(cols == place, -float("inf"), x)


@triton.jit
def sparse_weights(x_ptr, out_ptr, N, STEPS: tl.constexpr, BLOCK: tl.constexpr):
    """sparsemax: what of each row is above a threshold that leaves a sum of 1, which is found by halving."""
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * N + cols, mask=cols < N, other=-float("inf")).to(tl.float32)
    high = tl.max(x, 0)
    low = high - 1.0
    for _ in range(STEPS):
        middle = (low + high) * 0.5
        more = tl.sum(tl.maximum(x - middle, 0.0), 0) >= 1.0
        low = tl.where(more, middle, low)
        high = tl.where(more, high, middle)
    p = tl.maximum(x - low, 0.0)
    tl.store(out_ptr + row * N + cols, (p / tl.sum(p, 0)).to(tl.float16), mask=cols < N)


@triton.jit
def nucleus(logits_ptr, out_ptr, N, mass, STEPS: tl.constexpr, BLOCK: tl.constexpr):
    """Probabilities of each row, without the least likely, which together have less than 1 - mass."""
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    live = cols < N
    x = tl.load(logits_ptr + row * N + cols, mask=live, other=-float("inf")).to(tl.float32)
    p = tl.exp(x - tl.max(x, 0))
    total = tl.sum(p, 0)
    low, high = 0.0, 1.0
    for _ in range(STEPS):
        middle = (low + high) * 0.5
        kept = tl.sum(tl.where(p >= middle, p, 0.0), 0)
        if kept >= mass * total:
            low = middle
        else:
            high = middle
    p = tl.where(p >= low, p, 0.0)
    tl.store(out_ptr + row * N + cols, (p / tl.sum(p, 0)).to(tl.float16), mask=live)


@triton.jit
def assign_clusters(x_ptr, centre_ptr, sum_ptr, count_ptr, N, CLUSTERS: tl.constexpr, DIM: tl.constexpr,
                    BLOCK: tl.constexpr):  # fmt: skip
    """Adds each vector to the sum of the cluster whose centre is nearest."""
    n = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    d = tl.arange(0, DIM)
    c = tl.arange(0, CLUSTERS)
    live = n < N
    x = tl.load(x_ptr + n[:, None] * DIM + d[None, :], mask=live[:, None], other=0.0)
    centres = tl.load(centre_ptr + c[:, None] * DIM + d[None, :])
    norms = tl.sum(centres.to(tl.float32) * centres.to(tl.float32), 1)
    distance = norms[None, :] - 2.0 * tl.dot(x, tl.trans(centres))
    nearest = tl.argmin(distance, 1)
    tl.atomic_add(sum_ptr + nearest[:, None] * DIM + d[None, :], x.to(tl.float32), mask=live[:, None], sem="relaxed")
    tl.atomic_add(count_ptr + nearest, 1, mask=live, sem="relaxed")


# ------------------------------------------------------------------------------------------------------------------- packing


@triton.jit
def pack_weights(x_ptr, q_ptr, scale_ptr, K, GROUP: tl.constexpr, GROUPS: tl.constexpr):
    """Rows as numbers of 4 bits with a scale for GROUP of them, two neighbours in a byte."""
    row = tl.program_id(0).to(tl.int64)
    groups = tl.program_id(1) * GROUPS + tl.arange(0, GROUPS)
    each = tl.arange(0, GROUP)
    x = tl.load(x_ptr + row * K + groups[:, None] * GROUP + each[None, :]).to(tl.float32)
    scale = tl.maximum(tl.max(tl.abs(x), 1), 1e-8) / 7.0
    q = tl.floor(x / scale[:, None] + 8.5).to(tl.int32)
    low, high = tl.split(tl.reshape(q, (GROUPS, GROUP // 2, 2)))
    bytes = tl.arange(0, GROUP // 2)
    place = row * (K // 2) + groups[:, None] * (GROUP // 2) + bytes[None, :]
    tl.store(q_ptr + place, (low | high << 4).to(tl.uint8))
    tl.store(scale_ptr + row * (K // GROUP) + groups, scale)


@triton.jit
def gated_group_norm(x_ptr, gate_ptr, w_ptr, out_ptr, N, eps, GROUP: tl.constexpr, GROUPS: tl.constexpr):
    """RMS norm of each group of a row, of x times silu of a gate."""
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, GROUPS * GROUP)
    x = tl.load(x_ptr + row * N + cols).to(tl.float32)
    gate = tl.load(gate_ptr + row * N + cols).to(tl.float32)
    y = tl.reshape(x * gate * tl.sigmoid(gate), (GROUPS, GROUP))
    scale = tl.rsqrt(tl.sum(y * y, 1) / GROUP + eps)
    y = tl.reshape(y * scale[:, None], (GROUPS * GROUP,)) * tl.load(w_ptr + cols)
    tl.store(out_ptr + row * N + cols, y.to(tl.bfloat16))


@triton.jit
def quantile_loss(x_ptr, target_ptr, levels_ptr, out_ptr, N, LEVELS: tl.constexpr, BLOCK: tl.constexpr):
    """Huber's loss of all pairs of quantiles, summed over targets and averaged over levels."""
    row = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    level = tl.arange(0, LEVELS)
    live = row < N
    x = tl.load(x_ptr + row[:, None] * LEVELS + level[None, :], mask=live[:, None], other=0.0)
    target = tl.load(target_ptr + row[:, None] * LEVELS + level[None, :], mask=live[:, None], other=0.0)
    tau = tl.load(levels_ptr + level)
    error = target[:, None, :] - x[:, :, None]
    size = tl.abs(error)
    huber = tl.where(size <= 1.0, 0.5 * error * error, size - 0.5)
    weight = tl.abs(tau[None, :, None] - tl.where(error < 0.0, 1.0, 0.0))
    loss = tl.sum(tl.sum(weight * huber, 2), 1) / LEVELS
    tl.store(out_ptr + row, loss, mask=live)
