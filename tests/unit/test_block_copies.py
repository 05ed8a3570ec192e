"""Tiles that all threads copy for one another: 8-bit weights beside `mma.sync`, whose holders have two bytes side by side."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
import tilewright as triton
import tilewright.language as tl
import tilewright.runtime.cpu as cpu
from tilewright.artifact import Options
from tilewright.pipeline import Translation, translate_stages
from tilewright.runtime.arguments.signature import parse_signature
from tilewright.schedule.targets import find_target

WAYS = (("greedy_low", "late"), ("reverse", "early"), ("random", "mixed"))


@triton.jit
def weights_of_bytes(a_ptr, w_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rows = tl.arange(0, BM)
    cols = tl.program_id(0) * BN + tl.arange(0, BN)
    total = tl.zeros((BM, BN), tl.float32)
    for start in range(0, K, BK):
        k = start + tl.arange(0, BK)
        a = tl.load(a_ptr + rows[:, None] * K + k[None, :], mask=(rows < M)[:, None] & (k < K)[None, :], other=0.0)
        w = tl.load(w_ptr + k[:, None] * N + cols[None, :], mask=(k < K)[:, None] & (cols < N)[None, :], other=0.0)
        total += tl.dot(a, w.to(tl.float16))
    mask = (rows < M)[:, None] & (cols < N)[None, :]
    tl.store(c_ptr + rows[:, None] * N + cols[None, :], total, mask=mask)


def planned(signature: str, **options: Any) -> Translation:
    parsed = parse_signature(weights_of_bytes, signature)
    return translate_stages(weights_of_bytes, parsed, Options(**options), find_target("sm_90a"))


@pytest.mark.parametrize("mode", ["everyhow", "check"])
@pytest.mark.parametrize(
    ("dtype", "tile", "warps"),
    [(np.int8, (16, 64, 128), 4), (ml_dtypes.float8_e4m3fn, (16, 32, 64), 2), (np.int8, (16, 16, 32), 1)],
)
def test_all_threads_copy(
    mode: str, dtype: Any, tile: tuple[int, int, int], warps: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(5)
    bm, bn, bk = tile
    m, n, k = 13, 2 * bn - 16, 3 * bk + 16
    a, w = rng.standard_normal((m, k)).astype(np.float16), rng.integers(-9, 9, (k, n)).astype(dtype)
    expected = a.astype(np.float64) @ w.astype(np.float64)
    monkeypatch.setenv("TILEWRIGHT_MODE", "check" if mode == "check" else "cpu")
    run = cpu.run
    for schedule, delivery in WAYS if mode == "everyhow" else (("greedy_low", "late"),):

        def with_way(artifact: Any, grid: Any, values: Any, how: tuple[str, str] = (schedule, delivery)) -> None:
            run(artifact, grid, values, schedule=how[0], seed=3, delivery=how[1])

        if mode == "everyhow":
            monkeypatch.setattr(cpu, "run", with_way)
        c = np.full((m, n), np.nan, np.float32)
        weights_of_bytes[(2,)](a, w, c, m, n, k, bm, bn, bk, num_warps=warps)
        np.testing.assert_allclose(c, expected, rtol=2e-3, atol=2e-2)


def test_pieces_of_sixteen_bytes() -> None:
    translation = planned("*fp16:16, *i8:16, *fp32:16, i32, i32:16, i32:16, 16, 64, 128")
    ((tile, copy),) = translation.schedule.block_copies.items()
    assert tile.name == "w" and copy.tile.fast == 1 and copy.layout.vector(1) == 16
    text = translation.artifact.source
    assert "cp_async_16(&w_ahead[stage][w_ahead_place]" in text
    assert "load_vec<W_VEC>(loaded, &w_ahead[stage][w_ahead_place]);" in text


def test_only_where_holders_have_crumbs_or_half_lines() -> None:
    signature = "*fp16:16, {}, *fp32:16, i32, i32:16, i32:16, 16, 64, 128"
    assert not planned(signature.format("*i64:16")).schedule.block_copies  # eight lanes have a line: own copies
    assert not planned(signature.format("*i8")).schedule.block_copies  # no piece of it is known to be aligned


@triton.jit
def rounded_weights(a_ptr, w_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rows, cols = tl.arange(0, BM), tl.program_id(0) * BN + tl.arange(0, BN)
    total = tl.zeros((BM, BN), tl.float32)
    for start in range(0, K, BK):
        k = start + tl.arange(0, BK)
        a = tl.load(a_ptr + rows[:, None] * K + k[None, :], mask=(rows < M)[:, None] & (k < K)[None, :], other=0.0)
        w = tl.load(w_ptr + cols[None, :] * K + k[:, None], mask=(k < K)[:, None] & (cols < N)[None, :], other=0.0)
        total = tl.dot(a, w.to(tl.float16), total)
    mask = (rows < M)[:, None] & (cols < N)[None, :]
    tl.store(c_ptr + rows[:, None] * N + cols[None, :], total, mask=mask)


def test_half_lines_are_copied_as_whole_ones(run_everyhow: Any) -> None:
    """Four lanes hold 64 bytes of a column's weights; sixteen copy 256."""
    parsed = parse_signature(rounded_weights, "*fp16:16, *fp32:16, *fp32:16, i32, i32:16, i32:16, 32, 64, 64")
    translation = translate_stages(rounded_weights, parsed, Options(), find_target("sm_90a"))
    ((tile, copy),) = translation.schedule.block_copies.items()
    assert tile.name == "w" and copy.tile.fast == 0 and copy.layout.axes[0].count(-1) == 2
    rng = np.random.default_rng(7)
    a, w = rng.integers(-4, 5, (29, 208)).astype(np.float16), rng.integers(-4, 5, (80, 208)).astype(np.float32)
    arguments = [a, w, np.full((29, 80), np.nan, np.float32), 29, 80, 208]
    for result in run_everyhow(rounded_weights, (2,), arguments, BM=32, BN=64, BK=64):
        np.testing.assert_array_equal(result[2], a.astype(np.float32) @ w.T)
