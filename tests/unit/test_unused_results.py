"""What nobody needs: no code, no copies and no barriers for it, but atomics whose result is dropped are done all the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tilewright as triton
import tilewright.language as tl
from tilewright.runtime.building import nvrtc


@triton.jit
def counted(count_ptr, tile_ptr, out_ptr, n, N: tl.constexpr):
    i = tl.arange(0, N)
    old, tile = 1, i
    for k in range(0, n):
        old = tl.atomic_add(count_ptr, k)
        tile = tl.atomic_max(tile_ptr + i, i * k)
        if k == 100:
            old = old * 2
            tile = tile + 1
    tl.store(out_ptr, n)


def test_the_atomic_is_done(run_everywhere: Any) -> None:
    given = np.zeros(1, np.int32), np.zeros(64, np.int32), np.zeros(1, np.int32)
    count, tile, out = run_everywhere(counted, (2,), *given, 5, N=64)
    assert count[0] == 20 and np.array_equal(tile, np.arange(64) * 4) and out[0] == 5


def test_nothing_is_kept_of_it() -> None:
    artifact = counted.translate("*i32:16, *i32:16, *i32:16, i32, 64")
    assert (
        "old" not in artifact.source.replace("// ", "").split("__launch_bounds__")[0]
        and "_shared[0]" not in artifact.source
    )
    if nvrtc.is_available():
        assert "warning" not in nvrtc.compile_text(artifact).log


@triton.jit
def computed_from(count_ptr, out_ptr):
    old = tl.atomic_add(count_ptr, 2).to(tl.int64)
    other = old + 1
    for _ in range(3):
        other = other * 2
    tl.store(out_ptr, 1)


def test_what_is_computed_from_it_is_left_out(run_everywhere: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_VERIFY", "1")  # a pass that keeps a reader of what nobody assigns breaks a rule
    count, out = run_everywhere(computed_from, (2,), np.zeros(1, np.int32), np.zeros(1, np.int32))
    assert count[0] == 4 and out[0] == 1
    source = computed_from.translate("*i32, *i32").source
    assert source.count("old = tl.atomic_add(count_ptr, 2)") == 1
    assert source.count("(its value is not used)") == 2


@triton.jit
def unused_products(a_ptr, b_ptr, out_ptr, n, W: tl.constexpr, B: tl.constexpr):
    i = tl.arange(0, B)
    total, largest = tl.zeros((B, B), tl.float32), tl.zeros((B,), tl.float32)
    for k in range(0, n, B):
        a = tl.load(a_ptr + i[:, None] * W + k + i[None, :])
        b = tl.load(b_ptr + (k + i[:, None]) * B + i[None, :])
        total = tl.dot(a, b, total)
        largest = tl.maximum(largest, tl.max(a.to(tl.float32), axis=1))
    tl.store(out_ptr, n)


@pytest.mark.parametrize("arch", ["sm_80", "sm_90a"])
def test_a_loop_whose_products_nobody_needs(arch: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its ring expected tiles that nothing copied: a deadlock, for another statement that nobody needs read an operand."""
    monkeypatch.setenv("TILEWRIGHT_MODE", "cpu")
    monkeypatch.setenv("TILEWRIGHT_ARCH", arch)
    a, b, out = np.ones((64, 256), np.float16), np.ones((256, 64), np.float16), np.zeros(1, np.int32)
    source = unused_products[(1,)](a, b, out, 256, 256, 64).asm["cu"]
    assert out[0] == 256
    assert "mbarrier" not in source and "cp_async" not in source and "stage" not in source


@pytest.mark.parametrize("needed", [0, 1])
def test_one_of_two_products_that_share_an_operand(needed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_MODE", "cpu")
    monkeypatch.setenv("TILEWRIGHT_ARCH", "sm_90a")
    rng = np.random.default_rng(needed)
    a, b, c = (rng.integers(-2, 3, shape).astype(np.float16) for shape in ((64, 256), (256, 64), (256, 64)))
    out = np.full((64, 64), 7, np.float32)
    two_products[(1,)](a, b, c, out, 256, 256, 64, needed)
    assert np.array_equal(out, a.astype(np.float32) @ (b, c)[needed])


@triton.jit
def two_products(a_ptr, b_ptr, c_ptr, out_ptr, n, W: tl.constexpr, B: tl.constexpr, NEEDED: tl.constexpr):
    i = tl.arange(0, B)
    first, second = tl.zeros((B, B), tl.float32), tl.zeros((B, B), tl.float32)
    for k in range(0, n, B):
        a = tl.load(a_ptr + i[:, None] * W + k + i[None, :])
        first = tl.dot(a, tl.load(b_ptr + (k + i[:, None]) * B + i[None, :]), first)
        second = tl.dot(a, tl.load(c_ptr + (k + i[:, None]) * B + i[None, :]), second)
    if NEEDED == 0:
        tl.store(out_ptr + i[:, None] * B + i[None, :], first)
    else:
        tl.store(out_ptr + i[:, None] * B + i[None, :], second)
