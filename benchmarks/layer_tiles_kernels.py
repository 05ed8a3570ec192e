"""Products whose loops do more than multiply, for `layer_tiles.py`: scales, masks, gathered rows, several products."""

import tilewright as triton
import tilewright.language as tl


@triton.jit
def block_scaled(x_ptr, xs_ptr, w_ptr, ws_ptr, y_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """fp8, a scale for 128 elements of a row of x and for 128 x 128 of w [N, K]."""
    m, n, k = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN), tl.arange(0, BK)
    groups = tl.cdiv(K, 128)
    acc = tl.zeros((BM, BN), tl.float32)
    for start in range(0, K, BK):
        x = tl.load(
            x_ptr + m[:, None] * K + start + k[None, :], mask=(m[:, None] < M) & (start + k[None, :] < K), other=0.0
        )
        w = tl.load(
            w_ptr + n[None, :] * K + start + k[:, None], mask=(n[None, :] < N) & (start + k[:, None] < K), other=0.0
        )
        xs = tl.load(xs_ptr + m * groups + start // 128, mask=m < M, other=0.0)
        ws = tl.load(ws_ptr + n // 128 * groups + start // 128, mask=n < N, other=0.0)
        acc += tl.dot(x, w) * xs[:, None] * ws[None, :]
    tl.store(y_ptr + m[:, None] * N + n[None, :], acc.to(tl.bfloat16), mask=(m[:, None] < M) & (n[None, :] < N))


@triton.jit
def byte_weights(
    x_ptr, w_ptr, s_ptr, y_ptr, M, N, K, stride_k, stride_n, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr
):
    """fp16 times int8, a scale per column; weights in either order."""
    m, n, k = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN), tl.arange(0, BK)
    acc = tl.zeros((BM, BN), tl.float32)
    for start in range(0, K, BK):
        at = start + k
        x = tl.load(x_ptr + m[:, None] * K + at[None, :], mask=(m[:, None] < M) & (at[None, :] < K), other=0.0)
        w = tl.load(
            w_ptr + at[:, None] * stride_k + n[None, :] * stride_n,
            mask=(at[:, None] < K) & (n[None, :] < N),
            other=0,
        )
        acc = tl.dot(x, w.to(tl.float16), acc)
    acc *= tl.load(s_ptr + n, mask=n < N, other=0.0)[None, :]
    tl.store(y_ptr + m[:, None] * N + n[None, :], acc.to(tl.float16), mask=(m[:, None] < M) & (n[None, :] < N))


@triton.jit
def nibble_weights(x_ptr, w_ptr, s_ptr, z_ptr, y_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """fp16 times 4 bits, two along K in a byte, with scales and zeros for 128 rows of a column."""
    m, n, k = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN), tl.arange(0, BK)
    acc = tl.zeros((BM, BN), tl.float32)
    for start in range(0, K, BK):
        at = start + k
        x = tl.load(x_ptr + m[:, None] * K + at[None, :], mask=(m[:, None] < M) & (at[None, :] < K), other=0.0)
        two = tl.load(w_ptr + (at[:, None] // 2) * N + n[None, :], mask=(at[:, None] < K) & (n[None, :] < N), other=0)
        w = ((two >> (at[:, None] % 2 * 4)) & 15).to(tl.float16)
        s = tl.load(s_ptr + start // 128 * N + n, mask=n < N, other=0.0)
        z = tl.load(z_ptr + start // 128 * N + n, mask=n < N, other=0.0)
        acc = tl.dot(x, (w - z[None, :]) * s[None, :], acc)
    tl.store(y_ptr + m[:, None] * N + n[None, :], acc.to(tl.float16), mask=(m[:, None] < M) & (n[None, :] < N))


@triton.jit
def silu_layer(x_ptr, w_ptr, y_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """silu(x) times w [K, N]."""
    m, n, k = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN), tl.arange(0, BK)
    acc = tl.zeros((BM, BN), tl.float32)
    for start in range(0, K, BK):
        at = start + k
        x = tl.load(x_ptr + m[:, None] * K + at[None, :], mask=(m[:, None] < M) & (at[None, :] < K), other=0.0)
        x = x.to(tl.float32)
        x = (x * tl.sigmoid(x)).to(w_ptr.dtype.element_ty)
        w = tl.load(w_ptr + at[:, None] * N + n[None, :], mask=(at[:, None] < K) & (n[None, :] < N), other=0.0)
        acc = tl.dot(x, w, acc)
    tl.store(
        y_ptr + m[:, None] * N + n[None, :], acc.to(y_ptr.dtype.element_ty), mask=(m[:, None] < M) & (n[None, :] < N)
    )


@triton.jit
def normed_layer(x_ptr, g_ptr, w_ptr, y_ptr, M, N, K, eps, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """RMS norm and a layer in one: squares are summed up beside the product."""
    m, n, k = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN), tl.arange(0, BK)
    acc, squares = tl.zeros((BM, BN), tl.float32), tl.zeros((BM,), tl.float32)
    for start in range(0, K, BK):
        at = start + k
        x = tl.load(x_ptr + m[:, None] * K + at[None, :], mask=(m[:, None] < M) & (at[None, :] < K), other=0.0)
        g = tl.load(g_ptr + at, mask=at < K, other=0.0)
        w = tl.load(w_ptr + n[None, :] * K + at[:, None], mask=(n[None, :] < N) & (at[:, None] < K), other=0.0)
        wide = x.to(tl.float32)
        squares += tl.sum(wide * wide, 1)
        acc = tl.dot(x * g[None, :], w, acc)
    acc *= tl.rsqrt(squares / K + eps)[:, None]
    tl.store(y_ptr + m[:, None] * N + n[None, :], acc.to(tl.float16), mask=(m[:, None] < M) & (n[None, :] < N))


@triton.jit
def gate_up(x_ptr, g_ptr, u_ptr, y_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """silu(x g) (x u), both weights [N, K]."""
    m, n, k = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN), tl.arange(0, BK)
    gate, up = tl.zeros((BM, BN), tl.float32), tl.zeros((BM, BN), tl.float32)
    for start in range(0, K, BK):
        at = start + k
        x = tl.load(x_ptr + m[:, None] * K + at[None, :], mask=(m[:, None] < M) & (at[None, :] < K), other=0.0)
        inside = (n[None, :] < N) & (at[:, None] < K)
        gate = tl.dot(x, tl.load(g_ptr + n[None, :] * K + at[:, None], mask=inside, other=0.0), gate)
        up = tl.dot(x, tl.load(u_ptr + n[None, :] * K + at[:, None], mask=inside, other=0.0), up)
    y = gate * tl.sigmoid(gate) * up
    tl.store(y_ptr + m[:, None] * N + n[None, :], y.to(tl.float16), mask=(m[:, None] < M) & (n[None, :] < N))


@triton.jit
def gathered_layer(x_ptr, rows_ptr, w_ptr, y_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """Rows that are looked up, times w [N, K]."""
    m, n, k = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN), tl.arange(0, BK)
    row = tl.load(rows_ptr + m, mask=m < M, other=0)
    acc = tl.zeros((BM, BN), tl.float32)
    for start in range(0, K, BK):
        at = start + k
        x = tl.load(x_ptr + row[:, None] * K + at[None, :], mask=(m[:, None] < M) & (at[None, :] < K), other=0.0)
        w = tl.load(w_ptr + n[None, :] * K + at[:, None], mask=(n[None, :] < N) & (at[:, None] < K), other=0.0)
        acc = tl.dot(x, w, acc)
    tl.store(y_ptr + m[:, None] * N + n[None, :], acc.to(tl.float16), mask=(m[:, None] < M) & (n[None, :] < N))


@triton.jit
def lora_layer(
    x_ptr, w_ptr, a_ptr, b_ptr, y_ptr, M, N, K, R: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr
):
    """A product and one of low rank, x w + (x a) b: w [N, K], a [K, R], b [R, N]."""
    m, n, k = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN), tl.arange(0, BK)
    r = tl.arange(0, R)
    acc, low = tl.zeros((BM, BN), tl.float32), tl.zeros((BM, R), tl.float32)
    for start in range(0, K, BK):
        at = start + k
        x = tl.load(x_ptr + m[:, None] * K + at[None, :], mask=(m[:, None] < M) & (at[None, :] < K), other=0.0)
        w = tl.load(w_ptr + n[None, :] * K + at[:, None], mask=(n[None, :] < N) & (at[:, None] < K), other=0.0)
        a = tl.load(a_ptr + at[:, None] * R + r[None, :], mask=at[:, None] < K, other=0.0)
        acc = tl.dot(x, w, acc)
        low = tl.dot(x, a, low)
    b = tl.load(b_ptr + r[:, None] * N + n[None, :], mask=n[None, :] < N, other=0.0)
    acc = tl.dot(low.to(tl.float16), b, acc)
    tl.store(y_ptr + m[:, None] * N + n[None, :], acc.to(tl.float16), mask=(m[:, None] < M) & (n[None, :] < N))


@triton.jit
def lower_triangle(a_ptr, b_ptr, c_ptr, M, N, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """The lower triangle of a [M, M] times b [M, N]."""
    m, n, k = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN), tl.arange(0, BK)
    acc = tl.zeros((BM, BN), tl.float32)
    for start in range(0, tl.minimum((tl.program_id(0) + 1) * BM, M), BK):
        at = start + k
        a = tl.load(a_ptr + m[:, None] * M + at[None, :], mask=(m[:, None] < M) & (at[None, :] < M), other=0.0)
        a = tl.where(m[:, None] >= at[None, :], a, 0.0)
        b = tl.load(b_ptr + at[:, None] * N + n[None, :], mask=(at[:, None] < M) & (n[None, :] < N), other=0.0)
        acc = tl.dot(a, b, acc)
    tl.store(c_ptr + m[:, None] * N + n[None, :], acc.to(tl.float16), mask=(m[:, None] < M) & (n[None, :] < N))


@triton.jit
def sparse_blocks(
    a_ptr, b_ptr, first_ptr, column_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr
):
    """Blocks of a row of blocks, whose columns are looked up, times b [K, N]."""
    m, n, k = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN), tl.arange(0, BK)
    acc = tl.zeros((BM, BN), tl.float32)
    for block in range(tl.load(first_ptr + tl.program_id(0)), tl.load(first_ptr + tl.program_id(0) + 1)):
        at = tl.load(column_ptr + block) * BK + k
        a = tl.load(a_ptr + m[:, None] * K + at[None, :], mask=(m[:, None] < M) & (at[None, :] < K), other=0.0)
        b = tl.load(b_ptr + at[:, None] * N + n[None, :], mask=(at[:, None] < K) & (n[None, :] < N), other=0.0)
        acc = tl.dot(a, b, acc)
    tl.store(c_ptr + m[:, None] * N + n[None, :], acc.to(tl.float16), mask=(m[:, None] < M) & (n[None, :] < N))


@triton.jit
def weight_gradient(x_ptr, dy_ptr, dw_ptr, db_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """The gradient dw [M, N] = x [K, M] transposed times dy [K, N], and the sum of dy along K."""
    m, n, k = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN), tl.arange(0, BK)
    acc, bias = tl.zeros((BM, BN), tl.float32), tl.zeros((BN,), tl.float32)
    for start in range(0, K, BK):
        at = start + k
        x = tl.load(x_ptr + at[:, None] * M + m[None, :], mask=(at[:, None] < K) & (m[None, :] < M), other=0.0)
        dy = tl.load(dy_ptr + at[:, None] * N + n[None, :], mask=(at[:, None] < K) & (n[None, :] < N), other=0.0)
        acc = tl.dot(tl.trans(x), dy, acc)
        bias += tl.sum(dy.to(tl.float32), 0)
    tl.store(dw_ptr + m[:, None] * N + n[None, :], acc, mask=(m[:, None] < M) & (n[None, :] < N))
    if tl.program_id(0) == 0:
        tl.store(db_ptr + n, bias, mask=n < N)


@triton.jit
def nearest(x_ptr, c_ptr, best_ptr, least_ptr, M, N, K: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    """The centre that is nearest to each row, by products in a loop over centres."""
    m, k = tl.program_id(0) * BM + tl.arange(0, BM), tl.arange(0, K)
    x = tl.load(x_ptr + m[:, None] * K + k[None, :], mask=m[:, None] < M, other=0.0)
    least, best = tl.full((BM,), float("inf"), tl.float32), tl.zeros((BM,), tl.int32)
    for start in range(0, N, BN):
        n = start + tl.arange(0, BN)
        c = tl.load(c_ptr + n[:, None] * K + k[None, :], mask=n[:, None] < N, other=0.0)
        wide = c.to(tl.float32)
        d = tl.sum(wide * wide, 1)[None, :] - 2 * tl.dot(x, tl.trans(c))
        d = tl.where(n[None, :] < N, d, float("inf"))
        here = tl.min(d, 1)
        best = tl.where(here < least, start + tl.argmin(d, 1), best)
        least = tl.minimum(least, here)
    tl.store(best_ptr + m, best, mask=m < M)
    tl.store(least_ptr + m, least, mask=m < M)


@triton.jit
def vocabulary(x_ptr, w_ptr, out_ptr, M, V, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """The log sum exp of x w over a vocabulary [V, K], a tile of it after another."""
    m, k = tl.program_id(0) * BM + tl.arange(0, BM), tl.arange(0, BK)
    top, total = tl.full((BM,), -float("inf"), tl.float32), tl.zeros((BM,), tl.float32)
    for first in range(0, V, BN):
        n = first + tl.arange(0, BN)
        acc = tl.zeros((BM, BN), tl.float32)
        for start in range(0, K, BK):
            at = start + k
            x = tl.load(x_ptr + m[:, None] * K + at[None, :], mask=(m[:, None] < M) & (at[None, :] < K), other=0.0)
            w = tl.load(w_ptr + n[None, :] * K + at[:, None], mask=(n[None, :] < V) & (at[:, None] < K), other=0.0)
            acc = tl.dot(x, w, acc)
        acc = tl.where(n[None, :] < V, acc, -float("inf"))
        now = tl.maximum(top, tl.max(acc, 1))
        total = total * tl.exp(top - now) + tl.sum(tl.exp(acc - now[:, None]), 1)
        top = now
    tl.store(out_ptr + m, top + tl.log(total), mask=m < M)


@triton.jit
def taps(x_ptr, w_ptr, y_ptr, T, C, O, TAPS: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """A causal convolution along time: x [T, C], w [TAPS, C, O]."""
    t, o, k = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN), tl.arange(0, BK)
    acc = tl.zeros((BM, BN), tl.float32)
    for tap in range(TAPS):
        s = t + tap - (TAPS - 1)
        for start in range(0, C, BK):
            c = start + k
            x = tl.load(
                x_ptr + s[:, None] * C + c[None, :],
                mask=(s[:, None] >= 0) & (s[:, None] < T) & (c[None, :] < C),
                other=0.0,
            )
            w = tl.load(
                w_ptr + tap * C * O + c[:, None] * O + o[None, :], mask=(c[:, None] < C) & (o[None, :] < O), other=0.0
            )
            acc = tl.dot(x, w, acc)
    tl.store(y_ptr + t[:, None] * O + o[None, :], acc.to(tl.float16), mask=(t[:, None] < T) & (o[None, :] < O))


@triton.jit
def residual_layer(
    x_ptr, w_ptr, b_ptr, r_ptr, y_ptr, h_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr
):
    """A layer with bias whose sums and gelu plus residual are both stored; programs in groups of eight rows of tiles."""
    tiles_m, tiles_n, pid = tl.cdiv(M, BM), tl.cdiv(N, BN), tl.program_id(0)
    group = pid // (8 * tiles_n)
    height = tl.minimum(tiles_m - group * 8, 8)
    m = (group * 8 + pid % (8 * tiles_n) % height) * BM + tl.arange(0, BM)
    n, k = pid % (8 * tiles_n) // height * BN + tl.arange(0, BN), tl.arange(0, BK)
    x_at, w_at = x_ptr + m[:, None] * K + k[None, :], w_ptr + k[:, None] * N + n[None, :]
    acc = tl.zeros((BM, BN), tl.float32)
    for start in range(0, K, BK):
        x = tl.load(x_at, mask=(m[:, None] < M) & (k[None, :] < K - start), other=0.0)
        w = tl.load(w_at, mask=(k[:, None] < K - start) & (n[None, :] < N), other=0.0)
        acc = tl.dot(x, w, acc)
        x_at += BK
        w_at += BK * N
    at, inside = m[:, None] * N + n[None, :], (m[:, None] < M) & (n[None, :] < N)
    h = acc + tl.load(b_ptr + n, mask=n < N, other=0.0)[None, :]
    tl.store(h_ptr + at, h.to(h_ptr.dtype.element_ty), mask=inside)
    y = 0.5 * h * (1 + tl.erf(h * 0.70710678)) + tl.load(r_ptr + at, mask=inside, other=0.0)
    tl.store(y_ptr + at, y.to(y_ptr.dtype.element_ty), mask=inside)


@triton.jit
def wide_weights(x_ptr, w_ptr, y_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """bf16 times weights that are kept as floats [N, K] and rounded in the loop."""
    m, n, k = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN), tl.arange(0, BK)
    acc = tl.zeros((BM, BN), tl.float32)
    for start in range(0, K, BK):
        at = start + k
        x = tl.load(x_ptr + m[:, None] * K + at[None, :], mask=(m[:, None] < M) & (at[None, :] < K), other=0.0)
        w = tl.load(w_ptr + n[None, :] * K + at[:, None], mask=(n[None, :] < N) & (at[:, None] < K), other=0.0)
        acc = tl.dot(x, w.to(tl.bfloat16), acc)
    tl.store(y_ptr + m[:, None] * N + n[None, :], acc.to(tl.bfloat16), mask=(m[:, None] < M) & (n[None, :] < N))


@triton.jit
def heads_product(
    a_ptr, b_ptr, c_ptr, H, M, N, K, sab, sah, sam, sbb, sbh, sbn, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr
):
    """Products of heads that lie between each other: a [batch, M, H, K], b [batch, N, H, K], c [batch, H, M, N]."""
    batch, head = tl.program_id(2) // H, tl.program_id(2) % H
    a_ptr += batch * sab + head * sah
    b_ptr += batch * sbb + head * sbh
    m, n, k = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN), tl.arange(0, BK)
    acc = tl.zeros((BM, BN), tl.float32)
    for start in range(0, K, BK):
        at = start + k
        a = tl.load(a_ptr + m[:, None] * sam + at[None, :], mask=(m[:, None] < M) & (at[None, :] < K), other=0.0)
        b = tl.load(b_ptr + n[:, None] * sbn + at[None, :], mask=(n[:, None] < N) & (at[None, :] < K), other=0.0)
        acc = tl.dot(a, tl.trans(b), acc)
    c_ptr += tl.program_id(2).to(tl.int64) * M * N
    tl.store(c_ptr + m[:, None] * N + n[None, :], acc.to(tl.float16), mask=(m[:, None] < M) & (n[None, :] < N))
