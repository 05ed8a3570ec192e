"""Threads side by side load what lies nearest in memory, where no axis is contiguous, and along the further axes of a tile."""

from __future__ import annotations

from typing import Any

import numpy as np
import tilewright as triton
import tilewright.language as tl


@triton.jit
def every_second(x_ptr, out_ptr, ROWS: tl.constexpr, COLS: tl.constexpr):
    rows, cols = tl.arange(0, ROWS)[:, None], tl.arange(0, COLS)[None, :]
    x = tl.load(x_ptr + 2 * rows + 1 + cols * (2 * ROWS))
    tl.store(out_ptr + tl.arange(0, ROWS), tl.sum(x, 1))


@triton.jit
def sums_of_planes(x_ptr, out_ptr, PLANES: tl.constexpr, ROWS: tl.constexpr, COLS: tl.constexpr):
    planes, rows = tl.arange(0, PLANES)[:, None, None], tl.arange(0, ROWS)[None, :, None]
    cols = tl.arange(0, COLS)[None, None, :]
    x = tl.load(x_ptr + rows + planes * ROWS + cols * (PLANES * ROWS))
    tl.store(out_ptr + planes * ROWS + rows, tl.sum(x, 2)[:, :, None])


@triton.jit
def patches(x_ptr, y_ptr, H, W, R: tl.constexpr, PIXELS: tl.constexpr, TAPS: tl.constexpr):
    """Row p of the result is the window around pixel p."""
    p = tl.program_id(0) * PIXELS + tl.arange(0, PIXELS)
    k = tl.arange(0, TAPS)
    row = (p // W)[:, None] + (k // R)[None, :] - R // 2
    col = (p % W)[:, None] + (k % R)[None, :] - R // 2
    inside = (row >= 0) & (row < H) & (col >= 0) & (col < W) & (k < R * R)[None, :]
    x = tl.load(x_ptr + row * W + col, mask=inside, other=0.0)
    tl.store(y_ptr + p, tl.sum(x, 1), mask=p < H * W)


@triton.jit
def shifted(a_ptr, y_ptr, W, SHIFTS: tl.constexpr, COLS: tl.constexpr):
    """Sums over rows, each of which is moved by one more than the row before."""
    x, d = tl.arange(0, COLS), tl.arange(0, SHIFTS)
    place = x[None, :] - d[:, None]
    y = tl.zeros((SHIFTS, COLS), tl.float32)
    for row in range(3):
        y += tl.load(a_ptr + row * W + place, mask=(place >= 0) & (x < W)[None, :], other=0.0)
    tl.store(y_ptr + d[:, None] * W + x[None, :], y, mask=(x < W)[None, :])


def test_elements_of_a_sector_go_to_neighbouring_threads(run_everywhere: Any) -> None:
    x = np.random.default_rng(0).standard_normal((4, 64, 2)).astype(np.float32)
    _, out = run_everywhere(every_second, (1,), x, np.zeros(64, np.float32), 64, 4, tolerance=1e-6)
    np.testing.assert_allclose(out, x[:, :, 1].astype(np.float64).sum(0), rtol=1e-5, atol=1e-5)
    source = every_second.translate("*fp32:16, *fp32:16, 64, 4", num_warps=8).source
    assert "const int col = tid / ROW_THREADS, row = tid % ROW_THREADS;" in source


def test_axes_go_to_threads_by_their_distance(run_everywhere: Any) -> None:
    x = np.random.default_rng(1).standard_normal((16, 2, 16)).astype(np.float32)
    _, out = run_everywhere(
        sums_of_planes, (1,), x, np.zeros((2, 16), np.float32), 2, 16, 16, num_warps=2, tolerance=1e-5
    )
    np.testing.assert_allclose(out, x.astype(np.float64).sum(0), rtol=1e-4, atol=1e-5)
    source = sums_of_planes.translate("*fp32:16, *fp32:16, 2, 16, 16", num_warps=2).source
    assert "planes: 2 threads; rows: 4 threads x 4 consecutive" in " ".join(source.replace("//", "").split())


def test_pixels_are_neighbours_rather_than_the_few_taps_of_a_window(run_everywhere: Any) -> None:
    x = np.random.default_rng(2).standard_normal((9, 13)).astype(np.float32)
    _, y = run_everywhere(patches, (2,), x, np.zeros((9, 13), np.float32), 9, 13, 3, 64, 16, tolerance=1e-5)
    padded = np.pad(x.astype(np.float64), 1)
    expected = sum(padded[i : i + 9, j : j + 13] for i in range(3) for j in range(3))
    np.testing.assert_allclose(y, expected, rtol=1e-4, atol=1e-5)
    source = patches.translate("*fp32:16, *fp32:16, i32, i32, 3, 128, 16").source
    assert "x [128, 16]: rows: 128 threads" in source


def test_shifts_by_one_cost_no_addresses(run_everywhere: Any) -> None:
    a = np.random.default_rng(3).standard_normal((3, 50)).astype(np.float32)
    _, y = run_everywhere(shifted, (1,), a, np.zeros((4, 50), np.float32), 50, 4, 64, tolerance=1e-6)
    rows = a.astype(np.float64).sum(0)
    for shift in range(4):
        np.testing.assert_allclose(y[shift, shift:], rows[: 50 - shift], rtol=1e-4, atol=1e-5)
    tiles = shifted.translate("*fp16:16, *fp32:16, i32:16, 16, 64").source
    assert "columns: 32 threads x 2 consecutive" in tiles
