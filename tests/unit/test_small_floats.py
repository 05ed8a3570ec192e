"""8-bit floats: numbers make tiles of them, the extremes of a tile are found, and there is no sum of them."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
import tilewright as triton
import tilewright.language as tl
from tilewright.runtime.building import nvrtc

SIGNATURE = "*fp8e4nv, *fp8e4nv, *i32, i32, 32"


@triton.jit
def masked_copy(x_ptr, out_ptr, places_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n, other=tl.zeros([], x_ptr.dtype.element_ty))
    tl.store(out_ptr + offsets, tl.where(x > tl.zeros_like(x), x, tl.full([BLOCK], 1, x.dtype)))


@triton.jit
def extremes(x_ptr, out_ptr, places_ptr, n, BLOCK: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, BLOCK))
    largest, place = tl.max(x, axis=0, return_indices=True)
    tl.store(out_ptr, largest)
    tl.store(out_ptr + 1, tl.min(x, axis=0))
    tl.store(places_ptr, place)
    tl.store(places_ptr + 1, tl.argmin(x, axis=0))


@triton.jit
def larger(a, b):
    return tl.maximum(a, b)


@triton.jit
def total(x_ptr, out_ptr, places_ptr, n, BLOCK: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, BLOCK))
    tl.store(out_ptr, tl.sum(x, axis=0))


@triton.jit
def largest_by_function(x_ptr, out_ptr, places_ptr, n, BLOCK: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, BLOCK))
    tl.store(out_ptr, tl.reduce(x, 0, larger))


def arguments(rng: np.random.Generator) -> tuple[Any, ...]:
    floats = pytest.importorskip("ml_dtypes").float8_e4m3fn
    return rng.standard_normal(32).astype(floats), np.zeros(32, floats), np.zeros(2, np.int32), 20


def test_numbers_make_tiles(run_everywhere: Any) -> None:
    x, out, places, n = arguments(np.random.default_rng(0))
    _, out, *_ = run_everywhere(masked_copy, (1,), x, out, places, n, BLOCK=32)
    seen = np.where(np.arange(32) < n, x.astype(np.float32), 0.0)
    assert np.array_equal(out.astype(np.float32), np.where(seen > 0, seen, 1.0))


def test_extremes(run_everywhere: Any) -> None:
    x, out, places, n = arguments(np.random.default_rng(1))
    _, out, places, *_ = run_everywhere(extremes, (1,), x, out, places, n, BLOCK=32)
    wide = x.astype(np.float32)
    assert [float(out[0]), float(out[1])] == [wide.max(), wide.min()]
    assert places.tolist() == [wide.argmax(), wide.argmin()]


@pytest.mark.skipif(not nvrtc.is_available(), reason="NVRTC is not installed")
@pytest.mark.parametrize("kernel", [masked_copy, extremes])
def test_the_text_compiles(kernel: Any) -> None:
    assert nvrtc.compile_text(kernel.translate(SIGNATURE)).code


@pytest.mark.parametrize("kernel", [total, largest_by_function])
def test_no_arithmetic(kernel: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(triton.CompilationError, match="not possible"):
        kernel.translate(SIGNATURE)
    monkeypatch.setenv("TILEWRIGHT_MODE", "interpret")
    with pytest.raises(triton.TilewrightError, match="not possible"):
        kernel[(1,)](*arguments(np.random.default_rng(2)), BLOCK=32)


@triton.jit
def cast_for_another_gpu(x_ptr, out_ptr, FNUZ: tl.constexpr, BLOCK: tl.constexpr):
    wanted: tl.constexpr = tl.float8e4b8 if FNUZ else tl.float8e4nv
    x = tl.load(x_ptr + tl.arange(0, BLOCK))
    tl.store(out_ptr + tl.arange(0, BLOCK), x.to(wanted).to(tl.float32))


def test_types_of_other_gpus_are_names(run_everywhere: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.linspace(-2, 2, 32, dtype=np.float32)
    out = run_everywhere(cast_for_another_gpu, (1,), x, np.zeros_like(x), FNUZ=False, BLOCK=32)[1]
    np.testing.assert_allclose(out, x, rtol=2**-4)
    assert tl.float8e4b8.is_fp8() and len({tl.float8e4b8, tl.float8e5b16, tl.float8e4b15, tl.float8e4nv}) == 4
    for mode in ("cpu", "interpret"):
        monkeypatch.setenv("TILEWRIGHT_MODE", mode)
        with pytest.raises(
            triton.CompilationError, match=r"type fp8e4b8 not supported in this architecture\. .*'fp8e5'"
        ):
            cast_for_another_gpu[(1,)](x, out, FNUZ=True, BLOCK=32)


@triton.jit
def cut_off(x_ptr, e4m3_ptr, e5m2_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i)
    tl.store(e4m3_ptr + i, x.to(tl.float8e4nv, fp_downcast_rounding="rtz"))
    tl.store(e5m2_ptr + i, x.to(tl.float8e5, fp_downcast_rounding="rtz"))


@pytest.mark.parametrize("dtype", ("float16", "bfloat16", "float32", "float64"))
def test_rounding_towards_zero(run_everywhere: Any, dtype: str) -> None:
    """The largest number of the type that is not above the magnitude, found by looking through all of them."""
    rng = np.random.default_rng(8)
    x = rng.standard_normal(256) * np.exp2(rng.integers(-18, 14, 256).astype(float))
    x[:8] = 0.0, -0.0, np.nan, np.inf, -np.inf, 1.9e-3, -447.9, 1e-7
    x = x.astype(getattr(ml_dtypes, dtype, None) or dtype)
    outs = [np.zeros(256, ml_dtypes.float8_e4m3fn), np.zeros(256, ml_dtypes.float8_e5m2)]
    _, *found = run_everywhere(cut_off, (1,), x, *outs, 256)
    wide = x.astype(np.float64)
    for out in found:
        every = np.arange(256, dtype=np.uint8).view(out.dtype).astype(np.float64)
        sizes = np.unique(np.abs(every[np.isfinite(every)]))
        known = ~np.isnan(wide)
        expected = sizes[np.searchsorted(sizes, np.abs(wide[known]), side="right") - 1] * np.where(
            wide[known] < 0, -1, 1
        )
        assert np.array_equal(out.astype(np.float64)[known], expected)
        assert np.isnan(out.astype(np.float64)[~known]).all()
