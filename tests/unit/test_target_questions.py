"""What a kernel may ask about the GPU that it is translated for, about its own block, and what it computes from that."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tilewright as triton
import tilewright.language as tl
from tilewright.language.target_info import cuda_capability_geq, current_target, is_hip_cdna3, is_hip_gfx1250
from tilewright.runtime.jit import constexpr_function


@constexpr_function
def is_of_amd() -> bool:
    return tl.target_info.current_target().backend == "hip" or is_hip_cdna3() or is_hip_gfx1250()


@triton.jit
def shape_of_block(out_ptr):
    tl.store(out_ptr + tl.arange(0, tl.extra.cuda.num_threads()), tl.extra.cuda.num_warps())
    if is_of_amd():
        tl.store(out_ptr, 0)


@triton.jit
def capability(out_ptr):
    target = tl.target_info.current_target()
    if target.backend == "cuda" and target.warp_size == 32:
        tl.store(out_ptr, target.arch)
    if tl.target_info.cuda_capability_geq(9):
        tl.store(out_ptr + 1, 9)


def test_the_block(run_everywhere: Any) -> None:
    out = run_everywhere(shape_of_block, (1,), np.zeros(128, np.int32), num_warps=2)[0]
    np.testing.assert_array_equal(out, np.where(np.arange(128) < 64, 2, 0))


def test_the_target() -> None:
    for arch, number in (("sm_80", 80), ("sm_90a", 90)):
        body = capability.translate("*i32", arch=arch).source.partition("capability(int* out_ptr)")[2]
        assert f"*out_ptr = {number};" in body and ("out_ptr[1] = 9;" in body) is (number == 90)


def test_runs_agree(run_everywhere: Any) -> None:
    assert run_everywhere(capability, (1,), np.zeros(2, np.int32))[0].tolist() == [90, 9]


def test_outside_of_kernels() -> None:
    assert current_target() == ("cuda", 80, 32) and cuda_capability_geq(8, 0) and not cuda_capability_geq(9)
    assert constexpr_function is triton.constexpr_function and not is_of_amd()


@triton.jit
def bits_of(x_ptr, out_ptr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets)
    word: tl.constexpr = tl.dtype(f"uint{x.dtype.primitive_bitwidth}")
    tl.store(out_ptr + offsets, x.to(word, bitcast=True).to(tl.dtype("fp32")))


def test_types_by_name(run_everywhere: Any) -> None:
    x = np.random.default_rng(0).standard_normal(32).astype(np.float16)
    out = run_everywhere(bits_of, (1,), x, np.zeros(32, np.float32), BLOCK=32)[1]
    np.testing.assert_array_equal(out, x.view(np.uint16).astype(np.float32))


def test_every_type_has_its_names() -> None:
    assert tl.dtype("fp8e4nv") is tl.float8e4nv and tl.dtype(tl.constexpr("bf16")) is tl.bfloat16
    assert tl.dtype(name="int32") is tl.int32 and tl.dtype("float16") is tl.float16 and isinstance(tl.int8, tl.dtype)
    with pytest.raises(ValueError, match="no element type 'uint128'; there are"):
        tl.dtype("uint128")


@triton.jit
def told_by_text(out_ptr, A: tl.constexpr, B: tl.constexpr):
    total: tl.constexpr = A * B
    share: tl.constexpr = tl.cdiv(total, B)
    if f"{total} of {A!r}, {total=}" == "32 of 8, total=32":
        tl.store(out_ptr, share)


def test_compile_time_values_in_texts(run_everywhere: Any) -> None:
    assert run_everywhere(told_by_text, (1,), np.zeros(1, np.int32), A=8, B=4)[0].tolist() == [8]


def test_no_division_by_zero_at_compile_time() -> None:
    with pytest.raises(
        triton.CompilationError,
        match="cannot compute this at compile time: (integer division or modulo|division) by zero",
    ):
        told_by_text.translate("*i32, 8, 0")


MISSING = None  # what an import leaves of a function that another version has


@triton.jit
def calls_nothing(out_ptr, n):
    tl.store(out_ptr, MISSING(n, 2))


@pytest.mark.parametrize("mode", ["cpu", "interpret"])
def test_what_is_no_function(mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_MODE", mode)
    with pytest.raises(triton.UnsupportedLanguageConstruct, match="None is called, but it is no function"):
        calls_nothing[(1,)](np.zeros(1, np.int32), 5)
