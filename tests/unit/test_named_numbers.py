"""What compile-time integers are called that were computed from named ones."""

from __future__ import annotations

import operator
import re

import pytest
import tilewright as triton
import tilewright.language as tl
from tilewright.frontend.named_numbers import named
from tilewright.frontend.values import Const
from tilewright.ir.symbols import Name, spelled

PYTHON = {"+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.floordiv}
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
