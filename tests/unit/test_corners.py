"""Corners of a cell by the bits of a static loop's number: one loop in the text, as of other numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tilewright as triton
import tilewright.language as tl


@triton.jit
def by_choice(x_ptr, out_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    u = tl.load(x_ptr + i)
    total = tl.zeros((N,), tl.float32)
    for corner in tl.static_range(8):
        w = (u if corner & 1 else 1.0 - u) * (u if (corner >> 1) & 1 else 2.0 - u)
        total += w * tl.load(x_ptr + i + (corner & 1) * N + (corner >> 2))
    tl.store(out_ptr + i, total)


@triton.jit
def by_names(x_ptr, out_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    u = tl.load(x_ptr + i)
    total = tl.zeros((N,), tl.float32)
    for corner in tl.static_range(8):
        a, b = corner & 1, (corner >> 1) & 1
        w = tl.where(a == 1, u, 1.0 - u) * tl.where(b == 1, u, 2.0 - u)
        total += w * tl.load(x_ptr + i + a * N + (corner >> 2))
    tl.store(out_ptr + i, total)


@pytest.mark.parametrize("kernel", [by_choice, by_names])
def test_corners_are_one_loop(kernel: Any, run_everywhere: Any) -> None:
    x = np.random.default_rng(3).integers(-9, 10, 260).astype(np.float32)
    out = run_everywhere(kernel, (1,), x, np.zeros(128, np.float32), N=128)[1]
    u, expected = x[:128], np.zeros(128, np.float32)
    for corner in range(8):
        w = (u if corner & 1 else 1 - u) * (u if corner >> 1 & 1 else 2 - u)
        start = (corner & 1) * 128 + (corner >> 2)
        expected += w * x[start : start + 128]
    np.testing.assert_array_equal(out, expected)
    text = kernel.translate("*fp32:16, *fp32:16, 128").source
    assert "for (int corner = 0; corner < 8; ++corner) {" in text and text.count("total += w * x;") == 1


@triton.jit
def mixed_up(out_ptr, HALF: tl.constexpr):
    tl.store(out_ptr, HALF << 1)


def test_operators_of_bits_are_named_where_they_do_not_fit() -> None:
    with pytest.raises(triton.CompilationError, match="<< does not take 0.5 and 1"):
        mixed_up.translate("*i32:16, 0.5")
