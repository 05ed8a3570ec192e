"""Tiles that registers have no room for: in shared memory, each thread's elements in a column of its own."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import tilewright as triton
import tilewright.language as tl


@triton.jit
def shifted(x_ptr, out_ptr, n, ROWS: tl.constexpr, COLS: tl.constexpr):
    # Accumulators that are written in terms of a tile seen from another side.
    at = tl.arange(0, ROWS)[:, None] * COLS + tl.arange(0, COLS)[None, :]
    largest = tl.full((ROWS, COLS), -100.0, tl.float32)
    for start in range(0, n):
        largest = tl.maximum(largest, tl.load(x_ptr + start * ROWS * COLS + at))
    total = tl.zeros((ROWS, COLS), tl.float32)
    for start in range(0, n):
        x = tl.load(x_ptr + start * ROWS * COLS + at)
        total = tl.where(x > largest - 3, total + x, total)
        largest = tl.trans(tl.trans(largest) + tl.max(x, axis=1)[None, :])
    tl.store(out_ptr + at, total)
    tl.store(out_ptr + ROWS * COLS + at, largest)


def test_a_tile_computed_from_another_view_of_itself(run_everywhere: Any) -> None:
    """What was computed beside it was copied to the tile's name without the thread's column: no compiler took it.

    Both loops could load ahead in one memory, but a tile would be in local memory for it.
    """
    artifact = shifted.translate("*fp32:16, *fp32:16, i32, 32, 1024", num_warps=32)
    assert re.search(r"float largest(\[\w+\])+\[NUM_THREADS\];", artifact.source) and "largest_next[" in artifact.source
    x = np.random.default_rng(3).integers(-9, 10, (3, 32, 1024)).astype(np.float32)
    out = run_everywhere(shifted, (1,), x, np.zeros((2, 32, 1024), np.float32), 3, ROWS=32, COLS=1024, num_warps=32)[1]
    largest, total = x.max(0), np.zeros((32, 1024), np.float32)
    for one in x:
        total += np.where(one > largest - 3, one, 0)
        largest = largest + one.max(1)[:, None]
    assert np.array_equal(out[0], total) and np.array_equal(out[1], largest)


def test_loops_that_load_ahead_in_turns() -> None:
    """Two loops with a stage of 128 KiB each: nothing is loaded ahead, where the kernel was refused."""
    assert shifted.translate("*fp32:16, *fp32:16, i32, 32, 1024", num_warps=32).shared_bytes <= 227 * 1024


@triton.jit
def chosen(x_ptr, out_ptr, n, B: tl.constexpr):
    # Each branch makes a tile that the next one reads: no two of them are alive at once.
    at = tl.arange(0, B)
    x = tl.load(x_ptr + at)
    if n > 0:
        first = x * 2
    else:
        first = x * 3
    if n > 1:
        second = first + 1
    else:
        second = first + 2
    if n > 2:
        third = second * 5
    else:
        third = second * 7
    if n > 3:
        fourth = third + 3
    else:
        fourth = third + 4
    tl.store(out_ptr + at, fourth)


def test_a_tile_that_both_branches_assign_is_not_alive_in_front_of_them(run_everywhere: Any) -> None:
    """Such tiles were counted from the beginning of the kernel on, and put into shared memory for lack of registers."""
    artifact = chosen.translate("*fp32:16, *fp32:16, i32, 16384", num_warps=4)
    assert artifact.shared_bytes == 0
    x = np.arange(512, dtype=np.float32)
    for n in range(5):
        expected = (x * (2 if n > 0 else 3) + (1 if n > 1 else 2)) * (5 if n > 2 else 7) + (3 if n > 3 else 4)
        assert np.array_equal(run_everywhere(chosen, (1,), x, np.zeros_like(x), n, B=512)[1], expected)
