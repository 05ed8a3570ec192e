"""Tiles that only products behind a loop read: their copies are started in front of it, and waited for where they are read."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tilewright as triton
import tilewright.language as tl


@triton.jit
def through_another_pointer(a_ptr, b_ptr, rest_ptr, out_ptr, trips, N: tl.constexpr, BY_NUMBER: tl.constexpr):
    # What is stored by one name is loaded by another.
    places = tl.arange(0, N)[:, None] * N + tl.arange(0, N)[None, :]
    address = rest_ptr.to(tl.int64) + 2 * N * N
    tail_ptr = address.to(tl.pointer_type(tl.float16)) if BY_NUMBER else rest_ptr + N * N
    total = tl.zeros([N, N], tl.float32)
    products = tl.zeros([N, N], tl.float32)
    for trip in range(trips):
        a, b = tl.load(a_ptr + trip * N * N + places), tl.load(b_ptr + trip * N * N + places)
        total += tl.dot(tl.maximum(tl.dot(a, b), 0).to(tl.float16), b)
        tl.store(rest_ptr + N * N + places, (a * 0 + trip).to(tl.float16))
        products += tl.dot(a, tl.load(tail_ptr + places))
    tail = tl.load(tail_ptr + places)
    tl.store(out_ptr + places, tl.dot(total.to(tl.float16), tail) + products)


@triton.jit
def scored(
    q_ptr, k_ptr, v_ptr, out_ptr, depth, BM: tl.constexpr, BK: tl.constexpr, WRITES: tl.constexpr, MOVES: tl.constexpr
):
    i, k = tl.arange(0, BM), tl.arange(0, BK)
    rows = tl.program_id(0) * BM + i
    scores = tl.zeros([BM, BM], tl.float32)
    place = 0
    for start in range(0, depth, BK):
        q = tl.load(q_ptr + rows[:, None] * depth + (start + k)[None, :])
        other = tl.load(k_ptr + rows[:, None] * depth + (start + k)[None, :])
        scores = tl.dot(q, other.T, scores)
        if MOVES:
            place += 16
    if WRITES:
        tl.store(v_ptr + rows[:, None] * BM + i[None, :], (scores * 2).to(tl.float16))
    # The second factor.
    v = tl.load(v_ptr + (place + rows)[:, None] * BM + i[None, :])
    out = tl.dot(tl.maximum(scores, 0).to(tl.float16), v)
    tl.store(out_ptr + rows[:, None] * BM + i[None, :], out)


def run(run_everywhere: Any, writes: bool, moves: bool) -> None:
    generator = np.random.default_rng(3)
    q, k = (generator.integers(-1, 2, (128, 96)).astype(np.float16) for _ in range(2))
    v = generator.integers(-1, 2, (256, 64)).astype(np.float16)
    out = np.full((128, 64), np.nan, np.float32)
    *_, found = run_everywhere(scored, (2,), q, k, v, out, 96, BM=64, BK=32, WRITES=writes, MOVES=moves)
    for first in (0, 64):
        rows = slice(first, first + 64)
        scores = q[rows].astype(float) @ k[rows].astype(float).T
        place = first + (48 if moves else 0)
        factor = scores * 2 if writes else v[place : place + 64].astype(float)
        np.testing.assert_array_equal(found[rows], np.maximum(scores, 0) @ factor)


def text(writes: bool = False, moves: bool = False) -> str:
    signature = f"*fp16:16, *fp16:16, *fp16:16, *fp32:16, i32:16, 64, 32, {writes}, {moves}"
    return scored.translate(signature).source.split("// the others multiply")[-1]


def test_copies_arrive_under_the_loop(run_everywhere: Any) -> None:
    run(run_everywhere, writes=False, moves=False)
    words = ("(moved up)", "cp_async_commit();", "wgmma_wait", "cp_async_wait<0>();", "// all of v is in shared memory")
    place = 0
    for word in words:
        place = text().index(word, place)
    assert text().count("// The second factor.") == 1


def test_a_load_stays_behind_what_it_reads(run_everywhere: Any) -> None:
    run(run_everywhere, writes=False, moves=True)
    assert "moved up" not in text(moves=True)


def test_a_load_stays_behind_stores_to_the_same_memory(run_everywhere: Any) -> None:
    run(run_everywhere, writes=True, moves=False)
    assert "moved up" not in text(writes=True)


@triton.jit
def chained(a_ptr, b_ptr, c_ptr, out_ptr, BM: tl.constexpr):
    i = tl.arange(0, BM)
    places = i[:, None] * BM + i[None, :]
    a, b = tl.load(a_ptr + places), tl.load(b_ptr + places)
    c = tl.load(c_ptr + places)
    out = tl.dot(tl.dot(a, b).to(tl.float16), c)
    tl.store(out_ptr + places, out)


def test_tiles_share_a_wait(run_everywhere: Any) -> None:
    generator = np.random.default_rng(4)
    a, b, c = (generator.integers(-1, 2, (64, 64)).astype(np.float16) for _ in range(3))
    *_, out = run_everywhere(chained, (1,), a, b, c, np.full((64, 64), np.nan, np.float32), BM=64)
    np.testing.assert_array_equal(out, a.astype(float) @ b.astype(float) @ c.astype(float))
    source = chained.translate("*fp16:16, *fp16:16, *fp16:16, *fp32:16, 64").source
    assert source.count("cp_async_commit();") == 3 and source.count("cp_async_wait<0>();") == 1
    assert "// all of a, b and c is in shared memory" in source


@pytest.mark.parametrize("arch, by_number", [("sm_80", True), ("sm_90a", False)])
def test_one_array_may_have_several_names(
    run_everywhere: Any, monkeypatch: pytest.MonkeyPatch, arch: str, by_number: bool
) -> None:
    monkeypatch.setenv("TILEWRIGHT_ARCH", arch)
    n, trips = 64, 3
    a, b = (np.random.default_rng(5).integers(-1, 2, (trips, n, n)).astype(np.float16) for _ in range(2))
    out = np.zeros((n, n), np.float32)
    *_, out = run_everywhere(
        through_another_pointer, (1,), a, b, np.zeros((2, n, n), np.float16), out, trips, n, by_number
    )
    sums = a.astype(np.float32) @ b
    total = (np.maximum(sums, 0) @ b).sum(0)
    products = sum(a[trip] @ np.full((n, n), trip, np.float32) for trip in range(trips))
    np.testing.assert_array_equal(out, total @ np.full((n, n), trips - 1, np.float32) + products)


@triton.jit
def behind_something(a_ptr, v_ptr, out_ptr, flag_ptr, trips, N: tl.constexpr, WHAT: tl.constexpr):
    places = tl.arange(0, N)[:, None] * N + tl.arange(0, N)[None, :]
    total = tl.zeros([N, N], tl.float32)
    if WHAT == "flag before":
        while tl.atomic_add(flag_ptr, 0) == 0:
            pass
    for trip in range(trips):
        a = tl.load(a_ptr + trip * N * N + places)
        total += tl.dot(a, a)
    if WHAT == "end" and trips == 0:
        return
    if WHAT == "grid":
        tl.extra.cuda.gdc_wait()
    if WHAT == "flag":
        while tl.atomic_add(flag_ptr, 0) == 0:
            pass
    if WHAT == "print":
        tl.device_print("trips", trips)
    if WHAT == "promise":
        tl.assume(trips > 1)
    if WHAT == "next grid":
        tl.extra.cuda.gdc_launch_dependents()
    if WHAT == "store":
        tl.store(out_ptr + places, total)
    v = tl.load(v_ptr + places)
    tl.store(out_ptr + places, tl.dot(total.to(tl.float16), v))


PASSED = ("nothing", "flag before", "print", "promise", "next grid", "store")


@pytest.mark.parametrize("what", [*PASSED, "end", "grid", "flag"])
def test_nothing_is_loaded_before_the_kernel_may_read_it(monkeypatch: pytest.MonkeyPatch, what: str) -> None:
    """A flag that another grid sets is no business of the loading warpgroup's: all threads wait for it, and load."""
    monkeypatch.setenv("TILEWRIGHT_ARCH", "sm_90a")
    text = behind_something.translate(f"*fp16:16, *fp16:16, *fp32:16, *i32:16, i32, 64, '{what}'").source
    assert ("moved up" in text) == (what in PASSED)
    assert ("the last warpgroup loads" in text) == (what != "flag before")
