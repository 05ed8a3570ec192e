"""Rows that lanes combine: how many threads share one, and how much of it each of them holds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tilewright as triton
import tilewright.language as tl


@triton.jit
def softmax_rows(x_ptr, y_ptr, M, N, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    r, c = tl.program_id(0) * ROWS + tl.arange(0, ROWS), tl.arange(0, BLOCK)
    mask, at = (r[:, None] < M) & (c[None, :] < N), r[:, None] * N + c[None, :]
    x = tl.load(x_ptr + at, mask=mask, other=-float("inf")).to(tl.float32)
    e = tl.exp(x - tl.max(x, 1)[:, None])
    tl.store(y_ptr + at, e / tl.sum(e, 1)[:, None], mask=mask)


@triton.jit
def products_with_a_vector(a_ptr, x_ptr, y_ptr, M, N, ROWS: tl.constexpr, BLOCK: tl.constexpr, AT_ONCE: tl.constexpr):
    r, c = tl.program_id(0) * ROWS + tl.arange(0, ROWS), tl.arange(0, BLOCK)
    total, tiles = tl.zeros((ROWS,), tl.float32), tl.zeros((ROWS, BLOCK), tl.float32)
    for start in range(0, N, BLOCK):
        mask = (r[:, None] < M) & (start + c[None, :] < N)
        a = tl.load(a_ptr + r[:, None] * N + start + c[None, :], mask=mask, other=0.0)
        product = a * tl.load(x_ptr + start + c, mask=start + c < N, other=0.0)[None, :]
        if AT_ONCE:
            total += tl.sum(product, 1)
        else:
            tiles += product
    tl.store(y_ptr + r, total + tl.sum(tiles, 1), mask=r < M)


ROWS_OF = {  # elements, rows, columns: how the header says that threads hold columns
    ("fp16", 16, 64): "columns: 8 threads x 8 consecutive",
    ("fp16", 32, 32): "columns: 4 threads x 8 consecutive",
    ("fp32", 16, 64): "columns: 16 threads x 4 consecutive",
    ("fp16", 4, 256): "columns: 8 x 32 threads",  # a warp to a row, and nothing to gain from runs
    ("fp32", 4, 512): "columns: 16 x 32 threads",
}


@pytest.mark.parametrize(("element", "rows", "block"), ROWS_OF)
def test_few_lanes_share_a_short_row(element: str, rows: int, block: int) -> None:
    """All lanes of a warp would combine each row for itself, where rows that are not aligned are loaded one by one."""
    source = softmax_rows.translate(f"*{element}:16, *{element}:16, i32, i32, {rows}, {block}").source
    assert ROWS_OF[element, rows, block] in " ".join(source.replace("//", " ").split())
    assert "_partial[" not in source, "no row needs several warps"


@pytest.mark.parametrize(("rows", "block", "n"), [(16, 64, 63), (4, 256, 255), (2, 512, 333)])
def test_rows_are_right(rows: int, block: int, n: int, run_everywhere: Any) -> None:
    x = np.random.default_rng(n).normal(size=(9, n)).astype(np.float32)
    arguments = x, np.full_like(x, np.nan), 9, n
    y = run_everywhere(softmax_rows, (-(-9 // rows),), *arguments, ROWS=rows, BLOCK=block, tolerance=1e-5)[1]
    e = np.exp(x.astype(np.float64) - x.max(1, keepdims=True))
    np.testing.assert_allclose(y, e / e.sum(1, keepdims=True), rtol=1e-4)


def test_what_a_loop_only_adds_up_is_loaded_row_by_row(run_everywhere: Any) -> None:
    """There all warps load a row together; where each trip combines rows, a warp has a row for itself."""
    signature = "*fp32:16, *fp32:16, *fp32:16, i32:16, i32:16, 4, 512"
    texts = {each: products_with_a_vector.translate(f"{signature}, {each}").source for each in (False, True)}
    assert {each: "_partial[" in text for each, text in texts.items()} == {False: True, True: False}
    rng = np.random.default_rng(2)
    a, x = rng.normal(size=(6, 300)).astype(np.float32), rng.normal(size=300).astype(np.float32)
    for each in (False, True):
        sizes = {"ROWS": 4, "BLOCK": 128, "AT_ONCE": each}
        y = run_everywhere(products_with_a_vector, (2,), a, x, np.zeros(6, np.float32), 6, 300, **sizes, tolerance=1e-4)
        np.testing.assert_allclose(y[2], a.astype(np.float64) @ x, rtol=1e-3, atol=1e-3)
