"""Tiles that are made of rows and columns and reduced: threads lie where they exchange little, and load side by side."""

from __future__ import annotations

import re
from itertools import product
from typing import Any

import numpy as np
import pytest
import tilewright as triton
import tilewright.language as tl
from tilewright.runtime.building import nvrtc
from tilewright.schedule.tiles.layout import elements
from tilewright.schedule.tiles.outer_tiles import _layouts


@triton.jit
def pull(x_ptr, mass_ptr, out_ptr, n, I: tl.constexpr, J: tl.constexpr):
    i = tl.program_id(0) * I + tl.arange(0, I)
    x = tl.load(x_ptr + i, mask=i < n, other=0.0)
    total = tl.zeros([I], tl.float32)
    for first in range(0, n, J):
        j = first + tl.arange(0, J)
        apart = tl.load(x_ptr + j, mask=j < n, other=0.0)[None, :] - x[:, None]
        mass = tl.load(mass_ptr + j, mask=j < n, other=0.0)
        total += tl.sum(mass[None, :] * apart / (apart * apart + 1.0), axis=1)
    tl.store(out_ptr + i, total, mask=i < n)


@triton.jit
def distances(x_ptr, y_ptr, out_ptr, K, M: tl.constexpr, N: tl.constexpr, BLOCK_K: tl.constexpr):
    i, j = tl.arange(0, M), tl.arange(0, N)
    total = tl.zeros([M, N], tl.float32)
    for first in range(0, K, BLOCK_K):
        k = first + tl.arange(0, BLOCK_K)
        x = tl.load(x_ptr + i[:, None] * K + k[None, :], mask=k[None, :] < K, other=0.0)
        y = tl.load(y_ptr + j[:, None] * K + k[None, :], mask=k[None, :] < K, other=0.0)
        total += tl.sum(tl.abs(x[:, None, :] - y[None, :, :]), axis=2)
    tl.store(out_ptr + i[:, None] * N + j[None, :], total)


@triton.jit
def small_product(a_ptr, b_ptr, out_ptr, N, M: tl.constexpr, K: tl.constexpr, BLOCK_N: tl.constexpr):
    i, k = tl.arange(0, M), tl.arange(0, K)
    j = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    a = tl.load(a_ptr + i[:, None] * K + k[None, :])
    b = tl.load(b_ptr + k[:, None] * N + j[None, :])
    tl.store(out_ptr + i[:, None] * N + j[None, :], tl.sum(a[:, :, None] * b[None, :, :], axis=1))


