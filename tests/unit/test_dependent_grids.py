"""Grids that start before the one in front of them has ended: where kernels wait, and what must not move in front of it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tilewright as triton
import tilewright.language as tl
from tilewright.runtime.building import nvrtc


@triton.jit
def scale(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.extra.cuda.gdc_wait()
    x = tl.load(x_ptr + i, mask=i < n)
    tl.extra.cuda.gdc_launch_dependents()
    tl.store(out_ptr + i, x * 2, mask=i < n)


@triton.jit
def product(
    a_ptr, b_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, WAIT: tl.constexpr
):  # fmt: skip
    rm, rn = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN)
    rk = tl.arange(0, BK)
    acc = tl.zeros((BM, BN), tl.float32)
    if WAIT == "before":
        tl.extra.cuda.gdc_wait()
    if WAIT == "sometimes" and M > 0:
        tl.extra.cuda.gdc_wait()
    for k in range(0, K, BK):
        if WAIT == "inside" and k == 0:
            tl.extra.cuda.gdc_wait()
        a = tl.load(a_ptr + rm[:, None] * K + (k + rk)[None, :])
        b = tl.load(b_ptr + (k + rk)[:, None] * N + rn[None, :])
        acc = tl.dot(a, b, acc)
    tl.extra.cuda.gdc_launch_dependents()
    tl.store(c_ptr + rm[:, None] * N + rn[None, :], acc.to(tl.float16))


SIGNATURE = "*fp16:16, *fp16:16, *fp16:16, i32:16, i32:16, i32:16, {}, {}, {}, {!r}"


def test_they_are_nothing_where_grids_run_in_order(run_everywhere: Any) -> None:
    x = np.arange(100, dtype=np.float32)
    (_, out) = run_everywhere(scale, (2,), x, np.zeros_like(x), 100, BLOCK=64, launch_pdl=True)
    assert (out == x * 2).all()


def test_the_text_says_how_it_is_launched() -> None:
    made = scale.translate("*fp32:16, *fp32:16, i32, 128", launch_pdl=True)
    assert made.dependent and "programmatic dependent launch: starts before the grid in front of it" in made.source
    assert "grid_wait();" in made.source and "target     sm_90 and later" in made.source
    plain = scale.translate("*fp32:16, *fp32:16, i32, 128")
    assert not plain.dependent and "programmatic" not in plain.source and "grid_wait();" in plain.source
    for arch in ("sm_80", "sm_89"):  # which have no such launches
        old = scale.translate("*fp32:16, *fp32:16, i32, 128", launch_pdl=True, arch=arch)
        assert not old.dependent and "grid_wait" not in old.source and "grids start in order" in old.source
    if nvrtc.is_available():
        assert nvrtc.compile_text(made).code


@pytest.mark.parametrize("wait", ("before", "sometimes"))
def test_the_loading_warps_wait_too(wait: str) -> None:
    made = product.translate(SIGNATURE.format(128, 128, 64, wait), num_warps=8, launch_pdl=True)
    assert made.tensor_maps
    loading, multiplying = made.source.split("// the others multiply")
    loading = loading[loading.index("// the last warpgroup loads") :]
    assert loading.count("grid_wait();") == multiplying.count("grid_wait();") == 1
    assert loading.index("grid_wait();") < loading.index("tma_load_2d(")
    assert "grid_release_dependents();" not in loading  # whose warps have loaded nothing that was stored yet


@pytest.mark.parametrize("arch", ("sm_90a", "sm_100a"))
def test_nothing_is_loaded_ahead_of_a_wait_in_a_loop(arch: str) -> None:
    made = product.translate(SIGNATURE.format(64, 64, 32, "inside"), arch=arch)
    body = made.source[made.source.index('extern "C"') :]
    assert not made.tensor_maps and body.index("grid_wait();") < body.index("cp_async")


def test_waiting_in_matmuls_changes_nothing(run_everywhere: Any) -> None:
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal((128, 128)).astype(np.float16) for _ in range(2))
    for wait in ("before", "sometimes", "inside"):
        c = np.zeros((128, 128), np.float16)
        sizes = {"BM": 64, "BN": 64, "BK": 32, "WAIT": wait}
        *_, c = run_everywhere(product, (2, 2), a, b, c, 128, 128, 128, **sizes, tolerance=0.02)
        assert np.abs(c.astype(np.float64) - a.astype(np.float64) @ b.astype(np.float64)).max() < 0.05


def test_a_cooperative_grid_is_not_persistent() -> None:
    signature = SIGNATURE.format(128, 128, 64, "before")
    assert product.translate(signature, num_warps=8).persistent
    made = product.translate(signature, num_warps=8, launch_cooperative_grid=True)
    assert (
        made.cooperative and not made.persistent and "cooperative: all blocks are on the device at once" in made.source
    )
