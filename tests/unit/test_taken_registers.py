"""wgmma's sums have registers of their own: ptxas mixes up what is computed from one before a wgmma and after it."""

from __future__ import annotations

import re
from typing import Any

import pytest
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
