"""Loops of one trip: their bodies stand where they stood, and what they carried is assigned once."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tilewright as triton
import tilewright.language as tl


@triton.jit
def softmax_in_loops(x_ptr, out_ptr, N: tl.constexpr, BLOCK: tl.constexpr):
    # As compilers write it: a pass for the largest, one for the sum, one for the quotients.
    row = tl.program_id(0)
    base = tl.arange(0, BLOCK)
    largest = tl.full((BLOCK,), -float("inf"), tl.float32)
    for start in range(0, N, BLOCK):
        cols = start + base
        x = tl.load(x_ptr + row * N + cols, mask=cols < N, other=0.0).to(tl.float32)
        largest = tl.where(cols < N, tl.maximum(largest, x), largest)
    top = tl.max(largest, 0)
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, N, BLOCK):
        cols = start + base
        x = tl.load(x_ptr + row * N + cols, mask=cols < N, other=0.0).to(tl.float32)
        total = tl.where(cols < N, total + tl.exp(x - top), total)
    sum_ = tl.sum(total, 0)
    for start in range(0, N, BLOCK):
        cols = start + base
        x = tl.load(x_ptr + row * N + cols, mask=cols < N, other=0.0).to(tl.float32)
        tl.store(out_ptr + row * N + cols, tl.exp(x - top) / sum_, mask=cols < N)


@triton.jit
def running_mean(x_ptr, out_ptr, N: tl.constexpr, BLOCK: tl.constexpr):
    base = tl.arange(0, BLOCK)
    mean = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, N, BLOCK):
        x = tl.load(x_ptr + start + base)
        is_first = start == 0
        if is_first:
            new = x
        else:
            new = mean + (x - mean) / (start // BLOCK + 1)
        mean = new
    last = start
    tl.store(out_ptr + base, mean + last)


@triton.jit
def one_trip_among_others(x_ptr, out_ptr, n, N: tl.constexpr, BLOCK: tl.constexpr):
    # The first loop has one trip and assigns what the second one carries; a loop inside of another stays.
    base = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    x = tl.load(x_ptr + base)
    for start in range(0, N, BLOCK):
        total += x * (start + 1)
        x = x + total
    for trip in range(n):
        total += x
        for start in range(0, N, BLOCK):
            x = x + total * (start + 1)
        total = total - trip
    tl.store(out_ptr + base, total + x)


@pytest.mark.parametrize(("n", "block"), [(1000, 1024), (1024, 1024), (1000, 512)])
def test_rows_in_loops(run_everywhere: Any, n: int, block: int) -> None:
    x = np.random.default_rng(n).standard_normal((3, n)).astype(np.float32)
    _, out = run_everywhere(softmax_in_loops, (3,), x, np.zeros_like(x), N=n, BLOCK=block, tolerance=1e-5)
    wide = np.exp(x.astype(np.float64))
    np.testing.assert_allclose(out, wide / wide.sum(axis=1, keepdims=True), rtol=1e-4)


def test_nothing_repeats_and_nothing_keeps_trips_apart() -> None:
    text = softmax_in_loops.translate("*fp16:16, *fp16:16, 2000, 2048").source
    kernel = text[text.index('extern "C"') :]
    assert "for (int start" not in kernel and kernel.count("(one trip)") == 3
    assert "is stored again" not in text
    two_trips = softmax_in_loops.translate("*fp16:16, *fp16:16, 2000, 1024").source
    assert two_trips.count("for (int start") == 3 and "(one trip)" not in two_trips


def test_accumulators_of_one_trip_are_in_registers() -> None:
    artifact = softmax_in_loops.translate("*fp16:16, *fp16:16, 32000, 32768", num_warps=32)
    assert artifact.shared_bytes == 0
    assert "__launch_bounds__(NUM_THREADS)" in artifact.source  # 16 registers hold a row: the others follow from it


@pytest.mark.parametrize("n", [256, 1024])
def test_branches_that_numbers_decide(run_everywhere: Any, n: int) -> None:
    x = np.random.default_rng(n).standard_normal((n // 256, 256)).astype(np.float32)
    _, out = run_everywhere(running_mean, (1,), x, np.zeros(256, np.float32), N=n, BLOCK=256, tolerance=1e-5)
    np.testing.assert_allclose(out, x.astype(np.float64).mean(axis=0) + n - 256, rtol=1e-5, atol=1e-5)
    text = running_mean.translate(f"*fp32:16, *fp32:16, {n}, 256").source
    assert ("if (" not in text and "(true in this specialisation)" in text) == (n == 256)


def test_what_one_trip_leaves_others_go_on_with(run_everywhere: Any) -> None:
    x = np.random.default_rng(0).standard_normal(256).astype(np.float32)
    _, out = run_everywhere(one_trip_among_others, (1,), x, np.zeros_like(x), 3, N=256, BLOCK=256, tolerance=1e-5)
    total, x = x.astype(np.float64), 2 * x.astype(np.float64)
    for trip in range(3):
        total = total + x
        x = x + total
        total = total - trip
    np.testing.assert_allclose(out, total + x, rtol=1e-5)
