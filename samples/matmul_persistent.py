"""Matrix product by as many programs as there are multiprocessors, each of which computes every so many-th tile."""

import numpy as np
import tilewright as triton
import tilewright.language as tl
from support import place, report


@triton.jit
def tile_place(tile, num_pid_m, num_pid_n, GROUP_M: tl.constexpr):
    # Tiles are numbered in groups of GROUP_M rows, within a group column by column.
    num_in_group = GROUP_M * num_pid_n
    first_pid_m = tile // num_in_group * GROUP_M
    group_size_m = min(num_pid_m - first_pid_m, GROUP_M)
    return first_pid_m + tile % num_in_group % group_size_m, tile % num_in_group // group_size_m


@triton.jit
def matmul_persistent_kernel(
    a_ptr, b_ptr, c_ptr, M, N, K,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr, NUM_PROGRAMS: tl.constexpr,
):  # fmt: skip
    a_desc = tl.make_tensor_descriptor(a_ptr, [M, K], [K, 1], [BLOCK_M, BLOCK_K])
    b_desc = tl.make_tensor_descriptor(b_ptr, [N, K], [K, 1], [BLOCK_N, BLOCK_K])
    c_desc = tl.make_tensor_descriptor(c_ptr, [M, N], [N, 1], [BLOCK_M, BLOCK_N])
    num_pid_m, num_pid_n = tl.cdiv(M, BLOCK_M), tl.cdiv(N, BLOCK_N)

    # The loads of the next tile may run while this one is stored.
    for tile in tl.range(tl.program_id(0), num_pid_m * num_pid_n, NUM_PROGRAMS, flatten=True):
        pid_m, pid_n = tile_place(tile, num_pid_m, num_pid_n, GROUP_M)
        row, column = pid_m * BLOCK_M, pid_n * BLOCK_N
        accumulator = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
        for k in range(0, K, BLOCK_K):
            a = a_desc.load([row, k])
            b = b_desc.load([column, k])
            accumulator = tl.dot(a, b.T, accumulator)
        c_desc.store([row, column], accumulator.to(tl.float16))


def main() -> None:
    """`c = a @ b.T` with more tiles than programs."""
    rng = np.random.default_rng()
    m, n, k = 264, 200, 152
    a, b = rng.standard_normal((m, k)).astype(np.float16), rng.standard_normal((n, k)).astype(np.float16)
    c = place(np.full((m, n), np.nan, np.float16))
    programs = 6
    matmul_persistent_kernel[(programs,)](
        place(a), place(b), c, m, n, k, BLOCK_M=64, BLOCK_N=64, BLOCK_K=32, GROUP_M=4, NUM_PROGRAMS=programs
    )
    report("matmul_persistent", c, a.astype(np.float64) @ b.T.astype(np.float64), 1e-3)


if __name__ == "__main__":
    main()
