"""Threads of a block go the same way even where what decides it changes while they load it."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
import tilewright as triton
import tilewright.language as tl


@triton.jit
def mean_kernel(x_ptr, state_ptr, n, BLOCK: tl.constexpr):
    # The program that comes last finishes: sum, count and mean lie side by side.
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0.0)
    tl.atomic_add(state_ptr, tl.sum(x), sem="relaxed")
    tl.atomic_add(state_ptr + 1, 1.0, sem="release")
    count = tl.load(state_ptr + 1)
    if count == tl.num_programs(0):
        total = tl.load(state_ptr)
        tl.store(state_ptr + 2, total / n)


@pytest.mark.parametrize("mode", ("cpu", "check", "interpret"))
def test_the_last_program_finishes(monkeypatch: pytest.MonkeyPatch, mode: str) -> None:
    """Only the thread that counts is sure to see its count; the others used to pass the barrier behind the test by."""
    monkeypatch.setenv("TILEWRIGHT_MODE", mode)
    x = np.random.default_rng(3).random(1000).astype(np.float32)
    state = np.zeros(3, np.float32)
    mean_kernel[(8,)](x, state, 1000, BLOCK=128)
    np.testing.assert_allclose(state, [x.sum(), 8, x.mean()], rtol=1e-5)


def test_one_thread_loads_what_decides() -> None:
    text = mean_kernel.translate("*fp32:16, *fp32:16, i32, 128").source
    assert "if (tid == 0) count_shared[0] = state_ptr[1];" in text
    assert "total_shared" not in text  # decides nothing


@triton.jit
def told_kernel(flag_ptr, out_ptr):
    while tl.load(flag_ptr, volatile=True) == 0:
        pass
    tl.store(out_ptr, tl.load(flag_ptr + 1, volatile=True))


def test_one_thread_asks_whether_another_kernel_has_come_so_far(run_everywhere: Any) -> None:
    *_, out = run_everywhere(told_kernel, (1,), np.array([1, 5], np.int32), np.zeros(1, np.int32))
    assert out[0] == 5
    text = told_kernel.translate("*i32:16, *i32:16").source
    assert len(re.findall(r"if \(tid == 0\) \w+_shared\[0\] = ", text)) == 1


@triton.jit
def told_how_far(a_ptr, out_ptr, trips_ptr, N: tl.constexpr, VOLATILE: tl.constexpr):
    places = tl.arange(0, N)[:, None] * N + tl.arange(0, N)[None, :]
    total = tl.zeros([N, N], tl.float32)
    for trip in range(tl.load(trips_ptr, volatile=VOLATILE)):
        a = tl.load(a_ptr + trip * N * N + places)
        total += tl.dot(a, a)
    tl.store(out_ptr + places, total)


@pytest.mark.parametrize("volatile", [False, True])
def test_a_loading_warpgroup_does_not_ask_for_itself(monkeypatch: pytest.MonkeyPatch, volatile: bool) -> None:
    monkeypatch.setenv("TILEWRIGHT_ARCH", "sm_90a")
    text = told_how_far.translate(f"*fp16:16, *fp32:16, *i32:16, 64, {volatile}").source
    assert ("tid >= NUM_THREADS" in text) != volatile


@triton.jit
def append_kernel(x_ptr, out_ptr, counter_ptr, BLOCK: tl.constexpr):
    # Not for several programs at once: what is loaded is added to afterwards.
    i = tl.arange(0, BLOCK)
    first = tl.load(counter_ptr)
    tl.atomic_add(counter_ptr, BLOCK)
    tl.store(out_ptr + first + i, tl.load(x_ptr + i))


def test_an_atomic_waits_for_loads_of_what_it_changes(run_everywhere: Any) -> None:
    x = np.arange(128, dtype=np.float32)
    _, out, counter = run_everywhere(
        append_kernel, (1,), x, np.zeros(256, np.float32), np.array([7], np.int32), BLOCK=128
    )
    np.testing.assert_array_equal(out[7:135], x)
    assert counter[0] == 135
