"""Loops with a condition that numbers decide: few trips of simple statements are written behind each other."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tilewright as triton
import tilewright.language as tl


@triton.jit
def search(x_ptr, sorted_ptr, out_ptr, BLOCK: tl.constexpr, COUNT: tl.constexpr):
    # Among COUNT sorted numbers, how many are smaller.
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i)
    low, high = tl.zeros((BLOCK,), tl.int64), tl.full((BLOCK,), COUNT, tl.int64)
    rest = COUNT + 1
    while rest > 1:
        middle = (low + high) // 2
        above = x > tl.load(sorted_ptr + middle, mask=middle < COUNT, other=float("inf"))
        low = tl.where(above, middle + 1, low)
        high = tl.where(above, high, middle)
        rest = (rest + 1) // 2
    tl.store(out_ptr + i, low)


@pytest.mark.parametrize(("count", "written_out"), [(1, True), (101, True), (128, True), (300, False)])
def test_a_search(count: int, written_out: bool, run_everywhere: Any) -> None:
    rng = np.random.default_rng(count)
    x, numbers = rng.integers(0, 99, 512).astype(np.float32), np.sort(rng.integers(0, 99, count)).astype(np.float32)
    _, _, out = run_everywhere(search, (2,), x, numbers, np.zeros(512, np.int64), BLOCK=256, COUNT=count)
    np.testing.assert_array_equal(out, np.searchsorted(numbers, x))
    text = search.translate(f"*fp32:16, *fp32:16, *i64:16, 256, {count}").source
    assert ("    #pragma unroll\n    while (" in text) == written_out


@triton.jit
def steps(x_ptr, out_ptr, n, BLOCK: tl.constexpr, WAY: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i)
    k = 3
    if WAY == 1:
        k = n
    while k > 0:
        x = x * 2 + k
        if WAY == 2 and n > 4:
            k -= 1
        if WAY == 3:
            tl.store(out_ptr + i, tl.sum(x, 0) + tl.zeros((BLOCK,), tl.float32))
        k -= 1
    tl.store(out_ptr + i, x)


@pytest.mark.parametrize("n", [1, 5])
@pytest.mark.parametrize("way", range(4))
def test_what_decides(way: int, n: int, run_everywhere: Any) -> None:
    """Numbers alone; not an argument, not a branch on one, and not where threads wait for each other."""
    x = np.arange(1024, dtype=np.float32)
    expected, k = x.copy(), n if way == 1 else 3
    while k > 0:
        expected = expected * 2 + k
        k -= 2 if way == 2 and n > 4 else 1
    _, out = run_everywhere(steps, (1,), x, np.zeros(1024, np.float32), n, BLOCK=1024, WAY=way)
    np.testing.assert_array_equal(out, expected)
    text = steps.translate(f"*fp32:16, *fp32:16, i32, 1024, {way}").source
    assert ("    #pragma unroll\n    while (" in text) == (way == 0)
