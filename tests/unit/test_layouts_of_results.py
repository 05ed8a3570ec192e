"""Results of reductions whose variables are held in another layout than the one that the reduction leaves them in."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tilewright as triton
import tilewright.language as tl

RNG = np.random.default_rng(11)


@triton.jit
def weighted_kernel(x_ptr, y_ptr, out_ptr, M: tl.constexpr, A: tl.constexpr, B: tl.constexpr):
    m = tl.arange(0, M)
    x = tl.load(x_ptr + m[:, None] * A + tl.arange(0, A)[None, :])
    # The larger tile decides who holds which row; what the smaller one is reduced to has to get there.
    i = m[:, None] * B + tl.arange(0, B)[None, :]
    y = tl.load(y_ptr + i)
    total = tl.sum(x, axis=1)
    largest, place = tl.max(x, axis=1, return_indices=True)
    tl.store(out_ptr + i, y * total[:, None] + largest[:, None] * place[:, None])


@triton.jit
def either_kernel(x_ptr, y_ptr, out_ptr, of_x, M: tl.constexpr, A: tl.constexpr, B: tl.constexpr):
    m = tl.arange(0, M)
    x = tl.load(x_ptr + m[:, None] * A + tl.arange(0, A)[None, :])
    y = tl.load(y_ptr + m[:, None] * B + tl.arange(0, B)[None, :])
    if of_x:
        total = tl.sum(x, axis=1)
    else:
        total = tl.sum(y, axis=1)
    tl.store(out_ptr + m, total)


@triton.jit
def normed_product_kernel(x_ptr, w_ptr, out_ptr, steps, M: tl.constexpr, K: tl.constexpr):
    i = tl.arange(0, M)[:, None] * K + tl.arange(0, K)[None, :]
    squares = tl.zeros((M, K), dtype=tl.float32)
    acc = tl.zeros((M, M), dtype=tl.float32)
    for _ in range(steps):
        x = tl.load(x_ptr + i)
        squares += x.to(tl.float32) * x.to(tl.float32)
        acc += tl.dot(x, tl.trans(tl.load(w_ptr + i)))
        x_ptr += M * K
        w_ptr += M * K
    acc *= tl.math.rsqrt(tl.sum(squares, axis=1) / (steps * K))[:, None]
    tl.store(out_ptr + tl.arange(0, M)[:, None] * M + tl.arange(0, M)[None, :], acc)


SIDES = [(64, 16, 256), (16, 16, 128), (128, 4, 64), (12, 24, 200)]


@pytest.mark.parametrize("num_warps", [1, 4])
@pytest.mark.parametrize("sides", SIDES)
def test_a_reduction_of_the_smaller_tile(run_everywhere: Any, sides: tuple[int, int, int], num_warps: int) -> None:
    m, a, b = sides
    x, y = RNG.integers(-9, 9, (m, a)).astype(np.float32), RNG.integers(-9, 9, (m, b)).astype(np.float32)
    x += np.arange(a, dtype=np.float32) / 64  # no two largest elements
    expected = y * x.sum(1, keepdims=True) + (x.max(1) * x.argmax(1))[:, None]
    found = run_everywhere(weighted_kernel, (1,), x, y, np.zeros_like(y), m, a, b, num_warps=num_warps, tolerance=1e-3)
    np.testing.assert_allclose(found[2], expected, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("of_x", [False, True])
@pytest.mark.parametrize("sides", SIDES)
def test_two_reductions_to_one_variable(run_everywhere: Any, sides: tuple[int, int, int], of_x: bool) -> None:
    m, a, b = sides
    x, y = RNG.integers(-9, 9, (m, a)).astype(np.float32), RNG.integers(-9, 9, (m, b)).astype(np.float32)
    found = run_everywhere(either_kernel, (1,), x, y, np.zeros(m, np.float32), of_x, m, a, b)
    np.testing.assert_array_equal(found[2], (x if of_x else y).sum(1))


@pytest.mark.parametrize("num_warps", [1, 4, 8])
@pytest.mark.parametrize(("m", "k"), [(16, 64), (64, 64), (32, 128), (64, 32)])
def test_rows_of_an_operand_scale_the_product(run_everywhere: Any, m: int, k: int, num_warps: int) -> None:
    x, w = (RNG.integers(-4, 5, (3, m, k)).astype(np.float16) for _ in range(2))
    wide = x.astype(np.float64)
    scale = np.sqrt((wide**2).sum((0, 2)) / (3 * k))
    expected = np.einsum("skm,snm->kn", wide, w.astype(np.float64)) / scale[:, None]
    arguments = (x, w, np.zeros((m, m), np.float32), 3, m, k)
    found = run_everywhere(normed_product_kernel, (1,), *arguments, num_warps=num_warps, tolerance=1e-3)
    np.testing.assert_allclose(found[2], expected, rtol=1e-4, atol=1e-3)


def test_the_exchange_is_free_of_races(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_MODE", "check")
    x, y = np.ones((16, 16), np.float32), np.ones((16, 128), np.float32)
    out = np.zeros_like(y)
    weighted_kernel[(2,)](x, y, out, 16, 16, 128, num_warps=4)
    np.testing.assert_array_equal(out, 16)
