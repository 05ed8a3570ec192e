"""A tile that is stored and loaded again through the same pointers: each thread finds what the others have stored."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tilewright as triton
import tilewright.language as tl
from tilewright.artifact import Options
from tilewright.pipeline import translate
from tilewright.runtime import cpu
from tilewright.runtime.arguments.signature import parse_signature
from tilewright.schedule.targets import find_target


@triton.jit
def through_memory(x_ptr, kept_ptr, out_ptr, M: tl.constexpr, N: tl.constexpr):
    # Sums of rows lie in several threads each, of which one stores.
    m, n = tl.arange(0, M), tl.arange(0, N)
    x = tl.load(x_ptr + m[:, None] * N + n[None, :])
    kept_ptrs = kept_ptr + m
    tl.store(kept_ptrs, tl.sum(x, 1))
    again = tl.load(kept_ptrs)
    tl.store(out_ptr + m[:, None] * N + n[None, :], x + again[:, None])


@triton.jit
def in_place(x_ptr, n, N: tl.constexpr):
    for start in range(0, n, N):
        pointers = x_ptr + start + tl.arange(0, N)
        tl.store(pointers, tl.load(pointers) * 2)


@triton.jit
def shifted(x_ptr, kept_ptr, out_ptr, n, N: tl.constexpr):
    # Each thread stores one element and loads another's.
    offsets = tl.arange(0, N)
    tl.store(kept_ptr + offsets, tl.load(x_ptr + offsets))
    tl.store(out_ptr + offsets, tl.load(kept_ptr + (offsets + 1) % N))


@triton.jit
def in_two_loops(x_ptr, kept_ptr, out_ptr, n, N: tl.constexpr):
    for start in range(0, n, N):
        places = start | tl.arange(0, N)
        tl.store(kept_ptr + places, tl.load(x_ptr + places) + 1)
    for start in range(0, n, N):
        places = start + tl.arange(0, N)
        tl.store(out_ptr + places, tl.load(kept_ptr + places) * 2)


@triton.jit
def on_one_way(x_ptr, kept_ptr, out_ptr, n, N: tl.constexpr):
    offsets = tl.arange(0, N)
    tl.store(kept_ptr + offsets, tl.load(x_ptr + offsets))
    if n > 5000:
        tl.debug_barrier()
    for _ in range(n - 2048):
        tl.debug_barrier()
    tl.store(out_ptr + offsets, tl.load(kept_ptr + N - 1 - offsets))


@pytest.mark.parametrize(
    ("kernel", "expected"),
    [
        (shifted, lambda x: np.r_[np.roll(x[:1024], -1), np.zeros(1024)]),
        (in_two_loops, lambda x: (x + 1) * 2),
        (on_one_way, lambda x: np.r_[x[:1024][::-1], np.zeros(1024)]),
    ],
)
def test_other_threads_load_what_was_stored(run_everywhere: Any, kernel: Any, expected: Any) -> None:
    x = np.random.default_rng(2).integers(-9, 9, 2048).astype(np.float32)
    *_, out = run_everywhere(kernel, (1,), x, np.zeros_like(x), np.zeros_like(x), 2048, N=1024)
    np.testing.assert_array_equal(out, expected(x))


def test_a_stored_tile_is_loaded_again(run_everywhere: Any) -> None:
    x = np.random.default_rng(8).integers(-4, 5, (32, 64)).astype(np.float32)
    kept, out = np.zeros(32, np.float32), np.zeros_like(x)
    *_, out = run_everywhere(through_memory, (1,), x, kept, out, M=32, N=64, num_warps=4)
    np.testing.assert_array_equal(out, x + x.sum(1)[:, None])


def test_what_only_its_thread_reads_needs_no_barrier() -> None:
    options, target = Options(num_warps=4), find_target("sm_90a")
    texts = [
        translate(kernel, parse_signature(kernel, signature), options, target).source
        for kernel, signature in (
            (through_memory, "*fp32:16, *fp32:16, *fp32:16, 32, 64"),
            (in_place, "*fp32:16, i32, 1024"),
        )
    ]
    assert "every thread has stored to kept_ptr before it is loaded again" in texts[0]
    assert "__syncthreads" not in texts[1]


@triton.jit
def assigned_twice(x_ptr, N: tl.constexpr):
    # One variable, loaded twice, of one element per thread: the second time its declaration stands above.
    for step in tl.static_range(2):
        offsets = step * N + tl.arange(0, N)
        x = tl.load(x_ptr + offsets)
        tl.store(x_ptr + 1 + offsets, x + 1)


@triton.jit
def through_a_moving_pointer(x_ptr, y_ptr, out_ptr, n, N: tl.constexpr):
    # Stored through pointers that advance and take turns, loaded through the arguments that they come from.
    i = tl.arange(0, N)
    row_ptr, first_ptr = x_ptr, y_ptr
    for row in range(n):
        tl.store(row_ptr + i, i + row)
        tl.store(out_ptr + row * N + i, tl.load(x_ptr + row * N + (N - 1 - i)))
        row_ptr += N
        tl.store(first_ptr + i, row)
        tl.store(out_ptr + (n + row) * N + i, tl.load(y_ptr + N - 1 - i))
        first_ptr, y_ptr = y_ptr, first_ptr


def test_every_pointer_that_comes_from_an_argument_counts(run_everywhere: Any) -> None:
    *_, out = run_everywhere(
        through_a_moving_pointer, (1,), *(np.zeros(size, np.float32) for size in (768, 256, 1536)), 3, N=256
    )
    assert out[:768:256].tolist() == [255, 256, 257] and out[768::256].tolist() == [0, 1, 2]


def test_a_variable_that_is_loaded_again_waits(run_everywhere: Any) -> None:
    x = np.arange(100, 165, dtype=np.float32)
    (found, *_) = run_everywhere(assigned_twice, (1,), x, N=32, num_warps=1)
    expected = x.copy()
    for start in (0, 32):
        expected[start + 1 : start + 33] = expected[start : start + 32] + 1
    np.testing.assert_array_equal(found, expected)
    source = assigned_twice.translate("*fp32:16, 32", num_warps=1).source
    assert source.count("every thread has stored to x_ptr before it is loaded again") == 1


@triton.jit
def shifted_in_place(x_ptr, n, N: tl.constexpr):
    # What one thread overwrites, its neighbour loads.
    offsets = tl.arange(0, N)
    x = tl.load(x_ptr + offsets + 1, mask=offsets + 1 < n, other=0.0)
    tl.store(x_ptr + offsets, x, mask=offsets < n)


@triton.jit
def shifted_on_one_way(x_ptr, n, N: tl.constexpr):
    offsets = tl.arange(0, N)
    x = tl.load(x_ptr + (offsets + 1) % N)
    if n > 5000:
        tl.debug_barrier()
    else:
        tl.store(x_ptr + offsets, x)


@triton.jit
def advanced(x_ptr, n, N: tl.constexpr):
    pointers = x_ptr + tl.arange(0, N)
    for _ in range(0, n, N):
        tl.store(pointers, tl.load(pointers) * 2)
        pointers += N


@triton.jit
def overtaken(x_ptr, n, N: tl.constexpr):
    # The pointers of the store are no longer those of the load.
    pointers = x_ptr + tl.arange(0, N)
    x = tl.load(pointers)
    pointers += 1
    tl.store(pointers, x)


@pytest.mark.parametrize(
    ("kernel", "expected"),
    [
        (shifted_in_place, lambda x: np.r_[x[1:2000], np.zeros(1), x[2000:]]),
        (shifted_on_one_way, lambda x: np.r_[np.roll(x[:2048], -1), x[2048:]]),
        (overtaken, lambda x: np.r_[x[:1], x[:2048], x[2049:]]),
    ],
)
def test_nothing_is_overwritten_before_it_is_loaded(run_everywhere: Any, kernel: Any, expected: Any) -> None:
    x = np.random.default_rng(3).integers(-9, 9, 2100).astype(np.float32)
    (found, *_) = run_everywhere(kernel, (1,), x, 2000, N=2048)
    np.testing.assert_array_equal(found, expected(x))


def test_what_a_thread_alone_has_loaded_needs_no_barrier() -> None:
    assert "__syncthreads" not in advanced.translate("*fp32:16, i32, 1024").source
    for kernel in (shifted_in_place, overtaken):
        text = kernel.translate("*fp32:16, i32, 1024").source
        assert text.count("every thread has loaded from x_ptr before it is overwritten") == 1


@triton.jit
def running_total(x_ptr, out_ptr, n, N: tl.constexpr):
    # One thread stores what all load in the next trip.
    offsets = tl.arange(0, N)
    for row in range(1, n):
        before = tl.load(out_ptr + (row - 1) * N)
        tl.store(out_ptr + row * N + offsets, tl.load(x_ptr + row * N + offsets) + before)


@triton.jit
def counted(places_ptr, counts_ptr, out_ptr, n, N: tl.constexpr):
    offsets = tl.arange(0, N)
    for row in range(0, n):
        place = tl.load(places_ptr + row)
        count = tl.load(counts_ptr + place)
        tl.store(out_ptr + row * N + offsets, offsets + count)
        tl.store(counts_ptr + place, count + 1)


@triton.jit
def passed_on(x_ptr, out_ptr, n, N: tl.constexpr):
    offsets = tl.arange(0, N)
    row = 0
    while row < n - 1:
        x = tl.load(x_ptr + row * N + offsets)
        row += 1
        tl.store(x_ptr + row * N + (offsets + 5) % N, x + 1)


@triton.jit
def stored_first(x_ptr, out_ptr, n, N: tl.constexpr):
    # The store of a trip must not overtake the loads of the one before.
    offsets = tl.arange(0, N)
    for row in range(0, n):
        tl.store(x_ptr + (offsets + row) % N, offsets * (row + 1))
        tl.store(out_ptr + row * N + offsets, tl.load(x_ptr + offsets))


@triton.jit
def in_an_inner_loop(x_ptr, out_ptr, n, N: tl.constexpr):
    offsets = tl.arange(0, N)
    for row in range(0, n - 1):
        for half in range(2):
            x = tl.load(x_ptr + row * N + (offsets + half) % N)
            tl.store(x_ptr + (row + 1) * N + (offsets * 3) % N, x * (half + 1))


@triton.jit
def by_an_advancing_pointer(x_ptr, out_ptr, n, N: tl.constexpr):
    offsets = tl.arange(0, N)
    row_ptr = x_ptr
    for row in range(0, n):
        tl.store(row_ptr + offsets, tl.load(row_ptr + offsets) * 2)
        row_ptr += N
    tl.store(out_ptr + offsets, tl.load(x_ptr + (N - 1 - offsets) * n))


@pytest.mark.parametrize("warps", [1, 4])
@pytest.mark.parametrize(
    "kernel", [running_total, counted, passed_on, stored_first, in_an_inner_loop, by_an_advancing_pointer]
)
def test_a_trip_finds_what_the_last_one_stored(run_everywhere: Any, kernel: Any, warps: int) -> None:
    arrays = [np.arange(6 * 128, dtype=np.int32), np.zeros(6 * 128, np.int32)]
    if kernel is counted:
        arrays = [np.array([0, 1, 0, 0, 2, 1], np.int32), np.zeros(3, np.int32), np.zeros(6 * 128, np.int32)]
    found = run_everywhere(kernel, (1,), *arrays, 6, N=128, num_warps=warps)
    if kernel is counted:
        assert found[1].tolist() == [3, 2, 1] and found[2][::128].tolist() == [0, 0, 1, 2, 0, 1]
    elif kernel is running_total:
        assert found[1][::128].tolist() == np.cumsum(np.arange(6) * 128).tolist()
    elif kernel is passed_on:
        assert found[0][5 * 128 + 25] == 5 and found[0][5 * 128 + 24] == 127 + 5


@triton.jit
def some_of_zeros(places_ptr, out_ptr, N: tl.constexpr, K: tl.constexpr):
    tl.store(out_ptr + tl.arange(0, N), 0)
    places = tl.load(places_ptr + tl.arange(0, K))
    tl.store(out_ptr + places, 1)


@triton.jit
def one_by_one(places_ptr, out_ptr, N: tl.constexpr, K: tl.constexpr):
    for start in range(0, N, 128):
        tl.store(out_ptr + start + tl.arange(0, 128), 0)
    for row in range(0, K):
        tl.store(out_ptr + tl.load(places_ptr + row), 1)


@triton.jit
def added_to_zeros(places_ptr, out_ptr, N: tl.constexpr, K: tl.constexpr):
    tl.store(out_ptr + tl.arange(0, N), 0)
    tl.atomic_add(out_ptr + tl.load(places_ptr + tl.arange(0, K)), 1)


@triton.jit
def at_sums_of_zeros(places_ptr, out_ptr, N: tl.constexpr, K: tl.constexpr):
    tl.store(out_ptr + tl.arange(0, N), 0)
    total = 0
    for row in range(0, K):
        place = tl.load(places_ptr + row)
        total = total * 0 + place
        tl.store(out_ptr + total, 1)


@triton.jit
def two_rows_of_a_slot(places_ptr, out_ptr, N: tl.constexpr, K: tl.constexpr):
    # Both rows begin where memory says; how they lie to each other the kernel says.
    slot = tl.load(places_ptr)
    row = out_ptr + slot * 0
    tl.store(row + tl.arange(0, K), 1)
    tl.store(row + N // 2 + tl.arange(0, K), 1)


@pytest.mark.parametrize("kernel", [some_of_zeros, one_by_one, added_to_zeros, at_sums_of_zeros])
def test_what_is_stored_last_stays(run_everywhere: Any, kernel: Any) -> None:
    places = np.array([7, 900, 33, 1000, 512, 3, 2, 1], np.int32)
    _, out = run_everywhere(kernel, (1,), places, np.full(1024, 5, np.int32), N=1024, K=8)
    assert set(np.flatnonzero(out)) == set(places) and out.max() == 1
    source = kernel.translate("*i32:16, *i32:16, 1024, 8").source
    assert "every thread has stored to out_ptr before some of it is stored again" in source


def test_rows_that_the_kernel_tells_apart_need_no_barrier() -> None:
    assert "__syncthreads" not in two_rows_of_a_slot.translate("*i32:16, *i32:16, 1024, 8", num_warps=1).source


@triton.jit
def permuted(x_ptr, places_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    places = tl.load(places_ptr + i)
    x = tl.load(x_ptr + places, mask=places != i, other=0)
    tl.store(x_ptr + i, x * 3 + places)


@pytest.mark.parametrize("schedule", ["greedy_low", "reverse"])
def test_an_array_is_read_before_it_is_permuted(schedule: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Elements that are loaded one by one, where they are used, would be loaded behind the barrier of the store."""
    monkeypatch.setenv("TILEWRIGHT_MODE", "cpu")
    size, run = 4096, cpu.run
    monkeypatch.setattr(cpu, "run", lambda *given, **named: run(*given, **named, schedule=schedule))
    rng = np.random.default_rng(2)
    x, places = rng.integers(0, 99, size).astype(np.int32), rng.permutation(size).astype(np.int32)
    own = x.copy()
    permuted[(1,)](own, places, BLOCK=size)
    assert np.array_equal(own, np.where(places != np.arange(size), x[places], 0) * 3 + places)


