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
