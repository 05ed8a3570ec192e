"""Loads of neighbours take what the thread holds in registers, with the results, the bounds and the warnings of single loads."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tilewright as triton
import tilewright.language as tl

RANDOM = np.random.default_rng(11)


@triton.jit
def stencil(x_ptr, out_ptr, H, W, FAR: tl.constexpr, WHAT: tl.constexpr, BH: tl.constexpr, BW: tl.constexpr):
    """Neighbours on both sides along rows, which have ends; WHAT may stand between."""
    y = tl.program_id(0) * BH + tl.arange(0, BH)[:, None]
    x = tl.program_id(1) * BW + tl.arange(0, BW)[None, :]
    inside = (y < H) & (x < W)
    at = x_ptr + y * W + x
    own = tl.load(at, mask=inside, other=5)
    value = own
    if WHAT == "stored":
        tl.store(at, own + 1, mask=inside)
    if WHAT == "barrier":
        tl.debug_barrier()
    if WHAT == "changed":
        own = own * 3
    if WHAT == "moved":
        at = at + 1
    if WHAT == "wider":  # what the first load has left out
        before = tl.load(at - FAR, mask=(y < H) & (x - FAR >= 0) & (x - FAR < W), other=2)
        behind = tl.load(at + FAR, mask=(y < H) & (x + FAR < W) & (x >= 0), other=3)
    else:
        before = tl.load(at - FAR, mask=inside & (x >= FAR), other=2)
        behind = tl.load(at + FAR, mask=inside & (x + FAR < W - 1), other=3)
    tl.store(out_ptr + y * W + x, own + 100 * value + 10 * before - behind, mask=inside)


KINDS = ("", "barrier", "changed", "moved", "wider")


@pytest.mark.parametrize("what, far", (*((what, 1) for what in KINDS), ("", 2), ("", 3), ("", 4)))
@pytest.mark.parametrize("shape", ((8, 64), (5, 48), (5, 37)))
def test_rows(run_everyhow: Any, what: str, far: int, shape: tuple[int, int]) -> None:
    x = RANDOM.integers(0, 9, (shape[0] + 1, shape[1])).astype(np.int32)
    flat, count = x.reshape(-1), shape[0] * shape[1]
    at, column = np.arange(count), np.arange(count) % shape[1]
    moved = at + (what == "moved")
    own = flat[:count].copy()
    far_behind = column + far < shape[1] - (what != "wider")
    before = np.where(column >= far, flat[np.maximum(moved - far, 0)], 2)
    behind = np.where(far_behind, flat[np.minimum(moved + far, flat.size - 1)], 3)
    wanted = own * (103 if what == "changed" else 101) + 10 * before - behind
    arguments = x, np.zeros(shape, np.int32), *shape, far, what, 4, 64
    for results in run_everyhow(stencil, (2, 1), arguments, checked=far == 1, num_warps=1):
        np.testing.assert_array_equal(results[1].reshape(-1), wanted)


def taken(text: str) -> int:
    """How many loads a text has that take elements of `own`."""
    return text.count("? own[")


@pytest.mark.parametrize(
    "what, far, loads",
    (("", 1, 2), ("", 3, 2), ("", 4, 0), ("stored", 1, 0), ("barrier", 1, 0), ("changed", 1, 2), ("moved", 1, 1),
     ("wider", 1, 0)),
)  # fmt: skip
def test_the_text_of_rows(what: str, far: int, loads: int) -> None:
    """Of what neighbours have, the run's first or last elements alone are loaded; not past a store or a barrier."""
    text = stencil.translate(f"*i32:16, *i32:16, i32, i32:16, {far}, {what!r}, 4, 64", num_warps=1).source
    assert taken(text) == loads
    if loads == 2 and not what and far == 1:
        assert ("c > 0 ? own[" in text and "c < VEC - 1 ? own[" in text) or "c < COLS - 1 ? own[" in text
    odd = stencil.translate(f"*i32:16, *i32:16, i32, i32, {far}, {what!r}, 4, 64", num_warps=1).source
    assert not taken(odd)  # a row may end within a run: what lies behind is zero in one tile, and not in the other