@triton.jit
def sum_of(x_ptr, n, stop, BLOCK: tl.constexpr):
    total = 0.0
    for start in range(0, stop, BLOCK):
        offsets = start + tl.arange(0, BLOCK)
        total += tl.sum(tl.load(x_ptr + offsets, mask=offsets < n, other=0.0))
    return total


@triton.jit
def overwrite(x_ptr, n, stop, total, label, BLOCK: tl.constexpr):
    for start in range(0, stop, BLOCK):
        offsets = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + offsets, mask=offsets < n, other=0.0)
        tl.store(x_ptr + offsets, x / total + label, mask=offsets < n)


@triton.jit
def twice_over(x_ptr, y_ptr, out_ptr, n, stop, BLOCK: tl.constexpr):
    # Every thread reads one place of the row, and the row is overwritten: behind a sum over all of it, if there was any.
    x_ptr += tl.program_id(0) * n
    label = tl.load(x_ptr + tl.load(y_ptr + tl.program_id(0)))
    total = sum_of(x_ptr, n, n, BLOCK)
    overwrite(x_ptr, n, stop, total, label, BLOCK)
    tl.store(out_ptr + tl.program_id(0), label)


OVERWRITTEN = "every thread has loaded from x_ptr before it is overwritten"


@triton.jit
def with_the_same_bounds(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    twice_over(x_ptr, y_ptr, out_ptr, n, n, BLOCK)


def test_loops_of_the_same_bounds_have_both_trips_or_none() -> None:
    pointers = "*fp32:16, *i32:16, *fp32:16"
    assert OVERWRITTEN not in with_the_same_bounds.translate(f"{pointers}, i32, 1024").source
    assert OVERWRITTEN in twice_over.translate(f"{pointers}, i32, i32, 1024").source


@triton.jit
def loaded_in_between(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    total = sum_of(x_ptr, n, n, BLOCK)
    label = tl.load(x_ptr + tl.load(y_ptr))
    overwrite(x_ptr, n, n, total, label, BLOCK)
    tl.store(out_ptr, label)


@triton.jit
def in_one_branch(x_ptr, y_ptr, out_ptr, n, flag, BEHIND: tl.constexpr, BLOCK: tl.constexpr):
    # The second loop stands in the other branch, or behind both.
    label = tl.load(x_ptr + tl.load(y_ptr))
    total = 1.0
    if flag:
        total = sum_of(x_ptr, n, n, BLOCK)
    else:
        if not BEHIND:
            overwrite(x_ptr, n, n, total, label, BLOCK)
    if BEHIND:
        overwrite(x_ptr, n, n, total, label, BLOCK)
    tl.store(out_ptr, label)


@triton.jit
def bounds_that_change(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    label = tl.load(x_ptr + tl.load(y_ptr))
    stop = n - BLOCK
    total = 1.0
    for start in range(0, stop, BLOCK):
        offsets = start + tl.arange(0, BLOCK)
        total += tl.sum(tl.load(x_ptr + offsets, mask=offsets < n, other=0.0))
    stop += BLOCK
    overwrite(x_ptr, n, stop, total, label, BLOCK)
    tl.store(out_ptr, label)


def test_otherwise_the_barrier_stays() -> None:
    pointers = "*fp32:16, *i32:16, *fp32:16"
    assert OVERWRITTEN in loaded_in_between.translate(f"{pointers}, i32, 1024").source
    for behind in (False, True):
        assert OVERWRITTEN in in_one_branch.translate(f"{pointers}, i32, i32, {behind}, 1024").source
    assert OVERWRITTEN in bounds_that_change.translate(f"{pointers}, i32, 1024").source


@pytest.mark.parametrize("n", [0, 5, 1024, 1500])
def test_rows_are_overwritten_behind_what_is_read_of_them(
    n: int, monkeypatch: pytest.MonkeyPatch, run_everywhere: Any
) -> None:
    x = np.random.default_rng(n).uniform(1, 2, (2, max(n, 1))).astype(np.float32)
    y = np.array([0, max(n - 1, 0)], np.int32)
    args = x, y, np.zeros(2, np.float32), n
    got, _, out = run_everywhere(with_the_same_bounds, (2,), *args, BLOCK=1024, tolerance=1e-5)
    label = x.reshape(2, -1)[[0, 1] if n else [0, 0], y if n else [0, 0]]
    expected = x / x.sum(1, keepdims=True) + label[:, None] if n else x
    np.testing.assert_allclose(got, expected, rtol=1e-4)
    np.testing.assert_allclose(out, label)
    monkeypatch.setenv("TILEWRIGHT_MODE", "check")
    with_the_same_bounds[(2,)](*[a.copy() if isinstance(a, np.ndarray) else a for a in args], BLOCK=1024)
