"""Reductions that share one exchange: which ones do, and that what they give is right."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tilewright as triton
import tilewright.language as tl


@triton.jit
def row_moments(x_ptr, out_ptr, M, N: tl.constexpr):
    for row in range(M):
        x = tl.load(x_ptr + row * N + tl.arange(0, N))
        total = tl.sum(x, axis=0)
        largest = tl.max(x, axis=0)
        # This one needs the sum and comes too late for the exchange.
        spread = tl.sum((x - total / N) * (x - total / N), axis=0)
        smallest = tl.min(x, axis=0)
        tl.store(out_ptr + row * 4, total)
        tl.store(out_ptr + row * 4 + 1, largest)
        tl.store(out_ptr + row * 4 + 2, spread)
        tl.store(out_ptr + row * 4 + 3, smallest)


@triton.jit
def changed_between(x_ptr, out_ptr, N: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, N))
    first = tl.sum(x, axis=0)
    x = x * 2.0
    second = tl.sum(x, axis=0)
    tl.store(out_ptr, first)
    tl.store(out_ptr + 1, second)


@triton.jit
def on_one_line(x_ptr, out_ptr, N: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, N))
    tl.store(out_ptr, tl.sum(x, axis=0) / tl.max(x, axis=0))


def exchanges(kernel: Any, signature: str, num_warps: int) -> int:
    """How often the kernel's warps exchange partial results."""
    return kernel.translate(signature, num_warps=num_warps).source.count("= block_reduce<")


def test_three_of_four_share_an_exchange(run_everywhere: Any) -> None:
    x = np.random.default_rng(5).standard_normal((3, 1024), dtype=np.float32)
    _, out = run_everywhere(row_moments, (1,), x, np.zeros((3, 4), np.float32), 3, N=1024, tolerance=1e-5)
    wide = x.astype(np.float64)
    centred = wide - wide.mean(axis=1, keepdims=True)
    expected = np.stack([wide.sum(axis=1), wide.max(axis=1), (centred**2).sum(axis=1), wide.min(axis=1)], axis=1)
    assert np.allclose(out, expected, rtol=1e-5, atol=1e-4)
    assert exchanges(row_moments, "*fp32:16, *fp32:16, i32, 1024", 4) == 2


def test_a_tile_that_changes_in_between_is_reduced_when_its_turn_comes(run_everywhere: Any) -> None:
    x = np.random.default_rng(6).standard_normal(1024, dtype=np.float32)
    _, out = run_everywhere(changed_between, (1,), x, np.zeros(2, np.float32), N=1024, tolerance=1e-5)
    assert np.isclose(out[1], 2 * x.astype(np.float64).sum(), rtol=1e-5, atol=1e-4)
    assert exchanges(changed_between, "*fp32:16, *fp32:16, 1024", 4) == 2


def test_two_reductions_of_one_line_share(run_everywhere: Any) -> None:
    x = np.random.default_rng(7).uniform(1, 2, 2048).astype(np.float32)
    _, out = run_everywhere(on_one_line, (1,), x, np.zeros(1, np.float32), N=2048, tolerance=1e-5)
    assert np.isclose(out[0], x.astype(np.float64).sum() / x.max(), rtol=1e-5)
    assert exchanges(on_one_line, "*fp32:16, *fp32:16, 2048", 8) == 1


@pytest.mark.parametrize("num_warps", (1, 4))
def test_every_line_is_quoted_once(num_warps: int) -> None:
    source = row_moments.translate("*fp32:16, *fp32:16, i32, 1024", num_warps=num_warps).source
    lines = [line.strip() for line in source.splitlines() if line.strip().startswith("// L")]
    assert sum("largest = tl.max" in line for line in lines) == 1
    assert any("(reduced at L" in line for line in lines) == (num_warps > 1)


@triton.jit
def blocks_of_rows(x_ptr, total_ptr, place_ptr, M, ROWS: tl.constexpr, N: tl.constexpr, BLOCK: tl.constexpr):
    rows, cols = tl.program_id(0) * ROWS + tl.arange(0, ROWS), tl.arange(0, BLOCK)
    total, largest = tl.zeros((ROWS, BLOCK), tl.float32), tl.zeros((ROWS, BLOCK), tl.float32)
    for start in range(0, N, BLOCK):
        x = tl.load(x_ptr + rows[:, None] * N + start + cols[None, :], mask=(rows < M)[:, None], other=0.0)
        total += x
        largest = tl.maximum(largest, x)
    tl.store(total_ptr + rows, tl.sum(total / tl.max(largest, axis=1)[:, None], axis=1), mask=rows < M)
    tl.store(place_ptr + rows, tl.argmax(largest, axis=1), mask=rows < M)


