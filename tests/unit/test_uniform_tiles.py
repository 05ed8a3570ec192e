"""Tiles whose elements stay all the same are one number."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tilewright as triton
import tilewright.language as tl
from tilewright.runtime.building import nvrtc


@triton.jit
def running_means(x_ptr, mean_ptr, weight_ptr, rows, n, BLOCK: tl.constexpr):
    # Welford's means: the weight of what has been seen is the same for every column, the mean is not.
    row = tl.program_id(0) + tl.arange(0, 1)[:, None]
    inside = row < rows
    cols = tl.arange(0, BLOCK)[None, :]
    mean = tl.zeros([1, BLOCK], tl.float32)
    weight = tl.zeros([1, BLOCK], tl.float32)
    for start in range(0, n, BLOCK):
        x = tl.load(x_ptr + row * n + start + cols, mask=inside, other=0.0)
        is_first = start == 0
        if is_first:
            new_weight = tl.full(weight.shape, 1, weight.dtype)
            new_mean = x
        else:
            new_weight = weight + 1
            new_mean = mean + (x - mean) / new_weight
        mean = tl.where(inside, new_mean, mean)
        weight = tl.where(inside, new_weight, weight)
    tl.store(mean_ptr + row * BLOCK + cols, mean, mask=inside)
    tl.store(weight_ptr + row, tl.sum(weight, 1)[:, None], mask=inside)


@triton.jit
def not_the_same(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    # A mask that differs from column to column, and a tile that is loaded with a count as its address.
    cols = tl.arange(0, BLOCK)
    counted = tl.zeros([BLOCK], tl.int32)
    trips = tl.zeros([BLOCK], tl.int32)
    found = tl.zeros([BLOCK], tl.float32)
    for start in range(0, n, BLOCK):
        counted = tl.where(start + cols < n, counted + 1, counted)
        found += tl.load(x_ptr + trips)
        trips = trips + 1
    tl.store(out_ptr + cols, counted + found)


def test_what_all_elements_share_is_one_number(run_everywhere: Any) -> None:
    x = np.random.default_rng(0).standard_normal((2, 5, 256)).astype(np.float32)
    results = np.full((3, 256), 7, np.float32), np.full(3, 7, np.float32)
    _, mean, weight = run_everywhere(running_means, (3,), x, *results, 2, 5 * 256, BLOCK=256, tolerance=1e-5)
    np.testing.assert_allclose(mean[:2], x.astype(np.float64).mean(1), rtol=1e-4, atol=1e-5)
    assert np.all(mean[2] == 7) and weight.tolist() == [5 * 256, 5 * 256, 7]
    text = running_means.translate("*fp32:16, *fp32:16, *fp32:16, i32, i32, 1024").source
    assert "float weight = 0.0f;" in text and "float mean[" in text


@pytest.mark.skipif(not nvrtc.is_available(), reason="NVRTC is not installed")
def test_one_reciprocal_serves_all_elements() -> None:
    artifact = running_means.translate("*fp32:16, *fp32:16, *fp32:16, i32, i32, 1024")
    assert "divide(x[c] - mean[c], new_weight)" in artifact.source
    nvrtc.compile_text(artifact)


def test_elements_that_differ_stay_elements(run_everywhere: Any) -> None:
    x = np.arange(8, dtype=np.float32)
    _, out = run_everywhere(not_the_same, (1,), x, np.zeros(128, np.float32), 300, BLOCK=128)
    assert np.array_equal(out, np.where(np.arange(128) < 44, 3, 2) + 3)


@triton.jit
def computed_before(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    # What the loop carries is computed from tiles that change before it, and another that is stored as well.
    cols = tl.arange(0, BLOCK)
    step = tl.full([BLOCK], 1, tl.float32)
    step = step + 1
    twice = step * 2
    step = step + 1
    total = tl.zeros([BLOCK], tl.float32)
    for start in range(0, n, BLOCK):
        x = tl.load(x_ptr + cols + start)
        total = total + twice + step
        tl.store(out_ptr + cols + start, x * total)
    tl.store(out_ptr + n + cols, total + twice)


def test_tiles_that_change_before_the_loop(run_everywhere: Any) -> None:
    x = np.random.default_rng(1).standard_normal(512).astype(np.float32)
    _, out = run_everywhere(computed_before, (1,), x, np.zeros(640, np.float32), 512, BLOCK=128, tolerance=1e-5)
    totals = 7.0 * np.arange(1, 5)
    np.testing.assert_allclose(out[:512].reshape(4, 128), x.reshape(4, 128) * totals[:, None], rtol=1e-6)
    assert np.all(out[512:] == 28 + 4)
