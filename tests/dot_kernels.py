"""Kernels with dots in every place where one can stand, for `dot_cases.py`.

Operands lie by rows: a [M, K], b [K, N], c [M, N]. A tile has BM rows, BN columns, BK of K.
"""

import tilewright as triton
import tilewright.language as tl


@triton.jit
def rows_of(number, SIDE: tl.constexpr):
    return number * SIDE + tl.arange(0, SIDE)


@triton.jit
def product(a_ptr, b_ptr, c_ptr, M, N, K, START: tl.constexpr, STEP: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
            BK: tl.constexpr):  # fmt: skip
    # Blocks of K from START on, STEP blocks apart; STEP is negative to go down from the last one.
    m, n, k = rows_of(tl.program_id(0), BM), rows_of(tl.program_id(1), BN), tl.arange(0, BK)
    total = tl.zeros((BM, BN), tl.float32)
    first = START * BK if STEP > 0 else K - BK - START * BK
    for block in range(first, K if STEP > 0 else -1, STEP * BK):
        a = tl.load(a_ptr + m[:, None] * K + (block + k)[None, :], mask=m[:, None] < M, other=0.0)
        b = tl.load(b_ptr + (block + k)[:, None] * N + n[None, :], mask=n[None, :] < N, other=0.0)
        total = tl.dot(a, b, total)
    tl.store(c_ptr + m[:, None] * N + n[None, :], total, mask=(m[:, None] < M) & (n[None, :] < N))


