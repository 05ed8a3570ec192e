"""Kernels with dots in the forms that users write, for `device_matmul_check.py`."""

import tilewright as triton
import tilewright.language as tl


@triton.jit
def one_dot(a_ptr, b_ptr, c_ptr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, PRECISION: tl.constexpr,
            OUT: tl.constexpr):  # fmt: skip
    m, n, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    a = tl.load(a_ptr + m[:, None] * K + k[None, :])
    b = tl.load(b_ptr + k[:, None] * N + n[None, :])
    c = tl.dot(a, b, input_precision=PRECISION, out_dtype=OUT)
    tl.store(c_ptr + m[:, None] * N + n[None, :], c)


@triton.jit
def transposed_dot(a_ptr, b_ptr, c_ptr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, PRECISION: tl.constexpr):
    # Both operands are loaded the other way round and turned in the kernel, the result is stored turned.
    m, n, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    a = tl.load(a_ptr + k[:, None] * M + m[None, :])
    b = tl.load(b_ptr + n[:, None] * K + k[None, :])
    c = tl.dot(tl.trans(a), b.T, input_precision=PRECISION)
    tl.store(c_ptr + n[:, None] * M + m[None, :], tl.trans(c))


@triton.jit
def batched_dot(a_ptr, b_ptr, c_ptr, B: tl.constexpr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    batch, m, n, k = tl.arange(0, B)[:, None, None], tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    a = tl.load(a_ptr + batch * M * K + m[None, :, None] * K + k[None, None, :])
    b = tl.load(b_ptr + batch * K * N + k[None, :, None] * N + n[None, None, :])
    tl.store(c_ptr + batch * M * N + m[None, :, None] * N + n[None, None, :], tl.dot(a, b))


@triton.jit
def gemm(a_ptr, b_ptr, c_ptr, M, N, K, stride_am, stride_ak, stride_bk, stride_bn, stride_cm, stride_cn,
         BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, WRAP: tl.constexpr,
         PRECISION: tl.constexpr, ACC: tl.constexpr):  # fmt: skip
    pid_m, pid_n = tl.program_id(0), tl.program_id(1)
    offs_m = pid_m * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_n = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
    offs_k = tl.arange(0, BLOCK_K)
    inside_m, inside_n = offs_m < M, offs_n < N
    rows = offs_m % M if WRAP else offs_m
    cols = offs_n % N if WRAP else offs_n
    a_ptrs = a_ptr + rows[:, None] * stride_am + offs_k[None, :] * stride_ak
    b_ptrs = b_ptr + offs_k[:, None] * stride_bk + cols[None, :] * stride_bn
    accumulator = tl.zeros((BLOCK_M, BLOCK_N), dtype=ACC)
    for k in range(0, tl.cdiv(K, BLOCK_K)):
        rest = K - k * BLOCK_K
        if WRAP:
            a = tl.load(a_ptrs, mask=offs_k[None, :] < rest, other=0.0)
            b = tl.load(b_ptrs, mask=offs_k[:, None] < rest, other=0.0)
        else:
            a = tl.load(a_ptrs, mask=inside_m[:, None] & (offs_k[None, :] < rest), other=0.0)
            b = tl.load(b_ptrs, mask=(offs_k[:, None] < rest) & inside_n[None, :], other=0.0)
        accumulator = tl.dot(a, b, accumulator, input_precision=PRECISION, out_dtype=ACC)
        a_ptrs += BLOCK_K * stride_ak
        b_ptrs += BLOCK_K * stride_bk
    c_ptrs = c_ptr + offs_m[:, None] * stride_cm + offs_n[None, :] * stride_cn
    tl.store(c_ptrs, accumulator.to(c_ptr.dtype.element_ty), mask=inside_m[:, None] & inside_n[None, :])


@triton.jit
def full_tiles(a_ptr, b_ptr, c_ptr, M, N, K, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
    # No masks: all sides are multiples of the blocks. Offsets are computed anew instead of pointers moved.
    offs_m = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_n = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    accumulator = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for start in range(0, K, BLOCK_K):
        offs_k = start + tl.arange(0, BLOCK_K)
        a = tl.load(a_ptr + offs_m[:, None] * K + offs_k[None, :])
        b = tl.load(b_ptr + offs_k[:, None] * N + offs_n[None, :])
        accumulator += tl.dot(a, b)
    tl.store(c_ptr + offs_m[:, None] * N + offs_n[None, :], accumulator.to(c_ptr.dtype.element_ty))


@triton.jit
def epilogue(a_ptr, b_ptr, bias_ptr, c_ptr, row_ptr, M, N, K, alpha, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
             BLOCK_K: tl.constexpr):  # fmt: skip
    # The operands are computed from what was loaded; bias, clamp and a row sum follow.
    offs_m = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_n = tl.arange(0, BLOCK_N)
    accumulator = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for start in range(0, K, BLOCK_K):
        offs_k = start + tl.arange(0, BLOCK_K)
        a = tl.load(a_ptr + offs_m[:, None] * K + offs_k[None, :], mask=offs_m[:, None] < M, other=0.0)
        b = tl.load(b_ptr + offs_k[:, None] * N + offs_n[None, :], mask=offs_n[None, :] < N, other=0.0)
        a = tl.where(a > 0, a, 0.0).to(a.dtype)
        accumulator = tl.dot(a, b, accumulator)
    c = accumulator * alpha + tl.load(bias_ptr + offs_n, mask=offs_n < N, other=0.0)[None, :]
    c = tl.minimum(c, 4.0)
    mask = (offs_m[:, None] < M) & (offs_n[None, :] < N)
    tl.store(c_ptr + offs_m[:, None] * N + offs_n[None, :], c, mask=mask)
    tl.store(row_ptr + offs_m, tl.sum(tl.where(mask, c, 0.0), axis=1), mask=offs_m < M)


@triton.jit
def chained(q_ptr, k_ptr, v_ptr, out_ptr, N_CTX, scale, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, D: tl.constexpr):
    # Attention: the product of one dot, rescaled by running maxima, is the operand of the next.
    offs_m = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_d = tl.arange(0, D)
    q = tl.load(q_ptr + offs_m[:, None] * D + offs_d[None, :], mask=offs_m[:, None] < N_CTX, other=0.0)
    highest = tl.full((BLOCK_M,), -float("inf"), dtype=tl.float32)
    total = tl.zeros((BLOCK_M,), dtype=tl.float32)
    accumulator = tl.zeros((BLOCK_M, D), dtype=tl.float32)
    for start in range(0, N_CTX, BLOCK_N):
        offs_n = start + tl.arange(0, BLOCK_N)
        k = tl.load(k_ptr + offs_n[None, :] * D + offs_d[:, None], mask=offs_n[None, :] < N_CTX, other=0.0)
        v = tl.load(v_ptr + offs_n[:, None] * D + offs_d[None, :], mask=offs_n[:, None] < N_CTX, other=0.0)
        scores = tl.dot(q, k) * scale
        scores = tl.where(offs_n[None, :] < N_CTX, scores, -float("inf"))
        higher = tl.maximum(highest, tl.max(scores, axis=1))
        weights = tl.exp(scores - higher[:, None])
        shrink = tl.exp(highest - higher)
        total = total * shrink + tl.sum(weights, axis=1)
        accumulator = tl.dot(weights.to(v.dtype), v, accumulator * shrink[:, None])
        highest = higher
    out = accumulator / total[:, None]
    tl.store(out_ptr + offs_m[:, None] * D + offs_d[None, :], out.to(out_ptr.dtype.element_ty),
             mask=offs_m[:, None] < N_CTX)  # fmt: skip


@triton.jit
def gated(a_ptr, b_ptr, d_ptr, c_ptr, M, N, K, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
    # Two accumulators share an operand in a while loop; the second is used under a condition of the program.
    offs_m = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_n = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    first = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    second = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    start = 0
    while start < K:
        offs_k = start + tl.arange(0, BLOCK_K)
        a = tl.load(a_ptr + offs_m[:, None] * K + offs_k[None, :], mask=offs_m[:, None] < M, other=0.0)
        mask = offs_n[None, :] < N
        first = tl.dot(a, tl.load(b_ptr + offs_k[:, None] * N + offs_n[None, :], mask=mask, other=0.0), first)
        second = tl.dot(a, tl.load(d_ptr + offs_k[:, None] * N + offs_n[None, :], mask=mask, other=0.0), second)
        start += BLOCK_K
    if tl.program_id(1) % 2 == 0:
        first = first * second
    mask = (offs_m[:, None] < M) & (offs_n[None, :] < N)
    tl.store(c_ptr + offs_m[:, None] * N + offs_n[None, :], first, mask=mask)


@triton.jit
def split_k(a_ptr, b_ptr, c_ptr, M, N, K, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
            SPLIT: tl.constexpr):  # fmt: skip
    # Programs along the second axis take parts of K and add up in memory.
    offs_m, offs_n = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M), tl.arange(0, BLOCK_N)
    offs_k = tl.program_id(1) * BLOCK_K + tl.arange(0, BLOCK_K)
    accumulator = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for _ in range(0, K // (BLOCK_K * SPLIT)):
        a = tl.load(a_ptr + offs_m[:, None] * K + offs_k[None, :], mask=offs_m[:, None] < M, other=0.0)
        b = tl.load(b_ptr + offs_k[:, None] * N + offs_n[None, :], mask=offs_n[None, :] < N, other=0.0)
        accumulator = tl.dot(a, b, accumulator)
        offs_k += BLOCK_K * SPLIT
    mask = (offs_m[:, None] < M) & (offs_n[None, :] < N)
    tl.atomic_add(c_ptr + offs_m[:, None] * N + offs_n[None, :], accumulator, mask=mask)


@triton.jit
def dequantised(a_ptr, b_ptr, scale_ptr, c_ptr, N, K, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
                BLOCK_K: tl.constexpr):  # fmt: skip
    # Weights of 8 bits become the type of a, with a scale per column.
    offs_m, offs_n = tl.arange(0, BLOCK_M), tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    scale = tl.load(scale_ptr + offs_n)
    accumulator = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for start in range(0, K, BLOCK_K):
        offs_k = start + tl.arange(0, BLOCK_K)
        a = tl.load(a_ptr + offs_m[:, None] * K + offs_k[None, :])
        b = tl.load(b_ptr + offs_k[:, None] * N + offs_n[None, :])
        accumulator = tl.dot(a, b.to(a.dtype), accumulator)
    tl.store(c_ptr + offs_m[:, None] * N + offs_n[None, :], accumulator * scale[None, :])


@triton.jit
def persistent(a_ptr, b_ptr, c_ptr, M, N, K, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
               PROGRAMS: tl.constexpr):  # fmt: skip
    num_n = tl.cdiv(N, BLOCK_N)
    for tile in tl.range(tl.program_id(0), tl.cdiv(M, BLOCK_M) * num_n, PROGRAMS):
        offs_m = (tile // num_n) * BLOCK_M + tl.arange(0, BLOCK_M)
        offs_n = (tile % num_n) * BLOCK_N + tl.arange(0, BLOCK_N)
        accumulator = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
        for start in range(0, K, BLOCK_K):
            offs_k = start + tl.arange(0, BLOCK_K)
            mask_a = (offs_m[:, None] < M) & (offs_k[None, :] < K)
            mask_b = (offs_k[:, None] < K) & (offs_n[None, :] < N)
            a = tl.load(a_ptr + offs_m[:, None] * K + offs_k[None, :], mask=mask_a, other=0.0)
            b = tl.load(b_ptr + offs_k[:, None] * N + offs_n[None, :], mask=mask_b, other=0.0)
            accumulator = tl.dot(a, b, accumulator)
        mask = (offs_m[:, None] < M) & (offs_n[None, :] < N)
        tl.store(c_ptr + offs_m[:, None] * N + offs_n[None, :], accumulator.to(c_ptr.dtype.element_ty), mask=mask)


@triton.jit
def by_descriptors(a_ptr, b_ptr, c_ptr, M, N, K, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
                   TURNED: tl.constexpr):  # fmt: skip
    # With TURNED b lies as [N, K].
    a = tl.make_tensor_descriptor(a_ptr, shape=[M, K], strides=[K, 1], block_shape=[BLOCK_M, BLOCK_K])
    if TURNED:
        b = tl.make_tensor_descriptor(b_ptr, shape=[N, K], strides=[K, 1], block_shape=[BLOCK_N, BLOCK_K])
    else:
        b = tl.make_tensor_descriptor(b_ptr, shape=[K, N], strides=[N, 1], block_shape=[BLOCK_K, BLOCK_N])
    c = tl.make_tensor_descriptor(c_ptr, shape=[M, N], strides=[N, 1], block_shape=[BLOCK_M, BLOCK_N])
    first_m, first_n = tl.program_id(0) * BLOCK_M, tl.program_id(1) * BLOCK_N
    accumulator = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k in range(0, K, BLOCK_K):
        if TURNED:
            b_tile = b.load([first_n, k]).T
        else:
            b_tile = b.load([k, first_n])
        accumulator = tl.dot(a.load([first_m, k]), b_tile, accumulator)
    c.store([first_m, first_n], accumulator.to(c_ptr.dtype.element_ty))


@triton.jit
def by_block_pointers(a_ptr, b_ptr, c_ptr, M, N, K, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
                      BLOCK_K: tl.constexpr):  # fmt: skip
    first_m, first_n = tl.program_id(0) * BLOCK_M, tl.program_id(1) * BLOCK_N
    a = tl.make_block_ptr(a_ptr, (M, K), (K, 1), (first_m, 0), (BLOCK_M, BLOCK_K), (1, 0))
    b = tl.make_block_ptr(b_ptr, (K, N), (N, 1), (0, first_n), (BLOCK_K, BLOCK_N), (1, 0))
    accumulator = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for _ in range(0, K, BLOCK_K):
        a_tile = tl.load(a, boundary_check=(0, 1), padding_option="zero")
        b_tile = tl.load(b, boundary_check=(0, 1), padding_option="zero")
        accumulator = tl.dot(a_tile, b_tile, accumulator)
        a = tl.advance(a, (0, BLOCK_K))
        b = tl.advance(b, (BLOCK_K, 0))
    c = tl.make_block_ptr(c_ptr, (M, N), (N, 1), (first_m, first_n), (BLOCK_M, BLOCK_N), (1, 0))
    tl.store(c, accumulator.to(c_ptr.dtype.element_ty), boundary_check=(0, 1))
