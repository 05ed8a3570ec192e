"""Products of floats in parts by wgmma: threads write the parts to shared memory, along K where wgmma reads 32 bits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tilewright as triton
import tilewright.language as tl


@triton.jit
def product(a_ptr, b_ptr, c_ptr, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, A_ROWS: tl.constexpr,
            B_ROWS: tl.constexpr, PRECISION: tl.constexpr):  # fmt: skip
    # One tile of C; A and B lie by rows or by columns.
    m, n, k = tl.arange(0, BM), tl.arange(0, BN), tl.arange(0, BK)
    total = tl.zeros((BM, BN), tl.float32)
    for start in range(0, K, BK):
        a = tl.load(
            a_ptr + (m[:, None] * K + (start + k)[None, :] if A_ROWS else m[:, None] + (start + k)[None, :] * BM)
        )
        b = tl.load(
            b_ptr + ((start + k)[:, None] * BN + n[None, :] if B_ROWS else (start + k)[:, None] + n[None, :] * K)
        )
        total = tl.dot(a, b, total, input_precision=PRECISION)
    tl.store(c_ptr + m[:, None] * BN + n[None, :], total)


CASES = [
    ("tf32x3", True, True, (64, 64, 32), 4, 2.0**-21),
    ("tf32x3", False, True, (128, 64, 16), 8, 2.0**-21),
    ("tf32x3", False, False, (64, 32, 32), 4, 2.0**-21),
    ("bf16x3", False, True, (64, 64, 32), 4, 2.0**-15),
]


@pytest.mark.parametrize(("precision", "a_rows", "b_rows", "tile", "warps", "tolerance"), CASES, ids=str)
def test_parts(
    run_everywhere: Any,
    precision: str,
    a_rows: bool,
    b_rows: bool,
    tile: tuple[int, int, int],
    warps: int,
    tolerance: float,
) -> None:
    bm, bn, bk = tile
    k = 3 * bk
    generator = np.random.default_rng(bm + bk)
    a, b = generator.standard_normal((bm, k)).astype(np.float32), generator.standard_normal((k, bn)).astype(np.float32)
    given = (a if a_rows else a.T.copy()), (b if b_rows else b.T.copy())
    flags = {"A_ROWS": a_rows, "B_ROWS": b_rows, "PRECISION": precision}
    options = {"BM": bm, "BN": bn, "BK": bk, **flags, "num_warps": warps, "tolerance": 1e-3}
    *_, c = run_everywhere(product, (1,), *given, np.zeros((bm, bn), np.float32), k, **options)
    exact = a.astype(np.float64) @ b.astype(np.float64)
    assert np.linalg.norm(c - exact) <= tolerance * np.linalg.norm(exact)
    signature = f"*fp32:16, *fp32:16, *fp32:16, i32:16, {bm}, {bn}, {bk}, {a_rows}, {b_rows}, '{precision}'"
    source = product.translate(signature, num_warps=warps).source
    assert "wgmma_m64" in source
    assert ("split_across<" in source) == (precision == "tf32x3")
