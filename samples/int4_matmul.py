"""Activations in fp16 times weights of 4 bits: eight weights a word, widened in registers, a scale per group of rows."""

import numpy as np
import tilewright as triton
import tilewright.language as tl
from support import place, report


@triton.jit
def int4_matmul_kernel(
    a_ptr, packed_ptr, scale_ptr, c_ptr, M, N, K,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP: tl.constexpr,
):  # fmt: skip
    tl.static_assert(GROUP % BLOCK_K == 0, "a block of K has one scale per column")
    offs_m = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_n = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    offs_k = tl.arange(0, BLOCK_K)
    # Eight rows of B share a word: the weight of the first is in its lowest four bits, and so on.
    shift = offs_k % 8 * 4
    n_mask = offs_n[None, :] < N

    accumulator = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k in range(0, K, BLOCK_K):
        rows = k + offs_k
        a_mask = (offs_m[:, None] < M) & (rows[None, :] < K)
        a = tl.load(a_ptr + offs_m[:, None] * K + rows[None, :], mask=a_mask, other=0.0)
        b_mask = (rows[:, None] < K) & n_mask
        packed = tl.load(packed_ptr + (rows // 8)[:, None] * N + offs_n[None, :], mask=b_mask, other=0)
        weight = ((packed >> shift[:, None]) & 15) - 8
        scale = tl.load(scale_ptr + (k // GROUP) * N + offs_n[None, :], mask=n_mask, other=0.0)
        b = weight.to(tl.float16) * scale
        accumulator = tl.dot(a, b, accumulator)

    c_mask = (offs_m[:, None] < M) & n_mask
    tl.store(c_ptr + offs_m[:, None] * N + offs_n[None, :], accumulator.to(tl.float16), mask=c_mask)


def main() -> None:
    """Weights from -8 to 7, a scale for each 64 rows of a column."""
    rng = np.random.default_rng()
    m, n, k, group = 33, 120, 192, 64
    a = rng.standard_normal((m, k)).astype(np.float16)
    weights = rng.integers(-8, 8, (k, n))
    scales = rng.uniform(0.05, 0.2, (k // group, n)).astype(np.float16)
    fields = (weights + 8).astype(np.uint32).reshape(k // 8, 8, n)
    packed = np.bitwise_or.reduce(fields << np.arange(0, 32, 4, dtype=np.uint32)[:, None], axis=1).view(np.int32)
    c = place(np.full((m, n), np.nan, np.float16))
    int4_matmul_kernel[(triton.cdiv(m, 32), triton.cdiv(n, 64))](
        place(a), place(packed), place(scales), c, m, n, k, BLOCK_M=32, BLOCK_N=64, BLOCK_K=64, GROUP=group
    )
    # The kernel rounds a weight times its scale to fp16; so does the reference.
    b = (weights.astype(np.float16) * np.repeat(scales, group, axis=0)).astype(np.float64)
    report("int4_matmul", c, a.astype(np.float64) @ b, 1e-3)


if __name__ == "__main__":
    main()
