"""Loops that load ahead from rows whose numbers were loaded before: the numbers reach the threads that copy the rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tilewright as triton
import tilewright.language as tl

RNG = np.random.default_rng(12)


@triton.jit
def routed_product_kernel(
    a_ptr, b_ptr, c_ptr, order_ptr, count, N, K, TOP: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr
):
    slots = tl.program_id(0) * BM + tl.arange(0, BM)
    inside = slots < count
    order = tl.load(order_ptr + slots, mask=inside, other=0)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    k = tl.arange(0, BK)
    # Rows are read through the order, and written through it: by threads of two layouts.
    a_ptrs = a_ptr + (order // TOP)[:, None] * K + k[None, :]
    b_ptrs = b_ptr + n[None, :] * K + k[:, None]
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for step in range(0, tl.cdiv(K, BK)):
        a = tl.load(a_ptrs, mask=inside[:, None] & (k[None, :] < K - step * BK), other=0.0)
        b = tl.load(b_ptrs, mask=k[:, None] < K - step * BK, other=0.0)
        acc = tl.dot(a, b, acc)
        a_ptrs += BK
        b_ptrs += BK
    tl.store(c_ptr + order[:, None] * N + n[None, :], acc.to(tl.float16), mask=inside[:, None])


@triton.jit
def routed_sums_kernel(x_ptr, w_ptr, y_ptr, out_ptr, order_ptr, K, BM: tl.constexpr, BK: tl.constexpr, C: tl.constexpr):
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    order = tl.load(order_ptr + m)
    c = tl.arange(0, C)[None, :]
    y = tl.load(y_ptr + m[:, None] * C + c)
    acc = tl.zeros((BM, BK), dtype=tl.float32)
    for start in range(0, K, BK):
        k = start + tl.arange(0, BK)
        acc += tl.load(x_ptr + order[:, None] * K + k[None, :]) * tl.load(w_ptr + k)[None, :]
    tl.store(out_ptr + order[:, None] * C + c, y + tl.sum(acc, axis=1)[:, None])


@pytest.mark.parametrize("num_warps", [4, 8])
@pytest.mark.parametrize("number", [np.int32, np.int64])
@pytest.mark.parametrize("block", [(16, 64, 64), (64, 64, 32), (128, 128, 64)])
def test_products(run_everywhere: Any, block: tuple[int, int, int], number: Any, num_warps: int) -> None:
    tokens, top, k, n, count = 40, 2, 160, 128, 77
    a, b = (RNG.integers(-3, 4, shape).astype(np.float16) for shape in ((tokens, k), (n, k)))
    order = RNG.permutation(tokens * top)[:count].astype(number)
    expected = np.zeros((tokens * top, n))
    expected[order] = (a.astype(float) @ b.astype(float).T)[order // top]
    grid = (triton.cdiv(count, block[0]), n // block[1])
    arguments = (a, b, np.zeros(expected.shape, np.float16), order, count, n, k, top, *block)
    found = run_everywhere(routed_product_kernel, grid, *arguments, num_warps=num_warps)
    np.testing.assert_array_equal(found[2], expected)


@pytest.mark.parametrize(("sides", "num_warps"), [((64, 16, 256), 8), ((16, 128, 16), 8), ((32, 32, 64), 4)])
def test_sums(run_everywhere: Any, sides: tuple[int, int, int], num_warps: int) -> None:
    k = 512
    x, w, y = (RNG.integers(-3, 4, shape).astype(np.float32) for shape in ((64, k), (k,), (64, sides[2])))
    order = RNG.permutation(64).astype(np.int32)
    expected = np.zeros_like(y)
    expected[order] = y + (x[order] * w).sum(1)[:, None]
    arguments = (x, w, y, np.zeros_like(y), order, k, *sides)
    found = run_everywhere(routed_sums_kernel, (64 // sides[0],), *arguments, num_warps=num_warps)
    np.testing.assert_array_equal(found[3], expected)


@pytest.mark.parametrize(
    ("block", "stages", "found"),
    [((128, 128, 64), 4, 3), ((128, 128, 64), 3, 3), ((128, 256, 64), 4, 4), ((128, 128, 64), 2, 2)],
)
def test_two_blocks_where_threads_copy_for_wgmma(block: tuple[int, int, int], stages: int, found: int) -> None:
    """All threads wait for each other in every iteration: another block has products for the tensor cores meanwhile."""
    sides = ", ".join(map(str, block))
    signature = f"*fp16:16, *fp16:16, *fp16:16, *i32:16, i32, i32:16, i32:16, 2, {sides}"
    artifact = routed_product_kernel.translate(signature, num_warps=8, num_stages=stages)
    assert f"NUM_STAGES = {found};" in artifact.source
    two = "MIN_BLOCKS = 2;" in artifact.source
    assert two == (block[1] == 128 and found > 2)
    assert not two or 2 * (artifact.shared_bytes + 1024) <= 228 << 10
