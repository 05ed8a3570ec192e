"""wgmma's sums have registers of their own: ptxas mixes up what is computed from one before a wgmma and after it."""

from __future__ import annotations

import re
from typing import Any

import pytest
import tilewright as triton
import tilewright.language as tl
from before_and_after import KINDS, before_and_after, check
from tilewright.runtime.building import nvrtc

SIGNATURE = '*fp16:16, *fp32:16, *fp32:16, i32, 64, 32, "{}"'


@pytest.mark.skipif(not nvrtc.is_available(), reason="NVRTC is not installed")
@pytest.mark.parametrize("kind", KINDS)
def test_what_is_loaded_is_copied_to_them(kind: str) -> None:
    """In PTX: no register that a load from memory fills is one that a wgmma adds to."""
    text = nvrtc.compile_ptx(before_and_after.translate(SIGNATURE.format(kind), arch="sm_90a", num_warps=4))
    sums = {
        name for found in re.findall(r"wgmma\.mma_async\S* \{([^}]*)\}", text) for name in re.findall(r"%f\d+", found)
    }
    loaded = {
        name
        for found in re.findall(r"ld\.global\.\S+\s+(\{[^}]*\}|%f\d+)", text)
        for name in re.findall(r"%f\d+", found)
    }
    assert len(sums) == 16 and len(loaded) >= 16
    assert sums.isdisjoint(loaded)


@pytest.mark.parametrize("kind", KINDS)
def test_both_values_are_right(kind: str, run_everywhere: Any) -> None:
    check(kind, lambda *args: run_everywhere(before_and_after, (1,), *args, 5, B=64, N=32, KIND=kind)[2])


@triton.jit
def sums(x_ptr, y_ptr, out_ptr, n, B: tl.constexpr):
    i = tl.arange(0, B)
    at = i[:, None] * B + i[None, :]
    x, y = tl.load(x_ptr + at), tl.load(x_ptr + B * B + at)
    started = tl.dot(x, y)
    scaled = tl.load(y_ptr + at)
    for _ in range(n):
        scaled = scaled * tl.load(y_ptr + i)[:, None]
        scaled = tl.dot(x, y, scaled)
    read = tl.load(y_ptr + at)
    read = read * started
    started = tl.maximum(read, started)
    read = tl.dot(x, y, read)
    other = tl.dot(y, x, started)
    tl.store(out_ptr + at, started + scaled + read + other)


def test_a_sum_that_only_its_product_reads_needs_none() -> None:
    source = sums.translate("*fp16:16, *fp32:16, *fp32:16, i32, 64", arch="sm_90a", num_warps=4).source
    before_fence = re.findall(r"(wgmma_\w+)\((\w+)\);\n *wgmma_fence\(\);", source)
    assert [helper for helper, name in before_fence if name == "scaled"] == ["wgmma_pin"]
    assert {helper for helper, name in before_fence if name != "scaled"} == {"wgmma_take"}
    assert len(before_fence) == 4
