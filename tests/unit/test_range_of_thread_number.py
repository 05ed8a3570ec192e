"""What the compiler learns of a thread's number: vectors that lie past a constant end cost nothing."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
import tilewright as triton
import tilewright.language as tl
from tilewright.runtime.building import nvrtc


@triton.jit
def doubled(x_ptr, out_ptr, N: tl.constexpr, BLOCK: tl.constexpr):
    columns = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + columns, mask=columns < N, other=0.0)
    tl.store(out_ptr + columns, x * 2, mask=columns < N)


@triton.jit
def doubled_to(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    columns = tl.arange(0, BLOCK)
    tl.store(out_ptr + columns, tl.load(x_ptr + columns, mask=columns < n, other=0.0) * 2, mask=columns < n)


@pytest.mark.skipif(not nvrtc.is_available(), reason="NVRTC is not installed")
@pytest.mark.parametrize(("n", "vectors"), [(2048, 4), (1281, 3), (1024, 2), (300, 1)])
def test_vectors_past_the_end_vanish(n: int, vectors: int) -> None:
    artifact = doubled.translate(f"*fp32:16, *fp32:16, {n}, 2048", num_warps=4)
    assert len(re.findall(r"ld\.global\S*v4", nvrtc.compile_ptx(artifact))) == vectors


def test_nothing_is_said_where_it_would_not_help() -> None:
    assert "__builtin_assume" in doubled.translate("*fp32:16, *fp32:16, 300, 2048").source
    assert "__builtin_assume" not in doubled_to.translate("*fp32:16, *fp32:16, i32, 2048").source


def test_the_elements_before_the_end_are_there(run_everywhere: Any) -> None:
    x = np.random.default_rng(3).standard_normal(2048).astype(np.float32)
    for n in (1, 300, 511, 1281):
        _, out = run_everywhere(doubled, (1,), x, np.full(2048, 7, np.float32), N=n, BLOCK=2048)
        assert np.array_equal(out[:n], x[:n] * 2) and np.all(out[n:] == 7)
