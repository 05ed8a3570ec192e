"""A program that returns leaves no copy behind that is still writing to shared memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tilewright as triton
import tilewright.language as tl

B = 32


@triton.jit
def returns_early(a_ptr, b_ptr, c_ptr, n, B: tl.constexpr):
    rows, cols = tl.arange(0, B)[:, None], tl.arange(0, B)[None, :]
    a = tl.load(a_ptr + rows * B + cols)
    first = tl.program_id(0) * B
    if first >= n:
        return
    b = tl.load(b_ptr + rows * B + cols)
    tl.store(c_ptr + first * B + rows * B + cols, tl.dot(a, b))


@triton.jit
def returns_within_branches(a_ptr, b_ptr, c_ptr, n, B: tl.constexpr):
    rows, cols = tl.arange(0, B)[:, None], tl.arange(0, B)[None, :]
    a = tl.load(a_ptr + rows * B + cols)
    first = tl.program_id(0) * B
    if first >= n:
        if first > n:
            tl.store(c_ptr + first * B, 1.0)
            return
        tl.store(c_ptr + first * B, 2.0)
        return
    b = tl.load(b_ptr + rows * B + cols)
    tl.store(c_ptr + first * B + rows * B + cols, tl.dot(a, b))


@pytest.mark.parametrize(("kernel", "returns"), [(returns_early, 1), (returns_within_branches, 2)])
def test_nothing_is_left_behind(kernel: Any, returns: int, run_everywhere: Any) -> None:
    a, b = (np.random.default_rng(seed).integers(-4, 5, (B, B)).astype(np.float16) for seed in (1, 2))
    found = run_everywhere(kernel, (4,), a, b, np.zeros((4 * B, B), np.float32), 2 * B, B)[2]
    np.testing.assert_array_equal(found[:B], a.astype(np.float32) @ b.astype(np.float32))
    text = kernel.translate("*fp16:16, *fp16:16, *fp32:16, i32, 32").source
    lines = [line.split(";")[0].strip() for line in text.splitlines()]
    ends = [lines[place - 2 : place] for place, line in enumerate(lines) if line == "return"]
    assert len(ends) == returns and all("cp_async_wait<0>()" in end for end in ends)


@triton.jit
def returns_later(a_ptr, b_ptr, c_ptr, n, B: tl.constexpr):
    rows, cols = tl.arange(0, B)[:, None], tl.arange(0, B)[None, :]
    a = tl.load(a_ptr + rows * B + cols)
    b = tl.load(b_ptr + rows * B + cols)
    c = tl.dot(a, b)
    if n < 0:
        return
    tl.store(c_ptr + rows * B + cols, c)


def test_what_has_arrived_is_not_waited_for_again() -> None:
    text = returns_later.translate("*fp16:16, *fp16:16, *fp32:16, i32, 32").source
    assert text.count("cp_async_wait<0>();") == 1
