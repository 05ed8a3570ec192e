"""Masked loads with cache hints: one predicated instruction each, in all widths."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
import tilewright as triton
import tilewright.language as tl
from tilewright.runtime.building import nvrtc

WORDS = {"int8": "i8", "float16": "fp16", "float32": "fp32", "float64": "fp64"}


@triton.jit
def hinted(x_ptr, out_ptr, n, BLOCK: tl.constexpr, CACHE: tl.constexpr, EVICT: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n, other=3, cache_modifier=CACHE, eviction_policy=EVICT)
    tl.store(out_ptr + offsets, x)


HINTS = [(".cg", "", "cg"), (".cv", "", "cv"), ("", "evict_first", "cs")]
KEPT = ("", "evict_last", "")  # by vectors alone


@pytest.mark.parametrize("dtype", WORDS)
@pytest.mark.parametrize("aligned", [True, False])
def test_elements_inside_are_read_and_others_replaced(run_everywhere: Any, dtype: str, aligned: bool) -> None:
    n = 304 if aligned else 301
    x = np.random.default_rng(n).integers(-100, 100, n).astype(dtype)
    for cache, evict, _ in (*HINTS, KEPT):
        given, out = x if aligned else np.resize(x, n + 1)[1:], np.zeros(512, dtype)
        _, out = run_everywhere(hinted, (2,), given, out, n, BLOCK=256, CACHE=cache, EVICT=evict)
        assert np.array_equal(out[:n], given) and np.all(out[n:] == 3)


@pytest.mark.skipif(not nvrtc.is_available(), reason="NVRTC is not installed")
@pytest.mark.parametrize("word", WORDS.values())
@pytest.mark.parametrize(("cache", "evict", "instruction"), HINTS)
@pytest.mark.parametrize("n", ["i32:16", "i32"])
def test_the_instruction_has_the_hint(word: str, cache: str, evict: str, instruction: str, n: str) -> None:
    pointer = f"*{word}:16" if n == "i32:16" else f"*{word}"
    artifact = hinted.translate(f"{pointer}, {pointer}, {n}, 256, {cache!r}, {evict!r}")
    cubin = nvrtc.compile_text(artifact)
    assert cubin.spill_bytes == 0 and "warning" not in cubin.log
    assert re.search(rf"ld\.global\.{instruction}\.", nvrtc.compile_ptx(artifact))
    assert ("load_packet_if_" in artifact.source) == (word != "i8" or n == "i32:16")


def test_what_loads_do_anyway_is_a_plain_load() -> None:
    text = hinted.translate("*fp16:16, *fp16:16, i32:16, 256, '.ca', ''").source
    assert "load_packet" not in text and "__ldca" not in text


@triton.jit
def kept(x_ptr, out_ptr, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets, eviction_policy="evict_last"))


@pytest.mark.skipif(not nvrtc.is_available(), reason="NVRTC is not installed")
@pytest.mark.parametrize("word", (*WORDS.values(), "i1", "bf16"))
@pytest.mark.parametrize("arch", ["sm_80", "sm_90a", "sm_100", "sm_120"])
@pytest.mark.parametrize(("kernel", "more"), [(kept, ""), (hinted, "i32:16, ")])
def test_what_shall_stay_is_told_to_the_caches(kernel: Any, more: str, arch: str, word: str) -> None:
    values = "512" if kernel is kept else "512, '', 'evict_last'"
    artifact = kernel.translate(f"*{word}:16, *{word}:16, {more}{values}", arch=arch)
    assert "warning" not in nvrtc.compile_text(artifact).log
    ptx = nvrtc.compile_ptx(artifact)
    assert "ld.global.L1::evict_last.L2::cache_hint" in ptx and "createpolicy.fractional.L2::evict_last" in ptx


@pytest.mark.parametrize("word", WORDS.values())
def test_of_single_elements_and_of_many_vectors_nothing_is_said(word: str) -> None:
    single = hinted.translate(f"*{word}, *{word}, i32, 256, '', 'evict_last'").source
    many = kept.translate(f"*{word}:16, *{word}:16, 8192", num_warps=1).source
    assert "load_packet" not in single + many


@triton.jit
def kept_beside_bytes(x_ptr, y_ptr, out_ptr, N: tl.constexpr):
    offsets = tl.arange(0, N)
    x = tl.load(x_ptr + offsets, eviction_policy="evict_last")
    tl.store(out_ptr + offsets, x)
    tl.store(y_ptr + offsets * 3, x.to(tl.int8), cache_modifier=".wt")


@pytest.mark.skipif(not nvrtc.is_available(), reason="NVRTC is not installed")
def test_vectors_that_shall_stay_beside_accesses_of_bytes() -> None:
    """A helper is written for every size of access that the kernel has, and PTX has no registers of a byte."""
    artifact = kept_beside_bytes.translate("*fp16:16, *i8:16, *fp16:16, 512")
    assert "unsigned char load_packet_kept(" in artifact.source
    assert "warning" not in nvrtc.compile_text(artifact).log


def test_vectors_that_shall_stay(run_everywhere: Any) -> None:
    for dtype in (*WORDS, "bool"):
        x = np.random.default_rng(8).integers(0, 100, 1024).astype(dtype)
        _, out = run_everywhere(kept, (2,), x, np.zeros(1024, dtype), BLOCK=512)
        assert np.array_equal(out, x)


@triton.jit
def hinted_scalar(x_ptr, out_ptr, CACHE: tl.constexpr):
    tl.store(out_ptr, tl.load(x_ptr, cache_modifier=CACHE).to(tl.float32))


@pytest.mark.skipif(not nvrtc.is_available(), reason="NVRTC is not installed")
@pytest.mark.parametrize("word", ["fp8e4nv", "fp8e5", "i1", "bf16", "u8"])
@pytest.mark.parametrize("cache", [".cg", ".cv"])
def test_a_scalar_of_any_type_has_hints(word: str, cache: str) -> None:
    cubin = nvrtc.compile_text(hinted_scalar.translate(f"*{word}, *fp32, {cache!r}"))
    assert "warning" not in cubin.log
