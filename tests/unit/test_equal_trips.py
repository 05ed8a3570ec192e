"""Trips of `tl.static_range` that read as one: sums of integers, pointers that all of them start from, names of pieces."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tilewright as triton
import tilewright.language as tl

RANDOM = np.random.default_rng(0)


@triton.jit
def summed(x_ptr, out_ptr, count_ptr, W, BLOCK: tl.constexpr):
    """Sums that begin as numbers are no indices; an index that trips change stays what the loads are known to read."""
    c = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.int64)
    count = tl.full((BLOCK,), 1, tl.int32)
    at = tl.zeros((BLOCK,), tl.int32)
    for row in tl.static_range(5):
        x = tl.load(x_ptr + row * W + c)
        total += x
        count = count * 2 + (x > 0)
    for _ in tl.static_range(5):
        at += 1
    tl.store(out_ptr + c, total)
    tl.store(count_ptr + c, count + tl.load(x_ptr + c + at * W))


def test_sums_of_integers(run_everywhere: Any) -> None:
    x = RANDOM.integers(-9, 9, (6, 512)).astype(np.int32)
    found = run_everywhere(summed, (1,), x, np.zeros(512, np.int64), np.zeros(512, np.int32), 512, BLOCK=512)
    np.testing.assert_array_equal(found[1], x[:5].sum(0))
    np.testing.assert_array_equal(found[2], 32 + sum((x[row] > 0) << (4 - row) for row in range(5)) + x[5])
    text = summed.translate("*i32:16, *i64:16, *i32:16, i32:16, 512").source
    assert "for (int row = 0; row < 5; ++row) {" in text and "total_second" not in text
    assert text.count("load_vec<VEC>(") == 2  # the row behind the sums too: what it adds is no sum of data


@triton.jit
def from_one_start(x_ptr, out_ptr, W, BLOCK: tl.constexpr):
    """All trips of both loops start from one pointer, those of the inner loop from another."""
    r = tl.program_id(0)
    c = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for a in tl.static_range(3):
        for d in tl.static_range(-1, 2):
            at = tl.minimum(tl.maximum(c + d, 0), W - 1)
            total += tl.load(x_ptr + (r + a) * W + at)
            total *= tl.load(x_ptr + r * W + at * at % W)
    tl.store(out_ptr + r * W + c, total, mask=c < W)


@pytest.mark.parametrize("width", (512, 301))
def test_trips_that_start_from_one_pointer(run_everywhere: Any, width: int) -> None:
    x = RANDOM.integers(0, 3, (6, width)).astype(np.float32)
    found = run_everywhere(from_one_start, (4,), x, np.zeros((4, width), np.float32), width, BLOCK=512)[1]
    wanted = np.zeros((4, width), np.float32)
    for a in range(3):
        for d in range(-1, 2):
            at = np.clip(np.arange(width) + d, 0, width - 1)
            wanted = (wanted + x[a : 4 + a, at]) * x[:4, at * at % width]
    np.testing.assert_array_equal(found, wanted)
    text = from_one_start.translate("*fp32:16, *fp32:16, i32, 512").source
    outer, inner = text.index("for (int a = 0; a < 3; ++a) {"), text.index("for (int d = -1; d < 2; ++d) {")
    starts = [text.index(f"{start} = start_at(x_ptr + static_cast<long long>({row}) * W)") for start, row in STARTS]
    assert starts[0] < outer < starts[1] < inner and text.count("start_at(x_ptr") == 2


STARTS = (("x_start", "r"), ("x_start_second", "r + a"))


@triton.jit
def twice(x_ptr, out_ptr, W, BLOCK: tl.constexpr):
    """Two loads of a trip without names, and a pointer that the last trip moves for nothing."""
    c = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    p = x_ptr + c
    for _ in tl.static_range(3):
        total += tl.load(p)
        total *= tl.load(p + W)
        p += 1
    tl.store(out_ptr + c, total, mask=c < W)


def test_names_of_what_a_trip_loads_twice(run_everywhere: Any) -> None:
    x = RANDOM.integers(-3, 3, 1026).astype(np.int8)
    found = run_everywhere(twice, (1,), x, np.zeros(512, np.float32), 512, BLOCK=512)[1]
    wanted = np.zeros(512, np.float32)
    for k in range(3):
        wanted = (wanted + x[k : k + 512]) * x[512 + k : 1024 + k]
    np.testing.assert_array_equal(found, wanted)
    text = twice.translate("*i8:16, *fp32:16, i32:16, 512").source
    assert "for (int iteration = 0; iteration < 3; ++iteration) {" in text and "value is not used" not in text
