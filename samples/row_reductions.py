"""Sum, maximum and its place in every row, of matrices whose sides are no powers of two."""

import numpy as np
import tilewright as triton
import tilewright.language as tl
from support import place, report


@triton.jit
def row_reductions_kernel(
    x_ptr, sum_ptr, max_ptr, argmax_ptr, M, stride, ROWS_PER_PROGRAM: tl.constexpr, N: tl.constexpr
):
    rows = tl.program_id(0) * ROWS_PER_PROGRAM + tl.arange(0, ROWS_PER_PROGRAM)
    # The tile is exactly as wide as the matrix: its side need not be a power of two.
    cols = tl.arange(0, N)
    inside = rows < M
    x = tl.load(x_ptr + rows[:, None] * stride + cols[None, :], mask=inside[:, None], other=0.0)
    total = tl.sum(x, axis=1)
    largest, place = tl.max(x, axis=1, return_indices=True)
    tl.store(sum_ptr + rows, total, mask=inside)
    tl.store(max_ptr + rows, largest, mask=inside)
    tl.store(argmax_ptr + rows, place, mask=inside)


def main() -> None:
    """Several odd shapes."""
    rng = np.random.default_rng()
    for m, n in ((1, 3), (17, 100), (50, 333)):
        x = rng.standard_normal((m, n), dtype=np.float32)
        total, largest = (place(np.full(m, np.nan, np.float32)) for _ in range(2))
        index = place(np.full(m, -1, np.int32))
        row_reductions_kernel[(triton.cdiv(m, 4),)](place(x), total, largest, index, m, n, ROWS_PER_PROGRAM=4, N=n)
        report(f"row sums {m}x{n}", total, x.astype(np.float64).sum(axis=1), 1e-5)
        report(f"row maxima {m}x{n}", largest, x.max(axis=1).astype(np.float64), 0.0)
        report(f"places of the maxima {m}x{n}", index, x.argmax(axis=1).astype(np.float64), 0.0)


if __name__ == "__main__":
    main()
