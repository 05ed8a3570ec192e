"""Tiles that products leave in registers, on their way out through shared memory by stmatrix."""

from __future__ import annotations

import numpy as np
import pytest
import tilewright as triton
import tilewright.language as tl
from tilewright.tools.tensor_descriptor import TensorDescriptor


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


@triton.jit
def stored_twice_kernel(a_desc, b_desc, half_desc, sum_desc, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    row, col = tl.program_id(0) * BM, tl.program_id(1) * BN
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, K, BK):
        total = tl.dot(a_desc.load([row, k]), b_desc.load([k, col]), total)
    half_desc.store([row, col], total.to(tl.float16))
    sum_desc.store([row, col], total)


def test_two_stores_in_pieces_count_their_own_elements(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_MODE", "cpu")
    rng = np.random.default_rng(3)
    a, b = (rng.integers(-3, 4, shape).astype(np.float16) for shape in ((128, 64), (64, 256)))
    half, total = np.full((128, 256), 77, np.float16), np.full((128, 256), 77, np.float32)
    tensors = [
        TensorDescriptor.from_tensor(array, block)
        for array, block in ((a, [128, 64]), (b, [64, 256]), (half, [128, 256]), (total, [128, 256]))
    ]
    stored_twice_kernel[(1, 1)](*tensors, 64, 128, 256, 64, num_warps=8)
    product = a.astype(np.float32) @ b.astype(np.float32)
    np.testing.assert_array_equal(total, product)
    np.testing.assert_array_equal(half, product.astype(np.float16))
