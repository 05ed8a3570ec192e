"""Simple kernels that anybody writes, for `many_shapes.py`: the sizes and tiles make the difference."""

import tilewright as triton
import tilewright.language as tl


@triton.jit
def softmax_row(x_ptr, y_ptr, N, BLOCK: tl.constexpr):
    """A row a program."""
    row, c = tl.program_id(0), tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * N + c, mask=c < N, other=-float("inf")).to(tl.float32)
    e = tl.exp(x - tl.max(x, 0))
    tl.store(y_ptr + row * N + c, e / tl.sum(e, 0), mask=c < N)


@triton.jit
def softmax_rows(x_ptr, y_ptr, M, N, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    """Several rows a program."""
    r, c = tl.program_id(0) * ROWS + tl.arange(0, ROWS), tl.arange(0, BLOCK)
    mask, at = (r[:, None] < M) & (c[None, :] < N), r[:, None] * N + c[None, :]
    x = tl.load(x_ptr + at, mask=mask, other=-float("inf")).to(tl.float32)
    e = tl.exp(x - tl.max(x, 1)[:, None])
    tl.store(y_ptr + at, e / tl.sum(e, 1)[:, None], mask=mask)


@triton.jit
def logsumexp_rows(x_ptr, out_ptr, M, N, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    """Several rows a program, each to a number."""
    r, c = tl.program_id(0) * ROWS + tl.arange(0, ROWS), tl.arange(0, BLOCK)
    mask = (r[:, None] < M) & (c[None, :] < N)
    x = tl.load(x_ptr + r[:, None] * N + c[None, :], mask=mask, other=-float("inf")).to(tl.float32)
    top = tl.max(x, 1)
    tl.store(out_ptr + r, top + tl.log(tl.sum(tl.exp(x - top[:, None]), 1)), mask=r < M)


@triton.jit
def norm_in_blocks(x_ptr, w_ptr, y_ptr, N, BLOCK: tl.constexpr):
    """Root mean square of a row in blocks, then the row once more."""
    row, c = tl.program_id(0), tl.arange(0, BLOCK)
    squares = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, N, BLOCK):
        x = tl.load(x_ptr + row * N + start + c, mask=start + c < N, other=0.0).to(tl.float32)
        squares += x * x
    scale = 1 / tl.sqrt(tl.sum(squares, 0) / N + 1e-5)
    for start in range(0, N, BLOCK):
        mask = start + c < N
        x = tl.load(x_ptr + row * N + start + c, mask=mask, other=0.0).to(tl.float32)
        w = tl.load(w_ptr + start + c, mask=mask, other=0.0).to(tl.float32)
        tl.store(y_ptr + row * N + start + c, x * scale * w, mask=mask)


@triton.jit
def columns_sum(x_ptr, out_ptr, M, N, BM: tl.constexpr, BN: tl.constexpr):
    """The sum of each column."""
    r, c = tl.arange(0, BM), tl.program_id(0) * BN + tl.arange(0, BN)
    total = tl.zeros((BM, BN), tl.float32)
    for start in range(0, M, BM):
        mask = (start + r[:, None] < M) & (c[None, :] < N)
        total += tl.load(x_ptr + (start + r)[:, None] * N + c[None, :], mask=mask, other=0.0).to(tl.float32)
    tl.store(out_ptr + c, tl.sum(total, 0), mask=c < N)


@triton.jit
def bias_silu(x_ptr, b_ptr, y_ptr, M, N, BM: tl.constexpr, BN: tl.constexpr):
    """A tile with a row of biases."""
    r, c = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN)
    mask, at = (r[:, None] < M) & (c[None, :] < N), r[:, None] * N + c[None, :]
    x = tl.load(x_ptr + at, mask=mask).to(tl.float32) + tl.load(b_ptr + c, mask=c < N)[None, :]
    tl.store(y_ptr + at, x * tl.sigmoid(x), mask=mask)


@triton.jit
def transposed(x_ptr, y_ptr, M, N, BM: tl.constexpr, BN: tl.constexpr):
    """A matrix transposed."""
    r, c = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN)
    mask = (r[:, None] < M) & (c[None, :] < N)
    x = tl.load(x_ptr + r[:, None] * N + c[None, :], mask=mask)
    tl.store(y_ptr + c[None, :] * M + r[:, None], x, mask=mask)


