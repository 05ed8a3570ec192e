"""Tiles that are split and joined again and again: versions of one name, each in the layout that its line wants."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tilewright as triton
import tilewright.language as tl
from tilewright.runtime.building import nvrtc

RNG = np.random.default_rng(29)


@triton.jit
def hadamard(x_ptr, out_ptr, N: tl.constexpr, LEVELS: tl.constexpr):
    offs = tl.program_id(0) * N + tl.arange(0, N)
    x = tl.load(x_ptr + offs)
    for _ in tl.static_range(LEVELS):
        even, odd = tl.split(tl.reshape(x, (N // 2, 2)))
        x = tl.reshape(tl.permute(tl.join(even + odd, even - odd), (1, 0)), (N,))
    tl.store(out_ptr + offs, x)


def matrix(n: int) -> np.ndarray:
    found = np.ones((1, 1))
    while len(found) < n:
        found = np.block([[found, found], [found, -found]])
    return found


@pytest.mark.parametrize("n", [8, 64, 512])
def test_transforms_are_right_however_threads_run(run_everyhow: Callable[..., Any], n: int) -> None:
    x = RNG.integers(-9, 9, (2, n)).astype(np.float32)
    for arguments in run_everyhow(
        hadamard, (2,), [x, np.full_like(x, np.nan)], n == 512, N=n, LEVELS=n.bit_length() - 1
    ):
        np.testing.assert_array_equal(arguments[1], x @ matrix(n))


def test_tiles_move_only_where_threads_lack_a_half() -> None:
    text = hadamard.translate("*fp32:16, *fp32:16, 4096, 12").source
    moves = text.count("through shared memory")
    assert moves == 3, "twelve levels, of which a thread's 32 elements serve up to five"
    assert text.count("__syncthreads()") == 2 * moves - 1 and text.count("__shared__") == 1, (
        "a large array serves again"
    )
    assert text.count("float even[") == text.count("float x_second[") == 1, "versions of one layout are one array"
    assert text.count("ELEMS = ") == 3, "offs, the halves and x"


@triton.jit
def turned(x_ptr, out_ptr, times, N: tl.constexpr):
    offs = tl.arange(0, N)
    x = tl.load(x_ptr + offs)
    for _ in range(times):
        x = tl.reshape(tl.trans(tl.reshape(x, (N // 8, 8))), (N,)) + 1
        before = x
        x = tl.reshape(tl.trans(tl.reshape(x, (8, N // 8))), (N,)) * 2
        x = x - tl.reshape(tl.trans(tl.reshape(before, (8, N // 8))), (N,))
    tl.store(out_ptr + offs, x)


def test_a_version_that_is_still_read_keeps_its_array(run_everyhow: Callable[..., Any]) -> None:
    n, times = 1024, 3
    x = RNG.integers(-9, 9, n).astype(np.float32)
    expected = x
    for _ in range(times):
        expected = expected.reshape(n // 8, 8).T.ravel() + 1
        expected = expected.reshape(8, n // 8).T.ravel()
    for arguments in run_everyhow(turned, (1,), [x, np.full_like(x, np.nan), times], N=n):
        np.testing.assert_array_equal(arguments[1], expected)


@pytest.mark.skipif(not nvrtc.is_available(), reason="NVRTC is not installed")
def test_the_text_compiles_without_a_warning() -> None:
    for artifact in (
        hadamard.translate("*fp16:16, *fp16:16, 4096, 12"),
        hadamard.translate("*fp16:16, *fp16:16, 64, 6"),
        turned.translate("*fp16:16, *fp16:16, i32, 1024"),
    ):
        assert "warning" not in nvrtc.compile_text(artifact, "sm_80").log
