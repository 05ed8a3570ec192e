"""Stores to one argument: which of them meet, and that the last one stays where they do."""

from __future__ import annotations

import itertools
import random
from typing import Any

import numpy as np
import pytest
import tilewright as triton
import tilewright.language as tl
from tilewright.analysis.meeting import _reaches
from tilewright.runtime import cpu

WAITS = "before some of it is stored again"


@triton.jit
def one_of_a_row(out_ptr, at_ptr, place, N: tl.constexpr):
    tl.store(out_ptr + tl.arange(0, N), 0)
    tl.store(out_ptr + place, 1)


@triton.jit
def behind_a_row(out_ptr, at_ptr, place, N: tl.constexpr):
    tl.store(out_ptr + tl.arange(0, N), 0)
    tl.store(out_ptr + N, 1)


@triton.jit
def shifted_by_one(out_ptr, at_ptr, n, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(out_ptr + i, 1)
    tl.store(out_ptr + i + 1, 2)


@triton.jit
def in_turns(out_ptr, at_ptr, n, N: tl.constexpr):
    i = tl.arange(0, N // 2)
    tl.store(out_ptr + 2 * i, 1)
    tl.store(out_ptr + 2 * i + 1, 2)


@triton.jit
def halves_of_rows(out_ptr, at_ptr, n, N: tl.constexpr):
    m, i = tl.arange(0, 4), tl.arange(0, N // 8)
    for row in range(0, 2):
        places = out_ptr + row * N // 2 + m[:, None] * (N // 8) + i[None, :]
        tl.store(places, row)
        tl.store(places + 2 * N, row)


@triton.jit
def sliding(out_ptr, at_ptr, n, N: tl.constexpr):
    for start in range(n):
        tl.store(out_ptr + start + tl.arange(0, N), start)


@triton.jit
def sliding_sums(out_ptr, at_ptr, n, N: tl.constexpr):
    start = 0
    while start < n:
        places = out_ptr + start + tl.arange(0, N)
        tl.store(places, tl.load(places) + 1)
        start += 3


@triton.jit
def block_by_block(out_ptr, at_ptr, n, N: tl.constexpr):
    for start in range(0, n, N):
        for half in range(2):
            tl.store(out_ptr + start + half * (N // 2) + tl.arange(0, N // 2), start)


@triton.jit
def cleared_block_by_block(out_ptr, at_ptr, n, N: tl.constexpr):
    for start in range(0, N, N // 4):
        tl.store(out_ptr + start + tl.arange(0, N // 4), 0)
    tl.store(out_ptr + tl.arange(0, N), tl.arange(0, N))


@triton.jit
def scattered_twice(out_ptr, at_ptr, n, N: tl.constexpr):
    # The same names, other places: what a later load says is no longer what the earlier one said.
    for turn in tl.static_range(2):
        places = tl.load(at_ptr + (tl.arange(0, N) + turn * 7) % 64)
        tl.store(out_ptr + places, turn)


@triton.jit
def cleared_and_scattered(out_ptr, at_ptr, n, N: tl.constexpr):
    # A trip clears what the one before has scattered.
    for row in range(n):
        tl.store(out_ptr + tl.arange(0, N), 0)
        places = tl.load(at_ptr + tl.arange(0, 32))
        tl.store(out_ptr + row + places, row)


@triton.jit
def counted_on_zeros(out_ptr, at_ptr, n, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(out_ptr + i, 0)
    tl.atomic_add(out_ptr + i // 2, 1)
    for _ in range(3):
        count = tl.load(out_ptr + i % 4)
        tl.atomic_add(out_ptr + i % 4, 1)
        tl.store(out_ptr + N + i, count)


MEET = [
    one_of_a_row,
    shifted_by_one,
    sliding,
    sliding_sums,
    cleared_block_by_block,
    scattered_twice,
    cleared_and_scattered,
    counted_on_zeros,
]
APART = [behind_a_row, in_turns, halves_of_rows, block_by_block]


@pytest.mark.parametrize("kernel", MEET)
def test_what_meets_is_stored_in_order(run_everywhere: Any, kernel: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    run = cpu.run
    monkeypatch.setattr(cpu, "run", lambda *given, **named: run(*given, **named, schedule="random"))
    run_everywhere(
        kernel, (1,), np.full(1100, 9, np.int32), np.arange(64, dtype=np.int32) * 5 % 64, 13, N=512, num_warps=2
    )
    if kernel is not sliding_sums:
        assert WAITS in kernel.translate("*i32:16, *i32:16, i32, 512", num_warps=2).source


@pytest.mark.parametrize("kernel", APART)
def test_what_lies_apart_needs_no_barrier(kernel: Any) -> None:
    assert "__syncthreads" not in kernel.translate("*i32:16, *i32:16, i32, 512", num_warps=2).source


def test_steps_that_add_up_are_found() -> None:
    """Every number of steps is tried here, and those of long loops are left alone in time."""
    generator = random.Random(1)
    for _ in range(1000):
        bounds = [sorted(generator.choices(range(-6, 7), k=2)) for _ in range(generator.randint(0, 3))]
        steps = [(generator.choice([-12, -7, -3, -1, 1, 2, 4, 5, 16]), low, high) for low, high in bounds]
        target = generator.randint(-60, 60)
        taken = itertools.product(*(range(low, high + 1) for _, low, high in steps))
        sums = {sum(step[0] * number for step, number in zip(steps, numbers, strict=True)) for numbers in taken}
        assert _reaches(target, steps) == (target in sums), (target, steps)
    assert _reaches(1, [(6, -(2**31), 2**31), (4, 0, 2**31)]) is False
    assert _reaches(1, [(30, -(2**20), 2**20), (15, -(2**20), 2**20), (9, 0, 0), (5, 0, 0)]) is None
