"""What compile-time integers are called that were computed from named ones."""

from __future__ import annotations

import operator
import re
from typing import Any

import numpy as np
import pytest
import tilewright as triton
import tilewright.frontend as frontend
import tilewright.language as tl
from tilewright.frontend.named_numbers import named
from tilewright.frontend.values import Const
from tilewright.ir.c_tokens import code_of
from tilewright.ir.symbols import Name, OfTrips, Operation, spelled

PYTHON = {"+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.floordiv, "&": operator.and_,
          "|": operator.or_, "^": operator.xor, "<<": operator.lshift, ">>": operator.rshift}  # fmt: skip
N, M = Const(64, Name("N")), Const(16, Name("M"))


def computed(left: Const | int, sign: str, right: Const | int) -> Const:
    left, right = (side if isinstance(side, Const) else Const(side) for side in (left, right))
    value = PYTHON[sign](left.value, right.value)
    return Const(value, named(left, sign, right, value))


@pytest.mark.parametrize(
    ("found", "text"),
    [
        (computed(computed(-3, "+", N), "-", 1), "N - 4"),
        (computed(computed(0, "+", N), "-", 1), "N - 1"),
        (computed(computed(N, "+", 1), "-", 1), "N"),
        (computed(computed(N, "+", M), "+", 2), "N + M + 2"),
        (computed(computed(N, "+", 1), "-", M), "N - M + 1"),
        (computed(1, "-", computed(N, "-", 2)), "3 - N"),
        (computed(N, "-", computed(N, "-", M)), "N - (N - M)"),
        (computed(computed(N, "*", 2), "+", 1), "N * 2 + 1"),
        (computed(computed(N, "+", 1), "*", 2), "(N + 1) * 2"),
        (computed(N, "*", 1), "N"),
        (computed(N, "*", 0), None),
        (computed(computed(N, "-", 1), "/", M), "(N - 1) / M"),
        (computed(-1, "*", N), "(-1) * N"),
        (computed(computed(-1, "*", N), "/", M), None),  # C rounds it towards zero
        (computed(3, "+", 4), None),
        (computed(Const(2**31 - 1, Name("HUGE")), "+", 1), None),
        (computed(Const(2**31 - 1, Name("HUGE")), "-", 1), "HUGE - 1"),
    ],
)
def test_sums_end_in_one_number(found: Const, text: str | None) -> None:
    assert (found.symbol and spelled(found.symbol)) == text
    if text is not None:
        assert eval(text.replace("/", "//"), {"N": 64, "M": 16, "HUGE": 2**31 - 1}) == found.value


TRIP = Const(3, Name("corner", trips=OfTrips((0, 7), 1)))


@pytest.mark.parametrize(
    ("found", "text", "trips"),
    [
        (computed(TRIP, "&", 1), "corner & 1", OfTrips((0, 1), 1)),
        (computed(computed(TRIP, ">>", 1), "&", 1), "(corner >> 1) & 1", OfTrips((0, 1), 1)),
        (computed(computed(TRIP, "&", 1), "+", 2), "(corner & 1) + 2", OfTrips((2, 3), 1)),
        (computed(2, "+", computed(TRIP, ">>", 2)), "2 + (corner >> 2)", OfTrips((2, 3), 1)),
        (computed(computed(TRIP, "&", 1), "*", 6), "(corner & 1) * 6", OfTrips((0, 6), 6)),
        (computed(1, "<<", TRIP), "1 << corner", OfTrips((1, 128), 1)),
        (computed(TRIP, "<<", 4), "corner << 4", OfTrips((0, 112), 16)),
        (computed(TRIP, "^", 4), "corner ^ 4", OfTrips((0, 7), 1)),
        (computed(TRIP, "|", 8), "corner | 8", OfTrips((0, 15), 1)),
        (computed(computed(TRIP, "-", 1), "&", 1), None, None),  # of -1 it would be followed wrongly
        (computed(TRIP, "<<", 31), None, None),
        (computed(N, "&", 1), None, None),
    ],
)
def test_bits_of_a_trips_number(found: Const, text: str | None, trips: OfTrips | None) -> None:
    assert (found.symbol and spelled(found.symbol)) == text and found.trips == trips
    if text is not None:
        assert eval(text, {"corner": 3}) == found.value


