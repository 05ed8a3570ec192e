"""Elements that lie anywhere are found from one pointer, which the compiler cannot take apart again."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
import tilewright as triton
import tilewright.language as tl
from tilewright.runtime.building import nvrtc


@triton.jit
def chosen_columns(x_ptr, place_ptr, out_ptr, stride, n, BLOCK: tl.constexpr):
    """Two columns of a row for each place, and the row itself."""
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    place = tl.load(place_ptr + i, mask=i < n, other=0)
    x = tl.load(x_ptr + row * stride + place, mask=i < n, other=0.0)
    x += tl.load(x_ptr + row * stride + tl.minimum(place + 1, stride - 1), mask=i < n, other=0.0)
    tl.store(out_ptr + row * n + i, x, mask=i < n)


@triton.jit
def named_by_the_user(x_ptr, place_ptr, out_ptr, stride, rows, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    place = tl.load(place_ptr + i, mask=i < n, other=0)
    total = tl.zeros((BLOCK,), tl.float32)
    for row in range(rows):
        start = x_ptr + row * stride
        total += tl.load(start + place, mask=i < n, other=0.0)
    tl.store(out_ptr + i, total, mask=i < n)


@triton.jit
def moving(x_ptr, place_ptr, out_ptr, stride, rows, n, BLOCK: tl.constexpr):
    """The start changes between two loads of a trip."""
    i = tl.arange(0, BLOCK)
    place = tl.load(place_ptr + i, mask=i < n, other=0)
    total = tl.zeros((BLOCK,), tl.float32)
    offset = 0
    for row in range(rows):
        total += tl.load(x_ptr + offset + place, mask=i < n, other=0.0)
        if row % 2 == 0:
            offset += stride
        total += 100 * tl.load(x_ptr + offset + place, mask=i < n, other=0.0)
    tl.store(out_ptr + i, total, mask=i < n)


@triton.jit
def scattered(x_ptr, place_ptr, out_ptr, stride, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    place = tl.load(place_ptr + i, mask=i < n, other=0)
    tl.store(out_ptr + row * stride + place, tl.load(x_ptr + i, mask=i < n), mask=i < n)


@triton.jit
def side_by_side(x_ptr, out_ptr, stride, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    tl.store(out_ptr + row * stride + i, tl.load(x_ptr + row * stride + i, mask=i < n), mask=i < n)


SIGNATURES = {
    chosen_columns: "*fp32:16, *i32:16, *fp32:16, i32, i32, 256",
    named_by_the_user: "*fp32:16, *i32:16, *fp32:16, i32, i32, i32, 256",
    moving: "*fp32:16, *i32:16, *fp32:16, i32, i32, i32, 256",
    scattered: "*fp32:16, *i32:16, *fp32:16, i32, i32, 256",
}


def _arrays(rows: int, columns: int, n: int) -> tuple[Any, Any]:
    random = np.random.default_rng(rows + columns)
    return (
        random.integers(-9, 9, (rows, columns)).astype(np.float32),
        random.permutation(columns)[:n].astype(np.int32),
    )


def test_columns_of_a_row_are_found_from_its_start(run_everywhere: Any) -> None:
    x, place = _arrays(3, 300, 200)
    *_, out = run_everywhere(chosen_columns, (3,), x, place, np.zeros((3, 200), np.float32), 300, 200, 256)
    np.testing.assert_array_equal(out, x[:, place] + x[:, np.minimum(place + 1, 299)])
    source = chosen_columns.translate(SIGNATURES[chosen_columns]).source
    assert source.count("const float* x_start = start_at(x_ptr + static_cast<long long>(row) * stride);") == 1
    assert source.count("x_start[") == 2


def test_a_pointer_of_the_users_own(run_everywhere: Any) -> None:
    x, place = _arrays(5, 300, 200)
    *_, out = run_everywhere(named_by_the_user, (1,), x, place, np.zeros(200, np.float32), 300, 5, 200, 256)
    np.testing.assert_array_equal(out, x[:, place].sum(0))
    source = named_by_the_user.translate(SIGNATURES[named_by_the_user]).source
    assert "const float* start = start_at(x_ptr + static_cast<long long>(row) * stride);" in source


def test_a_start_that_moves_is_another(run_everywhere: Any) -> None:
    x, place = _arrays(4, 300, 200)
    *_, out = run_everywhere(moving, (1,), x, place, np.zeros(200, np.float32), 300, 5, 200, 256)
    row, expected = 0, np.zeros(200)
    for trip in range(5):
        expected += x[row, place]
        row += trip % 2 == 0
        expected += 100 * x[row, place]
    np.testing.assert_array_equal(out, expected)


def test_stores_are_found_so_too(run_everywhere: Any) -> None:
    x, place = _arrays(3, 300, 200)
    *_, out = run_everywhere(scattered, (3,), x[0, :200].copy(), place, np.zeros((3, 300), np.float32), 300, 200, 256)
    np.testing.assert_array_equal(out[:, place], np.broadcast_to(x[0, :200], (3, 200)))
    assert "float* out_start = start_at(" in scattered.translate(SIGNATURES[scattered]).source


def test_neighbours_share_an_address_anyway() -> None:
    assert "start_at" not in side_by_side.translate("*fp32:16, *fp32:16, i32, i32, 256").source
    one_each = chosen_columns.translate(SIGNATURES[chosen_columns], num_warps=8).source
    assert "start_at" not in one_each  # a single element gains nothing


@pytest.mark.skipif(not nvrtc.is_available(), reason="NVRTC is not installed")
@pytest.mark.parametrize("kernel", SIGNATURES, ids=lambda kernel: kernel.__name__)
def test_accesses_stay_those_of_global_memory(kernel: Any) -> None:
    ptx = nvrtc.compile_ptx(kernel.translate(SIGNATURES[kernel], arch="sm_90a"))
    assert "ld.global" in ptx and "st.global" in ptx and not re.search(r"\b(ld|st)\.f32", ptx)


@triton.jit
def from_a_number(address, place_ptr, out_ptr, stride, n, BLOCK: tl.constexpr):
    row, i = tl.program_id(0), tl.arange(0, BLOCK)
    place = tl.load(place_ptr + i, mask=i < n, other=0)
    x_ptr = address.to(tl.pointer_type(tl.float32))
    tl.store(out_ptr + row * n + i, tl.load(x_ptr + row * stride + place, mask=i < n, other=0.0), mask=i < n)


def test_a_number_may_be_where_the_array_starts(run_everywhere: Any) -> None:
    x, place = _arrays(3, 300, 200)
    *_, out = run_everywhere(from_a_number, (3,), x.ctypes.data, place, np.zeros((3, 200), np.float32), 300, 200, 256)
    np.testing.assert_array_equal(out, x[:, place])
    assert "x_start = start_at(" in from_a_number.translate("i64, *i32:16, *fp32:16, i32, i32, 256").source
