"""Casts between all types of elements: the CPU run and the interpreter must agree with NumPy."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
import tilewright as triton
import tilewright.language as tl

RNG = np.random.default_rng(7)


@triton.jit
def cast_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    tl.store(out_ptr + i, x.to(out_ptr.dtype.element_ty), mask=i < n)


CASTS = ("bool", "int8", "uint8", "int16", "int32", "uint32", "int64", "float16", "bfloat16", "float32", "float64")


@pytest.mark.parametrize("source", CASTS)
@pytest.mark.parametrize("target", CASTS)
def test_casts(run_everywhere: Any, source: str, target: str) -> None:
    types = [ml_dtypes.bfloat16 if name == "bfloat16" else np.dtype(name) for name in (source, target)]
    values = np.array([0, 1, 2, 3, 7.5, 100.25, 55, 17, 0.75, 127])
    x = values.astype(types[0])
    _, out = run_everywhere(cast_kernel, (1,), x, np.zeros(10, types[1]), 10, BLOCK=16)
    wide = x.astype(np.float64)
    expected = wide != 0 if target == "bool" else np.trunc(wide) if "int" in target else wide
    np.testing.assert_array_equal(out.astype(np.float64), np.asarray(expected).astype(types[1]).astype(np.float64))


@pytest.mark.parametrize("dtype", (ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2))
def test_fp8_saturates(run_everywhere: Any, dtype: Any) -> None:
    x = np.concatenate([RNG.standard_normal(200) * 100, [1e6, -1e6, 0.0, 1e-4, 447.9, 60000.0]]).astype(np.float32)
    _, narrow = run_everywhere(cast_kernel, (1,), x, np.zeros(206, dtype), 206, BLOCK=256)
    largest = 448.0 if dtype == ml_dtypes.float8_e4m3fn else 57344.0
    np.testing.assert_array_equal(
        narrow.astype(np.float32), np.clip(x, -largest, largest).astype(dtype).astype(np.float32)
    )
    _, wide = run_everywhere(cast_kernel, (1,), narrow, np.zeros(206, np.float32), 206, BLOCK=256)
    np.testing.assert_array_equal(wide, narrow.astype(np.float32))
