"""Loops whose bounds are more than names, or that share names with the loop before them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tilewright as triton
import tilewright.language as tl

SIDE = 64
RNG = np.random.default_rng(4)


@triton.jit
def halves_kernel(out_ptr, n, first, step):
    total = 0
    for half in range(2):
        for i in range(half * first, first if half == 0 else n, step if half == 0 else 1):
            total = total * 3 + i
    for i in range(first | 1, n, step << 1):
        total = total * 3 + i
    tl.store(out_ptr, total)


@triton.jit
def growing_kernel(out_ptr, n, step):
    total, first, last = 0, 1, n
    for i in range(first, last, step):
        total = total * 3 + i
        first, last, step = first + 5, last - 1, step + 1
    tl.store(out_ptr, total + first + last + step)


def test_bounds_are_operands(run_everywhere: Any) -> None:
    (out,) = run_everywhere(halves_kernel, (1,), np.zeros(1, np.int32), 17, 6, 4)
    assert out[0] != 0


def test_bounds_are_taken_once(run_everywhere: Any) -> None:
    (out,) = run_everywhere(growing_kernel, (1,), np.zeros(1, np.int32), 20, 3)
    places = list(range(1, 20, 3))
    expected = 0
    for i in places:
        expected = expected * 3 + i
    count = len(places)
    assert out[0] == expected + 1 + 5 * count + 20 - count + 3 + count


@triton.jit
def product_kernel(a_ptr, b_ptr, c_ptr, K, skip, more, SIDE: tl.constexpr):
    m = tl.arange(0, SIDE)
    total = tl.zeros((SIDE, SIDE), tl.float32)
    for k0 in range(skip + more, K, SIDE + more):
        a = tl.load(a_ptr + m[:, None] * K + (k0 + m)[None, :])
        b = tl.load(b_ptr + (k0 + m)[:, None] * SIDE + m[None, :])
        total = tl.dot(a, b, total)
    for k0 in range(0 if skip > more else SIDE, K - more - skip if skip > more else K, SIDE):
        a = tl.load(a_ptr + m[:, None] * K + (k0 + m)[None, :])
        b = tl.load(b_ptr + (k0 + m)[:, None] * SIDE + m[None, :])
        total = tl.dot(a, b, total * 0.5)
    tl.store(c_ptr + m[:, None] * SIDE + m[None, :], total)


@triton.jit
def afterwards_kernel(a_ptr, b_ptr, i_ptr, c_ptr, K, SIDE: tl.constexpr):
    # The second loop, which tensor copies feed, continues where the first one ended; that one has products of its own.
    m = tl.arange(0, SIDE)
    total = tl.zeros((SIDE, SIDE), tl.float32)
    for k0 in range(0, K // 2, SIDE):
        rows = tl.load(i_ptr + m)
        a = tl.load(a_ptr + rows[:, None] * K + (k0 + m)[None, :])
        b = tl.load(b_ptr + tl.load(i_ptr + m)[:, None] * SIDE + m[None, :])
        total = tl.dot(a, b, total)
    if tl.program_id(0) == 0:
        for turn in range(tl.cdiv(K, SIDE)):
            k0 = turn * SIDE
            a = tl.load(a_ptr + m[:, None] * K + (k0 + m)[None, :])
            b = tl.load(b_ptr + (k0 + m)[:, None] * SIDE + m[None, :])
            total = tl.dot(a, b, total)
    tl.store(c_ptr + m[:, None] * SIDE + m[None, :], total)


@pytest.mark.parametrize("arch", ["sm_80", "sm_90a"])
@pytest.mark.parametrize("skip, more", [(64, 0), (0, 64), (0, 0)])
def test_loops_that_load_ahead(
    run_everywhere: Any, monkeypatch: pytest.MonkeyPatch, arch: str, skip: int, more: int
) -> None:
    monkeypatch.setenv("TILEWRIGHT_ARCH", arch)
    a, b = (RNG.integers(-3, 4, shape).astype(np.float16) for shape in ((SIDE, 640), (640, SIDE)))
    run_everywhere(product_kernel, (1,), a, b, np.zeros((SIDE, SIDE), np.float32), 640, skip, more, SIDE)


@pytest.mark.parametrize("arch", ["sm_80", "sm_90a"])
def test_a_loop_after_one_of_the_same_variable(run_everywhere: Any, monkeypatch: pytest.MonkeyPatch, arch: str) -> None:
    monkeypatch.setenv("TILEWRIGHT_ARCH", arch)
    a, b = (RNG.integers(-3, 4, shape).astype(np.float16) for shape in ((SIDE, 256), (256, SIDE)))
    order = RNG.permutation(SIDE).astype(np.int32)
    *_, c = run_everywhere(afterwards_kernel, (1,), a, b, order, np.zeros((SIDE, SIDE), np.float32), 256, SIDE)
    expected = a.astype(np.float64) @ b + a[order, :128].astype(np.float64) @ np.tile(b[order], (2, 1))
    np.testing.assert_array_equal(c, expected)


@triton.jit
def lists_kernel(a_ptr, b_ptr, i_ptr, c_ptr, K, SIDE: tl.constexpr):
    # Two loops in one block, each of which reads the same numbers ahead of its copies.
    m = tl.arange(0, SIDE)
    total = tl.zeros((SIDE, SIDE), tl.float32)
    for turn in range(tl.load(i_ptr) * 0 + 2):
        for k0 in range(0, K, SIDE):
            a = tl.load(a_ptr + tl.load(i_ptr + m)[:, None] * K + (k0 + m)[None, :])
            b = tl.load(b_ptr + (k0 + m)[:, None] * SIDE + m[None, :])
            total = tl.dot(a, b, total)
        for k0 in range(0, K, SIDE):
            b = tl.load(b_ptr + (k0 + m)[:, None] + m[None, :] * K)
            a = tl.load(a_ptr + tl.load(i_ptr + m)[:, None] * K + (k0 + m)[None, :])
            total = tl.dot(a, b, total)
    tl.store(c_ptr + m[:, None] * SIDE + m[None, :], total)


def test_two_loops_that_read_ahead(run_everywhere: Any) -> None:
    a, b = (RNG.integers(-3, 4, shape).astype(np.float16) for shape in ((SIDE, 256), (256, SIDE)))
    order = RNG.permutation(SIDE).astype(np.int32)
    *_, c = run_everywhere(lists_kernel, (1,), a, b, order, np.zeros((SIDE, SIDE), np.float32), 256, SIDE)
    whole = b.astype(np.float64) + b.reshape(SIDE, 256).T
    np.testing.assert_array_equal(c, 2 * a[order].astype(np.float64) @ whole)


@triton.jit
def behind_a_loop(x_ptr, out_ptr, n, before, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    i = before
    trips = 0
    for i in range(0, n, 16):
        trips += 1
    cols = tl.arange(0, BLOCK)
    block = tl.make_block_ptr(x_ptr, (ROWS, BLOCK), (BLOCK, 1), (i, 0), (ROWS, BLOCK), (1, 0))
    rows = tl.load(block, boundary_check=(0,), padding_option="zero")
    tl.store(out_ptr + cols, tl.load(x_ptr + BLOCK + i + cols) + tl.sum(rows, axis=0) + trips)


@pytest.mark.parametrize("n", [0, 48])
def test_a_loop_without_a_trip_leaves_what_was_there(run_everywhere: Any, n: int) -> None:
    x = RNG.integers(-9, 10, 4 * 512).astype(np.float32)
    _, out = run_everywhere(behind_a_loop, (1,), x, np.zeros(512, np.float32), n, -1, ROWS=4, BLOCK=512)
    i, inside = (32, 0) if n else (-1, x[: 3 * 512].reshape(3, 512).sum(0))
    np.testing.assert_array_equal(out, x[512 + i : 1024 + i] + inside + n // 16)
