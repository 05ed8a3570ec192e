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
    assert (
        re.search(r"float largest\[\w+\]\[\w+\]\[NUM_THREADS\];", artifact.source)
        and "largest_next[" in artifact.source
    )
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