def test_what_stands_in_front_of_the_number_does_not_overflow() -> None:
    half = Const(1 << 30, Name("HALF"))
    less = computed(half, "-", 1)
    assert computed(less, "+", half).symbol is None  # HALF + HALF does
    found = computed(less, "-", half).symbol
    assert found is not None and spelled(found) == "HALF - HALF - 1"


@triton.jit
def neighbours(x_ptr, out_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    x = tl.load(x_ptr + i)
    for back in tl.static_range(-2, 0):
        x += tl.where(i == back + N + 1, x * -1.5 + -0.5, x)
        tl.store(out_ptr + (i + back + 2), x, mask=i + back >= 0)


def test_what_is_negative_is_subtracted() -> None:
    text = neighbours.translate("*fp32:16, *fp32:16, 64").source
    assert "N - 1" in text and " - 0.5f" in text
    code = re.sub(r"//.*", "", text)
    assert not re.search(r"[+-] -[\dN]", code)


@triton.jit
def product_of_halves(a_ptr, b_ptr, c_ptr, M: tl.constexpr, N: tl.constexpr, FIRST: tl.constexpr, LAST: tl.constexpr):
    m, n = tl.arange(0, M + M), tl.arange(0, N + N)
    acc = tl.zeros((M + M, N + N), tl.float32)
    for start in range(0, 4 * (FIRST + LAST), FIRST + LAST):
        k = start + tl.arange(0, FIRST + LAST)
        a = tl.load(a_ptr + m[:, None] * (4 * (FIRST + LAST)) + k[None, :])
        b = tl.load(b_ptr + k[:, None] * (N + N) + n[None, :])
        acc = tl.dot(a, b, acc)
    tl.store(c_ptr + m[:, None] * (N + N) + n[None, :], acc)


@pytest.mark.parametrize("arch", ["sm_80", "sm_90a"])
@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_sides_that_are_sums(arch: str, dtype: Any, run_everyhow: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_ARCH", arch)
    random = np.random.default_rng(1)
    a, b = (random.integers(-4, 5, shape).astype(dtype) for shape in ((64, 256), (256, 128)))
    kernel = triton.jit(product_of_halves.fn)
    for arguments in run_everyhow(
        kernel, (1,), [a, b, np.zeros((64, 128), np.float32)], False, M=32, N=64, FIRST=48, LAST=16
    ):
        np.testing.assert_array_equal(arguments[2], a.astype(np.float32) @ b.astype(np.float32))


SIDES = ["16, 16, 32", "64, 64, 64", "64, 256, 128", "16, 4, 8"]


@triton.jit
def product(a_ptr, b_ptr, c_ptr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, PRECISION: tl.constexpr):
    m, n, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    a, b = tl.load(a_ptr + m[:, None] * K + k[None, :]), tl.load(b_ptr + k[:, None] * N + n[None, :])
    tl.store(c_ptr + m[:, None] * N + n[None, :], tl.dot(a, b, input_precision=PRECISION))


@pytest.mark.parametrize("arch", ["sm_80", "sm_90a"])
@pytest.mark.parametrize(
    "types", ["fp16, None", "fp32, 'tf32'", "fp32, 'tf32x3'", "fp32, 'bf16x3'", "fp32, 'ieee'", "i8, None"]
)
def test_a_side_is_an_operand_in_parentheses(arch: str, types: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is computed from sides, in any text of a product: here each is called a sum."""
    element, precision = types.split(", ")
    monkeypatch.setattr(frontend, "_parameter_value", as_sum(frontend._parameter_value))
    for sides in SIDES:
        signature = f"*{element}:16, *{element}:16, *{'i32' if element == 'i8' else 'fp32'}:16, {sides}, {precision}"
        code = code_of(triton.jit(product.fn).translate(signature, arch=arch).source)
        assert re.search(r"\b[MNK] \+ ZERO\b", code)
        assert not re.search(r"[*/%] [MNK] \+ ZERO|[MNK] \+ ZERO [*/%]|[^\W\d]\w* - [MNK] \+", code)


def as_sum(parameter_value: Any) -> Any:
    """The same function, whose integers are called a sum each."""

    def called(*args: Any) -> Any:
        found = parameter_value(*args)
        if not isinstance(found, Const) or type(found.value) is not int or found.symbol is None:
            return found
        return Const(found.value, Operation("+", found.symbol, Name("ZERO")))

    return called
