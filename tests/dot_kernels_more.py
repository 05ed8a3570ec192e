"""More kernels with dots for `dot_cases.py`: what happens to sums, and how results leave. Arguments as in `dot_kernels.py`."""

import tilewright as triton
import tilewright.language as tl
from dot_kernels import rows_of


@triton.jit
def rescaled(a_ptr, b_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # The sum is halved in every trip, and its largest element is looked at while products could be on their way.
    m, n, k = rows_of(tl.program_id(0), BM), rows_of(tl.program_id(1), BN), tl.arange(0, BK)
    total = tl.zeros((BM, BN), tl.float32)
    highest = tl.zeros((BM,), tl.float32)
    for block in range(0, K, BK):
        a = tl.load(a_ptr + m[:, None] * K + (block + k)[None, :])
        b = tl.load(b_ptr + (block + k)[:, None] * N + n[None, :])
        total = tl.dot(a, b, total * 0.5)
        highest = tl.maximum(highest, tl.max(total, axis=1))
    tl.store(c_ptr + m[:, None] * N + n[None, :], total + highest[:, None])


@triton.jit
def shared_operand(a_ptr, b_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # One tile is the left operand of two dots; the second product is stored turned. N = 2 * BN, c [2, M, BN] flat.
    m, n, k = rows_of(tl.program_id(0), BM), tl.arange(0, BN), tl.arange(0, BK)
    first = tl.zeros((BM, BN), tl.float32)
    second = tl.zeros((BM, BN), tl.float32)
    for block in range(0, K, BK):
        a = tl.load(a_ptr + m[:, None] * K + (block + k)[None, :])
        first = tl.dot(a, tl.load(b_ptr + (block + k)[:, None] * N + n[None, :]), first)
        second = tl.dot(a, tl.load(b_ptr + (block + k)[:, None] * N + (n + BN)[None, :]), second)
    tl.store(c_ptr + m[:, None] * BN + n[None, :], first)
    tl.store(c_ptr + M * BN + n[:, None] * M + m[None, :], tl.trans(second))


@triton.jit
def with_itself(a_ptr, c_ptr, M, K, BM: tl.constexpr, BK: tl.constexpr):
    # a @ a.T of one tile of rows.
    m, k = rows_of(tl.program_id(0), BM), tl.arange(0, BK)
    total = tl.zeros((BM, BM), tl.float32)
    for block in range(0, K, BK):
        a = tl.load(a_ptr + m[:, None] * K + (block + k)[None, :])
        total = tl.dot(a, tl.trans(a), total)
    tl.store(c_ptr + m[:, None] * BM + tl.arange(0, BM)[None, :], total)


@triton.jit
def chained(a_ptr, b_ptr, w_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # (a @ b) @ w, with a @ b rounded to the operands' type.
    m, n, k = rows_of(tl.program_id(0), BM), tl.arange(0, BN), tl.arange(0, BK)
    total = tl.zeros((BM, BN), tl.float32)
    for block in range(0, K, BK):
        a = tl.load(a_ptr + m[:, None] * K + (block + k)[None, :])
        b = tl.load(b_ptr + (block + k)[:, None] * N + n[None, :])
        total = tl.dot(a, b, total)
    w = tl.load(w_ptr + n[:, None] * BN + n[None, :])
    tl.store(c_ptr + m[:, None] * BN + n[None, :], tl.dot(total.to(w.dtype), w))


@triton.jit
def running_sums(a_ptr, b_ptr, c_ptr, M, N, K, SAME_PLACE: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
                 BK: tl.constexpr):  # fmt: skip
    # Every trip stores the sum so far, over the last one or below it (c [K / BK, M, N]).
    m, n, k = rows_of(tl.program_id(0), BM), rows_of(tl.program_id(1), BN), tl.arange(0, BK)
    total = tl.zeros((BM, BN), tl.float32)
    for number in range(0, K // BK):
        a = tl.load(a_ptr + m[:, None] * K + (number * BK + k)[None, :])
        b = tl.load(b_ptr + (number * BK + k)[:, None] * N + n[None, :])
        total = tl.dot(a, b, total)
        row = m if SAME_PLACE else number * M + m
        tl.store(c_ptr + row[:, None] * N + n[None, :], total)


@triton.jit
def stored_twice(a_ptr, b_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # The second store goes over the first; a third one changes a column, element by element.
    m, n, k = rows_of(tl.program_id(0), BM), rows_of(tl.program_id(1), BN), tl.arange(0, BK)
    total = tl.zeros((BM, BN), tl.float32)
    for block in range(0, K, BK):
        a = tl.load(a_ptr + m[:, None] * K + (block + k)[None, :])
        b = tl.load(b_ptr + (block + k)[:, None] * N + n[None, :])
        total = tl.dot(a, b, total)
    places = c_ptr + m[:, None] * N + n[None, :]
    tl.store(places, total)
    tl.store(places, total * 2)
    tl.debug_barrier()
    tl.store(c_ptr + m * N + tl.program_id(1) * BN, m.to(tl.float32))


@triton.jit
def rewritten(a_ptr, b_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # Two stores to the same rows: the second goes over the first.
    m, n, k = rows_of(tl.program_id(0), BM), rows_of(tl.program_id(1), BN), tl.arange(0, BK)
    total = tl.zeros((BM, BN), tl.float32)
    for block in range(0, K, BK):
        a = tl.load(a_ptr + m[:, None] * K + (block + k)[None, :])
        b = tl.load(b_ptr + (block + k)[:, None] * N + n[None, :])
        total = tl.dot(a, b, total)
    tl.store(c_ptr + m[:, None] * N + n[None, :], total)
    tl.store(c_ptr + m[:, None] * N + n[None, :], total * 2)


@triton.jit
def sliding(a_ptr, b_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # Every tile goes over one half of the one before.
    n, k = rows_of(tl.program_id(0), BN), tl.arange(0, BK)
    for first in range(0, M - BM + 1, BM // 2):
        m = first + tl.arange(0, BM)
        total = tl.zeros((BM, BN), tl.float32)
        for block in range(0, K, BK):
            a = tl.load(a_ptr + m[:, None] * K + (block + k)[None, :])
            b = tl.load(b_ptr + (block + k)[:, None] * N + n[None, :])
            total = tl.dot(a, b, total)
        tl.store(c_ptr + m[:, None] * N + n[None, :], total * (first + 1))


@triton.jit
def streamed(a_ptr, b_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # The program says itself that b is read once.
    m, n, k = rows_of(tl.program_id(0), BM), rows_of(tl.program_id(1), BN), tl.arange(0, BK)
    total = tl.zeros((BM, BN), tl.float32)
    for block in range(0, K, BK):
        a = tl.load(a_ptr + m[:, None] * K + (block + k)[None, :], eviction_policy="evict_last")
        b = tl.load(b_ptr + (block + k)[:, None] * N + n[None, :], eviction_policy="evict_first")
        total = tl.dot(a, b, total)
    tl.store(c_ptr + m[:, None] * N + n[None, :], total)


@triton.jit
def summed_rows(a_ptr, b_ptr, bias_ptr, c_ptr, row_ptr, M, N, K, OUT: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
                BK: tl.constexpr):  # fmt: skip
    # Work after the store that goes through shared memory: a block's next program must not run into it.
    m, n, k = rows_of(tl.program_id(0), BM), tl.arange(0, BN), tl.arange(0, BK)
    total = tl.zeros((BM, BN), tl.float32)
    for block in range(0, K, BK):
        a = tl.load(a_ptr + m[:, None] * K + (block + k)[None, :], mask=m[:, None] < M, other=0.0)
        b = tl.load(b_ptr + (block + k)[:, None] * N + n[None, :])
        total = tl.dot(a, b, total)
    total += tl.load(bias_ptr + n)[None, :]
    tl.store(c_ptr + m[:, None] * N + n[None, :], total.to(OUT), mask=m[:, None] < M)
    tl.store(row_ptr + m, tl.sum(total, axis=1), mask=m < M)


@triton.jit
def column_sums(a_ptr, b_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # Nothing but sums over all warps, c [M / BM, N]: the exchange of a block's next program must wait for this one's end.
    m, n, k = rows_of(tl.program_id(0), BM), tl.arange(0, BN), tl.arange(0, BK)
    total = tl.zeros((BM, BN), tl.float32)
    for block in range(0, K, BK):
        a = tl.load(a_ptr + m[:, None] * K + (block + k)[None, :])
        b = tl.load(b_ptr + (block + k)[:, None] * N + n[None, :])
        total = tl.dot(a, b, total)
    tl.store(c_ptr + tl.program_id(0) * N + n, tl.sum(total, axis=0))


@triton.jit
def accumulated(a_ptr, b_ptr, c_ptr, M, N, K, beta, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # c = a @ b + beta * c
    m, n, k = rows_of(tl.program_id(0), BM), rows_of(tl.program_id(1), BN), tl.arange(0, BK)
    places = c_ptr + m[:, None] * N + n[None, :]
    total = tl.zeros((BM, BN), tl.float32)
    for block in range(0, K, BK):
        a = tl.load(a_ptr + m[:, None] * K + (block + k)[None, :])
        b = tl.load(b_ptr + (block + k)[:, None] * N + n[None, :])
        total = tl.dot(a, b, total)
    tl.store(places, total + beta * tl.load(places))


@triton.jit
def turned(a_ptr, b_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # Both operands lie by columns, a [K, M] and b [N, K], and so does the result.
    m, n, k = rows_of(tl.program_id(0), BM), rows_of(tl.program_id(1), BN), tl.arange(0, BK)
    total = tl.zeros((BM, BN), tl.float32)
    for block in range(0, K, BK):
        a = tl.load(a_ptr + (block + k)[:, None] * M + m[None, :])
        b = tl.load(b_ptr + n[:, None] * K + (block + k)[None, :])
        total = tl.dot(a.T, b.T, total)
    tl.store(c_ptr + n[:, None] * M + m[None, :], total.T)


@triton.jit
def of_any_type(a_ptr, b_ptr, c_ptr, M, N, K, ACC: tl.constexpr, PRECISION: tl.constexpr, BM: tl.constexpr,
                BN: tl.constexpr, BK: tl.constexpr):  # fmt: skip
    # b [N, K]
    m, n, k = rows_of(tl.program_id(0), BM), rows_of(tl.program_id(1), BN), tl.arange(0, BK)
    total = tl.zeros((BM, BN), ACC)
    for block in range(0, K, BK):
        a = tl.load(a_ptr + m[:, None] * K + (block + k)[None, :])
        b = tl.load(b_ptr + n[None, :] * K + (block + k)[:, None])
        total += tl.dot(a, b, input_precision=PRECISION, out_dtype=ACC)
    tl.store(c_ptr + m[:, None] * N + n[None, :], total)


@triton.jit
def planes(a_ptr, b_ptr, c_ptr, P: tl.constexpr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, BK: tl.constexpr):
    # Products of P planes at once.
    p, m, n, k = tl.arange(0, P)[:, None, None], tl.arange(0, M), tl.arange(0, N), tl.arange(0, BK)
    total = tl.zeros((P, M, N), tl.float32)
    for block in range(0, K, BK):
        a = tl.load(a_ptr + p * M * K + m[None, :, None] * K + (block + k)[None, None, :])
        b = tl.load(b_ptr + p * K * N + (block + k)[None, :, None] * N + n[None, None, :])
        total = tl.dot(a, b, total)
    tl.store(c_ptr + p * M * N + m[None, :, None] * N + n[None, None, :], total)


@triton.jit
def by_descriptors(a_ptr, b_ptr, c_ptr, M, N, K, PROGRAMS: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
                   BK: tl.constexpr):  # fmt: skip
    # Programs take tiles in turn.
    a_desc = tl.make_tensor_descriptor(a_ptr, [M, K], [K, 1], [BM, BK])
    b_desc = tl.make_tensor_descriptor(b_ptr, [K, N], [N, 1], [BK, BN])
    c_desc = tl.make_tensor_descriptor(c_ptr, [M, N], [N, 1], [BM, BN])
    columns = tl.cdiv(N, BN)
    for tile in tl.range(tl.program_id(0), tl.cdiv(M, BM) * columns, PROGRAMS):
        row, column = tile // columns * BM, tile % columns * BN
        total = tl.zeros((BM, BN), tl.float32)
        for block in range(0, K, BK):
            total = tl.dot(a_desc.load([row, block]), b_desc.load([block, column]), total)
        c_desc.store([row, column], total.to(tl.float16))


@triton.jit
def by_block_pointers(a_ptr, b_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    row, column = tl.program_id(0) * BM, tl.program_id(1) * BN
    a_block = tl.make_block_ptr(a_ptr, (M, K), (K, 1), (row, 0), (BM, BK), (1, 0))
    b_block = tl.make_block_ptr(b_ptr, (K, N), (N, 1), (0, column), (BK, BN), (1, 0))
    c_block = tl.make_block_ptr(c_ptr, (M, N), (N, 1), (row, column), (BM, BN), (1, 0))
    total = tl.zeros((BM, BN), tl.float32)
    for _ in range(0, K, BK):
        a = tl.load(a_block, boundary_check=(0, 1), padding_option="zero")
        b = tl.load(b_block, boundary_check=(0, 1), padding_option="zero")
        total = tl.dot(a, b, total)
        a_block = tl.advance(a_block, (0, BK))
        b_block = tl.advance(b_block, (BK, 0))
    tl.store(c_block, total.to(tl.float16), boundary_check=(0, 1))


@triton.jit
def talkative(a_ptr, b_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # What is printed tells the program.
    m, n, k = rows_of(tl.program_id(0), BM), rows_of(tl.program_id(1), BN), tl.arange(0, BK)
    total = tl.zeros((BM, BN), tl.float32)
    for block in range(0, K, BK):
        a = tl.load(a_ptr + m[:, None] * K + (block + k)[None, :])
        b = tl.load(b_ptr + (block + k)[:, None] * N + n[None, :])
        total = tl.dot(a, b, total)
    tl.device_print("done", M)
    tl.store(c_ptr + m[:, None] * N + n[None, :], total)


@triton.jit
def by_strides(a_ptr, b_ptr, c_ptr, M, N, K, a_offset, b_offset, a_plane, b_plane, stride_am, stride_ak, stride_bk,
               stride_bn, TURNS: tl.constexpr, ACC: tl.constexpr, ZERO: tl.constexpr,
               BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):  # fmt: skip
    # Pairs of matrices that lie anywhere; their products as many times as there are TURNS.
    m, n, k = rows_of(tl.program_id(0), BM), rows_of(tl.program_id(1), BN), tl.arange(0, BK)
    plane = tl.program_id(2)
    a_ptrs = a_ptr + a_offset + plane * a_plane + m[:, None] * stride_am + k[None, :] * stride_ak
    b_ptrs = b_ptr + b_offset + plane * b_plane + k[:, None] * stride_bk + n[None, :] * stride_bn
    total = tl.zeros((BM, BN), ACC)
    for _ in range(0, TURNS):
        for block in range(0, K, BK):
            a_mask = (m[:, None] < M) & ((block + k)[None, :] < K)
            b_mask = ((block + k)[:, None] < K) & (n[None, :] < N)
            a = tl.load(a_ptrs + block * stride_ak, a_mask, other=ZERO)
            b = tl.load(b_ptrs + block * stride_bk, b_mask, other=ZERO)
            total += tl.dot(a, b, out_dtype=ACC)
    c_ptrs = c_ptr + plane * M * N + m[:, None] * N + n[None, :]
    tl.store(c_ptrs, total, mask=(m[:, None] < M) & (n[None, :] < N))


@triton.jit
def scattered_bytes(a_ptr, b_ptr, row_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # Lanes hold single bytes of an operand, which lies by columns and is summed too; its rows are found by numbers.
    m, n, k = rows_of(tl.program_id(0), BM), rows_of(tl.program_id(1), BN), tl.arange(0, BK)
    total = tl.zeros((BM, BN), tl.int32)
    for block in range(0, K, BK):
        a = tl.load(a_ptr + tl.load(row_ptr + m)[:, None] + (block + k)[None, :] * M)
        b = tl.load(b_ptr + (block + k)[:, None] + n[None, :] * K)
        total = tl.dot(a, b, total)
        total += tl.sum(a.to(tl.int32), axis=1)[:, None]
    tl.store(c_ptr + m[:, None] * N + n[None, :], total)
