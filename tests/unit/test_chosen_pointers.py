"""Addresses that `tl.where` chooses: whichever it is, its runs are read by whole vectors where the condition splits none."""

from __future__ import annotations

from typing import Any

import numpy as np
import tilewright as triton
import tilewright.language as tl


@triton.jit
def joined_rows(a_ptr, b_ptr, out_ptr, n_a, n, D: tl.constexpr, BLOCK: tl.constexpr):
    r, d = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK), tl.arange(0, D)
    source = tl.where((r < n_a)[:, None], a_ptr + r[:, None] * D, b_ptr + (r - n_a)[:, None] * D)
    row = tl.load(source + d[None, :], mask=(r < n)[:, None])
    tl.store(out_ptr + r[:, None] * D + d[None, :], row, mask=(r < n)[:, None])


@triton.jit
def joined_columns(a_ptr, b_ptr, out_ptr, SPLIT: tl.constexpr, D: tl.constexpr):
    d = tl.arange(0, D)
    x = tl.load(tl.where(d < SPLIT, a_ptr + d, b_ptr + d - SPLIT))
    tl.store(out_ptr + d, x)


def test_rows_of_either_array_are_read_by_vectors(run_everywhere: Any) -> None:
    a, b = (np.random.default_rng(n).standard_normal((n, 32)).astype(np.float16) for n in (7, 12))
    out = run_everywhere(joined_rows, (2,), a, b, np.zeros((19, 32), np.float16), 7, 19, D=32, BLOCK=16)[2]
    np.testing.assert_array_equal(out, np.concatenate([a, b]))
    text = joined_rows.translate("*fp16:16, *fp16:16, *fp16:16, i32, i32, 32, 16").source
    assert "load_vec_if<VEC>(row," in text


def test_a_condition_along_the_columns_splits_vectors_or_not(run_everywhere: Any) -> None:
    a, b = np.arange(512, dtype=np.float32), -np.arange(512, dtype=np.float32)
    for split, vector in ((256, True), (254, False)):
        out = run_everywhere(joined_columns, (1,), a, b, np.zeros(512, np.float32), SPLIT=split, D=512)[2]
        np.testing.assert_array_equal(out, np.concatenate([a[:split], b[: 512 - split]]))
        text = joined_columns.translate(f"*fp32:16, *fp32:16, *fp32:16, {split}, 512").source
        assert ("load_vec<" in text) == vector
