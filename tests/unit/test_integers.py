"""Integers as Triton has them: what overflows wraps, whatever the compiler may conclude; numbers beyond 32 bits; shifts."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
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


@triton.jit
def far_rows(x_ptr, out_ptr, base, first, D: tl.constexpr, N: tl.constexpr):
    i = tl.arange(0, N)
    place = base.to(tl.int64) + ((i + first) * D).to(tl.int64)
    tl.store(out_ptr + i, place - (first + i).to(tl.int64))


def test_what_c_widens_by_itself_has_no_cast(run_everywhere: Any) -> None:
    """Whatever its text is made of; a sum of 32 bits stays one, in parentheses."""
    text = far_rows.translate("*i64:16, *i64:16, i32, i32, 24, 256").source
    assert "static_cast<long long>(base) + (i[e] + first) * D;" in text and "- (first + i" in text
    nothing, i = np.zeros(16, np.int64), np.arange(16)
    out = run_everywhere(far_rows, (1,), nothing, nothing.copy(), 2**31 - 5, 7, D=24, N=16)[1]
    assert np.array_equal(out, 2**31 - 5 + (i + 7) * 24 - (7 + i))


@triton.jit
def none_are_infinite(x_ptr, out_ptr, n, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < n, other=float("-inf")))


def test_integers_in_place_of_infinities(run_everywhere: Any) -> None:
    """CUDA's conversion takes the nearest number there is."""
    out = run_everywhere(none_are_infinite, (1,), np.arange(8, dtype=np.int32), np.zeros(8, np.int32), 6, N=8)[1]
    assert out.tolist() == [0, 1, 2, 3, 4, 5, -(2**31), -(2**31)]


@triton.jit
def hashes(out_ptr, table_ptr, seed, N: tl.constexpr):
    pid = tl.program_id(0)
    offs = pid * N + tl.arange(0, N)
    h = (offs + 0x7ED5_5D16) + (offs << 12)
    h = (h ^ 0x47C6111C) ^ (h >> 19)
    tl.store(out_ptr + offs, h)
    draw = pid * 1103515245 + 12345
    rises = draw + 1 > draw  # not where it is the greatest number
    total = seed
    for _ in range(3):
        total = total * 69069 + 1
    tl.store(table_ptr + pid * 3, (draw >> 16) & 0x7FFF)
    tl.store(table_ptr + pid * 3 + 1, rises.to(tl.int32))
    tl.store(table_ptr + pid * 3 + 2, total // 7)


def test_hashes_of_places_and_scalars_wrap(run_everywhere: Any) -> None:
    programs, n = 8, 64
    out, table = run_everywhere(
        hashes, (programs,), np.zeros(programs * n, np.int32), np.zeros(programs * 3, np.int32), 12345, N=n
    )[:2]
    with np.errstate(over="ignore"):
        offs, pid = np.arange(programs * n, dtype=np.int32), np.arange(programs, dtype=np.int32)
        h = (offs + np.int32(0x7ED55D16)) + (offs << 12)
        draw = pid * np.int32(1103515245) + np.int32(12345)
        total = np.int32(12345)
        for _ in range(3):
            total = total * np.int32(69069) + np.int32(1)
    assert np.array_equal(out, h ^ np.int32(0x47C6111C) ^ (h >> 19))
    quotient = int(abs(int(total)) // 7 * np.sign(total))
    assert table.reshape(programs, 3).tolist() == [[(d >> 16) & 0x7FFF, 1, quotient] for d in draw.tolist()]
    text = hashes.translate("*i32:16, *i32:16, i32, 64").source
    assert "wrap_add<int>(wrap_mul<int>(pid, 1103515245), 12345)" in text and "wrap_add<int>(draw, 1) > draw" in text
    assert "wrap_add<int>(wrap_mul<int>(total, 69069), 1)" in text and "pid * N" in text and "pid * 3" in text


@triton.jit
def eighth_of_square(x):
    return (x * x) >> 3


@triton.jit
def square(x):
    return x * x


@triton.jit
def greater(a, b):
    return tl.where(a - b > 0, a, b)


@triton.jit
def group_of(pid, group, BLOCK: tl.constexpr):
    return pid * BLOCK // group


@triton.jit
def in_functions(x_ptr, out_ptr, group, N: tl.constexpr):
    i = tl.arange(0, N)
    x = tl.load(x_ptr + i)
    tl.store(out_ptr + i, eighth_of_square(x))
    tl.store(out_ptr + N + i, square(x) >> 4)
    tl.store(out_ptr + 2 * N + i, group_of(tl.program_id(0), group, N) + tl.reduce(x >> 2, 0, greater))


def test_what_overflows_in_a_function_wraps(run_everywhere: Any) -> None:
    x = np.random.default_rng(3).integers(-(2**31), 2**31, 32).astype(np.int32)
    out = run_everywhere(in_functions, (1,), x, np.zeros(96, np.int32), 3, N=32)[1].reshape(3, 32)
    assert np.array_equal(out[0], x * x >> 3) and np.array_equal(out[1], x * x >> 4)
    assert np.all(out[2] == (x >> 2).max())
    artifact = in_functions.translate("*i32:16, *i32:16, i32, 32")
    assert "wrap_mul<int>(x, x) >> 3" in artifact.source and "return wrap_mul<int>(x, x);" in artifact.source
    assert "wrap_sub<int>(a, b) > 0" in artifact.source and "pid * " in artifact.source
    if nvrtc.is_available():
        ptx = nvrtc.compile_ptx(artifact)
        assert "shr.s32" in ptx and not re.search(r"shr\.u32\s.*, [34];", ptx)


@triton.jit
def in_hexadecimal(x_ptr, out_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    x = tl.load(x_ptr + i)
    word = x.to(tl.uint32) ^ 0x9E37_79B9
    long = x.to(tl.int64) & 0xFFFFFFFF
    byte = x.to(tl.uint8) & 0x0F
    tl.store(out_ptr + i, word + long + byte + tl.where(x > 0x20, x & -0x10, 255))


def test_numbers_stand_in_the_base_that_the_kernel_has_them_in(run_everywhere: Any) -> None:
    x = np.arange(-32, 96).astype(np.int32)
    out = run_everywhere(in_hexadecimal, (1,), x, np.zeros(128, np.int64), N=128)[1]
    word, byte = x.astype(np.uint32) ^ np.uint32(0x9E3779B9), x.astype(np.uint8) & 15
    assert np.array_equal(
        out, word.astype(np.int64) + (x.astype(np.int64) & 0xFFFFFFFF) + byte + np.where(x > 32, x & -16, 255)
    )
    text = in_hexadecimal.translate("*i32:16, *i64:16, 128").source
    assert all(
        number in text for number in (" ^ 0x9e3779b9u", " & 0xffffffffLL", " & 0xf;", " > 0x20 ", " & -16", ": 255")
    )


@triton.jit
def chosen_row(x_ptr, out_ptr, first, second, stride, limit, BLOCK: tl.constexpr):
    program, i = tl.program_id(0), tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + tl.where(program * BLOCK < limit, first, second) * stride + i))


@pytest.mark.parametrize("limit", ("i32", "i64"))
def test_offsets_have_64_bits_whatever_a_condition_in_them_compares(limit: str) -> None:
    text = chosen_row.translate(f"*fp32, *fp32, i32, i32, i32, {limit}, 128").source
    kernel = " ".join(text[text.index("const float x =") :].split())
    chosen = "static_cast<long long>(program * BLOCK < limit ? first : second) * stride + i"  # C widens the product
    assert kernel.startswith(f"const float x = x_ptr[{chosen}];"), kernel
