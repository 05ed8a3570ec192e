"""Matrix product with few rows: several programs share a tile, each sums a part of K and adds it atomically."""

import numpy as np
import tilewright as triton
import tilewright.language as tl
from support import place, report


@triton.jit
def split_k_matmul_kernel(
    a_ptr, b_ptr, c_ptr, M, N, K,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, SPLIT_K: tl.constexpr,
):  # fmt: skip
    pid_n, pid_k = tl.program_id(0), tl.program_id(1)
    offs_m = tl.arange(0, BLOCK_M)
    offs_n = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
    offs_k = pid_k * BLOCK_K + tl.arange(0, BLOCK_K)
    a_ptrs = a_ptr + offs_m[:, None] * K + offs_k[None, :]
    b_ptrs = b_ptr + offs_k[:, None] * N + offs_n[None, :]

    accumulator = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    # The programs of a tile take turns: BLOCK_K columns each, SPLIT_K * BLOCK_K further on the next time.
    for k in range(pid_k * BLOCK_K, K, SPLIT_K * BLOCK_K):
        k_left = K - k + pid_k * BLOCK_K
        a = tl.load(a_ptrs, mask=(offs_m[:, None] < M) & (offs_k[None, :] < k_left), other=0.0)
        b = tl.load(b_ptrs, mask=(offs_k[:, None] < k_left) & (offs_n[None, :] < N), other=0.0)
        accumulator = tl.dot(a, b, accumulator)
        a_ptrs += SPLIT_K * BLOCK_K
        b_ptrs += SPLIT_K * BLOCK_K * N

    c_mask = (offs_m[:, None] < M) & (offs_n[None, :] < N)
    tl.atomic_add(c_ptr + offs_m[:, None] * N + offs_n[None, :], accumulator, mask=c_mask, sem="relaxed")


def main() -> None:
    """Eleven rows times a matrix with a long K; the sums go into float32 zeros."""
    rng = np.random.default_rng()
    m, n, k = 11, 136, 1000
    a, b = rng.standard_normal((m, k)).astype(np.float16), rng.standard_normal((k, n)).astype(np.float16)
    c = place(np.zeros((m, n), np.float32))
    split_k_matmul_kernel[(triton.cdiv(n, 64), 4)](
        place(a), place(b), c, m, n, k, BLOCK_M=16, BLOCK_N=64, BLOCK_K=64, SPLIT_K=4
    )
    report("split_k_matmul", c, a.astype(np.float64) @ b.astype(np.float64), 1e-4)


if __name__ == "__main__":
    main()
