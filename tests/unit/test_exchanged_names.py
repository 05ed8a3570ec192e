"""Assignments to several names: all right sides are taken before any name changes, in tuples within tuples too."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tilewright as triton
import tilewright.language as tl


@triton.jit
def exchanged(x_ptr, out_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    a, b, c = tl.load(x_ptr + i), tl.load(x_ptr + N + i), tl.load(x_ptr + 2 * N + i)
    (a, b), c = (b, a), a
    a, (b, c) = a + b, (b - a, a)
    a, b, c = c, a, b
    for _ in range(3):
        a, (b, c) = b, (c + a, b - a)
    tl.store(out_ptr + i, a)
    tl.store(out_ptr + N + i, b)
    tl.store(out_ptr + 2 * N + i, c)


@triton.jit
def exchanged_scalars(x_ptr, out_ptr, N: tl.constexpr):
    a, b, c = tl.load(x_ptr), tl.load(x_ptr + 1), tl.load(x_ptr + 2)
    (a, b), c = (b, a), a
    a, (b, c) = a + b, (b - a, a)
    a, b, c = c, a, b
    for _ in range(3):
        a, (b, c) = b, (c + a, b - a)
    tl.store(out_ptr, a)
    tl.store(out_ptr + 1, b)
    tl.store(out_ptr + 2, c)


@pytest.mark.parametrize(("kernel", "n"), ((exchanged, 64), (exchanged_scalars, 1)))
def test_right_sides_are_taken_first(run_everywhere: Any, kernel: Any, n: int) -> None:
    x = np.random.default_rng(0).integers(-99, 99, (3, n)).astype(np.float32)
    found = run_everywhere(kernel, (1,), x, np.zeros_like(x), N=n)[1]
    a, b, c = x
    (a, b), c = (b, a), a
    a, (b, c) = a + b, (b - a, a)
    a, b, c = c, a, b
    for _ in range(3):
        a, (b, c) = b, (c + a, b - a)
    np.testing.assert_array_equal(found, np.stack([a, b, c]))


@triton.jit
def turned(x_ptr, out_ptr, N: tl.constexpr):
    """What a load, a sum and a function bring waits until the names before it have been read."""
    i = tl.arange(0, N)
    now, following = tl.load(x_ptr + i), tl.load(x_ptr + N + i)
    now, following = following, tl.load(x_ptr + 2 * N + i)
    tl.store(out_ptr + i, now)
    for _ in range(2):
        now, following = following, tl.load(x_ptr + i) + tl.sum(now, axis=0)
    tl.store(out_ptr + N + i, now)
    largest, now = now, tl.max(now, axis=0)
    largest, (now, following) = following, order(largest, now)
    tl.store(out_ptr + 2 * N + i, largest + now - following)


def test_loads_and_reductions_wait(run_everywhere: Any) -> None:
    x = np.random.default_rng(1).integers(-9, 9, (3, 64)).astype(np.float32)
    found = run_everywhere(turned, (1,), x, np.zeros_like(x), N=64)[1]
    now, following = x[1], x[2]
    np.testing.assert_array_equal(found[0], now)
    for _ in range(2):
        now, following = following, x[0] + now.sum()
    np.testing.assert_array_equal(found[1], now)
    np.testing.assert_array_equal(found[2], following + np.minimum(now, now.max()) - np.maximum(now, now.max()))


@triton.jit
def turned_bundles(x_ptr, out_ptr, n, N: tl.constexpr):
    """Parts of tuples that a loop changes are read before they change."""
    i = tl.arange(0, N)
    t, u = (tl.load(x_ptr + i), tl.load(x_ptr + N + i)), tl.load(x_ptr + 2 * N + i)
    for _ in range(n):
        t, u = (t[1], t[0] + u), t[0]
    for k in range(n):
        t = (t[1], tl.load(x_ptr + i) + k)
    tl.store(out_ptr + i, t[0])
    tl.store(out_ptr + N + i, t[1])
    tl.store(out_ptr + 2 * N + i, u)


@pytest.mark.parametrize(("size", "n"), ((64, 3), (1, 4)))
def test_parts_of_tuples_wait_too(run_everywhere: Any, size: int, n: int) -> None:
    x = np.random.default_rng(2).integers(-9, 9, (3, size)).astype(np.float32)
    found = run_everywhere(turned_bundles, (1,), x, np.zeros_like(x), n, N=size)[1]
    t, u = (x[0], x[1]), x[2]
    for _ in range(n):
        t, u = (t[1], t[0] + u), t[0]
    for k in range(n):
        t = (t[1], x[0] + k)
    np.testing.assert_array_equal(found, np.stack([*t, u]))


@triton.jit
def turned_pointers(x_ptr, out_ptr, n, N: tl.constexpr):
    p = tl.make_block_ptr(x_ptr, (100,), (1,), (0,), (N,), (0,))
    q = tl.make_block_ptr(x_ptr, (100,), (1,), (3,), (N,), (0,))
    total = tl.zeros((N,), tl.float32)
    for _ in range(n):
        p, q = tl.advance(p, (2,)), p
        total += tl.load(p) + 10 * tl.load(q)
        q, total = p, total + tl.load(q)
    tl.store(out_ptr + tl.arange(0, N), total)


def test_block_pointers_wait_too(run_everywhere: Any) -> None:
    x = np.random.default_rng(3).integers(-9, 9, 100).astype(np.float32)
    found = run_everywhere(turned_pointers, (1,), x, np.zeros(8, np.float32), 3, N=8)[1]
    expected = sum(x[2 * k : 2 * k + 8] + 11 * x[2 * k - 2 : 2 * k + 6] for k in range(1, 4))
    np.testing.assert_array_equal(found, expected)


@triton.jit
def order(a, b):
    return tl.minimum(a, b), tl.maximum(a, b)


@triton.jit
def ordered(x_ptr, out_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    low, high = tl.load(x_ptr + i), tl.load(x_ptr + N + i)
    low, high = order(low, high)
    tl.store(out_ptr + i, high - low)


def test_new_values_are_called_as_what_they_are_for() -> None:
    text = ordered.translate("*fp32:16, *fp32:16, 128").source
    assert "high_second = fmaxf(low, high)" in text and "_before" not in text


@triton.jit
def largest_of(x, scale):
    return tl.max(x * scale, axis=0)


@triton.jit
def repeated(x_ptr, out_ptr, n, N: tl.constexpr):
    """Reductions whose result replaces a name that every element is computed with."""
    i = tl.arange(0, N)
    tile = tl.load(x_ptr + i[:, None] * N + i[None, :])
    rows, columns, scale = tl.load(x_ptr + i), tl.load(x_ptr + N + i), tl.load(x_ptr + 2)
    place = 1
    for _ in range(n):
        rows = tl.min(tile * rows[:, None], axis=1)
        columns = tl.sum(tile * columns[:, None], axis=0)
        scale = tl.sum(rows * scale, axis=0)
        scale = largest_of(columns, scale)
        scale, place = tl.max(rows * scale + place, axis=0, return_indices=True)
        place = tl.argmin(columns * place, axis=0)
    tl.store(out_ptr + i, rows)
    tl.store(out_ptr + N + i, columns)
    tl.store(out_ptr + 2 * N + i, scale + place)


@pytest.mark.parametrize("warps", (1, 4))
def test_reductions_read_a_name_before_they_replace_it(run_everywhere: Any, warps: int) -> None:
    x = np.random.default_rng(4).integers(-2, 3, (16, 16)).astype(np.float64)
    found = run_everywhere(repeated, (1,), x, np.zeros((3, 16)), 2, N=16, num_warps=warps)[1]
    rows, columns, scale, place = x[0], x[1], x[0, 2], 1
    for _ in range(2):
        rows = (x * rows[:, None]).min(axis=1)
        columns = (x * columns[:, None]).sum(axis=0)
        scale = (columns * (rows * scale).sum()).max()
        candidates = rows * scale + place
        scale, place = candidates.max(), int(candidates.argmax())
        place = int((columns * place).argmin())
    np.testing.assert_array_equal(found, np.stack([rows, columns, np.full(16, scale + place)]))


@triton.jit
def reloaded(x_ptr, out_ptr, N: tl.constexpr):
    """Loads and atomics that replace a tile by what others of its elements decide."""
    i = tl.arange(0, N)
    at = i[:, None] * N + i[None, :]
    x = tl.load(x_ptr + at)
    x = tl.load(x_ptr + at + 1, mask=tl.trans(x) > 0, other=-1.0)
    for _ in range(2):
        x = tl.load(x_ptr + at + 2, mask=tl.trans(x) > 1, other=x)
    x = tl.atomic_xchg(out_ptr + N * N + at, tl.trans(x))
    tl.store(out_ptr + at, x)


def test_loads_read_a_tile_before_they_replace_it(run_everywhere: Any) -> None:
    x, out = np.random.default_rng(5).integers(-3, 4, (2, 32, 32)).astype(np.float32)
    memory = np.append(x, np.float32([1, 2]))
    found = run_everywhere(reloaded, (1,), memory, np.stack([np.zeros_like(x), out]), 32)[1]
    one, two = (memory[k : k + x.size].reshape(x.shape) for k in (1, 2))
    tile = np.where(x.T > 0, one, -1)
    for _ in range(2):
        tile = np.where(tile.T > 1, two, tile)
    np.testing.assert_array_equal(found, [out, tile.T])


@triton.jit
def exchanged_parts(out_ptr, n):
    """Items of a tuple that change places: what one was is called so, and not what the other becomes."""
    state = (n, 1, 2)
    for k in range(n):
        state = (state[1], state[0], state[2] + state[0] * k)
    for i in tl.static_range(3):
        tl.store(out_ptr + i, state[i])


def test_parts_of_tuples_are_called_what_they_hold(run_everywhere: Any) -> None:
    found = run_everywhere(exchanged_parts, (1,), np.zeros(3, np.int32), 5)[0]
    state = (5, 1, 2)
    for k in range(5):
        state = (state[1], state[0], state[2] + state[0] * k)
    assert found.tolist() == list(state)
    text = exchanged_parts.translate("*i32, i32").source
    assert "const int state_first_before = state_first;" in text and "state_second = state_first_before;" in text
    assert "const int state_third_next = state_third + state_first * k;" in text