@triton.jit
def both_sums(x_ptr, row_ptr, column_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    x = tl.load(x_ptr + i)
    weights = tl.exp(-tl.abs(x[:, None] - x[None, :]))
    tl.store(row_ptr + i, tl.sum(weights, axis=1))
    tl.store(column_ptr + i, tl.sum(weights, axis=0))


def test_results_are_those_of_numpy(run_everywhere: Any) -> None:
    rng = np.random.default_rng(2)
    x, mass = rng.standard_normal(75).astype(np.float32), rng.random(75).astype(np.float32)
    out = run_everywhere(pull, (3,), x, mass, np.zeros_like(x), 75, I=32, J=16, tolerance=1e-4)[2]
    apart = x.astype(np.float64) - x.astype(np.float64)[:, None]
    np.testing.assert_allclose(out, (mass * apart / (apart**2 + 1)).sum(1), rtol=1e-4, atol=1e-4)

    x, y = rng.standard_normal((16, 40)).astype(np.float32), rng.standard_normal((32, 40)).astype(np.float32)
    out = run_everywhere(
        distances, (1,), x, y, np.zeros((16, 32), np.float32), 40, M=16, N=32, BLOCK_K=32, tolerance=1e-4
    )[2]
    np.testing.assert_allclose(out, np.abs(x[:, None] - y[None]).sum(2, dtype=np.float64), rtol=1e-4)

    a, b = rng.standard_normal((4, 32)).astype(np.float32), rng.standard_normal((32, 64)).astype(np.float32)
    out = run_everywhere(
        small_product, (2,), a, b, np.zeros((4, 64), np.float32), 64, M=4, K=32, BLOCK_N=32, tolerance=1e-4
    )[2]
    np.testing.assert_allclose(out, a.astype(np.float64) @ b, rtol=1e-4, atol=1e-4)

    x = rng.standard_normal(64).astype(np.float32)
    rows, columns = run_everywhere(both_sums, (1,), x, np.zeros_like(x), np.zeros_like(x), N=64, tolerance=1e-4)[1:]
    expected = np.exp(-np.abs(x[:, None] - x.astype(np.float64))).sum(1)
    np.testing.assert_allclose(rows, expected, rtol=1e-4)
    np.testing.assert_allclose(columns, expected, rtol=1e-4)


@pytest.mark.parametrize(
    ("kernel", "signature"),
    [
        (pull, "*fp32:16, *fp32:16, *fp32:16, i32:16, 64, 64"),
        (distances, "*fp32:16, *fp32:16, *fp32:16, i32:16, 32, 32, 32"),
        (small_product, "*fp32:16, *fp32:16, *fp32:16, i32:16, 4, 64, 32"),
    ],
)
def test_few_lanes_exchange(kernel: Any, signature: str) -> None:
    """All 32 lanes of a warp would, for every result, if threads lay along the last axis."""
    artifact = kernel.translate(signature)
    steps = re.findall(r"warp_reduce<\w+, (\d+), (\d+)>", artifact.source)
    assert all(int(first) / int(last) <= 4 for first, last in steps)
    assert "__syncthreads" not in artifact.source and "for want of registers" not in artifact.source
    if nvrtc.is_available():
        cubin = nvrtc.compile_text(artifact)
        assert cubin.spill_bytes == 0 and "warning" not in cubin.log


def test_operands_are_loaded_by_vectors() -> None:
    source = distances.translate("*fp32:16, *fp32:16, *fp32:16, i32:16, 32, 32, 32").source
    assert len(re.findall(r"load_vec_if<\w+>\(&[xy]\[", source)) == 2


@pytest.mark.parametrize("shape", [(8, 4), (4, 2, 8), (3, 5), (2, 2)])
def test_every_layout_that_is_weighed_holds_every_element(shape: tuple[int, ...]) -> None:
    for fast in range(len(shape)):
        layouts = list(_layouts(shape, 16, fast))
        assert layouts and len(set(layouts)) == len(layouts)
        for layout in layouts:
            held = {place for thread in range(16) for place in elements(layout, thread)}
            assert held >= set(product(*map(range, shape)))


@triton.jit
def filters(x_ptr, taps_ptr, out_ptr, T, TAPS: tl.constexpr, STEP: tl.constexpr, BF: tl.constexpr, BT: tl.constexpr):
    # Each trip loads a row that begins anywhere, or at a multiple of STEP; the sums are stored once.
    f = tl.arange(0, BF)
    t = tl.program_id(0) * BT + tl.arange(0, BT)
    acc = tl.zeros((BF, BT), tl.float32)
    for i in range(TAPS):
        w = tl.load(taps_ptr + f * TAPS + i)
        x = tl.load(x_ptr + t + i * STEP, mask=t < T, other=0.0)
        acc += w[:, None] * x[None, :]
    tl.store(out_ptr + f[:, None] * T + t[None, :], acc, mask=t[None, :] < T)


@pytest.mark.parametrize(("step", "run"), [(1, 1), (16, 4)])
def test_sums_of_rows_that_a_loop_loads(step: int, run: int, run_everywhere: Any) -> None:
    """Rows that are not aligned go to neighbouring threads element by element, for all that one store would gain by vectors."""
    source = filters.translate(f"*fp32:16, *fp32:16, *fp32:16, i32:16, 32, {step}, 8, 256").source
    assert ("store_vec<VEC>(out_ptr" in source) == (run > 1)
    assert ("columns: 2 x 128 threads" in source) == (run == 1)
    rng = np.random.default_rng(step)
    x, taps = rng.standard_normal(300 + 4 * step).astype(np.float32), rng.standard_normal((8, 4)).astype(np.float32)
    args = (x, taps, np.full((8, 300), np.nan, np.float32), 300)
    out = run_everywhere(filters, (2,), *args, TAPS=4, STEP=step, BF=8, BT=256, tolerance=1e-5)[2]
    rows = np.stack([x[i * step : i * step + 300] for i in range(4)]).astype(np.float64)
    np.testing.assert_allclose(out, taps @ rows, rtol=1e-5, atol=1e-5)
