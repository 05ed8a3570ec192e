"""Numbers as they are written: the type that each has, and what becomes of it where it is assigned, cast and compared."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import tilewright as triton
import tilewright.language as tl
from tilewright.lower.text.literals import literal_text
from tilewright.ops.casts import FP8_LARGEST, numpy_type, rounded

FLOATS = [tl.float16, tl.bfloat16, tl.float32, tl.float64, tl.float8e4nv, tl.float8e5]


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_what_a_type_holds_of_a_number(dtype: Any) -> None:
    random = np.random.default_rng(0)
    sizes = np.ldexp(random.uniform(-2, 2, 3000), random.integers(-160, 140, 3000))
    near = np.ldexp(random.integers(-(2**12), 2**12, 3000), random.integers(-16, 8, 3000))  # has ties
    edges = [0.0, -0.0, np.inf, -np.inf, 65519.99, 65520.0, 464.0, 465.0, 1.7976931348623157e308, 5e-324, -1e-300]
    numbers = np.array([*sizes, *near, *edges])
    with np.errstate(all="ignore"):
        wanted = numbers if dtype.bits >= 32 else numbers.astype(np.float32)
        if dtype.is_fp8():
            wanted = np.clip(wanted, -FP8_LARGEST[dtype.name], FP8_LARGEST[dtype.name])
        wanted = wanted.astype(numpy_type(dtype)).astype(np.float64)
    found = np.array([rounded(float(number), dtype) for number in numbers])
    np.testing.assert_array_equal(found.view(np.int64), wanted.view(np.int64))


@triton.jit
def number_kernel(out_ptr):
    zero = tl.load(out_ptr + 15)
    tl.store(out_ptr, 0.1)  # a number has a type of its own, ...
    tl.store(out_ptr + 1, zero + 0.1)  # ... but adapts in arithmetic
    tl.store(out_ptr + 2, tl.cast(0.1, tl.float64))
    tl.store(out_ptr + 3, tl.full((), 0.1, tl.float64))
    tl.store(out_ptr + 4, tl.where(zero == 0, 0.1, zero))
    tl.store(out_ptr + 5, tl.maximum(zero, 0.1))
    tl.store(out_ptr + 6, (zero + 0.1 < 0.1).to(tl.int32))
    tl.store(out_ptr + 7, tl.cast(0.1, tl.float16).to(tl.float32))
    tl.store(out_ptr + 8, tl.cast(16777217, tl.float32).to(tl.int32))
    tl.store(out_ptr + 9, tl.cast(0.7, tl.float16, fp_downcast_rounding="rtz"))
    tl.store(
        out_ptr + 10, tl.full((2,), 0.2, tl.float32).to(tl.bfloat16, fp_downcast_rounding="rtz").to(tl.float32).max()
    )
    tl.store(out_ptr + 11, tl.load(out_ptr + 15 + tl.arange(0, 1), mask=zero > 0, other=0.1).max())


def test_literals_have_types(run_everywhere: Any) -> None:
    single, half = float(np.float32(0.1)), float(np.float16(0.1))
    expected = [single, 0.1, single, 0.1, 0.1, single, 1.0, half, 16777216, 0.69970703125, 0.19921875, single]
    (out,) = run_everywhere(number_kernel, (1,), np.zeros(16))
    np.testing.assert_array_equal(out[:12], expected)


@triton.jit
def endless_kernel(out_ptr, n):
    tl.store(out_ptr, n % float("inf"))
    tl.store(out_ptr + 1, (n < float("inf")).to(tl.float32))


def test_a_remainder_of_infinity(run_everywhere: Any) -> None:
    (out,) = run_everywhere(endless_kernel, (1,), np.zeros(2, np.float32), 7)
    assert out.tolist() == [7.0, 1.0]


@triton.jit
def pair_of_numbers(x):
    return x, 300


@triton.jit
def tuple_kernel(x_ptr, out_ptr):
    x = tl.load(x_ptr)
    pair = (1.0009765625, 3)
    single = pair_of_numbers(x.to(tl.int8))
    tl.static_assert((x * pair[0]).dtype == tl.float32)  # as of `scale = 1.0009765625`
    tl.static_assert((x.to(tl.int8) + single[1]).dtype == tl.int32)
    tl.store(out_ptr, x * pair[0])
    tl.store(out_ptr + 1, (pair[1] - 10) // 2)  # as of any integer at run time
    tile = tl.zeros((2, 4), tl.float32)
    shape = tile.shape  # sides remain known
    turned = tl.reshape(tile, (shape[1], shape[0]))
    tl.static_assert(turned.shape == (4, 2) and shape == (2, 4) and shape != (4, 2))
    for i in tl.static_range(pair[1]):
        tl.store(out_ptr + 2 + i, single[1] + i)
    tl.store(out_ptr + 5, (pair == (1.0, 3)) * 2 + ((x, 1) == (x, 1)))


def test_numbers_in_tuples_are_as_those_outside(run_everywhere: Any) -> None:
    x = np.array([1.0009765625], np.float16)
    out = run_everywhere(tuple_kernel, (1,), x, np.zeros(8, np.float32))[-1]
    assert out[:6].tolist() == [float(np.float32(x[0]) * np.float32(1.0009765625)), -3.0, 300.0, 301.0, 302.0, 1.0]


@triton.jit
def narrowed_kernel(x_ptr, out_ptr):
    i = tl.arange(0, 4)
    tl.store(out_ptr + i, tl.load(x_ptr + i).to(tl.bfloat16))


def test_long_integers_are_rounded_once(run_everywhere: Any) -> None:
    tie = (1 << 62) + (1 << 54)
    x = np.array([tie + 1, -tie - 1, tie, (1 << 53) + 1])
    out = run_everywhere(narrowed_kernel, (1,), x, np.zeros(4, np.float32))[1]
    assert out.tolist() == [2.0**62 + 2.0**55, -(2.0**62) - 2.0**55, 2.0**62, 2.0**53]


@triton.jit
def joined(x_ptr, out_ptr):
    i = tl.arange(0, 4)
    x = tl.load(x_ptr + i)
    tl.store(out_ptr + i, tl.minimum(x, x.to(tl.int64).to(x.dtype) | x))


@pytest.mark.parametrize("dtype", (np.int8, np.uint8, np.int16, np.uint16))
def test_narrowing_from_64_bits_beside_a_narrow_integer(run_everywhere: Any, dtype: Any) -> None:
    x = np.array([5, 3, 7, 255]).astype(dtype)
    np.testing.assert_array_equal(run_everywhere(joined, (1,), x, np.zeros_like(x))[1], x)


@triton.jit
def filled(x_ptr, out_ptr, FILL: tl.constexpr, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < 3, other=FILL))
    tl.store(out_ptr + N, FILL)


@pytest.mark.parametrize("fill", (float("nan"), float("inf"), -float("inf"), 0.1))
@pytest.mark.parametrize("dtype", (np.float16, np.float32, np.float64))
def test_compile_time_floats_that_are_no_numbers(run_everywhere: Any, fill: float, dtype: Any) -> None:
    """CUDA's words for infinity and NaN make no constant: they stand where the value is used."""
    _, out = run_everywhere(filled, (1,), np.ones(8, dtype), np.zeros(9, dtype), fill, N=8)
    assert np.array_equal(out[3:], np.full(6, fill, np.float32).astype(dtype), equal_nan=True)


