"""Loops of few trips that load and store: the loads of all trips come first, where nothing is written through their pointers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tilewright as triton
import tilewright.language as tl

RANDOM = np.random.default_rng(7)
FIRST = "The loads of all iterations come first"


@triton.jit
def scaled(x_ptr, w_ptr, out_ptr, N, START: tl.constexpr, STOP: tl.constexpr, STEP: tl.constexpr, WHAT: tl.constexpr,
           BLOCK: tl.constexpr):  # fmt: skip
    """Rows times weights; `WHAT` has what a trip does besides."""
    c = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    shift = 0
    for k in range(START, STOP, STEP):
        at = k * N + c
        weight = tl.load(w_ptr + k)
        if WHAT == "gathered":
            at = k * N + tl.load(w_ptr + c % 8)
        elif WHAT == "shifted":
            at = at + shift
            shift = shift + 1
        x = tl.load(x_ptr + at, mask=c < N, other=0)
        tl.store(out_ptr + k * N + c, x * weight, mask=c < N)
        if WHAT == "written":
            tl.store(x_ptr + k * N + c, x + 1, mask=c < N)


def expected(x: np.ndarray, w: np.ndarray, trips: range, what: str) -> np.ndarray:
    """The rows that are stored."""
    out, n = np.zeros_like(x), x.shape[1]
    for number, k in enumerate(trips):
        columns = {"gathered": w[np.arange(n) % 8], "shifted": np.arange(n) + number}.get(what, np.arange(n))
        out[k] = x.ravel()[k * n + columns] * w[k]
    return out


@pytest.mark.parametrize("n", (120, 128))
@pytest.mark.parametrize("trips", ((0, 4, 1), (1, 8, 2), (6, -2, -2), (3, 7, 1), (0, 5, 1)))
def test_trips(run_everywhere: Any, trips: tuple[int, int, int], n: int) -> None:
    x, w = RANDOM.integers(-9, 9, (9, n)).astype(np.float16), RANDOM.integers(1, 5, 9).astype(np.int32)
    out = np.zeros_like(x)
    found = run_everywhere(scaled, (1,), x, w, out, n, *trips, WHAT="", BLOCK=128, num_warps=1)[2]
    np.testing.assert_array_equal(found, expected(x, w, range(*trips), ""))
    text = scaled.translate(f"*fp16:16, *i32:16, *fp16:16, i32, {trips}, '', 128".replace("(", "").replace(")", ""),
                            num_warps=1).source  # fmt: skip
    assert FIRST in text


def test_under_sanitizers(run_everyhow: Any) -> None:
    x, w = RANDOM.integers(-9, 9, (9, 128)).astype(np.float32), RANDOM.integers(1, 8, 9).astype(np.int32)
    arguments = x, w, np.zeros_like(x), 100, 0, 4, 1
    for run in run_everyhow(scaled, (1,), arguments, WHAT="", BLOCK=128, num_warps=1):
        rows = x.ravel()[: 9 * 100].reshape(9, 100)
        np.testing.assert_array_equal(run[2].ravel()[: 9 * 100], expected(rows, w, range(4), "").ravel())


@pytest.mark.parametrize("what", ("", "gathered", "shifted", "written"))
def test_what_a_trip_leaves_keeps_loads_in_it(run_everywhere: Any, what: str) -> None:
    x, w = RANDOM.integers(-9, 9, (9, 128)).astype(np.float32), RANDOM.integers(1, 8, 9).astype(np.int32)
    arguments = x, w, np.zeros_like(x), 128, 0, 4, 1
    found = run_everywhere(scaled, (1,), *arguments, WHAT=what, BLOCK=128, num_warps=1)
    np.testing.assert_array_equal(found[2], expected(x, w, range(4), what))
    if what == "written":
        np.testing.assert_array_equal(found[0][:4], x[:4] + 1)
    text = scaled.translate(f"*fp32:16, *i32:16, *fp32:16, i32, 0, 4, 1, '{what}', 128", num_warps=1).source
    assert (FIRST in text) == (what == "")


def test_the_text() -> None:
    """Both loops call what a trip loads by its place in the array of all trips; registers have room for all of it."""
    text = scaled.translate("*fp32:16, *i32:16, *fp32:16, i32:16, 1, 8, 2, '', 128", num_warps=1).source
    assert "float x[4][ELEMS];" in text and "int weight[4];" in text
    assert text.count(", x_ptr + at, c < N") == 1 and text.count("x[(k - START) / STEP]") > 1
    assert text.count("const int at = k * N + c;") == 1  # the loop itself does not need it
    assert "MIN_BLOCKS" in text
    many = scaled.translate("*fp32:16, *i32:16, *fp32:16, i32:16, 0, 7, 1, '', 512", num_warps=1).source
    assert FIRST not in many  # 16 registers a trip
    halves = "*fp16:16, *i32:16, *fp16:16, {}, 0, 7, 1, '', 128"
    side_by_side, apart = (scaled.translate(halves.format(n), num_warps=1).source for n in ("i32:16", "i32"))
    assert FIRST in side_by_side and FIRST not in apart  # whose halves have a register each until they are used
