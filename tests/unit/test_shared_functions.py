"""Device functions that calls share: their compile-time arguments have different names and the same consequences."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
import tilewright as triton
import tilewright.language as tl


@triton.jit
def placed(i, stride, LINEAR: tl.constexpr):
    if LINEAR:
        return i
    row = i // 8
    return row * stride + i % 8


@triton.jit
def placed_kernel(x_ptr, y_ptr, x_stride, y_stride, X_LINEAR: tl.constexpr, Y_LINEAR: tl.constexpr, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(y_ptr + placed(i, y_stride, Y_LINEAR), tl.load(x_ptr + placed(i, x_stride, X_LINEAR)))


@pytest.mark.parametrize("x_linear, y_linear, functions", [(True, True, 1), (False, False, 1), (True, False, 2)])
def test_calls_that_differ_in_the_names_of_flags_share_a_function(
    run_everywhere: Any, x_linear: bool, y_linear: bool, functions: int
) -> None:
    text = placed_kernel.translate(f"*fp32:16, *fp32:16, i32, i32, {x_linear}, {y_linear}, 64").source
    assert len(re.findall(r"__device__ \w+ int placed\w*\(", text)) == functions
    x, out = np.arange(128, dtype=np.float32), np.zeros(128, np.float32)
    _, y, *_ = run_everywhere(placed_kernel, (1,), x, out, 10, 12, X_LINEAR=x_linear, Y_LINEAR=y_linear, N=64)
    i = np.arange(64)
    at = {True: i, False: i // 8 * 10 + i % 8}, {True: i, False: i // 8 * 12 + i % 8}
    np.testing.assert_array_equal(y[at[1][y_linear]], x[at[0][x_linear]])