@triton.jit
def as_integers(x_ptr, out_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(out_ptr + i, tl.load(x_ptr + i).to(out_ptr.dtype.element_ty))


NOT_IN_RANGE = (
    0.0, -0.5, 1.9, -1.9, 127.9, 128.0, 300.0, -300.0, 40000.0, 65535.5, 70000.0, 2.0**31 - 1, 2.0**31, -(2.0**31),
    -(2.0**31) - 1024, 2.0**32, 2.0**33 + 4096, 2.0**63, -(2.0**63), 2.0**64, 1e30, -1e30, np.inf, -np.inf, np.nan, -1.0,
    255.0, 256.0, -129.0, 1e-30, 3e9, -3e9,
)  # fmt: skip


@pytest.mark.parametrize("source", (np.float16, np.float32, np.float64))
def test_floats_that_no_integer_holds(run_everywhere: Any, source: Any) -> None:
    """The nearest end of 32 or 64 bits, as GPUs convert them; what C++ leaves open differs between compilers."""
    with np.errstate(over="ignore"):
        x = np.array(NOT_IN_RANGE, source)
    for bits in (8, 16, 32, 64):
        for name in (f"int{bits}", f"uint{bits}"):
            _, found = run_everywhere(as_integers, (1,), x, np.zeros(len(x), name), N=len(x))
            assert found[NOT_IN_RANGE.index(-1.0)] == (0 if name.startswith("u") else -1)
            of_nan = 0 if bits < 32 or (bits == 32 and source != np.float64) else 2 ** (bits - 1)
            assert int(found[NOT_IN_RANGE.index(np.nan)]) % 2**bits == of_nan


LOG2E = tl.constexpr(1.4426950408889634)
HALF = tl.constexpr(0.5)


@triton.jit
def by_a_half(x):
    HALF: tl.constexpr = 0.25  # another one of that name
    RATE: tl.constexpr = 0.1
    return x * HALF + RATE


@triton.jit
def named_floats(x_ptr, out_ptr, RATE: tl.constexpr, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    BETA: tl.constexpr = 0.9
    DOUBLE: tl.constexpr = 1.0 / 3.0
    x = tl.load(x_ptr + offs)
    y = tl.exp2(x * LOG2E) * HALF + by_a_half(x) * BETA + x * RATE
    tl.store(out_ptr + offs, y + (x.to(tl.float64) * DOUBLE).to(tl.float32))


def test_floats_have_the_names_that_stand_for_them(run_everyhow: Any) -> None:
    x = np.linspace(-1, 1, 64, dtype=np.float32)
    for arguments in run_everyhow(named_floats, (1,), [x, np.zeros_like(x)], RATE=0.3, BLOCK=64):
        expected = np.exp(x) * 0.5 + (x * 0.25 + 0.1) * 0.9 + x * 0.3 + x / 3
        np.testing.assert_allclose(arguments[1], expected, rtol=1e-5, atol=1e-6)
    text = named_floats.translate("*fp32, *fp32, 0.3, 64").source
    for line in ("float LOG2E = 1.4426950408889634f", "float HALF = 0.5f", "float BETA = 0.9f", "float RATE = 0.3f"):
        assert f"constexpr {line};" in text
    assert "constexpr double DOUBLE = 0.3333333333333333;" in text
    assert "* LOG2E" in text and "* HALF" in text and "* BETA" in text and "* RATE" in text
    assert "x * 0.25f + 0.1f" in text


@triton.jit
def floats_as_integers(x_ptr, out_ptr, RATE: tl.constexpr, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs)
    WHOLE: tl.constexpr = 3.0
    tl.store(out_ptr + offs, x // int(RATE))
    tl.store(out_ptr + BLOCK + offs, x // tl.full((BLOCK,), WHOLE, tl.int32))
    tl.store(out_ptr + 2 * BLOCK + offs, x % tl.full((BLOCK,), BLOCK, tl.float32).to(tl.int32))
    for trip in tl.static_range(1, 3):
        by_trip = x % tl.full((BLOCK,), trip + 2, tl.float16).to(tl.int32)
        tl.store(out_ptr + (2 + trip) * BLOCK + offs, by_trip)


def test_the_name_of_a_float_is_not_divided_by_as_an_integer(run_everyhow: Any) -> None:
    x = np.arange(64, dtype=np.int32) * 33_333_331 % (1 << 30) | 1
    for arguments in run_everyhow(floats_as_integers, (1,), [x, np.zeros(5 * 64, np.int32)], RATE=2.5, BLOCK=64):
        expected = [x // 2, x // 3, x % 64, x % 3, x % 4]
        np.testing.assert_array_equal(arguments[1].reshape(5, 64), expected)


@triton.jit
def sums_of_numbers(out_ptr, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    least = tl.zeros((BLOCK,), tl.float32) - float("inf")
    tl.store(out_ptr + offs, least)
    tl.store(out_ptr + BLOCK + offs, tl.full((BLOCK,), 0.1, tl.float32) + 0.2)
    tl.store(out_ptr + 2 * BLOCK + offs, tl.zeros((BLOCK,), tl.float32) * -1.0)
    tl.store(out_ptr + 3 * BLOCK + offs, tl.full((BLOCK,), 1e-30, tl.float32) * 1e-10)
    tl.store(out_ptr + 4 * BLOCK + offs, tl.full((BLOCK,), 3e38, tl.float32) + 3e38)


def test_sums_of_numbers_are_numbers(run_everyhow: Any) -> None:
    number = np.float32
    with np.errstate(over="ignore", under="ignore"):
        products = number(0) * number(-1), number(1e-30) * number(1e-10), number(3e38) + number(3e38)
    expected = np.repeat(np.array([-np.inf, number(0.1) + number(0.2), *products], number), 32)
    for (out,) in run_everyhow(sums_of_numbers, (1,), [np.ones(160, np.float32)], BLOCK=32):
        assert out.tobytes() == expected.tobytes()
    text = sums_of_numbers.translate("*fp32, 32").source
    assert "neg_inf" in text and "- inf" not in text and "0.1f + " not in text
    assert "1e-30f * 1e-10f" in text  # whether that is zero is the machine's to say


def test_floats_have_the_digits_that_the_user_wrote() -> None:
    """Those of a double that no single is; a tie between two singles is spelled as the one that it is rounded to."""
    texts = {0.1: "0.1f", 1.44269504: "1.44269504f", 2.0**-24: "5.9604645e-8f", 1 / 3: "0.3333333333333333f"}
    texts |= {16777217.0: "16777216.0f", 12345678.9: "12345678.9f", 1e-46: "0.0f", -2.5e-9: "-2.5e-9f", 1e10: "1e10f"}
    assert {number: literal_text(number, tl.float32) for number in texts} == texts
    rng = np.random.default_rng(0)
    for number in (rng.standard_normal(500) * 10.0 ** rng.integers(-30, 30, 500)).tolist():
        single, digits = float(np.float32(number)), Fraction(literal_text(number, tl.float32)[:-1])
        near = [float(np.nextafter(np.float32(number), np.float32(end))) for end in (-np.inf, np.inf)]
        assert all(abs(digits - Fraction(single)) < abs(digits - Fraction(other)) for other in near)
