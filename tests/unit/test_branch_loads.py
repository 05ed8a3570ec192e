"""Loads in a branch of a recurrence: they are made an iteration ahead as the others are, where the branch's condition holds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tilewright as triton
import tilewright.language as tl


@triton.jit
def gradients(g_ptr, o_ptr, do_ptr, dx_ptr, dg_ptr, trips, spacing, N: tl.constexpr, WHAT: tl.constexpr):
    n = tl.arange(0, N)
    state = tl.zeros([N], tl.float32)
    for i in range(trips - 1, -1, -1):
        g = tl.load(g_ptr + i * N + n)
        if i > 0:
            before = i - 1
            if WHAT == "quotient":
                last = tl.load(o_ptr + (i * spacing // spacing - 1) * N + n, mask=n < N - 1, other=0.0).to(tl.float32)
            elif WHAT == "named":
                last = tl.load(o_ptr + before * N + n, mask=n < N - 1, other=0.0).to(tl.float32)
            else:
                last = tl.load(o_ptr + (i - 1) * N + n, mask=n < N - 1, other=0.0).to(tl.float32)
        else:
            last = tl.full([N], 7.0, tl.float32)
        state = (state + tl.load(do_ptr + i * N + n)) * g
        tl.store(dx_ptr + i * N + n, state)
        tl.store(dg_ptr + i * N + n, state * last)
        if WHAT == "written":
            tl.store(o_ptr + i * N + n, state.to(tl.float16))


@triton.jit
def in_a_branch(o_ptr, out_ptr, flag_ptr, trips, N: tl.constexpr, WHAT: tl.constexpr):
    n = tl.arange(0, N)
    state = tl.zeros([N], tl.float32)
    for i in range(trips):
        place = i
        if i > 0:
            if WHAT == "moved":
                if i > 2:
                    place = i - 2
            elif WHAT == "awaited":
                while tl.atomic_add(flag_ptr, 0) == 0:
                    pass
            elif WHAT == "next grid":
                tl.extra.cuda.gdc_wait()
            last = tl.load(o_ptr + place * N + n) * 2.0
        else:
            last = tl.zeros([N], tl.float32)
        state = state * 0.5 + last
        tl.store(out_ptr + i * N + n, state)


@pytest.mark.parametrize("what, moves", [("", True), ("moved", False), ("awaited", False), ("next grid", False)])
def test_a_load_stays_behind_what_it_waits_for(run_everywhere: Any, what: str, moves: bool) -> None:
    o = np.random.default_rng(4).integers(-8, 9, (6, 64)).astype(np.float32)
    arguments = (o, np.full((6, 64), np.nan, np.float32), np.ones(1, np.int32), 6)
    _, found, _ = run_everywhere(in_a_branch, (1,), *arguments, N=64, WHAT=what, num_warps=1)
    state = np.zeros(64)
    for i in range(6):
        place = i - 2 if what == "moved" and i > 2 else i
        state = state * 0.5 + (o[place] * 2 if i else 0)
        np.testing.assert_array_equal(found[i], state)
    source = in_a_branch.translate(f"*fp32:16, *fp32:16, *i32:16, i32, 64, '{what}'", num_warps=1).source
    branch = source.index("if (i > 0) {")
    assert ("next_o" in source) == moves
    assert (source.index("o_ptr + ", source.index("for (int i = 0")) < branch) == moves


def expected(g: Any, o: Any, do: Any, written: bool) -> tuple[Any, Any]:
    state, o = np.zeros(g.shape[1], np.float32), o.copy()
    dx, dg = np.empty(g.shape, np.float32), np.empty(g.shape, np.float32)
    for i in reversed(range(len(g))):
        last = np.full(g.shape[1], 7.0) if i == 0 else np.append(o[i - 1, :-1], 0)
        state = (state + do[i]) * g[i]
        dx[i], dg[i] = state, state * last
        if written:
            o[i] = state
    return dx, dg


@pytest.mark.parametrize("trips", [0, 1, 5])
@pytest.mark.parametrize("what", ["", "named", "quotient", "written"])
def test_recurrences_with_a_branch(run_everywhere: Any, what: str, trips: int) -> None:
    generator = np.random.default_rng(trips)
    g = generator.integers(0, 2, (trips, 64)).astype(np.float32)
    o = generator.integers(-3, 4, (trips, 64)).astype(np.float16)
    do = generator.integers(-3, 4, (trips, 64)).astype(np.float32)
    empty = np.full((trips, 64), np.nan, np.float32)
    *_, dx, dg = run_everywhere(gradients, (1,), g, o, do, empty, empty.copy(), trips, 3, N=64, WHAT=what, num_warps=1)
    for found, right in zip((dx, dg), expected(g, o, do, what == "written"), strict=True):
        np.testing.assert_array_equal(found, right)


@pytest.mark.parametrize("what, moves", [("", True), ("named", True), ("quotient", False), ("written", False)])
def test_which_loads_leave_their_branch(what: str, moves: bool) -> None:
    signature = f"*fp32:16, *fp16:16, *fp32:16, *fp32:16, *fp32:16, i32, i32, 64, '{what}'"
    source = gradients.translate(signature, num_warps=1).source
    assert "next_g" in source
    assert ("next_last" in source) == moves
