"""Loads whose variable is assigned again in the same trip are made ahead like others; masks' replacements; repeated elements."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tilewright as triton
import tilewright.language as tl
from tilewright.artifact import Options
from tilewright.pipeline import translate
from tilewright.runtime.arguments.signature import parse_signature
from tilewright.schedule.targets import find_target

RNG = np.random.default_rng(6)


def text_of(kernel: Any, signature: str, arch: str = "sm_90a", **options: Any) -> str:
    return translate(kernel, parse_signature(kernel, signature), Options(**options), find_target(arch)).source


@triton.jit
def scaled_sum(a_ptr, b_ptr, s_ptr, out_ptr, TRIPS, N: tl.constexpr):
    rows, cols = tl.arange(0, N), tl.arange(0, N)
    total = tl.zeros([N, N], tl.float32)
    for trip in range(TRIPS):
        at = trip * N * N + rows[:, None] * N + cols[None, :]
        a = tl.load(a_ptr + at)
        b = tl.load(b_ptr + at)
        s = tl.load(s_ptr + trip)
        s = tl.exp2(s)
        b = (b * s).to(tl.float16)
        if trip == 1:
            b += b
        total += tl.dot(a, b)
    tl.store(out_ptr + rows[:, None] * N + cols[None, :], total)


def test_a_variable_that_is_assigned_again_is_loaded_ahead(run_everywhere: Any) -> None:
    n, trips = 64, 3
    a, b = (RNG.integers(-2, 3, (trips, n, n)).astype(np.float16) for _ in range(2))
    s = np.array([0, 1, -1], np.float32)
    *_, out = run_everywhere(scaled_sum, (1,), a, b, s, np.zeros((n, n), np.float32), trips, N=n, num_warps=4)
    factors = (2.0**s * [1, 2, 1])[:, None, None]
    np.testing.assert_array_equal(out, (a.astype(float) @ (b * factors)).sum(0))
    text = text_of(scaled_sum, "*fp16:16, *fp16:16, *fp32:16, *fp32:16, i32, 64", "sm_80", num_warps=4)
    assert "cp_async_16(&b_ahead[" in text and "cp_async_4(&s_ahead[" in text


@triton.jit
def filled(x_ptr, out_ptr, n, value, N: tl.constexpr):
    offsets = tl.arange(0, N)
    x = tl.load(x_ptr + offsets, mask=offsets < n, other=value)
    tl.store(out_ptr + offsets, x)


@pytest.mark.parametrize("n", (0, 13, 16, 128))
def test_one_value_for_all_that_a_mask_hides_keeps_vectors(run_everywhere: Any, n: int) -> None:
    x = RNG.integers(-9, 10, 128).astype(np.float32)
    *_, out = run_everywhere(filled, (1,), x, np.zeros_like(x), n, 2.5, N=128, num_warps=1)
    np.testing.assert_array_equal(out, np.where(np.arange(128) < n, x, 2.5))
    assert "load_vec_bounded<" in text_of(filled, "*fp32:16, *fp32:16, i32, fp32, 128", num_warps=1)


@triton.jit
def grouped_scale(a_ptr, b_ptr, s_ptr, out_ptr, group, N: tl.constexpr):
    rows, cols = tl.arange(0, N), tl.arange(0, N)
    at = rows[:, None] * N + cols[None, :]
    product = tl.dot(tl.load(a_ptr + at), tl.load(b_ptr + at))
    scale = tl.load(s_ptr + cols // group)
    tl.store(out_ptr + at, product * scale[None, :])


def test_elements_of_one_group_are_loaded_once(run_everywhere: Any) -> None:
    n = 64
    a, b = (RNG.integers(-2, 3, (n, n)).astype(np.float16) for _ in range(2))
    s = np.array([1, 2, 4, 8], np.float32)
    *_, out = run_everywhere(grouped_scale, (1,), a, b, s, np.zeros((n, n), np.float32), 16, N=n, num_warps=4)
    np.testing.assert_array_equal(out, (a.astype(float) @ b) * np.repeat(s, 16))
    # Sixteen columns are four of a lane: two pairs, eight columns apart.
    text = text_of(grouped_scale, "*fp16:16, *fp16:16, *fp32:16, *fp32:16, i32:16, 64", num_warps=4)
    loop = "#pragma unroll\n        for (int copy = 1; copy < 4; ++copy) scale[v + copy] = scale[v];"
    assert f"// These elements share one place in memory.\n        {loop}" in text


@triton.jit
def halves_in_turn(x_ptr, w_ptr, out_ptr, trips, HALF: tl.constexpr):
    """One name for both halves of a matrix, and for what a product reads and a store takes."""
    low, i = tl.arange(0, HALF), tl.arange(0, HALF)
    high = HALF + low
    total = tl.zeros((HALF, HALF), tl.float32)
    for trip in range(trips):
        x = tl.load(x_ptr + (trip * HALF + i)[:, None] * HALF + low[None, :])
        w = tl.load(w_ptr + (trip * HALF + i)[:, None] * (2 * HALF) + low[None, :])
        total = tl.dot(x, w, total)
        w = tl.load(w_ptr + (trip * HALF + i)[:, None] * (2 * HALF) + high[None, :])
        total = tl.dot(x, w, total)
    tl.store(out_ptr + i[:, None] * HALF + low[None, :], total)


def test_loads_into_one_name_are_called_after_what_tells_them_apart(run_everywhere: Any) -> None:
    n, trips = 64, 3
    x, w = (RNG.integers(-2, 3, (trips * n, side)).astype(np.float16) for side in (n, 2 * n))
    *_, out = run_everywhere(halves_in_turn, (1,), x, w, np.zeros((n, n), np.float32), trips, HALF=n, num_warps=4)
    parts = x.astype(float).reshape(trips, n, n) @ (w[:, :n].astype(float) + w[:, n:]).reshape(trips, n, n)
    np.testing.assert_array_equal(out, parts.sum(0))
    text = text_of(halves_in_turn, "*fp16:16, *fp16:16, *fp32:16, i32, 64", num_warps=4)
    assert "half w_low[" in text and "half w_high[" in text and "w_loaded" not in text


@triton.jit
def both_ways(x_ptr, out_ptr, TRIPS, N: tl.constexpr):
    """Rows and columns are normalised in turn; both maxima are called m."""
    i = tl.arange(0, N)
    at = i[:, None] * N + i[None, :]
    x = tl.load(x_ptr + at)
    m = tl.max(x, 1)
    for _ in range(TRIPS):
        x = x - m[:, None]
        m = tl.max(x, axis=0)
        x = x + 2 * m[None, :]
        m = tl.max(x, axis=1)
    tl.store(out_ptr + at, x)
    tl.store(out_ptr + N * N + i, m)


def test_reductions_along_both_axes_have_names_and_layouts_of_their_own(run_everywhere: Any) -> None:
    n = 32
    x = RNG.integers(-9, 10, (n, n)).astype(np.float32)
    _, out = run_everywhere(both_ways, (1,), x, np.zeros(n * n + n, np.float32), 3, N=n, num_warps=4)
    m = x.max(1)
    for _ in range(3):
        x = x - m[:, None]
        x = x + 2 * x.max(0)[None, :]
        m = x.max(1)
    np.testing.assert_array_equal(out, np.append(x.ravel(), m))
    text = text_of(both_ways, "*fp32:16, *fp32:16, i32, 32", num_warps=4)
    assert "float m_of_columns[" in text and "float m_of_rows[" not in text and "float m[" in text
    assert "m moves through" not in text
