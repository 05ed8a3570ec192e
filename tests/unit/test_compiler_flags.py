"""Options for the compiler: a bound on registers stands in the text, others become flags that the header names."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import tilewright
import tilewright.language as tl
from tilewright.cli import main
from tilewright.diagnostics import LaunchError
from tilewright.runtime import cache
from tilewright.runtime.building import nvrtc


@tilewright.jit
def scaled_plus(x_ptr, out_ptr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets)
    tl.store(out_ptr + offsets, x * x + 1.5)


@tilewright.jit
def product(a_ptr, b_ptr, c_ptr, M, N, K, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    depth = tl.arange(0, BLOCK_K)
    total = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k in range(0, K, BLOCK_K):
        a = tl.load(a_ptr + rows[:, None] * K + k + depth[None, :], mask=k + depth[None, :] < K, other=0.0)
        b = tl.load(b_ptr + (k + depth[:, None]) * N + columns[None, :], mask=k + depth[:, None] < K, other=0.0)
        total = tl.dot(a, b, total)
    mask = (rows[:, None] < M) & (columns[None, :] < N)
    tl.store(c_ptr + rows[:, None] * N + columns[None, :], total.to(tl.float16), mask=mask)


def test_flags_are_named_in_the_header() -> None:
    for fusion, flags in ((True, ()), (False, ("--fmad=false",))):
        artifact = scaled_plus.translate("*fp32:16, *fp32:16, 256", enable_fp_fusion=fusion)
        assert artifact.compiler_flags == flags
        lines = [line for line in artifact.source.splitlines() if line.startswith("//   compile")]
        assert lines == [f"//   compile    with {flag}" for flag in flags]


@pytest.mark.skipif(not nvrtc.is_available(), reason="NVRTC is not installed")
def test_products_and_sums_are_rounded_apart_on_demand() -> None:
    x, out = np.ones(256, np.float32), np.zeros(256, np.float32)
    fused, apart = (
        scaled_plus.warmup(x, out, BLOCK=256, grid=(1,), enable_fp_fusion=fusion).asm["ptx"] for fusion in (True, False)
    )
    assert "fma.rn.f32" in fused
    assert "fma.rn.f32" not in apart and "mul.rn.f32" in apart and "add.rn.f32" in apart


@pytest.mark.skipif(not nvrtc.is_available(), reason="NVRTC is not installed")
def test_a_bound_on_registers_is_kept() -> None:
    signature = "*fp32:16, *fp32:16, 16384"
    free, bounded = scaled_plus.translate(signature), scaled_plus.translate(signature, maxnreg=24)
    assert "__maxnreg__(24)" in bounded.source and "__launch_bounds__" not in bounded.source
    assert nvrtc.compile_text(bounded).registers <= 24 < nvrtc.compile_text(free).registers


@pytest.mark.skipif(not nvrtc.is_available(), reason="NVRTC is not installed")
def test_with_a_bound_warpgroups_do_not_share_out_what_they_do_not_have() -> None:
    """A warpgroup that asked for more registers than the block began with would wait for ever."""
    signature = "*fp16:16, *fp16:16, *fp16:16, i32:16, i32:16, i32:16, 128, 128, 64"
    free, bounded = (product.translate(signature, num_warps=8, maxnreg=bound) for bound in (None, 128))
    assert "setmaxnreg" in free.source and "tma_load" in bounded.source
    assert "setmaxnreg" not in bounded.source
    cubin = nvrtc.compile_text(bounded)
    assert cubin.registers <= 128 and nvrtc.SERIALISED not in cubin.log


def test_flags_decide_the_entry_in_the_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "version", lambda: (13, 1))
    parts = [
        cache.key_parts(scaled_plus.translate("*fp32:16, *fp32:16, 256", enable_fp_fusion=fusion), "sm_90a")
        for fusion in (True, False)
    ]
    assert [one["flags"] for one in parts] == ["none", "--fmad=false"]


@pytest.mark.parametrize(
    ("flag", "message"), [(("--num-warps", "3"), "a power of 2"), (("--maxnreg", "0"), "an integer from 1 to 255")]
)
def test_the_command_line_rejects_what_a_launch_rejects(
    flag: tuple[str, str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "kernels.py").write_text(
        "import tilewright\n\n\n@tilewright.jit\ndef one(x_ptr):\n    pass\n", encoding="utf-8"
    )
    spec = f"{tmp_path / 'kernels.py'}:one"
    assert main(["translate", spec, "--signature", "*fp32", *flag]) == 1
    assert message in capsys.readouterr().err
    assert main(["translate", spec, "--signature", "*fp32", "--no-fp-fusion"]) == 0
    assert "compile    with --fmad=false" in capsys.readouterr().out


def test_fusion_is_a_matter_of_yes_or_no() -> None:
    x = np.ones(256, np.float32)
    with pytest.raises(LaunchError, match="enable_fp_fusion must be True or False"):
        scaled_plus[(1,)](x, x, BLOCK=256, enable_fp_fusion="no")
