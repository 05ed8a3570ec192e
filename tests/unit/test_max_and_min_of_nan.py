"""The largest and the smallest of floats: NaN gives way to numbers, and is the answer where there are none."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tilewright as triton
import tilewright.language as tl


@triton.jit
def extrema(x_ptr, all_ptr, rows_ptr, M: tl.constexpr, N: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :])
    tl.store(all_ptr, tl.max(x))
    tl.store(all_ptr + 1, tl.min(x))
    tl.store(rows_ptr + tl.arange(0, M), tl.max(x, axis=1))
    tl.store(rows_ptr + M + tl.arange(0, N), tl.min(x, axis=0))


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("shape", [(64, 64), (50, 8), (3, 1000), (4, 4)])
@pytest.mark.parametrize("empty", [True, False])
def test_nothing_but_nan(run_everywhere: Any, dtype: str, shape: tuple[int, int], empty: bool) -> None:
    """Sides that are filled up, and sums that begin with what changes nothing, do not make an infinity of it."""
    x = np.full(shape, np.nan, dtype)
    if not empty:
        x[1, :3] = -np.inf, 2, -3
    both, ends = np.zeros(2, np.float32), np.zeros(sum(shape), np.float32)
    both, ends = run_everywhere(extrema, (1,), x, both, ends, M=shape[0], N=shape[1])[1:]
    with np.errstate(all="ignore"):
        expected = [np.fmax.reduce(x, None), np.fmin.reduce(x, None)]
        sides = np.concatenate([np.fmax.reduce(x, 1), np.fmin.reduce(x, 0)])
    assert np.array_equal(both, expected, equal_nan=True) and np.array_equal(ends, sides, equal_nan=True)
