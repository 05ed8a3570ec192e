"""Vectors whose elements do not lie side by side in a thread's array: 8-bit weights by rows, as a dot takes them by columns."""

from __future__ import annotations

import numpy as np
import pytest
import tilewright as triton
import tilewright.language as tl
from tilewright.artifact import Options
from tilewright.pipeline import translate_stages
from tilewright.runtime.arguments.signature import parse_signature
from tilewright.schedule.targets import find_target


@triton.jit
def weighted(a_ptr, w_ptr, scale_ptr, c_ptr, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    m, k = tl.arange(0, BM), tl.arange(0, BK)
    n = tl.program_id(0) * BN + tl.arange(0, BN)
    inside = n[None, :] < N
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(0, K, BK):
        a = tl.load(a_ptr + m[:, None] * K + (start + k)[None, :])
        w = tl.load(w_ptr + (start + k)[:, None] * N + n[None, :], mask=inside, other=3)
        total = tl.dot(a, w.to(tl.float16), total)
    scale = tl.load(scale_ptr + n, mask=n < N, other=0.0)
    tl.store(c_ptr + m[:, None] * N + n[None, :], total * scale[None, :], mask=inside)


def test_bytes_are_copied_ahead_by_vectors() -> None:
    signature = parse_signature(weighted, "*fp16:16, *i8:16, *fp32:16, *fp32:16, i32:16, i32:16, 16, 64, 64")
    found = translate_stages(weighted, signature, Options(num_warps=1), find_target("sm_90a"))
    (ring,) = found.schedule.rings.rings
    assert [tile.name for tile in ring.own] == ["w"]
    text = found.artifact.source
    assert "cp_async_8(&w_ahead[stage]" in text and "w[i][r] = loaded[i];" in text


@pytest.mark.parametrize("mode", ["cpu", "check"])
@pytest.mark.parametrize(("n", "warps"), [(112, 1), (112, 4), (101, 2)])
def test_products_are_exact(mode: str, n: int, warps: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_MODE", mode)
    rng = np.random.default_rng(5)
    a, w = rng.integers(-4, 5, (16, 128)).astype(np.float16), rng.integers(-99, 100, (128, n)).astype(np.int8)
    scale, c = np.exp2(rng.integers(-3, 3, n)).astype(np.float32), np.full((16, n), np.nan, np.float32)
    weighted[(2,)](a, w, scale, c, n, 128, BM=16, BN=64, BK=64, num_warps=warps)
    np.testing.assert_array_equal(c, a.astype(np.float64) @ w.astype(np.float64) * scale)
