"""Products of pairs of matrices of different sizes in one launch: each program takes every so many-th tile of all."""

import numpy as np
import tilewright as triton
import tilewright.language as tl
from support import place, report


@triton.jit
def grouped_gemm_kernel(
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
        a = a_ptr + tl.load(starts_ptr + group * 3)
        b = b_ptr + tl.load(starts_ptr + group * 3 + 1)
        c = c_ptr + tl.load(starts_ptr + group * 3 + 2)
        num_pid_n = tl.cdiv(N, BLOCK_N)
        num_tiles = tl.cdiv(M, BLOCK_M) * num_pid_n
        while tile < first_tile + num_tiles:
            pid_m = (tile - first_tile) // num_pid_n
            pid_n = (tile - first_tile) % num_pid_n
            offs_m = pid_m * BLOCK_M + tl.arange(0, BLOCK_M)
            offs_n = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
            offs_k = tl.arange(0, BLOCK_K)
            accumulator = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
            for k in range(0, K, BLOCK_K):
                a_mask = (offs_m[:, None] < M) & (k + offs_k[None, :] < K)
                b_mask = (k + offs_k[:, None] < K) & (offs_n[None, :] < N)
                x = tl.load(a + offs_m[:, None] * K + (k + offs_k)[None, :], mask=a_mask, other=0.0)
                y = tl.load(b + (k + offs_k)[:, None] * N + offs_n[None, :], mask=b_mask, other=0.0)
                accumulator = tl.dot(x, y, accumulator)
            c_mask = (offs_m[:, None] < M) & (offs_n[None, :] < N)
            tl.store(c + offs_m[:, None] * N + offs_n[None, :], accumulator.to(tl.float16), mask=c_mask)
            tile += tl.num_programs(0)
        first_tile += num_tiles


def main() -> None:
    """Four products; the matrices of each operand lie one after another in one array."""
    rng = np.random.default_rng()
    sizes = np.array([[64, 48, 96], [130, 72, 40], [16, 16, 200], [100, 100, 100]], np.int32)
    pairs = [
        (rng.standard_normal((m, k)).astype(np.float16), rng.standard_normal((k, n)).astype(np.float16))
        for m, n, k in sizes
    ]
    counts = np.array([[m * k, k * n, m * n] for m, n, k in sizes], np.int64)
    starts = np.concatenate([np.zeros((1, 3), np.int64), np.cumsum(counts, axis=0)[:-1]])
    a, b = (np.concatenate([pair[side].ravel() for pair in pairs]) for side in (0, 1))
    c = place(np.full(counts[:, 2].sum(), np.nan, np.float16))
    grouped_gemm_kernel[(7,)](
        place(a), place(b), c, place(sizes), place(starts), len(sizes), BLOCK_M=64, BLOCK_N=32, BLOCK_K=32
    )
    expected = np.concatenate([(x.astype(np.float64) @ y.astype(np.float64)).ravel() for x, y in pairs])
    report("grouped_gemm", c, expected, 1e-3)


if __name__ == "__main__":
    main()
