"""Which instruction a dot gets: types, precisions, sides, architecture, and how memory is contiguous."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tilewright as triton
import tilewright.language as tl


@triton.jit
def looped(a_ptr, b_ptr, c_ptr, K, A_BY_ROWS: tl.constexpr, B_BY_ROWS: tl.constexpr, PRECISION: tl.constexpr,
           ACC: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):  # fmt: skip
    m, n, k = tl.program_id(0) * BM + tl.arange(0, BM), tl.arange(0, BN), tl.arange(0, BK)
    total = tl.zeros((BM, BN), ACC)
    for block in range(0, K, BK):
        a = tl.load(
            a_ptr + (m[:, None] * K + (block + k)[None, :] if A_BY_ROWS else (block + k)[None, :] * BM + m[:, None])
        )
        b = tl.load(
            b_ptr + ((block + k)[:, None] * BN + n[None, :] if B_BY_ROWS else n[None, :] * K + (block + k)[:, None])
        )
        total = tl.dot(a, b, total, input_precision=PRECISION, out_dtype=ACC)
    tl.store(c_ptr + m[:, None] * BN + n[None, :], total)


def text(dtype: str, layout: str, precision: str | None, tile: tuple[int, int, int], arch: str) -> str:
    acc = {"fp64": "fp64", "i8": "i32"}.get(dtype, "fp32")
    flags = f"{int(layout[0] == 'N')}, {int(layout[1] == 'N')}, {precision!r}, {acc}"
    signature = f"*{dtype}:16, *{dtype}:16, *{acc}:16, i32:16, {flags}, {', '.join(map(str, tile))}"
    return looped.translate(signature, arch=arch).source


BIG = (64, 64, 32)
CHOICES = [
    ("fp16", "NN", None, BIG, "sm_90a", "wgmma.m64n64k16"),
    ("fp16", "NN", None, BIG, "sm_80", "mma.m16n8k16"),
    ("fp16", "NN", None, (8, 64, 32), "sm_90a", "mma.m16n8k16"),
    ("fp16", "NN", None, (1, 1, 4), "sm_90a", "mma.m16n8k16"),
    ("fp16", "NN", None, (48, 24, 40), "sm_90a", "mma.m16n8k16"),
    ("fp32", "NT", None, BIG, "sm_90a", "wgmma.m64n64k8"),
    ("fp32", "NN", None, BIG, "sm_90a", "mma.m16n8k8"),  # wgmma would need a transposing copy
    ("fp32", "TN", None, BIG, "sm_80", "mma.m16n8k8"),
    ("fp32", "NT", "tf32x3", BIG, "sm_90a", "wgmma.m64n64k8, 3 products of tf32 parts"),
    ("fp32", "NN", "tf32x3", BIG, "sm_90a", "wgmma.m64n64k8, 3 products of tf32 parts"),  # parts are written along K
    ("fp32", "TN", "tf32x3", (32, 64, 32), "sm_90a", "mma.m16n8k8, 3 products of tf32 parts"),
    ("fp32", "NT", "tf32x3", BIG, "sm_80", "mma.m16n8k8, 3 products of tf32 parts"),
    ("fp32", "TN", "bf16x6", BIG, "sm_90a", "wgmma.m64n64k16, 6 products of bf16 parts"),
    ("fp32", "NN", "bf16x3", BIG, "sm_80", "mma.m16n8k16, 3 products of bf16 parts"),
    ("fp32", "TN", "bf16x6", (4, 2, 8), "sm_90a", "mma.m16n8k16, 6 products of bf16 parts"),
    ("fp32", "NT", "ieee", BIG, "sm_90a", ""),
    ("fp64", "NN", None, BIG, "sm_90a", "mma.m16n8k4"),
    ("fp64", "NN", None, BIG, "sm_80", "mma.m8n8k4"),
    ("i8", "NT", None, BIG, "sm_90a", "wgmma.m64n64k32"),
    ("i8", "NT", None, (16, 8, 16), "sm_90a", "mma.m16n8k32"),
    ("fp8e4nv", "NT", None, BIG, "sm_80", "mma.m16n8k16"),
]


@pytest.mark.parametrize(("dtype", "layout", "precision", "tile", "arch", "said"), CHOICES, ids=str)
def test_choices(dtype: str, layout: str, precision: Any, tile: tuple[int, int, int], arch: str, said: str) -> None:
    header = text(dtype, layout, precision, tile, arch).split("\n\n")[0].replace("\n//              ", " ")
    (line,) = (line for line in header.splitlines() if " total [" in line or ", total [" in line)
    assert f"by {said}" in line if said else "mma" not in line


@pytest.mark.parametrize("layout", ("NN", "NT", "TN", "TT"))
@pytest.mark.parametrize(
    ("dtype", "precision"), [("fp64", None), ("fp32", None), ("fp32", "tf32x3"), ("fp32", "bf16x6")]
)
def test_operands_are_staged_whatever_axis_is_contiguous(dtype: str, precision: Any, layout: str) -> None:
    for arch in ("sm_80", "sm_90a"):
        source = text(dtype, layout, precision, BIG, arch)
        assert "for the dot" not in source, "no copy by the dot"
        assert "cp_async_16(" in source or "tma_load_2d(" in source


def test_architectures_are_named_as_the_instructions_need() -> None:
    assert "sm_90 and later" in text("fp64", "NN", None, BIG, "sm_90a")
    assert "sm_80 and later" in text("fp64", "NN", None, BIG, "sm_80")
    assert "sm_80 and later" in text("fp32", "NN", "tf32", BIG, "sm_90a")


@triton.jit
def centred(a_ptr, b_ptr, mean_ptr, c_ptr, K, A_BY_ROWS: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
            BK: tl.constexpr):  # fmt: skip
    # An operand that is computed, contiguous along K or along M.
    m, n, k = tl.program_id(0) * BM + tl.arange(0, BM), tl.arange(0, BN), tl.arange(0, BK)
    mean = tl.load(mean_ptr + m)
    total = tl.zeros((BM, BN), tl.float32)
    for block in range(0, K, BK):
        places = m[:, None] * K + (block + k)[None, :] if A_BY_ROWS else (block + k)[None, :] * BM + m[:, None]
        a = tl.load(a_ptr + places) - mean[:, None]
        b = tl.load(b_ptr + n[None, :] * K + (block + k)[:, None])
        total = tl.dot(a, b, total)
    tl.store(c_ptr + m[:, None] * BN + n[None, :], total)


@pytest.mark.parametrize(("by_rows", "instruction"), [(True, "wgmma.m64n64k8"), (False, "mma.m16n8k8")])
def test_computed_operands_are_not_transposed_by_stores_either(
    run_everywhere: Any, by_rows: bool, instruction: str
) -> None:
    signature = f"*fp32:16, *fp32:16, *fp32:16, *fp32:16, i32:16, {by_rows}, 64, 64, 32"
    assert f"by {instruction}" in centred.translate(signature, arch="sm_90a").source
    a, b = np.random.default_rng(1).integers(-3, 4, (2, 64, 64)).astype(np.float32)
    mean = np.arange(64, dtype=np.float32) % 4
    given = a if by_rows else np.ascontiguousarray(a.T)
    *_, c = run_everywhere(centred, (1,), given, b, mean, np.zeros((64, 64), np.float32), 64, by_rows, 64, 64, 32)
    np.testing.assert_array_equal(c, (a - mean[:, None]) @ b.T)
