"""Choices that leave a tile as it is wherever their condition holds for all of it: a test of two scalars in front of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tilewright as triton
import tilewright.language as tl


@triton.jit
def sums_below(x_ptr, out_ptr, N, END, BM: tl.constexpr, BN: tl.constexpr, KIND: tl.constexpr):
    # The sums of the elements of a square's rows that a comparison of places lets through.
    first = tl.program_id(0) * BM
    rows = first + tl.arange(0, BM)
    total = tl.zeros((BM,), tl.float32)
    for start in range(0, N, BN):
        cols = start + tl.arange(0, BN)
        x = tl.load(x_ptr + rows[:, None] * N + cols[None, :]) * 2.0
        if KIND == "below":
            x = tl.where(rows[:, None] >= cols[None, :], x, 0.0)
        if KIND == "strictly":
            x = tl.where(cols[None, :] < rows[:, None], x, 0.0)
        if KIND == "both":
            x = tl.where((rows[:, None] >= cols[None, :]) & (cols < END)[None, :], x, 0.0)
        if KIND == "scaled":
            x = tl.where(rows[:, None] >= 2 * cols[None, :], x, 0.0)
        if KIND == "triangle":
            x = tl.where((start + tl.arange(0, BM))[:, None] >= cols[None, :], x, 0.0)
        if KIND == "end":
            x = tl.where((rows < END)[:, None], x, 0.0)
        total += tl.sum(x, axis=1)
    tl.store(out_ptr + rows, total)


TESTS = {
    "below": "if (first < start + BN - 1) {",
    "strictly": "if (first <= start + BN - 1) {",
    "both": "if (first < start + BN - 1 || END <= start + BN - 1) {",
    "scaled": "",  # no consecutive integers
    "triangle": "",  # both begin with the same: every tile is crossed
    "end": "",  # what no trip changes
}


@pytest.mark.parametrize("kind", TESTS)
def test_text(kind: str) -> None:
    source = sums_below.translate(f"*fp32:16, *fp32:16, i32:16, i32, 32, 64, '{kind}'").source
    assert TESTS[kind] in source
    assert ("for the whole tile" in source) == bool(TESTS[kind])


@pytest.mark.parametrize("kind", TESTS)
def test_results(run_everywhere: Any, kind: str) -> None:
    n, end = 128, 93
    x = np.random.default_rng(0).standard_normal((n, n)).astype(np.float32)
    rows, cols = np.arange(n)[:, None], np.arange(n)[None, :]
    kept = {
        "below": rows >= cols,
        "strictly": cols < rows,
        "both": (rows >= cols) & (cols < end),
        "scaled": rows >= 2 * cols,
        "triangle": rows % 32 >= cols % 64,
        "end": (rows < end) & (cols >= 0),
    }[kind]
    options = {"BM": 32, "BN": 64, "KIND": kind, "tolerance": 1e-5}
    _, out = run_everywhere(sums_below, (n // 32,), x, np.zeros(n, np.float32), n, end, **options)
    assert np.allclose(out, np.where(kept, 2.0 * x.astype(np.float64), 0.0).sum(axis=1), rtol=1e-4, atol=1e-4)


@triton.jit
def sums_across(x_ptr, out_ptr, N, BM: tl.constexpr, BN: tl.constexpr):
    # The part of a triangle's rows that crosses the diagonal.
    first = tl.program_id(0) * BM
    last = first + BM
    rows = first + tl.arange(0, BM)
    total = tl.zeros((BM,), tl.float32)
    for start in range(first, last, BN):
        cols = start + tl.arange(0, BN)
        x = tl.load(x_ptr + rows[:, None] * N + cols[None, :])
        x = tl.where(rows[:, None] >= cols[None, :], x, 0.0)
        total += tl.sum(x, axis=1)
    tl.store(out_ptr + rows, total)


def test_a_loop_along_the_diagonal_has_no_test() -> None:
    assert "for the whole tile" not in sums_across.translate("*fp32:16, *fp32:16, i32:16, 128, 64").source


def test_few_elements_are_chosen_without_a_branch() -> None:
    source = sums_below.translate("*fp32:16, *fp32:16, i32:16, i32, 16, 64, 'below'").source
    assert "for the whole tile" not in source


@triton.jit
def sums_from_the_end(x_ptr, out_ptr, N, BM: tl.constexpr, BN: tl.constexpr):
    # The columns begin at another place when the choice is made than when the condition was computed.
    first = tl.program_id(0) * BM
    rows = first + tl.arange(0, BM)
    total = tl.zeros((BM,), tl.float32)
    start = N - BN
    while start >= 0:
        mask = (first + tl.arange(0, BM))[:, None] >= (start + tl.arange(0, BN))[None, :]
        x = tl.load(x_ptr + rows[:, None] * N + (start + tl.arange(0, BN))[None, :]) * 2.0
        start -= BN
        x = tl.where(mask, x, 0.0)
        total += tl.sum(x, axis=1)
    tl.store(out_ptr + rows, total)


def test_places_that_move_before_the_choice(run_everywhere: Any) -> None:
    n = 128
    x = np.random.default_rng(1).standard_normal((n, n)).astype(np.float32)
    options = {"BM": 32, "BN": 64, "tolerance": 1e-5}
    _, out = run_everywhere(sums_from_the_end, (n // 32,), x, np.zeros(n, np.float32), n, **options)
    kept = np.arange(n)[:, None] >= np.arange(n)[None, :]
    assert np.allclose(out, np.where(kept, 2.0 * x.astype(np.float64), 0.0).sum(axis=1), rtol=1e-4, atol=1e-4)
    source = sums_from_the_end.translate("*fp32:16, *fp32:16, i32:16, 32, 64").source
    assert "for the whole tile" not in source
