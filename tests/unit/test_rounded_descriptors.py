"""Descriptors made with `round_f32_to_tf32`: what is loaded through them is rounded to nearest, ties to even."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tilewright as triton
import tilewright.language as tl
from tilewright.tools.tensor_descriptor import TensorDescriptor


@triton.jit
def copy_block(desc, out_ptr, N: tl.constexpr):
    tl.store(out_ptr + tl.arange(0, N), desc.load([0, 0]).reshape(N))


@triton.jit
def product(a_desc, b_desc, c_ptr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    c = tl.dot(a_desc.load([0, 0]), b_desc.load([0, 0]))
    tl.store(c_ptr + tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :], c)


def rounded(values: Any) -> Any:
    """By arithmetic instead of bits: to 11 significant bits, as NumPy rounds ties."""
    with np.errstate(over="ignore"):
        return _rounded(values)


def _rounded(values: Any) -> Any:
    fraction, exponent = np.frexp(values.astype(np.float64))
    return np.ldexp(np.round(fraction * 2**11) / 2**11, exponent).astype(np.float32)


def test_loads_round(run_everywhere: Any) -> None:
    tie = np.float32(1 + 2**-11)
    special = np.array([np.inf, -np.inf, np.nan, 0, -0.0, tie, -tie, 1 + 3 * 2**-11, 65535.9, 3.4028235e38], np.float32)
    x = np.concatenate([special, np.random.default_rng(3).standard_normal(54).astype(np.float32)])
    wanted = np.where(np.isfinite(x), rounded(np.where(np.isfinite(x), x, 0)), x)
    wanted[9] = np.inf  # the next number of tf32 is none
    for rounds, expected in ((True, wanted), (False, x)):
        desc = TensorDescriptor.from_tensor(x.reshape(1, 64), [1, 64], round_f32_to_tf32=rounds)
        *_, out = run_everywhere(copy_block, (1,), desc, np.zeros(64, np.float32), 64)
        np.testing.assert_array_equal(out, expected)


def test_products_of_what_is_rounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_MODE", "cpu")
    rng = np.random.default_rng(4)
    a, b = rng.standard_normal((16, 32)).astype(np.float32), rng.standard_normal((32, 16)).astype(np.float32)
    c = np.zeros((16, 16), np.float32)
    operands = [TensorDescriptor.from_tensor(one, list(one.shape), round_f32_to_tf32=True) for one in (a, b)]
    product[(1,)](*operands, c, 16, 16, 32)
    np.testing.assert_allclose(c, rounded(a).astype(np.float64) @ rounded(b), rtol=1e-6, atol=1e-6)
