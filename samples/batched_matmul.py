"""Products of many pairs of matrices: the batch is an axis of the grid, and offsets into it need 64 bits."""

import numpy as np
import tilewright as triton
import tilewright.language as tl
from support import place, report


@triton.jit
def batched_matmul_kernel(
    a_ptr, b_ptr, c_ptr, M, N, K,
    stride_ab, stride_am, stride_ak, stride_bb, stride_bk, stride_bn, stride_cb, stride_cm, stride_cn,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    batch = tl.program_id(2).to(tl.int64)
    offs_m = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_n = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    offs_k = tl.arange(0, BLOCK_K)
    a_ptrs = a_ptr + batch * stride_ab + offs_m[:, None] * stride_am + offs_k[None, :] * stride_ak
    b_ptrs = b_ptr + batch * stride_bb + offs_k[:, None] * stride_bk + offs_n[None, :] * stride_bn

    accumulator = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k in range(0, K, BLOCK_K):
        a = tl.load(a_ptrs, mask=(offs_m[:, None] < M) & (k + offs_k[None, :] < K), other=0.0)
        b = tl.load(b_ptrs, mask=(k + offs_k[:, None] < K) & (offs_n[None, :] < N), other=0.0)
        accumulator += tl.dot(a, b, input_precision="tf32")
        a_ptrs += BLOCK_K * stride_ak
        b_ptrs += BLOCK_K * stride_bk

    c_ptrs = c_ptr + batch * stride_cb + offs_m[:, None] * stride_cm + offs_n[None, :] * stride_cn
    tl.store(c_ptrs, accumulator, mask=(offs_m[:, None] < M) & (offs_n[None, :] < N))


def main() -> None:
    """Float32 matrices, multiplied in TF32."""
    rng = np.random.default_rng()
    batches, m, n, k = 5, 70, 52, 84
    a = rng.standard_normal((batches, m, k), dtype=np.float32)
    b = rng.standard_normal((batches, k, n), dtype=np.float32)
    c = place(np.full((batches, m, n), np.nan, np.float32))
    grid = (triton.cdiv(m, 64), triton.cdiv(n, 32), batches)
    batched_matmul_kernel[grid](
        place(a), place(b), c, m, n, k, m * k, k, 1, k * n, n, 1, m * n, n, 1, BLOCK_M=64, BLOCK_N=32, BLOCK_K=32
    )
    report("batched_matmul", c, a.astype(np.float64) @ b.astype(np.float64), 5e-2)


if __name__ == "__main__":
    main()
