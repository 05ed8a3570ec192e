"""The shape of what a helper returns: that of the parameters which the result comes from, not of all of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tilewright as triton
import tilewright.language as tl


@triton.jit
def cast_like(x, other, SCALED: tl.constexpr):
    # `other` is asked for its type, and is of another shape.
    if SCALED:
        return (x.to(tl.float32) * 2.0).to(other.dtype)
    return x.to(other.dtype)


@triton.jit
def with_unused_sum(x, other):
    _unused = other + x  # whose shape must fit, and is not the result's
    _unused = _unused * 2
    return x + 1


@triton.jit
def through_a_variable(x, other, amount):
    moved = x + amount
    _kept = other
    return moved * moved


@triton.jit
def cast_kernel(x_ptr, w_ptr, out_ptr, N: tl.constexpr, M: tl.constexpr, SCALED: tl.constexpr):
    i, j = tl.arange(0, N), tl.arange(0, M)
    w = tl.load(w_ptr + j[:, None] * N + i[None, :])
    tl.store(out_ptr + i[:, None] * M + j[None, :], cast_like(tl.load(x_ptr + i[:, None] * M + j[None, :]), w, SCALED))


@pytest.mark.parametrize("scaled", [False, True])
def test_a_parameter_asked_for_its_type_has_any_shape(run_everywhere: Any, scaled: bool) -> None:
    x, w = np.arange(512, dtype=np.float32).reshape(16, 32), np.zeros((32, 16), np.float16)
    *_, out = run_everywhere(cast_kernel, (1,), x, w, np.zeros((16, 32), np.float16), 16, 32, scaled)
    np.testing.assert_array_equal(out, (x * (2 if scaled else 1)).astype(np.float16))


@triton.jit
def row_kernel(x_ptr, w_ptr, out_ptr, N: tl.constexpr, HELPER: tl.constexpr):
    i = tl.arange(0, N)
    w = tl.load(w_ptr + i[:, None] * N + i[None, :])
    row = HELPER(tl.load(x_ptr + i), w)
    tl.store(out_ptr + i[:, None] * N + i[None, :], row[:, None] + w)


@triton.jit
def moved_by_two(x, other):
    return through_a_variable(x, other, 2)


@pytest.mark.parametrize(
    ("helper", "expected"), [(with_unused_sum, lambda x: x + 1), (moved_by_two, lambda x: (x + 2) ** 2)]
)
def test_a_larger_tile_that_is_not_part_of_the_result_does_not_widen_it(
    run_everywhere: Any, helper: Any, expected: Any
) -> None:
    x, w = np.arange(16, dtype=np.float32), np.arange(256, dtype=np.float32).reshape(16, 16)
    *_, out = run_everywhere(row_kernel, (1,), x, w, np.zeros((16, 16), np.float32), 16, helper)
    np.testing.assert_array_equal(out, expected(x)[:, None] + w)


@triton.jit
def scalar_kernel(x_ptr, out_ptr, N: tl.constexpr):
    tile = tl.load(x_ptr + tl.arange(0, N))
    tl.store(out_ptr, cast_like(tl.load(x_ptr + 3), tile, False))


def test_a_scalar_stays_one_beside_a_tile(run_everywhere: Any) -> None:
    x = np.arange(16, dtype=np.float32)
    *_, out = run_everywhere(scalar_kernel, (1,), x, np.zeros(1, np.float32), 16)
    assert out[0] == 3
