"""Names of a kernel that the headers of C define as macros: parameters, variables and constants."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tilewright as triton
import tilewright.language as tl
from tilewright.ir.c_names import can_be_local
from tilewright.runtime.building import nvrtc


@triton.jit
def scaled(si_ptr, si_value, sa_handler, M_PI: tl.constexpr, INT32_MAX: tl.constexpr, BLOCK: tl.constexpr):
    si_addr = tl.arange(0, BLOCK)
    inside = si_addr < sa_handler
    M_LOG2E = tl.load(si_ptr + si_addr, mask=inside, other=0.0)
    errno = M_LOG2E * M_PI + si_value
    tl.store(si_ptr + si_addr, tl.where(errno > INT32_MAX, 0.0, errno), mask=inside)


@triton.jit
def own_names(fmaxf, float2, NUM_THREADS, n, expf: tl.constexpr, cp_async_16: tl.constexpr, BLOCK: tl.constexpr):
    """Names of functions, types and constants that the text has itself."""
    __shared__ = tl.arange(0, BLOCK)
    __syncthreads = tl.load(fmaxf + __shared__, mask=__shared__ < NUM_THREADS, other=0.0)
    shared_address = tl.maximum(tl.max(__syncthreads, axis=0), n) + cp_async_16 * expf
    tl.store(float2 + __shared__, __syncthreads + shared_address, mask=__shared__ < NUM_THREADS)


@pytest.mark.parametrize("n", (40, 200))
def test_names_of_the_text(run_everywhere: Any, n: int) -> None:
    x = np.arange(256, dtype=np.float32)
    found = run_everywhere(own_names, (1,), x, np.zeros_like(x), n, 2, expf=1, cp_async_16=3, BLOCK=256)[1]
    np.testing.assert_array_equal(found, np.where(np.arange(256) < n, x + n + 2, 0))
    artifact = own_names.translate("*fp32:16, *fp32:16, i32, i32, 1, 3, 256")
    if nvrtc.is_available():
        assert "warning" not in nvrtc.compile_text(artifact).log


@triton.jit
def later_words(char16_t, concept, n):
    unix = tl.load(char16_t + concept) + n
    requires = unix * 2
    tl.store(char16_t, requires)


def test_words_of_later_standards_and_systems(run_everywhere: Any) -> None:
    (out,) = run_everywhere(later_words, (1,), np.arange(4, dtype=np.float32), 3, 2)
    assert out[0] == 10
    body = later_words.translate("*fp32, i32, i32").source
    assert not re.search(r"\b(char16_t|concept|requires|unix)\b(?!_)(?=[ ,;)*+=])", re.sub("//.*", "", body))


def test_no_variable_is_called_like_a_helper() -> None:
    texts = [path.read_text() for path in (Path(__file__).parent.parent / "goldens").rglob("*.cu")]
    functions = {
        name for text in texts for name in re.findall(r"__device__ [^(=\n]*?(\w+)\(", text.partition('extern "C"')[0])
    }
    of_users = {"rotate", "leaky_relu", "combine"}  # the last is a member
    assert len(functions) > 40 and {name for name in functions if can_be_local(name)} <= of_users


@triton.jit
def named_like_variants(load_bools, store_bools, fragment_pin, out_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    load_cg = tl.load(fragment_pin, cache_modifier=".cg")
    load_vec_if = tl.load(load_bools + i)
    tl.store(store_bools + i, load_vec_if)
    wrap_add = load_cg + 1
    tl.store(out_ptr + i, tl.where(load_vec_if, wrap_add, load_cg))


def test_names_of_variants_of_helpers(run_everywhere: Any) -> None:
    flags, x = np.arange(64) % 3 == 0, np.array([7], np.int32)
    out = np.zeros(64, np.int32)
    _, kept, _, found = run_everywhere(named_like_variants, (1,), flags, np.zeros(64, np.bool_), x, out, BLOCK=64)
    np.testing.assert_array_equal(kept, flags)
    np.testing.assert_array_equal(found, np.where(flags, 8, 7))


def test_everywhere(run_everywhere: Any) -> None:
    x = np.arange(40, dtype=np.float32)
    found = run_everywhere(scaled, (1,), x, 2, 33, M_PI=3.0, INT32_MAX=100000, BLOCK=64)[0]
    np.testing.assert_array_equal(found, np.where(np.arange(40) < 33, x * 3 + 2, x))


def test_the_check_takes_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_MODE", "check")
    x = np.ones(64, np.float32)
    scaled[(1,)](x, 2, 64, M_PI=3.0, INT32_MAX=100, BLOCK=64)
    np.testing.assert_array_equal(x, 5.0)


@pytest.mark.skipif(not nvrtc.is_available(), reason="NVRTC is not installed")
def test_the_text_compiles_and_keeps_what_it_can() -> None:
    artifact = scaled.translate("*fp32:16, i32, i32, 3.0, 100, 64")
    assert nvrtc.compile_text(artifact).registers > 0
    assert "float* si_ptr, int si_value, int sa_handler" in artifact.source, "CUDA's headers have no such macros"
    body = artifact.source[artifact.source.index("{\n") :]
    assert "float errno_float = M_LOG2E_float * 3.0f" in body and "constexpr float M_PI" not in artifact.source


@triton.jit
def words_of_the_runtime(cudaError_t, cudaSuccess, CUtensorMap: tl.constexpr):
    cudaStream_t = tl.arange(0, CUtensorMap)
    cuda = tl.load(cudaError_t + cudaStream_t) * 2
    tl.store(cudaSuccess + cudaStream_t, cuda)


def test_words_of_the_runtime(run_everywhere: Any) -> None:
    x = np.arange(32, dtype=np.float32)
    np.testing.assert_array_equal(run_everywhere(words_of_the_runtime, (1,), x, np.zeros_like(x), 32)[1], 2 * x)
    text = words_of_the_runtime.translate("*fp32:16, *fp32:16, 32", host=True).source
    assert "launch_words_of_the_runtime(const float* cudaError_t_, float* cudaSuccess_, dim3 grid" in text
    declared = re.findall(r"(?:float\*|constexpr int|const int) (\w+)", text)
    assert {"cudaError_t", "cudaSuccess", "CUtensorMap", "cudaStream_t"}.isdisjoint(declared)
