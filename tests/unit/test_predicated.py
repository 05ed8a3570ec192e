"""Masked elements of which a thread has many: predicated instructions, and tiles that are loaded where they are used."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
import tilewright as triton
import tilewright.language as tl
from tilewright.runtime.building import nvrtc

WORDS = {"float16": "fp16", "int16": "i16", "float32": "fp32", "uint32": "u32", "int64": "i64", "float64": "fp64"}


@triton.jit
def doubled(x_ptr, out_ptr, n, BLOCK: tl.constexpr, HINT: tl.constexpr):
    row, cols = tl.program_id(0), tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n + cols, mask=cols < n, other=1)
    total = tl.sum(x, axis=0)  # tells what stands outside of the mask
    tl.store(out_ptr + row * (n + 1) + cols, x + x, mask=cols < n, cache_modifier=HINT)
    tl.store(out_ptr + row * (n + 1) + n, total.to(x.dtype))


@triton.jit
def softmax_row(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    row, cols = tl.program_id(0), tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n + cols, mask=cols < n, other=-float("inf"))
    power = tl.exp(x.to(tl.float32) - tl.max(x, axis=0))
    tl.store(out_ptr + row * n + cols, power / tl.sum(power, axis=0), mask=cols < n)


@triton.jit
def most_of_a_row(x_ptr, out_ptr):
    n = 1001
    cols = tl.arange(0, 1024)
    tl.store(out_ptr + cols, tl.load(x_ptr + cols, mask=cols < n) * 2.0, mask=cols < n)


@triton.jit
def scaled_by_channel(x_ptr, w_ptr, b_ptr, out_ptr, n, per_channel, BLOCK: tl.constexpr):
    cols = tl.arange(0, BLOCK)
    inside = cols < n
    x = tl.load(x_ptr + cols, mask=inside, other=0.0)
    w = tl.load(w_ptr + cols // per_channel, mask=inside)
    b = tl.load(b_ptr + cols // per_channel, mask=inside)
    tl.store(out_ptr + cols, x * w + b, mask=inside)


@triton.jit
def in_place(x_ptr, w_ptr, n, BLOCK: tl.constexpr, MIDDLE: tl.constexpr):
    cols = tl.arange(0, BLOCK)
    w = tl.load(w_ptr + cols * 3, mask=cols < n)
    if MIDDLE:
        tl.store(w_ptr + cols * 3, 2.0, mask=cols < n)
    x = tl.load(x_ptr + cols, mask=cols < n)
    tl.store(x_ptr + cols, x * w, mask=cols < n)


@pytest.mark.parametrize("dtype", WORDS)
@pytest.mark.parametrize("hint", ["", ".cs"])
def test_elements_outside_are_neither_read_nor_written(run_everywhere: Any, dtype: str, hint: str) -> None:
    n, rows = 3001, 2
    x = (np.random.default_rng(n).random((rows, n)) < 0.2).astype(dtype)
    _, out = run_everywhere(doubled, (rows,), x, np.zeros((rows, n + 1), dtype), n, BLOCK=4096, HINT=hint, num_warps=1)
    assert np.array_equal(out[:, :n], x + x)
    assert np.array_equal(out[:, n], x.sum(axis=1) + (4096 - n))


@pytest.mark.parametrize("dtype", ["fp16", "fp32"])
@pytest.mark.skipif(not nvrtc.is_available(), reason="NVRTC is not installed")
def test_rows_of_any_length_hardly_spill(dtype: str) -> None:
    block = {"fp16": 65536, "fp32": 32768}[dtype]
    artifact = softmax_row.translate(f"*{dtype}, *{dtype}, i32, {block}", num_warps=32)
    assert "load_if(" in artifact.source and "store_if(" in artifact.source
    assert nvrtc.compile_text(artifact).spill_bytes <= 16  # with branches a thousand


def test_the_compiler_predicates_by_itself() -> None:
    few = softmax_row.translate("*fp32, *fp32, i32, 1024").source
    known = most_of_a_row.translate("*fp32, *fp32", num_warps=1).source  # most of the mask is settled
    assert "load_if" not in few + known and "store_if" not in few + known


def test_elements_that_one_statement_reads_are_loaded_there(run_everywhere: Any) -> None:
    n, per_channel = 4003, 7
    rng = np.random.default_rng(n)
    x, w, b = (rng.standard_normal(count).astype(np.float16) for count in (n, 600, 600))
    _, _, _, out = run_everywhere(
        scaled_by_channel, (1,), x, w, b, np.zeros_like(x), n, per_channel, BLOCK=4096, num_warps=1
    )
    channel = np.arange(n) // per_channel
    expected = x.astype(np.float64) * w[channel] + b[channel]
    assert np.allclose(out, expected, atol=4e-3, rtol=2e-3)
    text = scaled_by_channel.translate("*fp16, *fp16, *fp16, *fp16, i32, i32, 4096", num_warps=1).source
    assert all(re.search(rf"const auto {name} =\s+\[&\]\(int", text) for name in "wb")


@triton.jit
def moving_on(x_ptr, factors_ptr, out_ptr, n, TRIPS: tl.constexpr, BLOCK: tl.constexpr):
    cols = tl.arange(0, BLOCK)
    offset, end, factor = tl.program_id(0), n, 1.0
    for trip in range(TRIPS):
        x = tl.load(x_ptr + offset + cols * 3, mask=cols < end, other=1.0)
        offset += 7
        y = x * factor
        end -= 3
        factor = tl.load(factors_ptr + trip)
        tl.store(out_ptr + trip * BLOCK + cols, y + factor)


def test_a_load_stays_in_front_of_what_changes_its_place(run_everywhere: Any) -> None:
    x, factors = np.arange(4200 * 3, dtype=np.float32), np.array([2, 3, 5], np.float32)
    out = np.zeros((3, 4096), np.float32)
    *_, out = run_everywhere(moving_on, (1,), x, factors, out, 4001, 3, BLOCK=4096, num_warps=1)
    for trip, factor in enumerate((1, 2, 3)):
        places = np.arange(4096)
        kept = np.where(places < 4001 - 3 * trip, x[7 * trip + 3 * places], 1)
        np.testing.assert_array_equal(out[trip], kept * factor + factors[trip])


@pytest.mark.parametrize("middle", [False, True])
def test_a_load_stays_in_front_of_a_store(run_everywhere: Any, middle: bool) -> None:
    n = 4001
    x, w = np.random.default_rng(n).standard_normal((2, 3 * n)).astype(np.float32)
    scaled, after = run_everywhere(in_place, (1,), x, w, n, BLOCK=4096, MIDDLE=middle, num_warps=1)
    assert np.array_equal(scaled[:n], x[:n] * w[::3]) and np.array_equal(scaled[n:], x[n:])
    assert np.all(after[::3] == 2.0) if middle else np.array_equal(after, w)
    text = in_place.translate(f"*fp32, *fp32, i32, 4096, {middle}", num_warps=1).source
    assert ("float w[ELEMS];" in text) == middle


@triton.jit
def chosen_by_loads(x_ptr, out_ptr, n, N: tl.constexpr, R: tl.constexpr):
    """A load that is left to where it is used, by a mask that is loaded, and another load in between."""
    i, j = tl.arange(0, R), tl.arange(0, N)
    at = i[:, None] * N + j[None, :]
    masked = tl.where(
        tl.load(x_ptr + i[:, None] + j[None, :] * 0) == tl.load(x_ptr + at // 4),
        tl.load(x_ptr + at + 1, mask=tl.load(x_ptr + at // 4) <= 0, other=0.0),
        tl.load(x_ptr + at, mask=at < n, other=2.0),
    )
    tl.store(out_ptr + at, masked)


def test_a_mask_is_kept_until_the_load_that_it_is_for_is_made(run_everywhere: Any) -> None:
    x = np.random.default_rng(7).integers(-1, 2, 16 * 256 + 1).astype(np.float32)
    found = run_everywhere(chosen_by_loads, (1,), x, np.zeros((16, 256), np.float32), 3000, 256, 16, num_warps=2)[1]
    at = np.arange(16 * 256).reshape(16, 256)
    masked, other = np.where(x[at // 4] <= 0, x[at + 1], 0), np.where(at < 3000, x[at], 2)
    np.testing.assert_array_equal(found, np.where(x[at // 256] == x[at // 4], masked, other))
