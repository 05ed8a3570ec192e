"""Twice a number in a sum: one instruction, of the same value as two."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tilewright as triton
import tilewright.language as tl


@triton.jit
def doubled(x_ptr, y_ptr, out_ptr, scale, N: tl.constexpr):
    i = tl.arange(0, N)
    x, y = tl.load(x_ptr + i), tl.load(y_ptr + i)
    tl.store(out_ptr + i, x - 2.0 * y)
    tl.store(out_ptr + N + i, y * -2 + x)
    tl.store(out_ptr + 2 * N + i, 2 * x - (y - x * 2))
    tl.store(out_ptr + 3 * N + i, tl.where(x < y, scale + x * 2, x) - 2.0 * (scale - 2 * y))
    x -= 2 * tl.abs(y)
    tl.store(out_ptr + 4 * N + i, x)


@triton.jit
def left_alone(x_ptr, y_ptr, out_ptr, scale, N: tl.constexpr):
    i = tl.arange(0, N)
    x, y = tl.load(x_ptr + i), tl.load(y_ptr + i)
    tl.store(out_ptr + i, 2.0 * x - 1.0)  # the compiler's own fma
    tl.store(out_ptr + N + i, 2.0 * x + scale * y)  # the other product's
    tl.store(out_ptr + 2 * N + i, x - 4.0 * y)


SIGNATURE = "*fp32:16, *fp32:16, *fp32:16, fp32, 256"


@pytest.mark.parametrize("element", (np.float32, np.float64, np.float16, np.int32))
def test_the_value_is_that_of_two_roundings(run_everywhere: Any, element: Any) -> None:
    random = np.random.default_rng(6)
    scale = 10.0 ** random.integers(-3, 3, 256)
    x, y = ((random.standard_normal(256) * scale).astype(element) for _ in range(2))
    x[:4], y[:4] = 0, (0, -0.0, 1, -1)
    *_, out = run_everywhere(doubled, (1,), x, y, np.zeros((5, 256), element), 3.0, 256)
    assert np.array_equal(out[0], x - element(2) * y)
    assert np.array_equal(out[2], element(2) * x - (y - x * element(2)))
    assert np.array_equal(out[4], x - element(2) * np.abs(y))


def test_one_instruction_where_the_compiler_would_make_two() -> None:
    text = doubled.translate(SIGNATURE).source
    for sum_ in (
        "fmaf(-2.0f, y[e], x[e])",
        "fmaf(2.0f, x[e], -fmaf(-2.0f, x[e], y[e]))",
        "fmaf(2.0f, x[e], scale)",
        "fmaf(-2.0f, fabsf(y[e]), x[e])",
    ):
        assert sum_ in text
    assert "2.0f *" not in text and "* 2.0f" not in text


def test_sums_that_the_compiler_makes_one_instruction_of_stay() -> None:
    assert "fmaf(" not in left_alone.translate(SIGNATURE).source


def test_products_and_sums_stay_apart_where_that_is_asked_for() -> None:
    assert "fmaf(" not in doubled.translate(SIGNATURE, enable_fp_fusion=False).source
