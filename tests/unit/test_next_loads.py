"""Small tiles that no copy can bring ahead are loaded an iteration ahead into registers: plans, text, and results everyhow."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tilewright as triton
import tilewright.language as tl

REMARKS = ("(for the first iteration)", "(loaded an iteration ahead)", "(for the next iteration)")


@triton.jit
def with_zero_points(a_ptr, w_ptr, zero_ptr, c_ptr, N, K, ADVANCE: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
                     BK: tl.constexpr):  # fmt: skip
    # A zero point of 8 bits for every column of BK weights, columns behind one another.
    rows = tl.arange(0, BM)
    cols = tl.program_id(0) * BN + tl.arange(0, BN)
    k = tl.arange(0, BK)
    groups = K // BK
    zeros = zero_ptr + cols * groups
    total = tl.zeros((BM, BN), tl.float32)
    for start in range(0, K, BK):
        a = tl.load(a_ptr + rows[:, None] * K + start + k[None, :])
        w = tl.load(w_ptr + (start + k)[:, None] * N + cols[None, :], mask=(cols < N)[None, :], other=0)
        if ADVANCE:
            zero = tl.load(zeros, mask=cols < N, other=3)
            zeros += 1
        else:
            zero = tl.load(zeros + start // BK, mask=cols < N, other=3)
        total = tl.dot(a, (w.to(tl.float16) - zero[None, :].to(tl.float16)), total)
    tl.store(c_ptr + rows[:, None] * N + cols[None, :], total, mask=(cols < N)[None, :])


@pytest.mark.parametrize("warps", [4, 8])
@pytest.mark.parametrize("advance", [False, True])
@pytest.mark.parametrize("trips", [0, 1, 2, 5])
def test_zero_points(
    trips: int, advance: bool, warps: int, monkeypatch: pytest.MonkeyPatch, run_everywhere: Any
) -> None:
    rng = np.random.default_rng(trips)
    m, n, block = 64 if warps == 4 else 16, 80, 64
    k = trips * block
    a = rng.standard_normal((m, k)).astype(np.float16)
    w = rng.integers(0, 255, (k, n)).astype(np.uint8)
    zero = rng.integers(0, 255, (n, trips)).astype(np.uint8)
    args = (a, w, zero, np.full((m, n), np.nan, np.float32), n, k)
    got = run_everywhere(with_zero_points, (2,), *args, ADVANCE=advance, BM=m, BN=64, BK=block, num_warps=warps,
                         tolerance=2e-3)[3]  # fmt: skip
    expected = a.astype(np.float64) @ (w.astype(np.float64) - np.repeat(zero.T.astype(np.float64), block, 0))
    np.testing.assert_allclose(got, expected, rtol=2e-3, atol=0.5)
    if trips == 2:  # nothing is read behind the last zero point
        monkeypatch.setenv("TILEWRIGHT_MODE", "check")
        with_zero_points[(2,)](*args, ADVANCE=advance, BM=m, BN=64, BK=block, num_warps=warps)


def source_of(kernel: Any, signature: str, **options: Any) -> str:
    return str(kernel.translate(signature, **options).source)


POINTERS = "*fp16:16, *u8:16, {}, *fp32:16, i32:16, i32:16"


def test_the_text_says_which_iteration_a_load_is_for() -> None:
    for advance in (False, True):
        source = source_of(with_zero_points, f"{POINTERS.format('*u8:16')}, {advance}, 64, 128, 64")
        assert [source.count(remark) for remark in REMARKS] == [1, 1, 1]
        assert "start + BK < K" in source and "next_zero" in source
        assert "NEXT_ZERO" not in source  # constants are called after the user's tile


def test_what_copies_can_bring_stays_theirs() -> None:
    source = source_of(with_zero_points, f"{POINTERS.format('*fp32:16')}, False, 64, 128, 64")
    assert not any(remark in source for remark in REMARKS)


@triton.jit
def written(a_ptr, b_ptr, scale_ptr, c_ptr, K, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK, BLOCK), tl.float32)
    for start in range(0, K, BLOCK):
        a = tl.load(a_ptr + i[:, None] * K + start + i[None, :])
        b = tl.load(b_ptr + (start + i)[:, None] * BLOCK + i[None, :])
        scale = tl.load(scale_ptr + start + i)
        total += tl.dot(a, b) * scale.to(tl.float32)[None, :]
        tl.store(scale_ptr + start + BLOCK + i, (scale + 1).to(tl.uint8))
    tl.store(c_ptr + i[:, None] * BLOCK + i[None, :], total)


def test_what_the_kernel_writes_is_loaded_in_its_turn(run_everywhere: Any) -> None:
    """The next iteration loads what this one stores."""
    assert "next_scale" not in source_of(written, "*fp16:16, *fp16:16, *u8, *fp32:16, i32:16, 64")
    rng = np.random.default_rng(2)
    a, b = rng.standard_normal((2, 64, 64)).astype(np.float16)
    a, b = np.concatenate([a] * 3, 1), np.concatenate([b] * 3, 0)
    scale = np.full(256, 9, np.uint8)
    scale[:64] = 1
    c = run_everywhere(written, (1,), a, b, scale, np.zeros((64, 64), np.float32), 192, BLOCK=64, tolerance=2e-3)[3]
    expected = 6 * (a[:, :64].astype(np.float64) @ b[:64].astype(np.float64))
    np.testing.assert_allclose(c, expected, rtol=2e-3, atol=0.5)


@triton.jit
def recurrence(x_ptr, g_ptr, out_ptr, last_ptr, T, D: tl.constexpr, BLOCK: tl.constexpr, DOWN: tl.constexpr):
    # A state that every step changes and writes: by pointers that go on, and downwards by the loop's variable.
    columns = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = columns < D
    state = tl.zeros([BLOCK], tl.float32)
    if DOWN:
        for t in range(T - 1, -1, -1):
            x = tl.load(x_ptr + t * D + columns, mask=mask, other=0).to(tl.float32)
            g = tl.load(g_ptr + t)
            state = state * g + x
            tl.store(out_ptr + t * D + columns, state, mask=mask)
    else:
        x_ptrs, out_ptrs = x_ptr + columns, out_ptr + columns
        for _ in range(T):
            x = tl.load(x_ptrs, mask=mask, other=0).to(tl.float32)
            g = tl.load(g_ptr)
            state = state * g + x
            tl.store(out_ptrs, state, mask=mask)
            x_ptrs += D
            g_ptr += 1
            out_ptrs += D
    tl.store(last_ptr + columns, state, mask=mask)


@pytest.mark.parametrize("down", [False, True])
@pytest.mark.parametrize("steps", [0, 1, 2, 9])
def test_a_recurrence(steps: int, down: bool, monkeypatch: pytest.MonkeyPatch, run_everywhere: Any) -> None:
    rng = np.random.default_rng(steps)
    x = rng.standard_normal((steps, 100)).astype(np.float16)
    g = rng.uniform(0, 1, steps).astype(np.float32)
    args = (x, g, np.full((steps, 100), np.nan, np.float32), np.full(100, np.nan, np.float32), steps)
    _, _, out, last = run_everywhere(recurrence, (2,), *args, D=100, BLOCK=64, DOWN=down, tolerance=1e-6)
    state, expected = np.zeros(100), np.zeros((steps, 100))
    for t in reversed(range(steps)) if down else range(steps):
        state = state * g[t] + x[t]
        expected[t] = state
    np.testing.assert_allclose(out, expected, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(last, state, rtol=1e-5, atol=1e-5)
    if steps == 2:  # nothing is read in front of the first step or behind the last one
        monkeypatch.setenv("TILEWRIGHT_MODE", "check")
        recurrence[(2,)](*args, D=100, BLOCK=64, DOWN=down)


def test_a_recurrence_loads_ahead_all_it_needs() -> None:
    for down in (False, True):
        source = source_of(recurrence, f"*fp16:16, *fp32:16, *fp32:16, *fp32:16, i32, 2048, 64, {down}")
        assert [source.count(remark) for remark in REMARKS] == [2, 2, 2]
    assert "t - 1 > -1" in source


@triton.jit
def grows(x_ptr, out_ptr, T, BLOCK: tl.constexpr):
    # What it loads, it has stored: nothing may be loaded ahead.
    columns = tl.arange(0, BLOCK)
    state = tl.zeros([BLOCK], tl.float32)
    for t in range(1, T):
        state += tl.load(x_ptr + (t - 1) * BLOCK + columns)
        tl.store(x_ptr + t * BLOCK + columns, state)
    tl.store(out_ptr + columns, state)


def test_a_recurrence_through_memory_stays_in_turn(run_everywhere: Any) -> None:
    x = np.zeros((6, 64), np.float32)
    x[0] = np.arange(64)
    got, out = run_everywhere(grows, (1,), x, np.zeros(64, np.float32), 6, BLOCK=64)
    np.testing.assert_array_equal(out, got[5])
    assert got[5, 3] == 3 * 2**4
    assert not any(remark in source_of(grows, "*fp32:16, *fp32:16, i32, 64") for remark in REMARKS)


@triton.jit
def neighbours(x_ptr, row_ptr, T, BLOCK: tl.constexpr):
    # Every step reads what its neighbour has stored, besides what it loads ahead.
    columns = tl.arange(0, BLOCK)
    state = tl.load(x_ptr + columns)
    for t in range(1, T):
        tl.store(row_ptr + columns, state)
        tl.debug_barrier()
        near = tl.load(row_ptr + columns - 1, mask=columns > 0, other=0.0)
        tl.debug_barrier()
        state = tl.maximum(state, near) + tl.load(x_ptr + t * BLOCK + columns)
    tl.store(row_ptr + columns, state)


@pytest.mark.parametrize("steps", [1, 2, 5, 6])
def test_two_trips_at_once_where_each_waits_for_memory(steps: int, run_everywhere: Any) -> None:
    """The second of two trips has registers of its own for what comes; one trip would copy it, and wait for it, at its end."""
    source = source_of(neighbours, "*fp32:16, *fp32:16, i32, 256")
    assert [source.count(remark) for remark in REMARKS] == [1, 1, 1]
    assert "#pragma unroll 2\n    for (int t = 1; t < T; ++t) {" in source
    alone = source_of(recurrence, "*fp16:16, *fp32:16, *fp32:16, *fp32:16, i32, 2048, 64, True")
    assert "#pragma unroll 2" not in alone
    x = np.random.default_rng(steps).standard_normal((steps, 256)).astype(np.float32)
    _, row = run_everywhere(neighbours, (1,), x, np.full(256, np.nan, np.float32), steps, BLOCK=256)
    state = x[0]
    for t in range(1, steps):
        state = np.maximum(state, np.pad(state[:-1], (1, 0))) + x[t]
    np.testing.assert_array_equal(row, state)