@triton.jit
def rows_taken(x_ptr, place_ptr, y_ptr, M, D, BM: tl.constexpr, BD: tl.constexpr):
    """Rows from anywhere in a table."""
    r, d = tl.program_id(0) * BM + tl.arange(0, BM), tl.arange(0, BD)
    place, mask = tl.load(place_ptr + r, mask=r < M, other=0), (r[:, None] < M) & (d[None, :] < D)
    x = tl.load(x_ptr + place[:, None] * D + d[None, :], mask=mask)
    tl.store(y_ptr + r[:, None] * D + d[None, :], x, mask=mask)


@triton.jit
def middle_sum(x_ptr, out_ptr, A, B: tl.constexpr, C: tl.constexpr, BA: tl.constexpr):
    """The sum over the middle one of three axes."""
    a, b, c = tl.program_id(0) * BA + tl.arange(0, BA), tl.arange(0, B), tl.arange(0, C)
    at = (a[:, None, None] * B + b[None, :, None]) * C + c[None, None, :]
    x = tl.load(x_ptr + at, mask=a[:, None, None] < A, other=0.0).to(tl.float32)
    tl.store(out_ptr + a[:, None] * C + c[None, :], tl.sum(x, 1), mask=a[:, None] < A)


@triton.jit
def matrix_vector(a_ptr, x_ptr, out_ptr, M, N, BM: tl.constexpr, BN: tl.constexpr):
    """A matrix by a vector."""
    r, c = tl.program_id(0) * BM + tl.arange(0, BM), tl.arange(0, BN)
    total = tl.zeros((BM, BN), tl.float32)
    for start in range(0, N, BN):
        inside = start + c < N
        mask = (r[:, None] < M) & inside[None, :]
        a = tl.load(a_ptr + r[:, None] * N + start + c[None, :], mask=mask, other=0.0).to(tl.float32)
        total += a * tl.load(x_ptr + start + c, mask=inside, other=0.0).to(tl.float32)[None, :]
    tl.store(out_ptr + r, tl.sum(total, 1), mask=r < M)


@triton.jit
def product(a_ptr, b_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """A product in one tile a program, with masks on all sides."""
    m, n, k = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN), tl.arange(0, BK)
    acc = tl.zeros((BM, BN), tl.float32)
    for start in range(0, K, BK):
        inside = start + k < K
        a = tl.load(a_ptr + m[:, None] * K + start + k[None, :], mask=(m[:, None] < M) & inside[None, :], other=0.0)
        b = tl.load(b_ptr + (start + k)[:, None] * N + n[None, :], mask=inside[:, None] & (n[None, :] < N), other=0.0)
        acc = tl.dot(a, b, acc)
    mask = (m[:, None] < M) & (n[None, :] < N)
    tl.store(c_ptr + m[:, None] * N + n[None, :], acc.to(c_ptr.dtype.element_ty), mask=mask)


@triton.jit
def distances(x_ptr, y_ptr, out_ptr, M, N, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    """The distance of each two points, a coordinate a trip."""
    m, n = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN)
    total = tl.zeros((BM, BN), tl.float32)
    for d in range(D):
        x, y = tl.load(x_ptr + m * D + d, mask=m < M, other=0.0), tl.load(y_ptr + n * D + d, mask=n < N, other=0.0)
        total += (x[:, None] - y[None, :]) * (x[:, None] - y[None, :])
    tl.store(out_ptr + m[:, None] * N + n[None, :], tl.sqrt(total), mask=(m[:, None] < M) & (n[None, :] < N))


@triton.jit
def channels_last(x_ptr, y_ptr, C, P, BC: tl.constexpr, BP: tl.constexpr):
    """Pictures by channels to pictures by points."""
    picture = tl.program_id(2).to(tl.int64) * C * P
    c, p = tl.program_id(0) * BC + tl.arange(0, BC), tl.program_id(1) * BP + tl.arange(0, BP)
    mask = (c[:, None] < C) & (p[None, :] < P)
    x = tl.load(x_ptr + picture + c[:, None] * P + p[None, :], mask=mask)
    tl.store(y_ptr + picture + p[None, :] * C + c[:, None], x, mask=mask)