@triton.jit
def strided(a_ptr, b_ptr, c_ptr, M, N, K, first, step, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # The loop's start and step are known at run time only; its last block is computed with again after it.
    m, n, k = rows_of(tl.program_id(0), BM), rows_of(tl.program_id(1), BN), tl.arange(0, BK)
    total = tl.zeros((BM, BN), tl.float32)
    block = 0
    for block in range(first, K, step):
        a = tl.load(a_ptr + m[:, None] * K + (block + k)[None, :])
        b = tl.load(b_ptr + (block + k)[:, None] * N + n[None, :])
        total = tl.dot(a, b, total)
    tl.store(c_ptr + m[:, None] * N + n[None, :], total + block)


@triton.jit
def two_loops(a_ptr, b_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # Two loops with tiles of their own; the second has other operands and adds to the first's sum.
    m, n, k = rows_of(tl.program_id(0), BM), rows_of(tl.program_id(1), BN), tl.arange(0, BK)
    total = tl.zeros((BM, BN), tl.float32)
    for block in range(0, K, BK):
        a = tl.load(a_ptr + m[:, None] * K + (block + k)[None, :])
        b = tl.load(b_ptr + (block + k)[:, None] * N + n[None, :])
        total = tl.dot(a, b, total)
    total = total * 0.5
    for block in range(K - BK, -1, -BK):
        right = tl.load(b_ptr + (block + k)[:, None] * N + n[None, :])
        left = tl.load(a_ptr + m[:, None] * K + (block + k)[None, :])
        total = tl.dot(left, right, total)
    tl.store(c_ptr + m[:, None] * N + n[None, :], total)


@triton.jit
def loop_in_while(a_ptr, b_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # A program takes a row of tiles, one after another.
    m, k = rows_of(tl.program_id(0), BM), tl.arange(0, BK)
    column = 0
    while column < N:
        n = column + tl.arange(0, BN)
        total = tl.zeros((BM, BN), tl.float32)
        for block in range(0, K, BK):
            a = tl.load(a_ptr + m[:, None] * K + (block + k)[None, :])
            b = tl.load(b_ptr + (block + k)[:, None] * N + n[None, :])
            total = tl.dot(a, b, total)
        tl.store(c_ptr + m[:, None] * N + n[None, :], total)
        column += BN


@triton.jit
def loop_in_loop(a_ptr, b_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # The same with a for loop, and a sum of rows that all threads take part in.
    m, k = rows_of(tl.program_id(0), BM), tl.arange(0, BK)
    for column in range(0, N, BN):
        n = column + tl.arange(0, BN)
        total = tl.zeros((BM, BN), tl.float32)
        for block in range(0, K, BK):
            a = tl.load(a_ptr + m[:, None] * K + (block + k)[None, :])
            b = tl.load(b_ptr + (block + k)[:, None] * N + n[None, :])
            total = tl.dot(a, b, total)
        total -= tl.sum(total, axis=1)[:, None] / BN
        tl.store(c_ptr + m[:, None] * N + n[None, :], total)


@triton.jit
def loop_in_condition(a_ptr, b_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # Odd programs compute, even ones only write.
    m, n, k = rows_of(tl.program_id(0), BM), rows_of(tl.program_id(1), BN), tl.arange(0, BK)
    total = tl.zeros((BM, BN), tl.float32)
    if tl.program_id(0) % 2 == 1:
        for block in range(0, K, BK):
            a = tl.load(a_ptr + m[:, None] * K + (block + k)[None, :])
            b = tl.load(b_ptr + (block + k)[:, None] * N + n[None, :])
            total = tl.dot(a, b, total)
    tl.store(c_ptr + m[:, None] * N + n[None, :], total)


@triton.jit
def dot_in_condition(a_ptr, b_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # Only every third block of K counts; all are loaded.
    m, n, k = rows_of(tl.program_id(0), BM), rows_of(tl.program_id(1), BN), tl.arange(0, BK)
    total = tl.zeros((BM, BN), tl.float32)
    for number in range(0, K // BK):
        a = tl.load(a_ptr + m[:, None] * K + (number * BK + k)[None, :])
        b = tl.load(b_ptr + (number * BK + k)[:, None] * N + n[None, :])
        if number % 3 == 1:
            total = tl.dot(a, b, total)
    tl.store(c_ptr + m[:, None] * N + n[None, :], total)


@triton.jit
def resident(a_ptr, b_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # The left operand, K = BK wide, is loaded once and used for all columns; every product is stored.
    m, k = rows_of(tl.program_id(0), BM), tl.arange(0, BK)
    a = tl.load(a_ptr + m[:, None] * K + k[None, :])
    for column in range(0, N, BN):
        n = column + tl.arange(0, BN)
        b = tl.load(b_ptr + k[:, None] * N + n[None, :])
        tl.store(c_ptr + m[:, None] * N + n[None, :], tl.dot(a, b))


@triton.jit
def swapped_sums(a_ptr, b_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # Two sums change places in every trip: what one has, the other continues with.
    m, n, k = rows_of(tl.program_id(0), BM), rows_of(tl.program_id(1), BN), tl.arange(0, BK)
    one = tl.zeros((BM, BN), tl.float32)
    other = tl.full((BM, BN), 3.0, tl.float32)
    for block in range(0, K, BK):
        a = tl.load(a_ptr + m[:, None] * K + (block + k)[None, :])
        b = tl.load(b_ptr + (block + k)[:, None] * N + n[None, :])
        one = tl.dot(a, b, other)
        other = tl.dot(a, b, one)
    tl.store(c_ptr + m[:, None] * N + n[None, :], other)


@triton.jit
def used_after(a_ptr, b_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # The last trip's tiles are multiplied once more after the loop.
    m, n, k = rows_of(tl.program_id(0), BM), rows_of(tl.program_id(1), BN), tl.arange(0, BK)
    total = tl.zeros((BM, BN), tl.float32)
    a = tl.zeros((BM, BK), a_ptr.dtype.element_ty)
    b = tl.zeros((BK, BN), b_ptr.dtype.element_ty)
    for block in range(0, K, BK):
        a = tl.load(a_ptr + m[:, None] * K + (block + k)[None, :])
        b = tl.load(b_ptr + (block + k)[:, None] * N + n[None, :])
        total = tl.dot(a, b, total)
    tl.store(c_ptr + m[:, None] * N + n[None, :], tl.dot(a, b, total))


@triton.jit
def outer_tile_after_inner_loop(a_ptr, b_ptr, w_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr,
                                BK: tl.constexpr):  # fmt: skip
    # c = (a @ b) @ w over blocks of N; the tile of w is loaded when a block of a @ b is complete.
    m, k, j = rows_of(tl.program_id(0), BM), tl.arange(0, BK), tl.arange(0, BN)
    result = tl.zeros((BM, BN), tl.float32)
    for column in range(0, N, BN):
        n = column + tl.arange(0, BN)
        total = tl.zeros((BM, BN), tl.float32)
        for block in range(0, K, BK):
            a = tl.load(a_ptr + m[:, None] * K + (block + k)[None, :])
            b = tl.load(b_ptr + (block + k)[:, None] * N + n[None, :])
            total = tl.dot(a, b, total)
        w = tl.load(w_ptr + n[:, None] * BN + j[None, :])
        result = tl.dot(total.to(w.dtype), w, result)
    tl.store(c_ptr + m[:, None] * BN + j[None, :], result)


@triton.jit
def early_return(a_ptr, b_ptr, count_ptr, c_ptr, M, N, K, BY_TILE: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
                 BK: tl.constexpr):  # fmt: skip
    # Programs without anything to do end at once; a count in memory, or a sum of counts, says which.
    m, n, k = rows_of(tl.program_id(0), BM), rows_of(tl.program_id(1), BN), tl.arange(0, BK)
    if BY_TILE:
        count = tl.sum(tl.load(count_ptr + tl.program_id(0) * 4 + tl.arange(0, 4)), axis=0)
    else:
        count = tl.load(count_ptr + tl.program_id(0) * 4)
    if count == 0:
        return
    total = tl.zeros((BM, BN), tl.float32)
    for block in range(0, K, BK):
        a = tl.load(a_ptr + m[:, None] * K + (block + k)[None, :])
        b = tl.load(b_ptr + (block + k)[:, None] * N + n[None, :])
        total = tl.dot(a, b, total)
    tl.store(c_ptr + m[:, None] * N + n[None, :], total)


@triton.jit
def in_place(x_ptr, w_ptr, steps, W: tl.constexpr, BM: tl.constexpr, BK: tl.constexpr):
    # x[i + 1] += x[i] @ w[i]: what one trip stores, the next one loads.
    m, k = rows_of(tl.program_id(0), BM), tl.arange(0, BK)
    for i in range(0, steps):
        x = tl.load(x_ptr + i * W * BK + m[:, None] * BK + k[None, :])
        w = tl.load(w_ptr + i * BK * BK + k[:, None] * BK + k[None, :])
        place = x_ptr + (i + 1) * W * BK + m[:, None] * BK + k[None, :]
        y = tl.load(place)
        tl.store(place, y + tl.dot(x, w).to(y.dtype))
        tl.debug_barrier()


@triton.jit
def places_in_memory(a_ptr, b_ptr, list_ptr, c_ptr, M, N, K, count, WRITES: tl.constexpr, BM: tl.constexpr,
                     BN: tl.constexpr, BK: tl.constexpr):  # fmt: skip
    # Which blocks of K are multiplied stands in memory; a trip may say where the next one goes.
    m, n, k = rows_of(tl.program_id(0), BM), rows_of(tl.program_id(1), BN), tl.arange(0, BK)
    total = tl.zeros((BM, BN), tl.float32)
    for i in range(0, count):
        block = tl.load(list_ptr + i) * BK
        a = tl.load(a_ptr + m[:, None] * K + (block + k)[None, :])
        b = tl.load(b_ptr + (block + k)[:, None] * N + n[None, :])
        total = tl.dot(a, b, total)
        if WRITES:
            tl.debug_barrier()
            tl.store(list_ptr + i + 1, (block // BK + 1) % (K // BK))
            tl.debug_barrier()
    tl.store(c_ptr + m[:, None] * N + n[None, :], total)
