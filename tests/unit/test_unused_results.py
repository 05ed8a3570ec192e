"""Atomics whose result is dropped, or given to a variable that something else is assigned to: they are done all the same."""

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
