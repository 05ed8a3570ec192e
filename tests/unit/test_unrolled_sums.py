"""Loops whose trips hand sums of wgmma on stay loops: ptxas takes one trip's sum for another's where it unrolls them."""

from __future__ import annotations

from typing import Any

import pytest
import tilewright as triton
import tilewright.language as tl
from exchanged_sums import check, exchanged_sums
from tilewright.runtime.building import nvrtc

PRAGMA = "#pragma unroll 1   // ptxas, which does it by itself, mixes up the trips' sums\n    for (int k = 0;"


def translated(kernel: Any, arch: str = "sm_90a") -> Any:
    return kernel.translate("*i8:16, *i32:16, i32, i32:16, 128", arch=arch, num_warps=4)


def test_sums_that_change_places() -> None:
    assert PRAGMA in translated(exchanged_sums).source


@pytest.mark.skipif(not nvrtc.is_available(), reason="NVRTC is not installed")
def test_the_assembler_is_told() -> None:
    assert nvrtc.compile_ptx(translated(exchanged_sums)).count('.pragma "nounroll"') == 1


def test_the_result(run_everywhere: Any) -> None:
    check(lambda *args: run_everywhere(exchanged_sums, (1,), *args, B=128)[1])


@triton.jit
def product(x_ptr, out_ptr, n, sx, B: tl.constexpr, SCALED: tl.constexpr, TRIPS: tl.constexpr,
            FACTOR: tl.constexpr = None):  # fmt: skip
    first = tl.program_id(0) & 15
    i = tl.arange(0, B)
    rows = i[:, None] * sx + i[None, :]
    sums = tl.zeros((B, B), tl.int32)
    for k in tl.range(0, TRIPS if TRIPS else n, loop_unroll_factor=FACTOR):
        a = tl.load(x_ptr + rows + k * B)
        b = tl.load(x_ptr + (k * B + i)[:, None] + (first + i)[None, :] * sx, mask=(k * B + i)[:, None] < n, other=0)
        if SCALED:
            sums = sums * n
        sums = tl.dot(a, b, sums)
    tl.store(out_ptr + i[:, None] * B + i[None, :], sums)


@pytest.mark.parametrize(
    "scaled, trips, arch, told",
    [(True, 2, "sm_90a", True), (True, 0, "sm_90a", False), (False, 2, "sm_90a", False), (True, 2, "sm_80", False)],
)
def test_only_known_trips_and_sums_that_others_use(scaled: bool, trips: int, arch: str, told: bool) -> None:
    """`mma.sync` writes its sums like any instruction."""
    signature = f"*i8:16, *i32:16, i32, i32:16, 128, {scaled}, {trips}, None"
    assert (PRAGMA in product.translate(signature, arch=arch, num_warps=4).source) == told


@pytest.mark.parametrize("trips", [0, 4])
def test_the_users_factor_gives_way(trips: int) -> None:
    """Trips that ptxas would unroll wrongly by itself it does not unroll rightly when asked to."""

    def text(scaled: bool, factor: int) -> str:
        signature = f"*i8:16, *i32:16, i32, i32:16, 128, {scaled}, {trips}, {factor}"
        return product.translate(signature, arch="sm_90a", num_warps=4, num_stages=1).source

    assert "#pragma unroll 1   // not 2: ptxas mixes up the trips' sums\n    for (int k = 0;" in text(True, 2)
    assert "#pragma unroll 2\n    for (int k = 0;" in text(False, 2)
    assert "#pragma unroll 1\n    for (int k = 0;" in text(True, 1)
