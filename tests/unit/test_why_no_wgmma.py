"""The header says why a dot is not multiplied by wgmma where the target has it."""

from __future__ import annotations

import pytest
import tilewright as triton
import tilewright.language as tl


@triton.jit
def product(a_ptr, b_ptr, c_ptr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, PRECISION: tl.constexpr):
    m, n, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    a = tl.load(a_ptr + m[:, None] * K + k[None, :])
    b = tl.load(b_ptr + k[:, None] * N + n[None, :])
    tl.store(c_ptr + m[:, None] * N + n[None, :], tl.dot(a, b, input_precision=PRECISION))


@triton.jit
def batched(a_ptr, b_ptr, c_ptr, B: tl.constexpr, S: tl.constexpr):
    i = tl.arange(0, B)[:, None, None] * S * S + tl.arange(0, S)[None, :, None] * S + tl.arange(0, S)[None, None, :]
    tl.store(c_ptr + i, tl.dot(tl.load(a_ptr + i), tl.load(b_ptr + i)))


@pytest.mark.parametrize(
    ("dtype", "sides", "precision", "warps", "reason"),
    [
        ("fp16", (64, 64, 64), "tf32", 4, None),
        ("fp64", (64, 64, 64), "tf32", 4, "there is none for fp64"),
        ("fp32", (64, 64, 64), "ieee", 4, "there is none for full precision of fp32"),
        ("fp16", (64, 48, 64), "tf32", 4, "it has no sides like these"),
        ("fp16", (64, 64, 8), "tf32", 4, "K is 8, of which it takes 16 at a time"),
        ("fp16", (64, 64, 64), "tf32", 2, "num_warps is 2, and 4 warps make a warpgroup"),
        ("fp16", (32, 64, 64), "tf32", 4, "a warpgroup multiplies 64 rows, and these are 32"),
        ("fp16", (256, 256, 64), "tf32", 8, "8 warps cannot divide it so that its sums fit in registers"),
        ("fp8e4nv", (64, 16, 32), "tf32", 8, "a warpgroup would have 8 columns of 16"),
        ("fp32", (128, 256, 32), "tf32x3", 8, "the sums of its parts do not fit in registers"),
    ],
)
def test_reasons(dtype: str, sides: tuple[int, ...], precision: str, warps: int, reason: str | None) -> None:
    result = "fp64" if dtype == "fp64" else "fp32"
    signature = f"*{dtype}:16, *{dtype}:16, *{result}:16, {', '.join(map(str, sides))}, '{precision}'"
    for arch in ("sm_90a", "sm_80" if dtype != "fp8e4nv" else "sm_89"):
        text = product.translate(signature, arch=arch, num_warps=warps).source
        lines = [line for line in text.splitlines() if line.startswith("//   no wgmma")]
        assert len(lines) == (reason is not None and arch == "sm_90a")
        assert all(line.endswith(f": {reason}") for line in lines), lines


def test_batches_have_none() -> None:
    text = batched.translate("*fp16:16, *fp16:16, *fp32:16, 2, 64").source
    assert "//   no wgmma" in text and ": it has no batches" in text
