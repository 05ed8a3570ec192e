"""NVRTC takes the text of kernels with dots without a warning, and ptxas does not make wgmmas wait for each other."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
import tilewright as triton
import tilewright.language as tl
from dot_cases import Case, all_cases
from tilewright.runtime.building import nvrtc

pytestmark = pytest.mark.skipif(not nvrtc.is_available(), reason="NVRTC is not installed")
# The tiles that matter on Hopper: BM, BN, BK, warps.
SIZES = ((128, 256, 64, 8), (128, 128, 64, 4), (128, 128, 64, 8), (64, 256, 64, 4), (256, 128, 64, 8))


@triton.jit
def product_with_epilogue(a_ptr, b_ptr, bias_ptr, c_ptr, M, N, K, A_BY_ROWS: tl.constexpr, B_BY_ROWS: tl.constexpr,
                          EPILOGUE: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):  # fmt: skip
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    total = tl.zeros((BM, BN), tl.float32)
    for block in range(0, K, BK):
        k = block + tl.arange(0, BK)
        a_places = m[:, None] * K + k[None, :] if A_BY_ROWS else k[None, :] * M + m[:, None]
        b_places = k[:, None] * N + n[None, :] if B_BY_ROWS else n[None, :] * K + k[:, None]
        a = tl.load(a_ptr + a_places, mask=(m[:, None] < M) & (k[None, :] < K), other=0.0)
        b = tl.load(b_ptr + b_places, mask=(k[:, None] < K) & (n[None, :] < N), other=0.0)
        total = tl.dot(a, b, total)
    if EPILOGUE:
        total = tl.maximum(total + tl.load(bias_ptr + n, mask=n < N, other=0.0)[None, :], 0.0) * 0.5
    tl.store(c_ptr + m[:, None] * N + n[None, :], total.to(tl.float16), mask=(m[:, None] < M) & (n[None, :] < N))


def compile_cleanly(artifact: Any, arch: str) -> nvrtc.Cubin:
    """Compiles; asserts that neither compiler nor assembler has anything to say."""
    cubin = nvrtc.compile_text(artifact, arch)
    assert "warning" not in cubin.log and nvrtc.SERIALISED not in cubin.log, cubin.log
    return cubin


@pytest.mark.parametrize("size", SIZES, ids=lambda s: "x".join(map(str, s[:3])) + f" {s[3]} warps")
@pytest.mark.parametrize("layout", ("NN", "NT", "TN"))
def test_large_tiles(size: tuple[int, int, int, int], layout: str) -> None:
    for epilogue, stages in product((0, 1), (3,)):
        flags = f"{int(layout[0] == 'N')}, {int(layout[1] == 'N')}, {epilogue}"
        signature = (
            f"*fp16:16, *fp16:16, *fp32:16, *fp16:16, i32:16, i32:16, i32:16, {flags}, {size[0]}, {size[1]}, {size[2]}"
        )
        artifact = product_with_epilogue.translate(signature, arch="sm_90a", num_warps=size[3], num_stages=stages)
        assert "tma_load_2d" in artifact.source and "wgmma_wait<1>" in artifact.source
        cubin = compile_cleanly(artifact, "sm_90a")
        assert cubin.spill_bytes == 0


COMPILED = (
    "2 stages|16 warps|edges|eight columns|wide lines|two warpgroups side by side|down|two loops|loop in loop|loop in while|"
    "dot in a condition|tile loaded before the loop|sums change places|tile loaded after an inner loop|rescaled sums|"
    "shared operand|chained dots|running sums in one place|sums of rows behind the store|turned|type fp32|type int8|"
    "type e4m3|type fp64|precision tf32x3|precision bf16x3|precision bf16x6|short tiles 1 x 32 x 64|short tiles 8 x 1 x 8|"
    "4 planes, 4 warps|descriptors in turn|odd block pointers"
).split("|")


ON_SM_80 = (
    "2 stages",
    "16 warps",
    "two loops",
    "chained dots",
    "turned",
    "type int8",
    "type e4m3",
    "type fp64",
    "precision bf16x6",
    "short tiles 4 x 8 x 16",
    "odd block pointers",
)
CASES = [
    (case, arch)
    for case in all_cases()
    for arch, names in (("sm_80", ON_SM_80), ("sm_90a", COMPILED))
    if case.name in names
]


@pytest.mark.parametrize(("case", "arch"), CASES, ids=lambda value: getattr(value, "name", value))
def test_the_table(case: Case, arch: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_MODE", "cpu")
    monkeypatch.setenv("TILEWRIGHT_ARCH", arch)
    problem = case.build(2)
    kernel = triton.jit(problem.kernel.fn)
    compiled = kernel.warmup(**problem.arguments, grid=problem.grid, **case.options)
    assert compile_cleanly(compiled.artifact, arch).registers > 0
