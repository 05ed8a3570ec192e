"""A loop with stages inside of another one: what the inner one multiplies lies in the stages of both."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tilewright as triton
import tilewright.language as tl
from tilewright.runtime.building import nvrtc


@triton.jit
def masked_products(a_ptr, b_ptr, c_ptr, out_ptr, n, D: tl.constexpr, INNER: tl.constexpr, OUTER: tl.constexpr):
    # Rows of b by columns of a, those that come later zero, by rows of c: the shape of an attention's backward pass.
    inner, depth = tl.arange(0, INNER), tl.arange(0, D)
    for start in range(0, n, OUTER):
        rows = start + tl.arange(0, OUTER)
        b = tl.load(b_ptr + rows[:, None] * D + depth[None, :], mask=rows[:, None] < n, other=0.0)
        total = tl.zeros([OUTER, D], dtype=tl.float32)
        for at in range(start, n, INNER):
            columns = at + inner
            a = tl.load(a_ptr + columns[None, :] * D + depth[:, None], mask=columns[None, :] < n, other=0.0)
            weights = tl.where(columns[None, :] >= rows[:, None], tl.dot(b, a), 0.0)
            c = tl.load(c_ptr + columns[:, None] * D + depth[None, :], mask=columns[:, None] < n, other=0.0)
            total += tl.dot(weights.to(c.dtype), c)
        tl.store(out_ptr + rows[:, None] * D + depth[None, :], total, mask=rows[:, None] < n)


@triton.jit
def descriptor_products(a_desc, b_desc, out_ptr, n, D: tl.constexpr, INNER: tl.constexpr, OUTER: tl.constexpr):
    depth = tl.arange(0, D)
    for start in range(0, n, OUTER):
        b = b_desc.load([start, 0])
        total = tl.zeros([OUTER, D], dtype=tl.float32)
        for at in range(start, n, INNER):
            a = a_desc.load([at, 0])
            total += tl.dot(tl.dot(b, a.T).to(a.dtype), a)
        rows = start + tl.arange(0, OUTER)
        tl.store(out_ptr + rows[:, None] * D + depth[None, :], total, mask=rows[:, None] < n)


def halves(rows: int) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    return [rng.integers(-2, 3, (rows, 64)).astype(np.float16) for _ in range(3)]


@pytest.mark.parametrize("arch", ["sm_80", "sm_90a"])
@pytest.mark.parametrize(
    ("inner", "outer", "warps", "stages"), [(16, 16, 1, 2), (16, 64, 4, 3), (64, 16, 4, 2), (64, 64, 4, 3)]
)
def test_both_stages_are_read(
    monkeypatch: pytest.MonkeyPatch, arch: str, inner: int, outer: int, warps: int, stages: int
) -> None:
    monkeypatch.setenv("TILEWRIGHT_MODE", "cpu")
    monkeypatch.setenv("TILEWRIGHT_ARCH", arch)
    a, b, c = halves(90)
    out = np.zeros((90, 64), np.float32)
    compiled = masked_products[(1,)](a, b, c, out, 90, 64, inner, outer, num_warps=warps, num_stages=stages)
    later = np.arange(90)[None, :] >= np.arange(90)[:, None]
    weights = np.where(later, b.astype(np.float32) @ a.astype(np.float32).T, 0)
    np.testing.assert_array_equal(out, weights @ c.astype(np.float32))
    assert "inner_stage" in compiled.source
    if nvrtc.is_available():
        assert "declared but never referenced" not in nvrtc.compile_text(compiled.artifact).log


@pytest.mark.parametrize("warps", [4, 8])
def test_descriptors(run_everywhere: Any, warps: int) -> None:
    from tilewright.tools.tensor_descriptor import TensorDescriptor

    a, b, _ = halves(128)
    a_desc, b_desc = TensorDescriptor.from_tensor(a, [32, 64]), TensorDescriptor.from_tensor(b, [64, 64])
    out = run_everywhere(descriptor_products, (1,), a_desc, b_desc, np.zeros((128, 64), np.float32), 128, D=64, INNER=32,
                         OUTER=64, num_warps=warps)[-1]  # fmt: skip
    wide, other = a.astype(np.float32), b.astype(np.float32)
    starts = np.arange(128)[:, None] // 64 * 64
    weights = np.where(np.arange(128)[None, :] >= starts, other @ wide.T, 0).astype(np.float16).astype(np.float32)
    np.testing.assert_array_equal(out, weights @ wide)
