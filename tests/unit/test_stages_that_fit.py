"""How many stages a ring gets: what fits, and never one, with which nothing would be loaded ahead."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tilewright as triton
import tilewright.language as tl
from tilewright import fitting
from tilewright.diagnostics import OutOfResources
from tilewright.fitting import _NoRoom


@triton.jit
def two_loops(a_ptr, b_ptr, c_ptr, out_ptr, kept_ptr, n, W: tl.constexpr, B: tl.constexpr):
    # Products with tiles of [B, 64] and [64, 16], with a store in each trip, then with two of [B, B].
    rows, few, depth = tl.arange(0, B), tl.arange(0, 16), tl.arange(0, 64)
    narrow, wide = tl.zeros((B, 16), tl.float32), tl.zeros((B, B), tl.float32)
    kept = tl.where(rows[:, None] + n >= few[None, :], 1.0, 2.0)
    for k in range(0, n, 64):
        a = tl.load(a_ptr + rows[:, None] * W + k + depth[None, :])
        c = tl.load(c_ptr + (k + depth[:, None]) * 16 + few[None, :])
        narrow = tl.dot(a, c, narrow)
        tl.store(kept_ptr + rows[:, None] * 16 + few[None, :], kept, mask=few < n)
    for k in range(0, n, B):
        a = tl.load(a_ptr + rows[:, None] * W + k + rows[None, :])
        b = tl.load(b_ptr + (k + rows[:, None]) * B + rows[None, :])
        wide = tl.dot(a, b, wide)
    tl.store(kept_ptr + B * 16 + rows[:, None] * 16 + few[None, :], narrow)
    tl.store(out_ptr + rows[:, None] * (B + 1) + rows[None, :], wide)


@pytest.mark.parametrize("stages", [1, 2, 3])
def test_a_stage_for_each_of_few(monkeypatch: pytest.MonkeyPatch, stages: int) -> None:
    """With `num_stages=1` a ring of two tiles of 32 KiB had one stage where two blocks share a multiprocessor."""
    monkeypatch.setenv("TILEWRIGHT_MODE", "cpu")
    monkeypatch.setenv("TILEWRIGHT_ARCH", "sm_90a")
    rng = np.random.default_rng(stages)
    a, b, c = (rng.integers(-2, 3, shape).astype(np.float16) for shape in ((128, 256), (256, 128), (256, 16)))
    out, kept = np.full((128, 129), 7, np.float32), np.full((2, 128, 16), 7, np.float32)
    compiled = two_loops[(1,)](a, b, c, out, kept, 256, 256, 128, num_warps=4, num_stages=stages)
    assert np.array_equal(out[:, :128], a.astype(np.float32) @ b) and np.array_equal(kept[1], a.astype(np.float32) @ c)
    assert "[128, 128]: shared, 32768 bytes" not in compiled.asm["cu"]


@pytest.mark.parametrize("room", range(9))
def test_the_most_that_fit_are_found(monkeypatch: pytest.MonkeyPatch, room: int) -> None:
    """As trying one after another would, in fewer plans, where a ring takes up to eight."""
    tried: list[int] = []

    def plan(stages: int) -> Any:
        tried.append(stages)
        return stages if stages <= room else _NoRoom(stages, OutOfResources(stages, room, "shared memory", ""))

    monkeypatch.setattr(fitting, "Plan", int)
    found = fitting._with_most_stages(plan, 2, 8)
    assert found == room if room >= 2 else isinstance(found, _NoRoom)
    assert len(tried) <= 4
