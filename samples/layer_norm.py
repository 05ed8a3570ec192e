"""Layer norm, forward and backward. The backward pass sums the weights' gradients over groups of rows, then over groups."""

import numpy as np
import tilewright as triton
import tilewright.language as tl
from support import back, place, report


@triton.jit
def layer_norm_fwd(
    x_ptr,
    y_ptr,
    w_ptr,
    b_ptr,
    mean_ptr,
    rstd_ptr,
    M,
    eps,
    N: tl.constexpr,
    ROWS: tl.constexpr,
    BLOCK_SIZE: tl.constexpr,
):
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    cols = tl.arange(0, BLOCK_SIZE)
    inside = cols < N
    mask = (rows < M)[:, None] & inside[None, :]
    offsets = rows[:, None] * N + cols[None, :]
    x = tl.load(x_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
    mean = tl.sum(x, axis=1) / N
    # Columns past the end must not count in the variance.
    centred = tl.where(inside[None, :], x - mean[:, None], 0.0)
    var = tl.sum(centred * centred, axis=1) / N
    rstd = 1 / tl.sqrt(var + eps)
    tl.store(mean_ptr + rows, mean, mask=rows < M)
    tl.store(rstd_ptr + rows, rstd, mask=rows < M)
    w = tl.load(w_ptr + cols, mask=inside).to(tl.float32)
    b = tl.load(b_ptr + cols, mask=inside).to(tl.float32)
    tl.store(y_ptr + offsets, centred * rstd[:, None] * w[None, :] + b[None, :], mask=mask)


@triton.jit
def layer_norm_bwd_dx(
    dx_ptr, dy_ptr, dw_ptr, db_ptr, x_ptr, w_ptr, mean_ptr, rstd_ptr, M, N: tl.constexpr, BLOCK_SIZE: tl.constexpr
):
    group = tl.program_id(0)
    cols = tl.arange(0, BLOCK_SIZE)
    mask = cols < N
    w = tl.load(w_ptr + cols, mask=mask, other=0.0).to(tl.float32)
    dw = tl.zeros((BLOCK_SIZE,), dtype=tl.float32)
    db = tl.zeros((BLOCK_SIZE,), dtype=tl.float32)
    # A program keeps the sums of its rows in registers and writes them once; two rows are on their way meanwhile.
    for row in tl.range(group, M, tl.num_programs(0), num_stages=3):
        x = tl.load(x_ptr + row * N + cols, mask=mask, other=0.0).to(tl.float32)
        dy = tl.load(dy_ptr + row * N + cols, mask=mask, other=0.0).to(tl.float32)
        mean = tl.load(mean_ptr + row)
        rstd = tl.load(rstd_ptr + row)
        xhat = tl.where(mask, (x - mean) * rstd, 0.0)
        wdy = w * dy
        c1 = tl.sum(xhat * wdy, axis=0) / N
        c2 = tl.sum(wdy, axis=0) / N
        dx = (wdy - (xhat * c1 + c2)) * rstd
        tl.store(dx_ptr + row * N + cols, dx, mask=mask)
        dw += dy * xhat
        db += dy
    tl.store(dw_ptr + group * N + cols, dw, mask=mask)
    tl.store(db_ptr + group * N + cols, db, mask=mask)


@triton.jit
def layer_norm_bwd_dwdb(dw_part_ptr, db_part_ptr, dw_ptr, db_ptr, G, N, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    cols = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    dw = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    db = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for start in range(0, G, BLOCK_M):
        rows = start + tl.arange(0, BLOCK_M)
        mask = (rows[:, None] < G) & (cols[None, :] < N)
        offsets = rows[:, None] * N + cols[None, :]
        dw += tl.load(dw_part_ptr + offsets, mask=mask, other=0.0)
        db += tl.load(db_part_ptr + offsets, mask=mask, other=0.0)
    tl.store(dw_ptr + cols, tl.sum(dw, axis=0), mask=cols < N)
    tl.store(db_ptr + cols, tl.sum(db, axis=0), mask=cols < N)


def main() -> None:
    """Forward and backward on rows of an odd length, against float64."""
    rng = np.random.default_rng()
    rows, cols, groups, eps = 33, 781, 8, 1e-5
    x, dy = rng.standard_normal((2, rows, cols), dtype=np.float32)
    w, b = rng.standard_normal((2, cols), dtype=np.float32)
    y, mean, rstd = (place(np.full(shape, np.nan, np.float32)) for shape in ((rows, cols), rows, rows))
    block = triton.next_power_of_2(cols)
    layer_norm_fwd[(triton.cdiv(rows, 2),)](
        place(x), y, place(w), place(b), mean, rstd, rows, eps, N=cols, ROWS=2, BLOCK_SIZE=block
    )
    dx, dw_part, db_part = (place(np.full((n, cols), np.nan, np.float32)) for n in (rows, groups, groups))
    dw, db = (place(np.full(cols, np.nan, np.float32)) for _ in range(2))
    layer_norm_bwd_dx[(groups,)](
        dx, place(dy), dw_part, db_part, place(x), place(w), mean, rstd, rows, N=cols, BLOCK_SIZE=block
    )
    layer_norm_bwd_dwdb[(triton.cdiv(cols, 128),)](dw_part, db_part, dw, db, groups, cols, BLOCK_M=32, BLOCK_N=128)
    x64, dy64 = x.astype(np.float64), dy.astype(np.float64)
    s = 1 / np.sqrt(x64.var(axis=1, keepdims=True) + eps)
    xhat = (x64 - x64.mean(axis=1, keepdims=True)) * s
    report("layer_norm forward", y, xhat * w + b, 1e-5)
    g = dy64 * w
    expected = (g - xhat * (g * xhat).mean(axis=1, keepdims=True) - g.mean(axis=1, keepdims=True)) * s
    report("layer_norm backward, input", dx, expected, 1e-5)
    report("layer_norm backward, weight", dw, (dy64 * xhat).sum(axis=0), 1e-5)
    report("layer_norm backward, bias", back(db), dy64.sum(axis=0), 1e-5)


if __name__ == "__main__":
    main()
