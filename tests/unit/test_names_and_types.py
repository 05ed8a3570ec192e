"""What users may name, and which types functions take: cases that programs in the wild have met."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
import tilewright as triton
import tilewright.language as tl


@triton.jit
def swap_kernel(x_ptr, old_ptr, expected: tl.constexpr, value: tl.constexpr):
    i = tl.arange(0, 8)
    dtype = x_ptr.dtype.element_ty
    wanted, new = tl.full((8,), expected, tl.float32).to(dtype), tl.full((8,), value, tl.float32).to(dtype)
    tl.store(old_ptr + i, tl.atomic_cas(x_ptr + i, wanted, new))


@pytest.mark.parametrize(
    "dtype", ["int16", "uint16", "int32", "uint64", "float16", ml_dtypes.bfloat16, "float32", "float64"]
)
def test_compare_and_swap_goes_by_the_bits(run_everywhere: Any, dtype: Any) -> None:
    x = np.array([3, 0, 3, 5, 7, 3, 1, 2]).astype(dtype)
    new, old = run_everywhere(swap_kernel, (1,), x, np.zeros(8, dtype), 3.0, 9.0)
    np.testing.assert_array_equal(old, x)
    np.testing.assert_array_equal(new, np.where(x == 3, np.array(9).astype(dtype), x))


def test_zeros_of_two_signs_are_not_swapped(run_everywhere: Any) -> None:
    x = np.array([0.0, -0.0] * 4, np.float32)
    new, _ = run_everywhere(swap_kernel, (1,), x, np.zeros(8, np.float32), 0.0, 9.0)
    assert new.tolist() == [9.0, 0.0] * 4


@triton.jit
def swap_all_kernel(i16, u16, f16, b16, i64, f32, f64):
    tl.atomic_cas(i16, 1, 2)
    tl.atomic_cas(u16, 1, 2)
    tl.atomic_cas(f16, 1.0, 2.0)
    tl.atomic_cas(b16, 1.0, 2.0)
    tl.atomic_cas(i64, 1, 2)
    tl.atomic_cas(f32, 1.0, 2.0)
    tl.store(f64, tl.atomic_cas(f64, 1.0, 2.0))
    tl.atomic_xchg(f64, 1.0)


def test_swaps_of_all_types_compile() -> None:
    from tilewright.runtime import nvrtc

    nvrtc.compile_text(swap_all_kernel.translate("*i16, *u16, *fp16, *bf16, *i64, *fp32, *fp64"))


@triton.jit
def builtin_names_kernel(out_ptr, type, str: tl.constexpr, dict, tuple: tl.constexpr = 3):
    tl.store(out_ptr + tl.arange(0, 4), tl.arange(0, 4) * type + dict + tuple if str == "sum" else 0)


@pytest.mark.parametrize("mode", ["cpu", "interpret"])
def test_parameters_may_have_the_names_of_pythons_own_functions(mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_MODE", mode)
    out = np.zeros(4, np.int32)
    for _ in range(2):
        builtin_names_kernel[(1,)](out, 2, "sum", 5)
    assert out.tolist() == [8, 10, 12, 14]


@triton.jit
def without_parameters_kernel():
    tl.static_assert(tl.num_programs(0).dtype == tl.int32)


@pytest.mark.parametrize("mode", ["cpu", "interpret"])
def test_a_kernel_needs_no_parameters(mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_MODE", mode)
    without_parameters_kernel[(2,)]()
    without_parameters_kernel[(2,)](num_warps=8)
