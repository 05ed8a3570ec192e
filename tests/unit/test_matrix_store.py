"""Tiles that products leave in registers, on their way out through shared memory by stmatrix."""

from __future__ import annotations

import numpy as np
import pytest
import tilewright as triton
import tilewright.language as tl


@triton.jit
def product_kernel(a_ptr, b_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    row, col = tl.program_id(0) * BM, tl.program_id(1) * BN
    a_desc = tl.make_tensor_descriptor(a_ptr, [M, K], [K, 1], [BM, BK])
    b_desc = tl.make_tensor_descriptor(b_ptr, [K, N], [N, 1], [BK, BN])
    c_desc = tl.make_tensor_descriptor(c_ptr, [M, N], [N, 1], [BM, BN])
    total = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
        total = tl.dot(a_desc.load([row, k]), b_desc.load([k, col]), total)
    c_desc.store([row, col], total.to(tl.float16))


@pytest.mark.parametrize(("rows", "columns", "warps"), [(64, 128, 8), (64, 256, 8), (128, 64, 8), (64, 128, 4)])
def test_warpgroups_store_their_own_columns(
    rows: int, columns: int, warps: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TILEWRIGHT_MODE", "cpu")
    rng = np.random.default_rng(rows + columns)
    a, b = (rng.integers(-3, 4, shape).astype(np.float16) for shape in ((rows, 64), (64, columns)))
    c = np.full((rows, columns), 77, np.float16)
    compiled = product_kernel[(1, 1)](a, b, c, rows, columns, 64, rows, columns, 32, num_warps=warps, num_stages=4)
    np.testing.assert_array_equal(c, a.astype(np.float32) @ b.astype(np.float32))
    assert "store_matrices" in compiled.source
