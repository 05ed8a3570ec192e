"""Boxes that each trip of a loop stores from memory of their own: a store waits for its own copy of the trip before only."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
import tilewright as triton
import tilewright.language as tl

SIDE = 64


@triton.jit
def sums(a_ptr, b_ptr, one_ptr, two_ptr, three_ptr, rows, N: tl.constexpr, SOME: tl.constexpr):
    i, n = tl.arange(0, N), tl.arange(0, N)
    one, two = tl.zeros([N, N], tl.float32), tl.zeros([N, N], tl.float32)
    for start in range(0, rows, N):
        r = start + i
        places = r[:, None] * N + n[None, :]
        inside = (r < rows)[:, None]
        a, b = tl.load(a_ptr + places, mask=inside, other=0.0), tl.load(b_ptr + places, mask=inside, other=0.0)
        one = tl.dot(a, b, one)
        two = tl.dot(b, a, two)
        tl.store(one_ptr + places, one.to(tl.float16), mask=inside)
        tl.store(two_ptr + places, two.to(tl.float16), mask=inside)
        if SOME:
            if start > 0:
                tl.store(three_ptr + places, (one + two).to(tl.float16), mask=inside)
        else:
            tl.store(three_ptr + places, (one + two).to(tl.float16), mask=inside)


@pytest.mark.parametrize("some", [False, True])
def test_three_stores_in_a_loop(run_everyhow: Any, some: bool) -> None:
    rows, generator = 5 * SIDE - 3, np.random.default_rng(some)
    a, b = (generator.integers(-1, 2, (5 * SIDE, SIDE)).astype(np.float16) for _ in range(2))
    a[rows:], b[rows:] = 0, 0
    outs = [np.full((rows, SIDE), np.nan, np.float16) for _ in range(3)]
    arguments = (a[:rows].copy(), b[:rows].copy(), *outs, rows)
    for _, _, *found, _ in run_everyhow(sums, (1,), arguments, N=SIDE, SOME=some, num_warps=4):
        one, two = np.zeros((SIDE, SIDE)), np.zeros((SIDE, SIDE))
        for start in range(0, rows, SIDE):
            left, right = (array[start : start + SIDE].astype(float) for array in (a, b))
            one, two = one + left @ right, two + right @ left
            here = slice(start, min(start + SIDE, rows))
            length = here.stop - start
            np.testing.assert_array_equal(found[0][here], one[:length])
            np.testing.assert_array_equal(found[1][here], two[:length])
            if start or not some:
                np.testing.assert_array_equal(found[2][here], (one + two)[:length])


@pytest.mark.parametrize("some, waits", [(False, [2, 2, 2]), (True, [1, 1, 0])])
def test_what_a_store_waits_for(some: bool, waits: list[int]) -> None:
    signature = f"*fp16:16, *fp16:16, *fp16:16, *fp16:16, *fp16:16, i32, {SIDE}, {some}"
    source = sums.translate(signature, num_warps=4).source
    loop = source[source.index("// the others multiply") :]
    assert [int(n) for n in re.findall(r"if \(tid == 0\) tma_store_wait<(\d)>", loop)][:3] == waits
