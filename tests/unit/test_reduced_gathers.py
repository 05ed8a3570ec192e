"""Rows that are gathered and added up: each warp has whole results, and no thread waits for another warp."""

from __future__ import annotations

from typing import Any

import numpy as np
import tilewright as triton
import tilewright.language as tl


@triton.jit
def interactions(ids_ptr, table_ptr, out_ptr, n, FIELDS: tl.constexpr, D: tl.constexpr, BLOCK: tl.constexpr):
    b = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    f, d = tl.arange(0, FIELDS), tl.arange(0, D)
    ids = tl.load(ids_ptr + b[:, None] * FIELDS + f[None, :], mask=(b < n)[:, None], other=0)
    v = tl.load(table_ptr + ids[:, :, None] * D + d[None, None, :])
    total = tl.sum(v, axis=1)
    tl.store(out_ptr + b, tl.sum(total * total - tl.sum(v * v, axis=1), axis=1), mask=b < n)


def test_pairs_of_fields(run_everywhere: Any) -> None:
    rng = np.random.default_rng(5)
    ids, table = rng.integers(0, 50, (10, 32)).astype(np.int32), rng.integers(-4, 5, (50, 32)).astype(np.float32)
    out = run_everywhere(interactions, (3,), ids, table, np.zeros(10, np.float32), 10, FIELDS=32, D=32, BLOCK=4)[2]
    v = table[ids]
    np.testing.assert_array_equal(out, (v.sum(1) ** 2 - (v**2).sum(1)).sum(1))
    text = interactions.translate("*i32:16, *fp32:16, *fp32:16, i32, 32, 32, 4").source
    assert "__syncthreads" not in text and "__shared__" not in text
