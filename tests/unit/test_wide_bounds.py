"""Masks of 64-bit indices bound vectors as those of 32 bits do: whole vectors where all of it is inside, elements else."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tilewright as triton
import tilewright.language as tl


@triton.jit
def add_one(x_ptr, out_ptr, n, BLOCK: tl.constexpr, INCLUDED: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets <= n if INCLUDED else offsets < n
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets, mask=mask, other=7) + 1, mask=mask)


@pytest.mark.parametrize("included", [False, True])
@pytest.mark.parametrize("n", [-5, -1, 0, 1, 7, 8, 9, 1023, 1024, 1025, 1300])
def test_edges(n: int, included: bool, run_everywhere: Any) -> None:
    x = np.arange(2048, dtype=np.float16) % 100
    out = run_everywhere(add_one, (2,), x, np.full(2048, -1, np.float16), n, BLOCK=1024, INCLUDED=included)[1]
    count = max(n + included, 0)
    np.testing.assert_array_equal(out, np.where(np.arange(2048) < count, x + 1, -1))


def test_the_text_counts_in_64_bits() -> None:
    source = add_one.translate("*fp16:16, *fp16:16, i32, 1024, False").source
    assert "load_vec_bounded<VEC>(x, x_ptr + offsets, count_below<VEC>(n, offsets)" in source
    assert "int count_below(long long limit, long long first)" in source
    included = add_one.translate("*fp16:16, *fp16:16, i64, 1024, True").source
    assert "count_up_to<VEC>(n, offsets)" in included


@triton.jit
def both_widths(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    wide = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    before = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK) - 100
    x = tl.load(x_ptr + wide, mask=wide <= n, other=0)
    y = tl.load(y_ptr + before + 100, mask=before <= n, other=0)
    tl.store(out_ptr + wide, x + y)


def test_helpers_of_both_widths(run_everywhere: Any) -> None:
    x, y = np.arange(1024, dtype=np.float32), np.arange(1024, dtype=np.float32) * 3
    out = run_everywhere(both_widths, (1,), x, y, np.zeros(1024, np.float32), 501, BLOCK=1024)[2]
    i = np.arange(1024)
    np.testing.assert_array_equal(out, np.where(i <= 501, x, 0) + np.where(i - 100 <= 501, y, 0))
    source = both_widths.translate("*fp32:16, *fp32:16, *fp32:16, i32, 1024").source
    assert "count_up_to(long long" in source and "count_up_to_32(int" in source


@triton.jit
def rows(x_ptr, out_ptr, n, stride, BLOCK: tl.constexpr, D: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    row, column = offsets // D, offsets % D
    mask = offsets < n
    tl.store(out_ptr + row * stride + column, tl.load(x_ptr + row * stride + column, mask=mask) * 2, mask=mask)


@pytest.mark.parametrize("n", [0, 1000, 3000])
def test_rows_of_a_flat_index(n: int, run_everywhere: Any) -> None:
    x = np.arange(4 * 1040, dtype=np.float32)
    out = run_everywhere(rows, (4,), x, np.full(4 * 1040, -1, np.float32), n, 1040, BLOCK=1024, D=1024)[1]
    inside = np.arange(4 * 1024).reshape(4, 1024) < n
    expected = np.full((4, 1040), -1, np.float32)
    expected[:, :1024][inside] = 2 * x.reshape(4, 1040)[:, :1024][inside]
    np.testing.assert_array_equal(out, expected.ravel())
    assert "store_vec_bounded" in rows.translate("*fp32:16, *fp32:16, i32, i32:16, 1024, 1024").source


@triton.jit
def concatenated(x_ptr, out_ptr, size_in, size_out, offset, n, AFTER: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    place = i // (size_in * AFTER) * size_out * AFTER + ((i // AFTER) % size_in + offset) * AFTER + i % AFTER
    tl.store(out_ptr + place, tl.load(x_ptr + i, mask=i < n), mask=i < n)


@pytest.mark.parametrize("after", [1, 4])
def test_a_remainder_by_one_is_no_tile(after: int, run_everywhere: Any) -> None:
    rows, size_in, size_out, offset = 8, 32, 80, 16
    x = np.arange(rows * size_in * after, dtype=np.float32)
    args = x, np.zeros(rows * size_out * after, np.float32), size_in, size_out, offset, x.size
    out = run_everywhere(concatenated, (1,), *args, AFTER=after, BLOCK=1024)[1]
    expected = np.zeros((rows, size_out, after), np.float32)
    expected[:, offset : offset + size_in] = x.reshape(rows, size_in, after)
    np.testing.assert_array_equal(out, expected.ravel())


def test_a_remainder_by_one_leaves_vectors() -> None:
    source = concatenated.translate("*fp32:16, *fp32:16, i32:16, i32:16, i32:16, i32:16, 1, 1024").source
    assert "store_vec<VEC>(out_ptr + place[v], &x[v * VEC])" in source
