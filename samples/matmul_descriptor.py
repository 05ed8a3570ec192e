"""Matrix product with tensor descriptors that the host makes: loads and stores name only where their block starts."""

import numpy as np
import tilewright as triton
import tilewright.language as tl
from support import place, report
from tilewright.tools.tensor_descriptor import TensorDescriptor


@triton.jit
def matmul_descriptor_kernel(
    a_desc, b_desc, c_desc, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr
):
    M, K = a_desc.shape
    N = b_desc.shape[0]
    num_pid_m, num_pid_n = tl.cdiv(M, BLOCK_M), tl.cdiv(N, BLOCK_N)
    pid = tl.program_id(0)
    pid_m, pid_n = tl.swizzle2d(pid // num_pid_n, pid % num_pid_n, num_pid_m, num_pid_n, GROUP_M)
    row, column = pid_m * BLOCK_M, pid_n * BLOCK_N

    accumulator = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k in range(0, K, BLOCK_K):
        # Outside of A and B the blocks are zero.
        a = a_desc.load([row, k])
        b = b_desc.load([column, k])
        accumulator = tl.dot(a, b.T, accumulator)
    c_desc.store([row, column], accumulator.to(c_desc.dtype))


def main() -> None:
    """`c = a @ b.T`, of sides that no block divides."""
    rng = np.random.default_rng()
    m, n, k = 200, 176, 136
    a, b = rng.standard_normal((m, k)).astype(np.float16), rng.standard_normal((n, k)).astype(np.float16)
    c = place(np.full((m, n), np.nan, np.float16))
    matmul_descriptor_kernel[(triton.cdiv(m, 64) * triton.cdiv(n, 64),)](
        TensorDescriptor.from_tensor(place(a), [64, 32]),
        TensorDescriptor.from_tensor(place(b), [64, 32]),
        TensorDescriptor.from_tensor(c, [64, 64]),
        BLOCK_M=64, BLOCK_N=64, BLOCK_K=32, GROUP_M=8,
    )  # fmt: skip
    report("matmul_descriptor", c, a.astype(np.float64) @ b.T.astype(np.float64), 1e-3)


if __name__ == "__main__":
    main()
