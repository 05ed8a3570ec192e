"""Integers as Triton has them: what overflows wraps, whatever the compiler may conclude; numbers beyond 32 bits; shifts."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import tilewright as triton
import tilewright.language as tl
from tilewright.runtime.building import nvrtc


@triton.jit
def squares(x_ptr, out_ptr, wide_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    x = tl.load(x_ptr + i)
    square = x * x
    tl.store(out_ptr + i, square >> (square & 1))
    tl.store(out_ptr + N + i, x * 3)
    tl.store(wide_ptr + i, (x + x - 1).to(tl.int64))
    tl.store(out_ptr + N + i, 7, mask=x + 5 < x)


def test_what_overflows_wraps(run_everywhere: Any) -> None:
    x = np.random.default_rng(1).integers(-(2**31), 2**31, 256).astype(np.int32)
    x[:4] = 2**31 - 1 - np.arange(4)
    out, wide = run_everywhere(squares, (1,), x, np.zeros(512, np.int32), np.zeros(256, np.int64), N=256)[1:]
    square = (x.astype(np.int64) ** 2).astype(np.int32)
    assert np.array_equal(out[:256], square >> (square & 1)) and np.array_equal(
        out[256:], np.where(x + np.int32(5) < x, 7, x * np.int32(3))
    )
    assert np.array_equal(wide, (x + x - 1).astype(np.int64))


def test_only_where_something_would_tell_it_is_spelled() -> None:
    """NVRTC takes a square of ints as positive: its shift then is that of unsigned numbers."""
    text = squares.translate("*i32:16, *i32:16, *i64:16, 256").source
    kernel = text[text.index('extern "C"') :]
    assert "wrap_mul<int>(x[" in kernel and "wrap_sub<int>(wrap_add<int>(x[" in kernel
    assert len(re.findall("wrap_mul", kernel)) == 1 and "x[e] * 3" in kernel
    if nvrtc.is_available():
        ptx = nvrtc.compile_ptx(squares.translate("*i32:16, *i32:16, *i64:16, 256"))
        assert "shr.s32" in ptx


@triton.jit
def beside_the_least(x_ptr, y_ptr, out_ptr, n, N: tl.constexpr):
    i = tl.arange(0, N)
    x = tl.load(x_ptr + i)
    tl.store(out_ptr + i, x + tl.load(y_ptr + i, mask=i < n, other=-2147483648))
    tl.store(out_ptr + N + i, (x * x) & -1610612736)


def test_signs_that_a_compiler_infers_are_those_of_what_wraps(run_everywhere: Any) -> None:
    """What is added to the least number is not negative for NVRTC, nor is a square: so highest bits came out wrong."""
    x, y = np.random.default_rng(2).integers(-(2**31), 2**31, (2, 64)).astype(np.int32)
    out = run_everywhere(beside_the_least, (1,), x, y, np.zeros(128, np.int32), 40, N=64)[2]
    y[40:] = -(2**31)
    assert np.array_equal(out, np.concatenate([x + y, (x * x) & np.int32(-1610612736)]))
    text = beside_the_least.translate("*i32:16, *i32:16, *i32:16, i32, 64").source
    assert "wrap_add<int>(x" in text and "wrap_mul<int>(x" in text


@triton.jit
def gathered(x_ptr, rows_ptr, out_ptr, stride, N: tl.constexpr):
    i = tl.arange(0, N)
    rows = tl.load(rows_ptr + i)
    x = tl.load(x_ptr + rows * stride + 1, mask=(rows < N) & (i * 2 < N))
    tl.store(out_ptr + i, x)


def test_places_are_spelled_as_they_were() -> None:
    assert "wrap_" not in gathered.translate("*fp32:16, *i32:16, *fp32:16, i32, 256").source


@triton.jit
def scaled(x_ptr, out_ptr, n, N: tl.constexpr, BIG: tl.constexpr, HALF: tl.constexpr):
    tl.static_assert(n.dtype == tl.int64)
    i = tl.arange(0, N)
    x = tl.load(x_ptr + i).to(tl.int64)
    tl.store(out_ptr + i, x * BIG + n)
    tl.store(out_ptr + N + i, x + HALF * 4)


def test_numbers_beyond_32_bits(run_everywhere: Any) -> None:
    """A constexpr has a type that holds it; an argument from 2 ** 31 on has 64 bits in the interpreter, too."""
    x = np.arange(-4, 4).astype(np.int32)
    big, half, n = 3 * 2**33, 2**30, 2**31
    out = run_everywhere(scaled, (1,), x, np.zeros(16, np.int64), n, N=8, BIG=big, HALF=half)[1]
    wide = x.astype(np.int64)
    assert np.array_equal(out, np.concatenate([wide * big + n, wide + 4 * half]))


@triton.jit
def shifted(x_ptr, count_ptr, out_ptr, float_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    x, count = tl.load(x_ptr + i), tl.load(count_ptr + i)
    tl.store(out_ptr + i, (x >> count) // 3)
    tl.store(float_ptr + i, (x >> count).to(tl.float32))


def test_a_shift_by_an_unsigned_count_keeps_the_sign(run_everywhere: Any, monkeypatch: Any) -> None:
    """The sign is shifted in, the result is unsigned: as the rules of the tree have it, too."""
    monkeypatch.setenv("TILEWRIGHT_VERIFY", "1")
    x, count = np.array([-100, 100, -1, 7], np.int32), np.array([1, 2, 3, 0], np.uint32)
    given = x, count, np.zeros(4, np.uint32), np.zeros(4, np.float32)
    out, floats = run_everywhere(shifted, (1,), *given, N=4)[2:]
    expected = (x >> count.astype(np.int32)).astype(np.uint32)
    assert np.array_equal(out, expected // 3) and np.array_equal(floats, expected.astype(np.float32))


@triton.jit
def widened(x_ptr, out_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    x = tl.load(x_ptr + i).to(tl.int32)
    tl.store(out_ptr + i, (x * 71234567 > 5).to(tl.int32))


def test_what_is_made_of_other_numbers_overflows_too() -> None:
    for dtype in ("u8", "u32", "fp32"):
        assert "wrap_mul<int>(" in widened.translate(f"*{dtype}:16, *i32:16, 256").source
