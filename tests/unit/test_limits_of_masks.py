"""Masks whose limit is at an end of 32 bits: how many elements of a vector lie below it is counted without passing that end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tilewright as triton
import tilewright.language as tl
from tilewright.artifact import Options
from tilewright.pipeline import translate_stages
from tilewright.runtime.arguments.signature import parse_signature
from tilewright.schedule.targets import find_target

SIDE = 256
ENDS = (-(2**31), 1 - 2**31, -1, 0, 17, 2**31 - 2, 2**31 - 1)


@triton.jit
def below(x_ptr, out_ptr, limit, SIDE: tl.constexpr):
    i = tl.arange(0, SIDE)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < limit, other=-1))


@triton.jit
def up_to(x_ptr, out_ptr, limit, SIDE: tl.constexpr):
    i = tl.arange(0, SIDE)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i <= limit, other=-1))


@triton.jit
def before_next(x_ptr, out_ptr, limit, SIDE: tl.constexpr):
    i = tl.arange(0, SIDE)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=limit + 1 > i, other=-1))


@triton.jit
def from_below_zero(x_ptr, out_ptr, limit, SIDE: tl.constexpr):
    i = tl.arange(0, SIDE)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i - 16 < limit, other=-1))


@triton.jit
def loaded_below(x_ptr, out_ptr, limit_ptr, SIDE: tl.constexpr):
    i = tl.arange(0, SIDE)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < tl.load(limit_ptr), other=-1))


@triton.jit
def loaded_up_to(x_ptr, out_ptr, limit_ptr, SIDE: tl.constexpr):
    i = tl.arange(0, SIDE)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i <= tl.load(limit_ptr), other=-1))


@triton.jit
def known_below(x_ptr, out_ptr, LIMIT: tl.constexpr, SIDE: tl.constexpr):
    i = tl.arange(0, SIDE)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < LIMIT, other=-1))


@triton.jit
def known_up_to(x_ptr, out_ptr, LIMIT: tl.constexpr, SIDE: tl.constexpr):
    i = tl.arange(0, SIDE)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i <= LIMIT, other=-1))


KERNELS = (below, up_to, before_next, from_below_zero, loaded_below, loaded_up_to, known_below, known_up_to)


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.__name__)
def test_limits_at_the_ends(kernel: Any, run_everywhere: Callable[..., list[Any]]) -> None:
    x = np.arange(SIDE, dtype=np.int32)
    for limit in ENDS:
        if kernel in (below, from_below_zero) and limit == 1 - 2**31:
            continue  # an argument is taken to be a size
        argument = np.array([limit], np.int32) if kernel in (loaded_below, loaded_up_to) else limit
        run_everywhere(kernel, (1,), x, np.zeros_like(x), argument, SIDE=SIDE)


def text_of(kernel: Any, signature: str) -> str:
    return translate_stages(
        kernel, parse_signature(kernel, signature), Options(), find_target("sm_90a")
    ).artifact.source  # fmt: skip


def test_sizes_are_plainly_subtracted() -> None:
    plain = text_of(below, "*i32:16, *i32:16, i32, 2048")
    assert "limit - i[v]," in plain and "count_below" not in plain
    assert ", 0) - i[v]" in text_of(loaded_below, "*i32:16, *i32:16, *i32, 2048")
    assert "18 - i[v]" in text_of(known_up_to, "*i32:16, *i32:16, 17, 2048")
    assert "count_up_to<VEC>(limit, i[v])" in text_of(up_to, "*i32:16, *i32:16, i32, 2048")
    assert "count_below<VEC>(limit, i[v] - 16)" in text_of(from_below_zero, "*i32:16, *i32:16, i32, 2048")
