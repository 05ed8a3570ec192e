"""Matrix product with block pointers: shapes and strides are said once, the loop only moves the blocks."""

import numpy as np
import tilewright as triton
import tilewright.language as tl
from support import place, report


@triton.jit
def matmul_block_ptr_kernel(
    a_ptr, b_ptr, c_ptr, M, N, K, stride_am, stride_ak, stride_bk, stride_bn, stride_cm, stride_cn,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr,
):  # fmt: skip
    num_pid_m, num_pid_n = tl.cdiv(M, BLOCK_M), tl.cdiv(N, BLOCK_N)
    pid = tl.program_id(0)
    pid_m, pid_n = tl.swizzle2d(pid // num_pid_n, pid % num_pid_n, num_pid_m, num_pid_n, GROUP_M)
    a_block = tl.make_block_ptr(
        a_ptr, (M, K), (stride_am, stride_ak), (pid_m * BLOCK_M, 0), (BLOCK_M, BLOCK_K), order=(1, 0)
    )
    b_block = tl.make_block_ptr(
        b_ptr, (K, N), (stride_bk, stride_bn), (0, pid_n * BLOCK_N), (BLOCK_K, BLOCK_N), order=(1, 0)
    )

    accumulator = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for _ in range(0, K, BLOCK_K):
        a = tl.load(a_block, boundary_check=(0, 1), padding_option="zero")
        b = tl.load(b_block, boundary_check=(0, 1), padding_option="zero")
        accumulator += tl.dot(a, b)
        a_block = tl.advance(a_block, (0, BLOCK_K))
        b_block = tl.advance(b_block, (BLOCK_K, 0))

    c_block = tl.make_block_ptr(
        c_ptr, (M, N), (stride_cm, stride_cn), (pid_m * BLOCK_M, pid_n * BLOCK_N), (BLOCK_M, BLOCK_N), order=(1, 0)
    )
    tl.store(c_block, accumulator.to(tl.bfloat16), boundary_check=(0, 1))


def main() -> None:
    """Sides that no block divides; the second operand is stored transposed."""
    import ml_dtypes

    rng = np.random.default_rng()
    m, n, k = 150, 232, 168
    a = rng.standard_normal((m, k)).astype(ml_dtypes.bfloat16)
    b_transposed = rng.standard_normal((n, k)).astype(ml_dtypes.bfloat16)
    c = place(np.full((m, n), np.nan, ml_dtypes.bfloat16))
    grid = (triton.cdiv(m, 64) * triton.cdiv(n, 64),)
    matmul_block_ptr_kernel[grid](
        place(a), place(b_transposed), c, m, n, k, k, 1, 1, k, n, 1, BLOCK_M=64, BLOCK_N=64, BLOCK_K=32, GROUP_M=4
    )
    report("matmul_block_ptr", c, a.astype(np.float64) @ b_transposed.T.astype(np.float64), 1e-2)


if __name__ == "__main__":
    main()
