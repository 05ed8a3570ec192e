"""Loops that only another program can end load in every trip, and what stands behind them is not loaded in front of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import tilewright as triton
import tilewright.language as tl


@triton.jit
def until_set(flag_ptr, x_ptr, out_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    while tl.load(flag_ptr) == 0:
        pass
    tl.store(out_ptr + i, tl.load(x_ptr + i))


@triton.jit
def until_counted(count_ptr, x_ptr, out_ptr, n, most, N: tl.constexpr):
    i = tl.arange(0, N)
    tries = 0
    seen = tl.load(count_ptr + tl.program_id(0))
    while (seen < n) & (tries < most):
        place = count_ptr + tl.program_id(0)
        seen = tl.load(place)
        tries += 1
    tl.store(out_ptr + i, tl.load(x_ptr + i) + tries)


@triton.jit
def until_all_are_set(flags_ptr, x_ptr, out_ptr, n, N: tl.constexpr):
    i = tl.arange(0, N)
    while tl.sum(tl.load(flags_ptr + i)) < n:
        pass
    tl.store(out_ptr + i, tl.load(x_ptr + i))


@triton.jit
def until_told(flag_ptr, x_ptr, out_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    told = False
    while not told:
        if tl.load(flag_ptr) > 0:
            told = True
    tl.store(out_ptr + i, tl.load(x_ptr + i))


@triton.jit
def until_last_bit(flag_ptr, x_ptr, out_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    flag = tl.load(flag_ptr)
    while flag == 0:
        flag = tl.load(flag_ptr)
        flag = flag & 1
    tl.store(out_ptr + i, tl.load(x_ptr + i))


@triton.jit
def a_product_behind(flag_ptr, a_ptr, b_ptr, out_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    places = i[:, None] * N + i[None, :]
    a = tl.load(a_ptr + places)
    while tl.load(flag_ptr) == 0:
        pass
    b = tl.load(b_ptr + places)
    tl.store(out_ptr + places, tl.dot(a, b))


@triton.jit
def counting(bound_ptr, x_ptr, out_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    k = 0
    while k < tl.load(bound_ptr):
        tl.store(out_ptr + i, tl.load(x_ptr + i) + k)
        k += 1


@triton.jit
def chained(next_ptr, out_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    place = 0
    while place >= 0:
        tl.store(out_ptr + place * N + i, i)
        place = tl.load(next_ptr + place)


@triton.jit
def set_by_itself(left_ptr, out_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    while tl.load(left_ptr) > 0:
        left = tl.load(left_ptr)
        tl.store(out_ptr + left * N + i, i)
        tl.store(left_ptr, left - 1)


def text_of(kernel: Any, signature: str) -> str:
    source: str = kernel.translate(signature).source
    return source[source.index('extern "C"') :]


def test_what_a_loop_waits_for_is_loaded_in_every_trip() -> None:
    assert "load_volatile(flag_ptr)" in text_of(until_set, "*i32, *fp32, *fp32, 128")
    assert "load_volatile(place)" in text_of(until_counted, "*i32, *fp32, *fp32, i32, i32, 128")
    assert "_volatile<" in text_of(until_all_are_set, "*i32, *fp32, *fp32, i32, 128")
    assert "load_volatile(flag_ptr)" in text_of(until_told, "*i32, *fp32, *fp32, 128")
    assert "load_volatile(flag_ptr)" in text_of(until_last_bit, "*i32, *fp32, *fp32, 128")


def test_what_stands_behind_is_not_loaded_in_front() -> None:
    text = text_of(a_product_behind, "*i32, *fp16:16, *fp16:16, *fp32:16, 64")
    assert text.index("load_volatile(flag_ptr)") < text.index("b_ptr +")


def test_loops_that_end_by_themselves_are_as_they_were() -> None:
    for kernel, signature in (
        (counting, "*i32, *fp32, *fp32, 128"), (chained, "*i32, *i32, 128"), (set_by_itself, "*i32, *i32, 128"),
    ):  # fmt: skip
        assert "volatile" not in text_of(kernel, signature), kernel


def test_they_run(run_everywhere: Any) -> None:
    ones, x = np.ones(128, np.int32), np.arange(128, dtype=np.float32)
    for kernel, more in ((until_set, ()), (until_counted, (1, 3)), (until_all_are_set, (128,)), (until_told, ())):
        found = run_everywhere(kernel, (1,), ones, x, np.zeros_like(x), *more, N=128)
        assert np.array_equal(found[2], x), kernel
