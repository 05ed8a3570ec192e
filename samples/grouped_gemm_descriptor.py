"""Products of pairs of matrices in one launch, with a descriptor for each matrix: their places are only known in the kernel."""

import numpy as np
import tilewright as triton
import tilewright.language as tl
from support import place, report


@triton.jit
def grouped_gemm_descriptor_kernel(
    a_ptr, b_ptr, c_ptr, sizes_ptr, starts_ptr, n_groups,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    tile = tl.program_id(0)
    first_tile = 0
    for group in range(n_groups):
        # sizes holds M, N, K of each product, starts where its three matrices begin in a, b and c.
        M = tl.load(sizes_ptr + group * 3)
        N = tl.load(sizes_ptr + group * 3 + 1)
        K = tl.load(sizes_ptr + group * 3 + 2)
        num_pid_n = tl.cdiv(N, BLOCK_N)
        last_tile = first_tile + tl.cdiv(M, BLOCK_M) * num_pid_n
        if tile < last_tile:
            a = a_ptr + tl.load(starts_ptr + group * 3)
            b = b_ptr + tl.load(starts_ptr + group * 3 + 1)
            c = c_ptr + tl.load(starts_ptr + group * 3 + 2)
            # Rows are multiples of 16 bytes, as descriptors ask.
            a_desc = tl.make_tensor_descriptor(a, [M, K], [K, 1], [BLOCK_M, BLOCK_K])
            b_desc = tl.make_tensor_descriptor(b, [K, N], [N, 1], [BLOCK_K, BLOCK_N])
            c_desc = tl.make_tensor_descriptor(c, [M, N], [N, 1], [BLOCK_M, BLOCK_N])
            while tile < last_tile:
                row = (tile - first_tile) // num_pid_n * BLOCK_M
                column = (tile - first_tile) % num_pid_n * BLOCK_N
                accumulator = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
                for k in range(0, K, BLOCK_K):
                    accumulator = tl.dot(a_desc.load([row, k]), b_desc.load([k, column]), accumulator)
                c_desc.store([row, column], accumulator.to(tl.float16))
                tile += tl.num_programs(0)
        first_tile = last_tile


def main() -> None:
    """Four products, one of them of no rows; the matrices of each operand lie one after another in one array."""
    rng = np.random.default_rng()
    sizes = np.array([[64, 48, 96], [130, 72, 40], [0, 16, 200], [100, 104, 80]], np.int32)
    pairs = [
        (rng.standard_normal((m, k)).astype(np.float16), rng.standard_normal((k, n)).astype(np.float16))
        for m, n, k in sizes
    ]
    counts = np.array([[m * k, k * n, m * n] for m, n, k in sizes], np.int64)
    starts = np.concatenate([np.zeros((1, 3), np.int64), np.cumsum(counts, axis=0)[:-1]])
    a, b = (np.concatenate([pair[side].ravel() for pair in pairs]) for side in (0, 1))
    c = place(np.full(counts[:, 2].sum(), np.nan, np.float16))
    grouped_gemm_descriptor_kernel[(7,)](
        place(a), place(b), c, place(sizes), place(starts), len(sizes), BLOCK_M=64, BLOCK_N=32, BLOCK_K=32
    )
    expected = np.concatenate([(x.astype(np.float64) @ y.astype(np.float64)).ravel() for x, y in pairs])
    report("grouped_gemm_descriptor", c, expected, 1e-3)


if __name__ == "__main__":
    main()
