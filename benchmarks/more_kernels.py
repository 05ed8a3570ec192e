"""Products with weights of 4 bits, of several problems at once and in several precisions, for `matmul.py`.

Read by tilewright and, imports replaced, by Triton.
"""

import tilewright as triton
import tilewright.language as tl


def int4_configs():
    """Few rows: wide tiles, of which a warp reads whole lines, and parts of K, so that all multiprocessors have programs."""
    sizes = [(64, 4, 3), (64, 2, 3), (128, 4, 3), (128, 2, 2), (128, 2, 3), (256, 8, 3), (256, 4, 2)]
    return [triton.Config(dict(BLOCK_M=16, BLOCK_N=n, BLOCK_K=128, PARTS=parts), num_warps=w, num_stages=s)
            for n, w, s in sizes for parts in (4, 7, 8, 12)]  # fmt: skip


def reading_configs():
    """How many threads read a block of words."""
    return [triton.Config({}, num_warps=warps) for warps in (4, 8)]


def grouped_configs():
    """The tile that Triton's tutorial has for tensor maps, and the one with twice the columns."""
    sizes = [(128, 128, 64, 4, 4), (128, 128, 64, 8, 3), (128, 256, 64, 8, 3)]
    return [triton.Config(dict(BLOCK_M=m, BLOCK_N=n, BLOCK_K=k), num_warps=w, num_stages=s) for m, n, k, w, s in sizes]


def precision_configs():
    """Tiles of which operands of 4 and 8 bytes leave room in shared memory, and their sums in registers."""
    sizes = [(128, 128, 32, 8, 3), (128, 128, 32, 4, 3), (128, 64, 32, 4, 3), (64, 64, 32, 4, 3), (64, 64, 16, 4, 4)]
    return [triton.Config(dict(BLOCK_M=m, BLOCK_N=n, BLOCK_K=k), num_warps=w, num_stages=s) for m, n, k, w, s in sizes]


@triton.jit
def int4_kernel(
    a_ptr, packed_ptr, scale_ptr, c_ptr, M, N: tl.constexpr, K: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP: tl.constexpr, PARTS: tl.constexpr,
    SCALE_SUMS: tl.constexpr,
):  # fmt: skip
    # Weights of 4 bits, eight along K in an int32, less 8, times a scale per GROUP rows and column: of weights or of sums.
    # PARTS programs for the same tile share the blocks of K; c starts from zeros.
    pid_n = tl.program_id(0)
    pid_k = tl.program_id(1)
    blocks = K // BLOCK_K
    first = pid_k * blocks // PARTS
    offs_m = tl.arange(0, BLOCK_M)
    offs_n = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
    offs_k = tl.arange(0, BLOCK_K)
    a_ptrs = a_ptr + offs_m[:, None] * K + (first * BLOCK_K + offs_k)[None, :]
    packed_ptrs = packed_ptr + (first * (BLOCK_K // 8) + offs_k // 8)[:, None] * N + offs_n[None, :]
    shifts = (offs_k % 8) * 4
    accumulator = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k in range(first, (pid_k + 1) * blocks // PARTS):
        a = tl.load(a_ptrs, mask=offs_m[:, None] < M, other=0.0)
        # Weights and scales are read by one program alone: L2 need not keep them.
        packed = tl.load(packed_ptrs, eviction_policy="evict_first")
        scale = tl.load(scale_ptr + k * BLOCK_K // GROUP * N + offs_n, eviction_policy="evict_first")
        b = (((packed >> shifts[:, None]) & 15) - 8).to(a.dtype)
        if SCALE_SUMS:
            accumulator += tl.dot(a, b) * scale[None, :]
        else:
            accumulator = tl.dot(a, b * scale[None, :], accumulator)
        a_ptrs += BLOCK_K
        packed_ptrs += BLOCK_K // 8 * N
    c_ptrs = c_ptr + offs_m[:, None] * N + offs_n[None, :]
    tl.atomic_add(c_ptrs, accumulator, mask=offs_m[:, None] < M, sem="relaxed")


@triton.jit
def reading_kernel(words_ptr, sums_ptr, BLOCK: tl.constexpr):
    # What reading takes that does next to nothing else: each program sums its block of words.
    program = tl.program_id(0)
    words = tl.load(words_ptr + program * BLOCK + tl.arange(0, BLOCK))
    tl.store(sums_ptr + program, tl.sum(words).to(tl.float32))


@triton.jit
def grouped_kernel(
    places_ptr, sizes_ptr, groups,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, PROGRAMS: tl.constexpr,
):  # fmt: skip
    # Products of several sizes, C = A @ B.T, all by rows: where the matrices begin and how large they are stands in memory.
    tile = tl.program_id(0)
    first = 0
    for group in range(groups):
        m = tl.load(sizes_ptr + group * 3)
        n = tl.load(sizes_ptr + group * 3 + 1)
        k = tl.load(sizes_ptr + group * 3 + 2)
        num_n = tl.cdiv(n, BLOCK_N)
        tiles = tl.cdiv(m, BLOCK_M) * num_n
        if tile >= first and tile < first + tiles:
            a_ptr = tl.load(places_ptr + group * 3).to(tl.pointer_type(tl.float16))
            b_ptr = tl.load(places_ptr + group * 3 + 1).to(tl.pointer_type(tl.float16))
            c_ptr = tl.load(places_ptr + group * 3 + 2).to(tl.pointer_type(tl.float16))
            a = tl.make_tensor_descriptor(a_ptr, shape=[m, k], strides=[k, 1], block_shape=[BLOCK_M, BLOCK_K])
            b = tl.make_tensor_descriptor(b_ptr, shape=[n, k], strides=[k, 1], block_shape=[BLOCK_N, BLOCK_K])
            c = tl.make_tensor_descriptor(c_ptr, shape=[m, n], strides=[n, 1], block_shape=[BLOCK_M, BLOCK_N])
            while tile >= first and tile < first + tiles:
                row = (tile - first) // num_n * BLOCK_M
                column = (tile - first) % num_n * BLOCK_N
                accumulator = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
                for start in range(0, k, BLOCK_K):
                    accumulator += tl.dot(a.load([row, start]), b.load([column, start]).T)
                c.store([row, column], accumulator.to(tl.float16))
                tile += PROGRAMS
        first += tiles


@triton.jit
def precision_kernel(
    a_ptr, b_ptr, c_ptr, M, N, K, stride_am, stride_ak, stride_bk, stride_bn, stride_cm,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    # Sides are multiples of the tile's.
    offs_m = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_n = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    offs_k = tl.arange(0, BLOCK_K)
    a_ptrs = a_ptr + offs_m[:, None] * stride_am + offs_k[None, :] * stride_ak
    b_ptrs = b_ptr + offs_k[:, None] * stride_bk + offs_n[None, :] * stride_bn
    sums = c_ptr.dtype.element_ty
    accumulator = tl.zeros((BLOCK_M, BLOCK_N), dtype=sums)
    for _ in range(0, tl.cdiv(K, BLOCK_K)):
        a, b = tl.load(a_ptrs), tl.load(b_ptrs)
        accumulator = tl.dot(a, b, accumulator, input_precision=PRECISION, out_dtype=sums)
        a_ptrs += BLOCK_K * stride_ak
        b_ptrs += BLOCK_K * stride_bk
    tl.store(c_ptr + offs_m[:, None] * stride_cm + offs_n[None, :], accumulator)
