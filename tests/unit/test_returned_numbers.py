"""Functions that return a number on one way and a value on another: the number takes the type of the scalar."""

from __future__ import annotations

from collections import namedtuple
from typing import Any

import numpy as np
import pytest
import tilewright as triton
import tilewright.language as tl
from tilewright import diagnostics as errors

Pair = namedtuple("Pair", ["first", "second"])


@triton.jit
def number_last(a):
    if a > 2:
        return a
    return 0


@triton.jit
def number_first(a):
    if a > 2:
        return 1
    return a


@triton.jit
def with_else(a):
    if a > 2:
        return a
    else:
        return -1


@triton.jit
def numbers_first(a):
    if a > 3:
        return 2
    if a > 2:
        return 3
    return a


@triton.jit
def through_others(a):
    if a > 3:
        if a > 5:
            return number_last(a)
        return 1
    elif a > 2:
        return number_first(a)
    return -1


@triton.jit
def on_scalars(o_ptr, x, FUNCTION: tl.constexpr, TYPE: tl.constexpr):
    found = FUNCTION(x.to(TYPE))
    tl.store(o_ptr, found)
    tl.store(o_ptr + 1, found.dtype == TYPE)
    tl.store(o_ptr + 2, found.to(tl.float32) / 2)


RESULTS = {
    number_last: lambda a: a if a > 2 else 0,
    number_first: lambda a: 1 if a > 2 else a,
    with_else: lambda a: a if a > 2 else -1,
    numbers_first: lambda a: 2 if a > 3 else 3 if a > 2 else a,
    through_others: lambda a: a if a > 5 else 1 if a > 2 else -1,
}


@pytest.mark.parametrize("dtype", [tl.float16, tl.float32, tl.int8, tl.int64], ids=str)
@pytest.mark.parametrize("function", RESULTS, ids=lambda one: one.__name__)
def test_a_number_takes_the_type_of_the_other_ways(function: Any, dtype: tl.dtype, run_everywhere: Any) -> None:
    for a in (1.0, 3.0, 4.0, 6.0):
        (found,) = run_everywhere(on_scalars, (1,), np.zeros(3, np.float32), a, function, dtype)
        expected = RESULTS[function](a)
        assert found.tolist() == [expected, 1, expected / 2]


@triton.jit
def only_numbers(a):
    if a > 3:
        return 2
    if a > 2:
        return 1.5
    return 1


def test_numbers_alone_have_one_type(run_everywhere: Any) -> None:
    for a, expected in ((4.0, 2), (3.0, 1.5), (1.0, 1)):
        (found,) = run_everywhere(on_scalars, (1,), np.zeros(3, np.float32), a, only_numbers, tl.float32)
        assert found.tolist() == [expected, 1, expected / 2]


@triton.jit
def tuples(a):
    if a > 2:
        return 0, a
    return a, 1


@triton.jit
def named_tuples(a):
    if a > 2:
        return Pair(0, a)
    else:
        return Pair(a, 1)


@triton.jit
def on_pairs(o_ptr, x, FUNCTION: tl.constexpr):
    first, second = FUNCTION(x.to(tl.float16))
    tl.store(o_ptr, first)
    tl.store(o_ptr + 1, second)
    tl.store(o_ptr + 2, first.dtype == tl.float16)
    tl.store(o_ptr + 3, second.dtype == tl.float16)


@pytest.mark.parametrize("function", [tuples, named_tuples], ids=lambda one: one.__name__)
def test_numbers_in_tuples(function: Any, run_everywhere: Any) -> None:
    assert run_everywhere(on_pairs, (1,), np.zeros(4, np.float32), 3.5, function)[0].tolist() == [0, 3.5, 1, 1]
    assert run_everywhere(on_pairs, (1,), np.zeros(4, np.float32), 1.5, function)[0].tolist() == [1.5, 1, 1, 1]


@triton.jit
def decided_before(a, FLAG: tl.constexpr):
    if FLAG:
        return 3
    return a


@triton.jit
def at_compile_time(o_ptr, x):
    side: tl.constexpr = decided_before(x, True)
    tl.store(o_ptr + tl.arange(0, side + 1), decided_before(x, False))


def test_a_number_on_the_only_way_stays_known(run_everywhere: Any) -> None:
    assert run_everywhere(at_compile_time, (1,), np.zeros(4, np.float32), 2.5)[0].tolist() == [2.5] * 4


@triton.jit
def too_fine(a):
    if a > 2:
        return 0.5
    return a.to(tl.int32)


@triton.jit
def too_large(a):
    if a > 2:
        return 300
    return a.to(tl.int8)


@triton.jit
def two_types(a):
    if a > 2:
        return a
    return a.to(tl.int32)


@triton.jit
def number_or_tile(a):
    if a > 2:
        return 0
    return tl.full((4,), a, tl.float32)


@triton.jit
def number_or_condition(a):
    if a > 2:
        return 1
    return a < 1


@triton.jit
def number_or_nothing(a):
    if a > 2:
        return 1
    return None


@triton.jit
def one_of_two_types(a):
    if a > 2:
        return tl.float32
    return tl.float16


@triton.jit
def on_anything(o_ptr, x, FUNCTION: tl.constexpr):
    FUNCTION(x)
    tl.store(o_ptr, x)


@pytest.mark.parametrize("x", [1.5, 3.5])
@pytest.mark.parametrize("mode", ["cpu", "interpret"])
@pytest.mark.parametrize(
    ("function", "said"),
    [
        (too_fine, "Return type mismatch: fp32 and i32"),
        (too_large, "Return type mismatch: i32 and i8"),
        (two_types, "Return type mismatch: fp32 and i32"),
        (number_or_tile, r"Return type mismatch: i32 and fp32\[4\]"),
        (number_or_condition, "Return type mismatch: i32 and i1"),
        (number_or_nothing, "number_or_nothing returns a value on some ways and none on others"),
        (one_of_two_types, "one_of_two_types returns different compile-time values"),
    ],
    ids=lambda one: getattr(one, "__name__", ""),
)
def test_what_does_not_fit_is_an_error_on_every_way(
    function: Any, said: str, mode: str, x: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TILEWRIGHT_MODE", mode)
    with pytest.raises(errors.DTypeError, match=said) as caught:
        on_anything[(1,)](np.zeros(1, np.float32), x, function)
    text = str(caught.value)
    assert "called from here" in text and text.count("test_returned_numbers.py:") == 2 and "help: " in text
