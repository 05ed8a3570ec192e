"""Stores and atomics in a loop of products, or in front of one: what stands behind it finds all of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tilewright as triton
import tilewright.language as tl

SIDE = 64
RNG = np.random.default_rng(17)


@triton.jit
def stored_kernel(a_ptr, b_ptr, c_ptr, out_ptr, K, steps, S: tl.constexpr):
    # Each trip stores; behind the loop threads load what others have stored.
    m = tl.arange(0, S)
    for k0 in range(0, steps * S, S):
        a = tl.load(a_ptr + m[:, None] * K + (k0 + m)[None, :])
        b = tl.load(b_ptr + (k0 + m)[:, None] * S + m[None, :])
        tl.store(c_ptr + m[:, None] * S + m[None, :], tl.dot(a, b))
    turned = tl.load(c_ptr + m[None, :] * S + m[:, None])
    tl.store(out_ptr + m[:, None] * S + m[None, :], turned * 2)


@triton.jit
def stored_before_kernel(a_ptr, b_ptr, c_ptr, out_ptr, K, steps, S: tl.constexpr):
    # The loop, which may have no trip and then passes no barrier, stands between a store and a load.
    m = tl.arange(0, S)
    tl.store(c_ptr + m[:, None] * S + m[None, :], (m[:, None] * 100 + m[None, :]).to(tl.float32))
    total = tl.zeros((S, S), tl.float32)
    for k0 in range(0, steps * S, S):
        a = tl.load(a_ptr + m[:, None] * K + (k0 + m)[None, :])
        b = tl.load(b_ptr + (k0 + m)[:, None] * S + m[None, :])
        total = tl.dot(a, b, total)
    turned = tl.load(c_ptr + m[None, :] * S + m[:, None])
    tl.store(out_ptr + m[:, None] * S + m[None, :], turned + total)


@triton.jit
def parts_before_kernel(a_ptr, b_ptr, c_ptr, out_ptr, K, steps, S: tl.constexpr):
    # The same where the tiles of a loop are taken apart for the tensor cores.
    m = tl.arange(0, S)
    tl.store(c_ptr + m[:, None] * S + m[None, :], (m[:, None] * 100 + m[None, :]).to(tl.float32))
    total = tl.zeros((S, S), tl.float32)
    for k0 in range(0, steps * S, S):
        a = tl.load(a_ptr + m[:, None] * K + (k0 + m)[None, :])
        b = tl.load(b_ptr + (k0 + m)[None, :] + m[:, None] * K)
        total = tl.dot(a, b.T, total, input_precision="tf32x3")
    turned = tl.load(c_ptr + m[None, :] * S + m[:, None])
    tl.store(out_ptr + m[:, None] * S + m[None, :], turned + total)


@triton.jit
def added_kernel(a_ptr, b_ptr, c_ptr, out_ptr, K, steps, S: tl.constexpr):
    # Atomics are stores as well, to loads and to stores that follow.
    m = tl.arange(0, S)
    places, turned = c_ptr + m[:, None] * S + m[None, :], c_ptr + m[None, :] * S + m[:, None]
    tl.store(places, tl.zeros((S, S), tl.float32))
    for k0 in range(0, steps * S, S):
        a = tl.load(a_ptr + m[:, None] * K + (k0 + m)[None, :])
        b = tl.load(b_ptr + (k0 + m)[:, None] * S + m[None, :])
        tl.atomic_add(turned, tl.dot(a, b))
    tl.store(out_ptr + m[:, None] * S + m[None, :], tl.load(places))
    tl.atomic_add(turned, tl.full((S, S), 1.0, tl.float32))
    tl.store(places, tl.zeros((S, S), tl.float32))


@triton.jit
def counted_kernel(i_ptr, c_ptr, out_ptr, N: tl.constexpr):
    # No products: a histogram, and what it holds then.
    i = tl.arange(0, N)
    tl.store(c_ptr + i, tl.zeros((N,), tl.int32))
    tl.atomic_add(c_ptr + tl.load(i_ptr + i), 1)
    tl.store(out_ptr + i, tl.load(c_ptr + i))


@pytest.mark.parametrize("arch", ["sm_80", "sm_90a"])
@pytest.mark.parametrize("num_warps", [1, 4])
@pytest.mark.parametrize("trips", [0, 1, 5])
@pytest.mark.parametrize("kernel", [stored_kernel, stored_before_kernel, parts_before_kernel, added_kernel])
def test_around_a_loop(
    run_everywhere: Any, monkeypatch: pytest.MonkeyPatch, kernel: Any, trips: int, num_warps: int, arch: str
) -> None:
    monkeypatch.setenv("TILEWRIGHT_ARCH", arch)
    k = 5 * SIDE
    dtype = np.float32 if kernel is parts_before_kernel else np.float16
    a, b = (RNG.integers(-3, 4, shape).astype(dtype) for shape in ((SIDE, k), (k, SIDE)))
    c, out = np.full((2, SIDE, SIDE), 7, np.float32)
    run_everywhere(kernel, (1,), a, b, c, out, k, trips, SIDE, num_warps=num_warps)


def test_a_histogram(run_everywhere: Any) -> None:
    places = RNG.integers(0, 256, 256).astype(np.int32)
    *_, out = run_everywhere(counted_kernel, (1,), places, np.full(256, 9, np.int32), np.zeros(256, np.int32), 256)
    np.testing.assert_array_equal(out, np.bincount(places, minlength=256))