@pytest.mark.parametrize("rows", (2, 4))
def test_a_thread_s_rows_are_reduced_over_the_block_together(run_everywhere: Any, rows: int) -> None:
    """All warps load each row together, for the loop only adds it up; so each of them has a part of all rows."""
    x = np.random.default_rng(8).uniform(1, 2, (7, 1024)).astype(np.float32)
    found, sides = (np.zeros(7, np.float32), np.zeros(7, np.int32)), {"ROWS": rows, "N": 1024, "BLOCK": 256}
    _, total, place = run_everywhere(blocks_of_rows, (-(-7 // rows),), x, *found, 7, **sides, tolerance=1e-5)
    wide = x.astype(np.float64)
    assert np.allclose(total, (wide / wide.max(axis=1, keepdims=True)).sum(axis=1), rtol=1e-5)
    assert np.array_equal(place, x.reshape(7, 4, 256).max(1).argmax(axis=1))
    source = blocks_of_rows.translate(f"*fp32, *fp32, *i32, i32, {rows}, 1024, 256", num_warps=4).source
    assert source.count("    block_reduce_rows<") == 3


@triton.jit
def sums_of_a_row(x_ptr, out_ptr, N: tl.constexpr):
    # Tiles of one row, as compilers write them.
    x = tl.load(x_ptr + tl.arange(0, 1)[:, None] * N + tl.arange(0, N)[None, :])
    first = tl.sum(x, 1)[:, None]
    second = tl.sum(x * x, 1)[:, None]
    across = tl.sum(x * 2.0, 0)[None, :]
    tl.store(out_ptr + tl.arange(0, 1)[:, None], first)
    tl.store(out_ptr + 1 + tl.arange(0, 1)[:, None], second)
    tl.store(out_ptr + 2 + tl.arange(0, N)[None, :], across)


def test_rows_of_one_are_reduced_together(run_everywhere: Any) -> None:
    x = np.random.default_rng(9).uniform(1, 2, 1024).astype(np.float32)
    _, out = run_everywhere(sums_of_a_row, (1,), x, np.zeros(1026, np.float32), N=1024, tolerance=1e-5)
    wide = x.astype(np.float64)
    np.testing.assert_allclose(out, [wide.sum(), (wide * wide).sum(), *(2 * wide)], rtol=1e-5)
    assert exchanges(sums_of_a_row, "*fp32:16, *fp32:16, 1024", 8) == 1


@triton.jit
def sums_of_columns(x_ptr, y_ptr, out_ptr, M: tl.constexpr, N: tl.constexpr):
    cols = tl.arange(0, N)
    x = tl.load(x_ptr + tl.arange(0, M)[:, None] * N + cols[None, :])
    y = tl.load(y_ptr + tl.arange(0, M)[:, None] * N + cols[None, :])
    tl.store(out_ptr + cols, tl.sum(x, axis=0))
    tl.store(out_ptr + N + cols, tl.max(y, axis=0))


@pytest.mark.parametrize("num_warps", (1, 4))
def test_columns_are_reduced_together(run_everywhere: Any, num_warps: int) -> None:
    x, y = np.random.default_rng(10).standard_normal((2, 32, 64)).astype(np.float32)
    options = {"M": 32, "N": 64, "num_warps": num_warps, "tolerance": 1e-5}
    *_, out = run_everywhere(sums_of_columns, (1,), x, y, np.zeros((2, 64), np.float32), **options)
    np.testing.assert_allclose(out, [x.astype(np.float64).sum(0), y.max(0)], rtol=1e-4, atol=1e-5)
    signature = "*fp32:16, *fp32:16, *fp32:16, 32, 64"
    assert sums_of_columns.translate(signature, num_warps=num_warps).source.count("__syncthreads()") == (num_warps > 1)


@triton.jit
def taps(x_ptr, w_ptr, out_ptr, T: tl.constexpr, D: tl.constexpr, W: tl.constexpr):
    rows, cols, taps = tl.arange(0, T), tl.arange(0, D), tl.arange(0, W)
    w = tl.load(w_ptr + cols[:, None] * W + taps)
    out = tl.zeros((T, D), tl.float32)
    for back in tl.static_range(-W + 1, 1):
        row = rows + back
        x = tl.load(x_ptr + row[:, None] * D + cols[None, :], mask=(row >= 0)[:, None], other=0.0)
        x *= tl.sum(w * (taps == (back + W - 1)), 1)
        out += x
    tl.store(out_ptr + rows[:, None] * D + cols[None, :], out)


@pytest.mark.parametrize("channels", (32, 128))
def test_results_of_one_name_that_move_to_other_threads(run_everywhere: Any, channels: int) -> None:
    rng = np.random.default_rng(11)
    x, w = (rng.standard_normal(shape).astype(np.float32) for shape in ((64, channels), (channels, 4)))
    out = run_everywhere(taps, (1,), x, w, np.zeros_like(x), T=64, D=channels, W=4, tolerance=1e-5)[2]
    padded = np.vstack([np.zeros((3, channels)), x])
    np.testing.assert_allclose(out, sum(padded[k : k + 64] * w[:, k] for k in range(4)), rtol=1e-4, atol=1e-5)
    text = taps.translate(f"*fp32:16, *fp32:16, *fp32:16, 64, {channels}, 4").source
    assert "(c == W - 4)" in text or "taps == W - 4" in text  # of back + W - 1


@triton.jit
def of_one_width(x_ptr, out_ptr, N: tl.constexpr, BESIDE: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, N)).to(tl.float32)
    largest = tl.max(x, axis=0)
    tl.store(out_ptr, largest)
    tl.store(out_ptr + 1, tl.sum(tl.exp(x - largest), axis=0))
    if BESIDE:
        tl.store(out_ptr + 2, tl.sum(x * 0.5, axis=0))


def test_what_is_reduced_beside_a_wide_tile_is_wide(run_everywhere: Any) -> None:
    x = np.random.default_rng(5).standard_normal(1024).astype(np.float16)
    out = run_everywhere(of_one_width, (1,), x, np.zeros(3, np.float32), N=1024, BESIDE=True, tolerance=1e-4)[1]
    wide = x.astype(np.float64)
    np.testing.assert_allclose(out, [wide.max(), np.exp(wide - wide.max()).sum(), wide.sum() / 2], rtol=1e-3, atol=1e-3)
    alone, beside = (of_one_width.translate(f"*fp16:16, *fp32:16, 1024, {beside}").source for beside in (False, True))
    assert "half largest" in alone and "half largest" not in beside


@triton.jit
def three_sums(x_ptr, out_ptr, N: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, N))
    tl.store(out_ptr, tl.sum(x) * tl.sum(x * x) * tl.sum(x * x * x))


def test_fields_are_read_where_they_are_used() -> None:
    """`sum_second = sums.sum_first` read like a mistake, and three names for each sum were two too many."""
    text = three_sums.translate("*fp32:16, *fp32:16, 1024").source
    assert "*out_ptr = sums.x_sum * sums.x_squared_sum * sums.sum;" in text


@triton.jit
def sorted_row(x_ptr, out_ptr, N: tl.constexpr):
    cols = tl.arange(0, N)
    x = tl.load(x_ptr + cols)
    for size in tl.static_range(1, 3):
        for step in tl.static_range(size):
            place = tl.arange(0, 2)[None, :, None]
            pairs = tl.reshape(x, (N // 2 ** (size - step), 2, 2 ** (size - step - 1)))
            first = tl.sum(pairs * (1 - place), 1)[:, None, :]
            second = tl.sum(pairs * place, 1)[:, None, :]
            low = tl.where(place == 0, tl.minimum(first, second), tl.maximum(first, second))
            x = tl.reshape(low, (N,))
    tl.store(out_ptr + cols, x)


def test_sums_of_several_trips_are_fields_of_their_own_states(run_everywhere: Any) -> None:
    """Sums of two trips were taken for versions of one array, which neither had."""
    x = np.random.default_rng(12).standard_normal(64).astype(np.float32)
    run_everywhere(sorted_row, (1,), x, np.zeros_like(x), N=64)
    text = sorted_row.translate("*fp32:16, *fp32:16, 64").source
    assert all(f"{state}.second_sum" in text for state in ("sums", "sums_second", "sums_third"))
