"""Rows that are found by loaded numbers, in kernels that count all elements through: still accesses by vectors."""

from __future__ import annotations

from typing import Any

import numpy as np
import tilewright as triton
import tilewright.language as tl


@triton.jit
def gather_kernel(index_ptr, x_ptr, out_ptr, n, COLS: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    row = tl.load(index_ptr + i // COLS, mask, other=0, eviction_policy="evict_last")
    row = tl.where(row < 0, row + 50, row)
    x = tl.load(x_ptr + (i % COLS + COLS * row), mask, eviction_policy="evict_last")
    tl.store(out_ptr + i, x, mask)


@triton.jit
def scatter_kernel(index_ptr, x_ptr, out_ptr, n, COLS: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    row = tl.load(index_ptr + i // COLS)
    tl.atomic_add(out_ptr + (i % COLS + COLS * row), tl.load(x_ptr + i), sem="relaxed")


def test_what_equal_addresses_bring_is_equal(run_everywhere: Any) -> None:
    rng = np.random.default_rng(4)
    x = rng.normal(size=(50, 64)).astype(np.float32)
    index = rng.integers(-50, 50, 30)
    out = run_everywhere(gather_kernel, (4,), index, x, np.zeros((30, 64), np.float32), 30 * 64, COLS=64, BLOCK=512)[2]
    np.testing.assert_array_equal(out, x[index])
    text = gather_kernel.translate("*i64:16, *fp32:16, *fp32:16, i32:16, 64, 512").source
    assert "load_vec_if_evict_last<VEC>(x," in text and "__ldca" not in text
    assert "x_ptr + i % COLS + COLS * row_second" in text


def test_sums_of_gathered_rows_go_by_vectors(run_everywhere: Any) -> None:
    rng = np.random.default_rng(5)
    index, x = rng.integers(0, 9, 32), rng.integers(0, 9, (32, 64)).astype(np.float32)
    out = run_everywhere(scatter_kernel, (4,), index, x, np.zeros((9, 64), np.float32), 2048, COLS=64, BLOCK=512)[2]
    expected = np.zeros((9, 64), np.float32)
    np.add.at(expected, index, x)
    np.testing.assert_array_equal(out, expected)
    assert "atomic_add_vec<VEC>(" in scatter_kernel.translate("*i64:16, *fp32:16, *fp32:16, i32:16, 64, 512").source


@triton.jit
def watched_kernel(flag_ptr, x_ptr, out_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    row = tl.load(flag_ptr + i // 64, volatile=True)
    tl.store(out_ptr + i, tl.load(x_ptr + (i % 64 + 64 * row)))


def test_what_others_may_change_is_not_taken_for_equal() -> None:
    text = watched_kernel.translate("*i32:16, *fp32:16, *fp32:16, 512").source
    assert "load_vec<VEC>(" not in text and "= x_ptr[" in text
