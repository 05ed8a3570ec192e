"""Softmax over rows, in one pass over memory: each program takes blocks of ROWS rows, as many apart as there are programs."""

import numpy as np
import tilewright as triton
import tilewright.language as tl
from support import place, report


@triton.jit
def softmax_kernel(
    out_ptr, in_ptr, in_row_stride, out_row_stride, n_rows, n_cols, ROWS: tl.constexpr, BLOCK_SIZE: tl.constexpr
):
    # A row fits in one block: BLOCK_SIZE is a power of two not below n_cols.
    cols = tl.arange(0, BLOCK_SIZE)
    for start in tl.range(tl.program_id(0) * ROWS, n_rows, tl.num_programs(0) * ROWS):
        rows = start + tl.arange(0, ROWS)
        mask = (rows < n_rows)[:, None] & (cols < n_cols)[None, :]
        # Lanes past the end read -inf, which neither the maximum nor the sum can see.
        x = tl.load(in_ptr + rows[:, None] * in_row_stride + cols[None, :], mask=mask, other=-float("inf"))
        x = x.to(tl.float32)
        # Subtract the maximum for numerical stability.
        numerator = tl.exp(x - tl.max(x, axis=1)[:, None])
        denominator = tl.sum(numerator, axis=1)
        tl.store(out_ptr + rows[:, None] * out_row_stride + cols[None, :], numerator / denominator[:, None], mask=mask)


def softmax(x, out, n_programs: int) -> None:
    """Softmax over the last axis of `x` [rows, columns] into `out`."""
    rows, cols = x.shape
    block = triton.next_power_of_2(cols)
    warps = min(max(block // 512, 2), 16)
    stride = x.strides[0] // x.itemsize if isinstance(x, np.ndarray) else x.stride(0)
    # Short rows that are not aligned are loaded element by element: two at once keep as much on its way.
    together = 2 if block <= 1024 and cols * x.itemsize % 16 else 1
    grid = (min(triton.cdiv(rows, together), n_programs),)
    softmax_kernel[grid](out, x, stride, stride, rows, cols, ROWS=together, BLOCK_SIZE=block, num_warps=warps)


def main() -> None:
    """Rows of an odd length."""
    x = np.random.default_rng().standard_normal((37, 781), dtype=np.float32) * 4
    out = place(np.full_like(x, np.nan))
    softmax(place(x), out, 16)
    e = np.exp(x.astype(np.float64) - x.max(axis=1, keepdims=True))
    report("fused_softmax", out, e / e.sum(axis=1, keepdims=True), 1e-6)


if __name__ == "__main__":
    main()
