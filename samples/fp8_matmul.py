"""Matrix product of 8-bit floats with a scale per row of A and per column of B, and 16-bit results."""

import ml_dtypes
import numpy as np
import tilewright as triton
import tilewright.language as tl
from support import place, report
from tilewright.tools.tensor_descriptor import TensorDescriptor

LARGEST = 448.0  # of float8e4nv


@triton.jit
def fp8_matmul_kernel(
    a_desc, b_desc, c_desc, a_scale_ptr, b_scale_ptr, M, N, K,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    row, column = tl.program_id(0) * BLOCK_M, tl.program_id(1) * BLOCK_N
    accumulator = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k in range(0, K, BLOCK_K):
        a = a_desc.load([row, k])
        b = b_desc.load([column, k])
        accumulator = tl.dot(a, b.T, accumulator)

    offs_m, offs_n = row + tl.arange(0, BLOCK_M), column + tl.arange(0, BLOCK_N)
    a_scale = tl.load(a_scale_ptr + offs_m, mask=offs_m < M, other=0.0)
    b_scale = tl.load(b_scale_ptr + offs_n, mask=offs_n < N, other=0.0)
    c = accumulator * a_scale[:, None] * b_scale[None, :]
    c_desc.store([row, column], c.to(tl.bfloat16))


def quantised(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rows as float8e4nv numbers times a float32 scale each."""
    scale = np.abs(x).max(axis=1) / LARGEST
    return (x / scale[:, None]).astype(ml_dtypes.float8_e4m3fn), scale.astype(np.float32)


def main() -> None:
    """`c = a @ b.T`, compared with the product of the quantised matrices."""
    rng = np.random.default_rng()
    m, n, k = 136, 200, 176
    a, a_scale = quantised(rng.standard_normal((m, k)))
    b, b_scale = quantised(rng.standard_normal((n, k)))
    c = place(np.full((m, n), np.nan, ml_dtypes.bfloat16))
    fp8_matmul_kernel[(triton.cdiv(m, 64), triton.cdiv(n, 64))](
        TensorDescriptor.from_tensor(place(a), [64, 64]),
        TensorDescriptor.from_tensor(place(b), [64, 64]),
        TensorDescriptor.from_tensor(c, [64, 64]),
        place(a_scale), place(b_scale), m, n, k, BLOCK_M=64, BLOCK_N=64, BLOCK_K=64,
    )  # fmt: skip
    exact = [x.astype(np.float64) * scale[:, None] for x, scale in ((a, a_scale), (b, b_scale))]
    # bf16 keeps 8 bits; the tensor cores of Hopper sum 8-bit floats with about 14.
    report("fp8_matmul", c, exact[0] @ exact[1].T, 2e-2)


if __name__ == "__main__":
    main()
