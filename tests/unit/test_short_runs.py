"""Rows that a tile is made of: a thread's runs are no longer than an access where a long one would touch many lines."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tilewright as triton
import tilewright.language as tl


@triton.jit
def counted(ids_ptr, count_ptr, n, KINDS: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    ids = tl.load(ids_ptr + i, mask=i < n, other=KINDS)
    kinds = tl.arange(0, KINDS)
    hit = (ids[:, None] == kinds[None, :]).to(tl.int32)
    tl.atomic_add(count_ptr + kinds, tl.sum(hit, 0))


@triton.jit
def weighted(x_ptr, y_ptr, out_ptr, M: tl.constexpr, N: tl.constexpr):
    rows, cols = tl.arange(0, M), tl.arange(0, N)
    x, y = tl.load(x_ptr + rows), tl.load(y_ptr + cols)
    tl.store(out_ptr + cols, tl.sum(tl.maximum(x[:, None] - y[None, :], 0.0), 0))


@pytest.mark.parametrize(("n", "block"), ((1024, 256), (1000, 256), (999, 512)))
@pytest.mark.parametrize("element", (np.int32, np.int8))
def test_what_is_counted(run_everywhere: Any, n: int, block: int, element: Any) -> None:
    ids = np.random.default_rng(n).integers(0, 64, n).astype(element)
    _, counts = run_everywhere(counted, (-(-n // block),), ids, np.zeros(64, np.int32), n, 64, block)
    assert np.array_equal(counts, np.bincount(ids, minlength=64))


@pytest.mark.parametrize("shape", ((512, 64), (64, 512), (300, 48)))
def test_rows_and_columns_are_where_they_were(run_everywhere: Any, shape: tuple[int, int]) -> None:
    random = np.random.default_rng(5)
    x, y = (random.integers(-9, 9, side).astype(np.float32) for side in shape)
    *_, sums = run_everywhere(weighted, (1,), x, y, np.zeros(shape[1], np.float32), *shape)
    assert np.array_equal(sums, np.maximum(x[:, None] - y, 0).sum(0))


def test_a_run_is_an_access() -> None:
    """Eight lanes that have 128 bytes each would touch eight lines with every access; side by side they touch one."""
    text = counted.translate("*i32:16, *i32:16, i32:16, 64, 256").source
    assert "constexpr int ROW_VEC = 4;" in text
    assert "(v * ROW_THREADS + row) * ROW_VEC" in text


def test_runs_stay_where_they_gain_little() -> None:
    """Bytes: of two accesses, the second one finds its line in the cache."""
    text = counted.translate("*i8:16, *i32:16, i32:16, 64, 256").source
    assert "constexpr int ROW_VEC = 32;" in text
