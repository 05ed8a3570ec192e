"""What a kernel may ask about the GPU that it is translated for, and about its own block."""

from __future__ import annotations

from typing import Any

import numpy as np
import tilewright as triton
import tilewright.language as tl
from tilewright.language.target_info import cuda_capability_geq, current_target, is_hip_cdna3, is_hip_cdna4
from tilewright.runtime.jit import constexpr_function


@constexpr_function
def is_of_amd() -> bool:
    return tl.target_info.current_target().backend == "hip" or is_hip_cdna3() or is_hip_cdna4()


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
