"""Loops whose variables are never negative, though no closed form says so: tensor copies start where they say."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tilewright as triton
import tilewright.language as tl


@triton.jit
def equal_parts(a_ptr, b_ptr, c_ptr, N, K, total, per, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """Every program takes as many trips along K as every other, whatever tiles they are of."""
    start = tl.program_id(0) * per
    end = tl.minimum(start + per, total)
    trips = tl.cdiv(K, BK)
    while start < end:
        tile, first = start // trips, start % trips
        last = tl.minimum(trips, first + end - start)
        rows = tile // tl.cdiv(N, BN) * BM + tl.arange(0, BM)
        cols = tile % tl.cdiv(N, BN) * BN + tl.arange(0, BN)
        k = tl.arange(0, BK)
        acc = tl.zeros((BM, BN), tl.float32)
        for i in range(first, last):
            a = tl.load(a_ptr + rows[:, None] * K + (i * BK + k)[None, :])
            b = tl.load(b_ptr + (i * BK + k)[:, None] * N + cols[None, :])
            acc += tl.dot(a, b)
        tl.atomic_add(c_ptr + rows[:, None] * N + cols[None, :], acc, sem="relaxed")
        start += last - first


@triton.jit
def rest_in_equal_parts(
    a_ptr, b_ptr, c_ptr, M, N, K, programs, shared, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr
):
    """The last `shared` tiles, each program from where it is to the end of the tile or of its own part."""
    pid, trips = tl.program_id(0), tl.cdiv(K, BK)
    whole = tl.cdiv(M, BM) * tl.cdiv(N, BN) - shared
    per, rest = shared * trips // programs, shared * trips % programs
    start = whole * trips + pid * per + tl.minimum(pid, rest)
    stop = whole * trips + (pid + 1) * per + tl.minimum(pid + 1, rest)
    while start < stop:
        first = start % trips
        end = tl.minimum(start + (trips - first), stop)
        tile = start // trips
        rows = tile // tl.cdiv(N, BN) * BM + tl.arange(0, BM)
        cols = tile % tl.cdiv(N, BN) * BN + tl.arange(0, BN)
        k = tl.arange(0, BK)
        a_ptrs = a_ptr + rows[:, None] * K + (first * BK + k)[None, :]
        b_ptrs = b_ptr + (first * BK + k)[:, None] * N + cols[None, :]
        acc = tl.zeros((BM, BN), tl.float32)
        for _ in range(start, end):
            acc += tl.dot(tl.load(a_ptrs), tl.load(b_ptrs))
            a_ptrs += BK
            b_ptrs += BK * N
        tl.atomic_add(c_ptr + rows[:, None] * N + cols[None, :], acc, sem="relaxed")
        start = end


@triton.jit
def downwards(a_ptr, b_ptr, c_ptr, N, K, count, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """Where the tile begins falls by what is not known: nothing says that it stays in the array."""
    first, left = tl.program_id(0) * count, count
    while left > 0:
        rows, cols, k = tl.arange(0, BM), tl.arange(0, BN), tl.arange(0, BK)
        acc = tl.zeros((BM, BN), tl.float32)
        for i in range(0, K, BK):
            a = tl.load(a_ptr + rows[:, None] * K + (first + i + k)[None, :])
            b = tl.load(b_ptr + (i + k)[:, None] * N + cols[None, :])
            acc += tl.dot(a, b)
        tl.atomic_add(c_ptr + rows[:, None] * N + cols[None, :], acc, sem="relaxed")
        first, left = first - BK, left - 1


PARTS = "*fp16:16, *fp16:16, *fp32:16, i32:16, i32:16, i32, i32, 64, 64, 64"
REST = "*fp16:16, *fp16:16, *fp32:16, i32:16, i32:16, i32:16, i32, i32, 64, 64, 64"


def _arrays(m: int, n: int, k: int) -> tuple[Any, Any, Any]:
    random = np.random.default_rng(m + n + k)
    a, b = (random.integers(-4, 5, shape).astype(np.float16) for shape in ((m, k), (k, n)))
    return a, b, np.zeros((m, n), np.float32)


@pytest.mark.parametrize("programs", (1, 3, 5))
def test_equal_parts(run_everywhere: Any, programs: int) -> None:
    a, b, c = _arrays(128, 192, 256)
    total = 2 * 3 * 4
    arguments = (a, b, c, 192, 256, total, triton.cdiv(total, programs), 64, 64, 64)
    *_, out = run_everywhere(equal_parts, (programs,), *arguments)
    np.testing.assert_array_equal(out, a.astype(np.float64) @ b.astype(np.float64))


def test_equal_parts_come_by_tensor_copies() -> None:
    artifact = equal_parts.translate(PARTS, arch="sm_90a")
    assert [one.name for one in artifact.tensor_maps] == ["a_map", "b_map"]
    assert artifact.guards == ("total >= 0", "per >= 0")


@pytest.mark.parametrize("shared", (0, 2, 6))
def test_the_rest_in_equal_parts(run_everywhere: Any, shared: int) -> None:
    a, b, c = _arrays(128, 192, 256)
    *_, out = run_everywhere(rest_in_equal_parts, (3,), a, b, c, 128, 192, 256, 3, shared, 64, 64, 64)
    expected = (
        (a.astype(np.float64) @ b.astype(np.float64)).reshape(2, 64, 3, 64).transpose(0, 2, 1, 3).reshape(6, 64, 64)
    )
    expected[: 6 - shared] = 0
    np.testing.assert_array_equal(out.reshape(2, 64, 3, 64).transpose(0, 2, 1, 3).reshape(6, 64, 64), expected)


def test_what_parameters_decide_is_a_guard() -> None:
    artifact = rest_in_equal_parts.translate(REST, arch="sm_90a")
    assert [one.name for one in artifact.tensor_maps] == ["a_map", "b_map"]
    trips = "((K + 63) // 64)"
    whole = f"(M + 63) // 64 * ((N + 63) // 64) * {trips} - shared * {trips} >= 0"
    assert artifact.guards == (whole, "K >= 0", "shared >= 0")


def test_guards_that_do_not_hold_take_the_other_text(run_everywhere: Any) -> None:
    a, b, c = _arrays(128, 192, 256)
    arguments = (a, b, c, 192, 256, 8, -2, 64, 64, 64)  # from 0 down to -2: no trip
    *_, out = run_everywhere(equal_parts, (1,), *arguments)
    assert not out.any()


def test_what_falls_may_be_negative() -> None:
    artifact = downwards.translate(PARTS.replace("i32, i32, 64", "i32, 64"), arch="sm_90a")
    assert "the start along axis 1 may be negative" in " ".join(artifact.source.replace("//", "").split())


@triton.jit
def by_turns(a_ptr, b_ptr, c_ptr, M, N, K, programs, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """Each program takes every so many-th tile, and rows that wrap around."""
    for tile in range(tl.program_id(0), tl.cdiv(M, BM) * tl.cdiv(N, BN), programs):
        rows = tile // tl.cdiv(N, BN) * BM + tl.arange(0, BM)
        cols = tile % tl.cdiv(N, BN) * BN + tl.arange(0, BN)
        k = tl.arange(0, BK)
        acc = tl.zeros((BM, BN), tl.float32)
        for i in range(0, K, BK):
            a = tl.load(a_ptr + (rows % M)[:, None] * K + i + k[None, :])
            acc += tl.dot(a, tl.load(b_ptr + (i + k)[:, None] * N + (cols % N)[None, :]))
        inside = (rows < M)[:, None] & (cols < N)[None, :]
        tl.store(c_ptr + rows[:, None] * N + cols[None, :], acc, mask=inside)


def test_steps_that_only_the_launch_knows_go_upwards(run_everywhere: Any) -> None:
    a, b, c = _arrays(100, 80, 64)
    *_, out = run_everywhere(by_turns, (2,), a, b, c, 100, 80, 64, 2, 64, 64, 64)
    np.testing.assert_array_equal(out, a.astype(np.float64) @ b.astype(np.float64))
    artifact = by_turns.translate("*fp16:16, *fp16:16, *fp32:16, i32, i32:16, i32:16, i32, 64, 64, 64", arch="sm_90a")
    assert artifact.tensor_maps and not artifact.guards  # the rows are masked instead of wrapped
