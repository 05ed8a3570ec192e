"""Tiles that are contiguous along their first axis: a thread's elements lie in its array as they lie in memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tilewright as triton
import tilewright.language as tl
from tilewright.schedule.tiles.layout import Layout, blocked


@triton.jit
def doubled_columns(x_ptr, y_ptr, M: tl.constexpr, N: tl.constexpr):
    m, n = tl.arange(0, M)[:, None], tl.arange(0, N)[None, :]
    tl.store(y_ptr + m + n * M, tl.load(x_ptr + m + n * M) * 2)


@triton.jit
def transposed_copy(x_ptr, y_ptr, M: tl.constexpr, N: tl.constexpr):
    m, n = tl.arange(0, M)[:, None], tl.arange(0, N)[None, :]
    tl.store(y_ptr + m * N + n, tl.load(x_ptr + m + n * M))


@pytest.mark.parametrize("num_warps", (1, 4))
@pytest.mark.parametrize("dtype", (np.float32, np.float16, np.int64, np.uint8))
@pytest.mark.parametrize("kernel", (doubled_columns, transposed_copy))
def test_columns(kernel: triton.JITFunction, dtype: type, num_warps: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_MODE", "cpu")
    m, n = 32, 64
    x = np.random.default_rng(5).integers(0, 100, (m, n)).astype(dtype)
    y = np.full((m, n), 255, dtype)
    kernel[(1,)](np.asfortranarray(x).ravel(order="K"), y.reshape(-1), m, n, num_warps=num_warps)
    expected = x if kernel is transposed_copy else (x * 2).ravel(order="F").reshape(m, n)
    np.testing.assert_array_equal(y, expected)


def test_the_longest_run_is_innermost() -> None:
    rows = blocked((32, 64), 32, fast_axis=1, run=4)
    columns = blocked((32, 64), 32, fast_axis=0, run=4)
    assert rows.array_axes() == (0, 1) and columns.array_axes() == (1, 0)
    registers_only = Layout(((-1,) * 6, (-1, 0, 1, 2, 3, 4)), 5)
    assert registers_only.array_axes() == (0, 1) and registers_only.vector(0) == 1 and registers_only.vector(1) == 2
    assert Layout(((), (0, 1, 2, 3, 4)), 5).array_axes() == ()


@triton.jit
def spread(x_ptr, y_ptr, N: tl.constexpr, PARTS: tl.constexpr):
    rows, columns, parts = tl.arange(0, 8), tl.arange(0, N), tl.arange(0, PARTS)
    x = tl.load(x_ptr + rows[:, None] * N + columns[None, :])
    places = (rows[:, None, None] * N + columns[None, :, None]) * PARTS + parts[None, None, :]
    tl.store(y_ptr + places, tl.where(parts[None, None, :] == (x & 3)[:, :, None], x[:, :, None], 0))


def test_rows_that_threads_have_whole_are_innermost(run_everywhere: Any) -> None:
    """A thread has all eight planes, too, but its neighbour goes on where its row of parts ends."""
    x = np.random.default_rng(4).integers(1, 100, (8, 128)).astype(np.int32)
    y = run_everywhere(spread, (1,), x, np.zeros((8, 128, 4), np.int32), N=128, PARTS=4)[1]
    np.testing.assert_array_equal(y, np.where(np.arange(4) == (x & 3)[..., None], x[..., None], 0))
    text = spread.translate("*i32:16, *i32:16, 128, 4").source
    assert "store_vec<VEC>(y_ptr" in text


@triton.jit
def tripled_columns(x_ptr, y_ptr, M: tl.constexpr, N: tl.constexpr):
    places = tl.arange(0, M)[:, None] + tl.arange(0, N)[None, :] * M
    tl.store(y_ptr + places, tl.load(x_ptr + places) * 3)


def test_columns_are_counted_in_threads_along_the_rows() -> None:
    text = tripled_columns.translate("*fp32:16, *fp32:16, 32, 64").source
    assert "const int col = tid / ROW_THREADS, row = tid % ROW_THREADS;" in text
