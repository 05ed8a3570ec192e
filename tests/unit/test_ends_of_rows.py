"""Stores to rows that end within 16 bytes: what lies behind them, such as the other columns of a slice, stays as it is.

Tensor copies write 16 bytes as a whole if some of them are inside the tensor; the CPU run does so too.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tilewright as triton
import tilewright.language as tl
from tilewright.tools.tensor_descriptor import TensorDescriptor

RNG = np.random.default_rng(8)
STRIDE, SIDE = 96, 64


@triton.jit
def pointers_kernel(a_ptr, b_ptr, c_ptr, M, N, K, stride, SIDE: tl.constexpr):
    m, n, k = (tl.program_id(0) * SIDE + tl.arange(0, SIDE), tl.program_id(1) * SIDE + tl.arange(0, SIDE),
               tl.arange(0, SIDE))  # fmt: skip
    total = tl.zeros((SIDE, SIDE), tl.float32)
    for k0 in range(0, K, SIDE):
        a = tl.load(a_ptr + m[:, None] * K + (k0 + k)[None, :], mask=m[:, None] < M, other=0.0)
        b = tl.load(b_ptr + (k0 + k)[:, None] * stride + n[None, :], mask=n[None, :] < N, other=0.0)
        total = tl.dot(a, b, total)
    result = (total + 1).to(c_ptr.dtype.element_ty)
    tl.store(c_ptr + m[:, None] * stride + n[None, :], result, mask=(m[:, None] < M) & (n[None, :] < N))


@triton.jit
def own_descriptor_kernel(a_ptr, b_ptr, c_ptr, M, N, K, stride, SIDE: tl.constexpr):
    a_desc = tl.make_tensor_descriptor(a_ptr, [M, K], [K, 1], [SIDE, SIDE])
    b_desc = tl.make_tensor_descriptor(b_ptr, [K, N], [stride, 1], [SIDE, SIDE])
    c_desc = tl.make_tensor_descriptor(c_ptr, [M, N], [stride, 1], [SIDE, SIDE])
    total = tl.zeros((SIDE, SIDE), tl.float32)
    for k0 in range(0, K, SIDE):
        total = tl.dot(a_desc.load([tl.program_id(0) * SIDE, k0]), b_desc.load([k0, tl.program_id(1) * SIDE]), total)
    c_desc.store([tl.program_id(0) * SIDE, tl.program_id(1) * SIDE], (total + 1).to(c_ptr.dtype.element_ty))


@triton.jit
def descriptors_kernel(a_desc, b_desc, c_desc, K, SIDE: tl.constexpr):
    total = tl.zeros((SIDE, SIDE), tl.float32)
    for k0 in range(0, K, SIDE):
        total = tl.dot(a_desc.load([tl.program_id(0) * SIDE, k0]), b_desc.load([k0, tl.program_id(1) * SIDE]), total)
    c_desc.store([tl.program_id(0) * SIDE, tl.program_id(1) * SIDE], (total + 1).to(tl.float16))


def problem(n: int, dtype: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Operands, a result that is a slice of wider rows, and what these must hold afterwards."""
    a, b = (RNG.integers(-3, 4, shape).astype(np.float16) for shape in ((80, 128), (128, STRIDE)))
    c = np.full((80, STRIDE), 7, dtype)
    expected = c.copy()
    expected[:, :n] = a.astype(np.float64) @ b[:, :n] + 1
    return a, b, c, expected


@pytest.mark.parametrize("kernel", [pointers_kernel, own_descriptor_kernel])
@pytest.mark.parametrize(("n", "dtype"), [(80, np.float16), (77, np.float16), (66, np.float32), (72, np.float16)])
def test_slices(monkeypatch: pytest.MonkeyPatch, kernel: Any, n: int, dtype: Any) -> None:
    monkeypatch.setenv("TILEWRIGHT_MODE", "cpu")
    monkeypatch.setenv("TILEWRIGHT_ARCH", "sm_90a")
    a, b, c, expected = problem(n, dtype)
    compiled = kernel[(2, 2)](a, b, c, 80, n, 128, STRIDE, SIDE)
    np.testing.assert_array_equal(c, expected)
    assert "tma_load_2d" in compiled.source
    assert ("tma_store_2d" in compiled.source) == (n % 16 == 0)


@pytest.mark.parametrize("n", [80, 77])
def test_slices_by_descriptors(monkeypatch: pytest.MonkeyPatch, n: int) -> None:
    monkeypatch.setenv("TILEWRIGHT_MODE", "cpu")
    monkeypatch.setenv("TILEWRIGHT_ARCH", "sm_90a")
    a, b, c, expected = problem(n, np.float16)
    a_desc, b_desc = (
        TensorDescriptor.from_tensor(a, [SIDE, SIDE]),
        TensorDescriptor(b, [128, n], [STRIDE, 1], [SIDE, SIDE]),
    )
    c_desc = TensorDescriptor(c, [80, n], [STRIDE, 1], [SIDE, SIDE])
    compiled = descriptors_kernel[(2, 2)](a_desc, b_desc, c_desc, 128, SIDE)
    np.testing.assert_array_equal(c, expected)
    assert ("tma_store_2d" in compiled.source) == (n % 16 == 0)


def test_a_signature_says_it() -> None:
    blocks = "tensordesc<fp16[64, 64]>"
    text = descriptors_kernel.translate(f"{blocks}, {blocks}, {blocks}:16, i32, 64", arch="sm_90a").source
    assert "tma_store_2d" in text
    text = descriptors_kernel.translate(f"{blocks}, {blocks}, {blocks}, i32, 64", arch="sm_90a").source
    assert "tma_store_2d" not in text
