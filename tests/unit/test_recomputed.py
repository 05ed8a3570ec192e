"""Tiles that are functions of the register's index, the pairs that are rounded together, and masks that are settled."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tilewright as triton
import tilewright.language as tl
from tilewright.runtime.building import nvrtc


@triton.jit
def softmax_rows(x_ptr, out_ptr, n, N: tl.constexpr):
    cols = tl.arange(0, N)
    row = tl.program_id(0)
    x = tl.load(x_ptr + row * N + cols, mask=cols < n, other=-float("inf")).to(tl.float32)
    numerator = tl.exp(x - tl.max(x, axis=0))
    tl.store(out_ptr + row * N + cols, numerator / tl.sum(numerator, axis=0), mask=cols < n)


@triton.jit
def scaled_by_sums(x_ptr, w_ptr, out_ptr, ROWS: tl.constexpr, N: tl.constexpr):
    cols = tl.arange(0, N)
    w = tl.load(w_ptr + cols).to(tl.float32)
    total = tl.zeros((N,), dtype=tl.float32)
    for row in range(ROWS):
        x = tl.load(x_ptr + row * N + cols).to(tl.float32)
        product = x * w
        centred = product - tl.sum(product, axis=0) / N
        total += centred / tl.sum(centred * centred, axis=0)
    tl.store(out_ptr + cols, total)


@triton.jit
def blocks_of_rows(x_ptr, out_ptr, count, ROWS: tl.constexpr):
    cols = tl.arange(0, 64)
    for start in range(tl.program_id(0) * ROWS, count, tl.num_programs(0) * ROWS):
        rows = start + tl.arange(0, ROWS)
        mask = (rows < count)[:, None]
        x = tl.load(x_ptr + rows[:, None] * 64 + cols[None, :], mask=mask)
        tl.store(out_ptr + rows[:, None] * 64 + cols[None, :], x * 2, mask=mask)


@triton.jit
def last_row(x_ptr, out_ptr, count):
    one, row = tl.arange(0, 1), 5
    for row in range(0, count):
        tl.debug_barrier()
    tl.store(out_ptr + one, tl.load(x_ptr + one), mask=row + one < count)


@triton.jit
def filled_rows(x_ptr, out_ptr, n, N: tl.constexpr, BLOCK: tl.constexpr):
    cols = tl.arange(0, BLOCK)
    inside = cols < N
    x = tl.load(x_ptr + cols, mask=inside & (cols < n), other=0.0)
    tl.store(out_ptr + cols, tl.where(inside, x * 2.0, -1.0), mask=inside)


@triton.jit
def standardised(x_ptr, w_ptr, b_ptr, out_ptr, M, N: tl.constexpr, HINT: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, N)
    x = tl.load(x_ptr + row * N + cols, mask=row < M, other=0.0, eviction_policy=HINT).to(tl.float32)
    mean = tl.sum(x, axis=0) / N
    centred = x - mean
    scale = 1 / tl.sqrt(tl.sum(centred * centred, axis=0) / N)
    w, b = tl.load(w_ptr + cols).to(tl.float32), tl.load(b_ptr + cols).to(tl.float32)
    tl.store(out_ptr + row * N + cols, centred * scale * w + b, mask=row < M)


@pytest.mark.skipif(not nvrtc.is_available(), reason="NVRTC is not installed")
@pytest.mark.parametrize("hint", ["", "evict_first", "evict_last"])
def test_a_third_block_needs_registers_to_spare(hint: str) -> None:
    artifact = standardised.translate(f"*fp16:16, *fp16:16, *fp16:16, *fp16:16, i32:16, 16384, {hint!r}", num_warps=16)
    cubin = nvrtc.compile_text(artifact)
    assert 40 < cubin.registers <= 64 and cubin.spill_bytes == 0  # of 65536, 512 threads a block


def test_wide_rows_keep_the_narrow_tile(run_everywhere: Any) -> None:
    x = np.random.default_rng(1).standard_normal((2, 32768)).astype(np.float16) * 3
    _, out = run_everywhere(softmax_rows, (2,), x, np.zeros_like(x), 32000, N=32768, num_warps=16, tolerance=2e-3)
    wide = x[:, :32000].astype(np.float64)
    e = np.exp(wide - wide.max(axis=1, keepdims=True))
    assert np.allclose(out[:, :32000], e / e.sum(axis=1, keepdims=True), rtol=2e-3, atol=1e-6)
    source = softmax_rows.translate("*fp16:16, *fp16:16, i32, 32768", num_warps=16).source
    assert "const auto numerator = [&](int e)" in source and "forget(" in source
    assert "half x_max = " in source  # the maximum of what was loaded, not of what it was widened to


def test_rows_that_fit_are_computed_once() -> None:
    source = softmax_rows.translate("*fp16:16, *fp16:16, i32, 1024", num_warps=4).source
    assert "[&](int e) { return __expf" not in source and "forget(" not in source


def test_tiles_from_outside_of_the_loop_are_forgotten_too(run_everywhere: Any) -> None:
    rng = np.random.default_rng(2)
    x, w = rng.standard_normal((3, 32768)).astype(np.float16), rng.standard_normal(32768).astype(np.float16)
    arguments = (x, w, np.zeros(32768, np.float32))
    *_, out = run_everywhere(scaled_by_sums, (1,), *arguments, ROWS=3, N=32768, num_warps=16, tolerance=1e-5)
    product = x.astype(np.float64) * w.astype(np.float64)
    centred = product - product.mean(axis=1, keepdims=True)
    expected = (centred / (centred**2).sum(axis=1, keepdims=True)).sum(axis=0)
    assert np.allclose(out, expected, rtol=1e-4, atol=1e-9)
    source = scaled_by_sums.translate("*fp16:16, *fp16:16, *fp32:16, 3, 32768", num_warps=16).source
    assert "forget(w_loaded)" in source and "forget(x_loaded)" in source


@pytest.mark.parametrize(("signature", "rows", "tested"), (("i32", 1, False), ("i32:16", 4, False), ("i32", 4, True)))
def test_what_the_head_of_a_loop_tests_is_settled(run_everywhere: Any, signature: str, rows: int, tested: bool) -> None:
    count = 16 if signature == "i32:16" else 13
    x = np.random.default_rng(4).standard_normal((count, 64), dtype=np.float32)
    _, out = run_everywhere(blocks_of_rows, (3,), x, np.full((count + 3, 64), 7, np.float32), count, ROWS=rows)
    assert np.array_equal(out[:count], x * 2) and (out[count:] == 7).all()
    source = blocks_of_rows.translate(f"*fp32:16, *fp32:16, {signature}, {rows}").source
    assert ("(always true)" in source) != tested


def test_a_mask_behind_its_loop_is_not_settled(run_everywhere: Any) -> None:
    for count, expected in ((0, 7), (3, 2)):
        _, out = run_everywhere(last_row, (1,), np.full(1, 2, np.float32), np.full(1, 7, np.float32), count)
        assert out == expected


@pytest.mark.parametrize(("n", "block", "settled"), ((512, 512, True), (500, 512, False)))
def test_masks_of_filled_rows_vanish(run_everywhere: Any, n: int, block: int, settled: bool) -> None:
    x = np.random.default_rng(3).standard_normal(block, dtype=np.float32)
    _, out = run_everywhere(filled_rows, (1,), x, np.full(block, 7, np.float32), 300, N=n, BLOCK=block)
    expected = np.where(np.arange(block) < 300, x * 2, 0)
    assert np.array_equal(out, np.where(np.arange(block) < n, expected, 7))
    source = filled_rows.translate(f"*fp32:16, *fp32:16, i32, {n}, {block}").source
    assert ("(always true)" in source) == settled
    assert ("-1.0f" in source) != settled
