"""Products one of whose operands is computed from what is loaded. `computed_operands.py` times them."""

import tilewright as triton
import tilewright.language as tl


@triton.jit
def int8_weights_nk(
    a_ptr, b_ptr, scale_ptr, c_ptr, M, N, K, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr
):
    rows = tl.program_id(1) * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    total = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for start in range(0, K, BLOCK_K):
        k = start + tl.arange(0, BLOCK_K)
        a = tl.load(a_ptr + rows[:, None] * K + k[None, :], mask=(rows < M)[:, None] & (k < K)[None, :], other=0.0)
        b = tl.load(b_ptr + k[:, None] + cols[None, :] * K, mask=(k < K)[:, None] & (cols < N)[None, :], other=0)
        total += tl.dot(a, b.to(tl.bfloat16))
    total *= tl.load(scale_ptr + cols, mask=cols < N, other=0.0)[None, :]
    mask = (rows < M)[:, None] & (cols < N)[None, :]
    tl.store(c_ptr + rows[:, None] * N + cols[None, :], total.to(tl.bfloat16), mask=mask)


@triton.jit
def fp8_weights(
    a_ptr, b_ptr, scale_ptr, c_ptr, M, N, K, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr
):
    rows = tl.program_id(1) * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    total = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for start in range(0, K, BLOCK_K):
        k = start + tl.arange(0, BLOCK_K)
        a = tl.load(a_ptr + rows[:, None] * K + k[None, :], mask=(rows < M)[:, None] & (k < K)[None, :], other=0.0)
        b = tl.load(b_ptr + k[:, None] * N + cols[None, :], mask=(k < K)[:, None] & (cols < N)[None, :], other=0.0)
        total += tl.dot(a, b.to(a.dtype))
    total *= tl.load(scale_ptr + cols, mask=cols < N, other=0.0)[None, :]
    mask = (rows < M)[:, None] & (cols < N)[None, :]
    tl.store(c_ptr + rows[:, None] * N + cols[None, :], total.to(tl.bfloat16), mask=mask)


@triton.jit
def int4_weights(
    a_ptr, w_ptr, scale_ptr, c_ptr, M, N, BYTES, GROUP_BYTES: tl.constexpr, BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr
):  # fmt: skip
    # A byte holds two weights that follow each other along K.
    rows = tl.program_id(1) * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    total = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for start in range(0, BYTES, BLOCK_K // 2):
        k = 2 * start + tl.arange(0, BLOCK_K)
        byte = start + tl.arange(0, BLOCK_K // 2)
        a = tl.load(
            a_ptr + rows[:, None] * 2 * BYTES + k[None, :],
            mask=(rows < M)[:, None] & (k < 2 * BYTES)[None, :],
            other=0.0,
        )
        w = tl.load(
            w_ptr + byte[:, None] * N + cols[None, :], mask=(byte < BYTES)[:, None] & (cols < N)[None, :], other=0
        )
        scale = tl.load(scale_ptr + start // GROUP_BYTES * N + cols, mask=cols < N, other=0.0)
        both = tl.join(w & 15, w >> 4).permute(0, 2, 1).reshape(BLOCK_K, BLOCK_N)
        total = tl.dot(a, (both.to(tl.float16) - 8.0) * scale[None, :], total)
    mask = (rows < M)[:, None] & (cols < N)[None, :]
    tl.store(c_ptr + rows[:, None] * N + cols[None, :], total.to(tl.float16), mask=mask)


@triton.jit
def int8_activations(
    a_ptr, b_ptr, scale_ptr, c_ptr, M, N, K, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr
):
    rows = tl.program_id(1) * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    total = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for start in range(0, K, BLOCK_K):
        k = start + tl.arange(0, BLOCK_K)
        a = tl.load(a_ptr + rows[:, None] * K + k[None, :], mask=(rows < M)[:, None] & (k < K)[None, :], other=0)
        b = tl.load(b_ptr + k[:, None] * N + cols[None, :], mask=(k < K)[:, None] & (cols < N)[None, :], other=0.0)
        total += tl.dot(a.to(tl.bfloat16), b)
    total *= tl.load(scale_ptr + cols, mask=cols < N, other=0.0)[None, :]
    mask = (rows < M)[:, None] & (cols < N)[None, :]
    tl.store(c_ptr + rows[:, None] * N + cols[None, :], total.to(tl.bfloat16), mask=mask)
