"""Functions that come to their end without a `return` on some ways, where other ways return a value.

What they give there is undefined in Triton, and 0 here, however the kernel is run.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest
import tilewright as triton
import tilewright.language as tl
from tilewright import diagnostics as errors


class Both(NamedTuple):
    tile: Any
    number: Any


@triton.jit
def on_one_way(x, n):
    if n > 50:
        return x * 2


@triton.jit
def nothing_first(x, n):
    if n < 50:
        tl.debug_barrier()
    else:
        return Both(x * 2, 1)


@triton.jit
def number_first(n):
    if n > 80:
        if n > 90:
            return 1
        return n
    elif n > 50:
        return n * 2
    tl.debug_barrier()


@triton.jit
def returns_nothing(o_ptr, n):
    if n < 50:
        if n > 20:
            return
        tl.store(o_ptr, n)


@triton.jit
def some_ways(x_ptr, o_ptr, number_ptr, n, B: tl.constexpr):
    i = tl.arange(0, B)
    x = tl.load(x_ptr + i)
    one = on_one_way(x, n)
    tl.store(o_ptr + i, one)
    both = nothing_first(x, n)
    tl.store(o_ptr + B + i, both.tile)
    tl.store(number_ptr, both.number)
    tl.store(number_ptr + 1, number_first(n))
    returns_nothing(number_ptr + 2, n)


@pytest.mark.parametrize("n", [10, 30, 60, 85, 95])
def test_an_end_without_return_gives_zeros(run_everywhere: Any, n: int) -> None:
    x = np.arange(1, 33, dtype=np.float32)
    found, numbers = run_everywhere(some_ways, (1,), x, np.ones(64, np.float32), np.full(3, -1, np.int32), n, 32)[1:]
    doubled = x * 2 * (n > 50)
    np.testing.assert_array_equal(found, np.concatenate([doubled, doubled]))
    last = 1 if n > 90 else n if n > 80 else n * 2 if n > 50 else 0
    assert numbers.tolist() == [int(n > 50), last, n if n < 20 else -1]


def test_the_text_says_where_nothing_is_returned() -> None:
    text = some_ways.translate("*fp32:16, *fp32:16, *i32:16, i32, 32").source
    place = f"L{on_one_way.fn.__code__.co_firstlineno + 1}: def on_one_way(x, n):"
    assert f"// {place}    (ends here without a return: 0 for what is undefined)" in text


@triton.jit
def pointer_on_one_way(x_ptr, n):
    if n > 50:
        return x_ptr + 1


@triton.jit
def text_on_one_way(x_ptr, n):
    if n > 50:
        return "text"


@triton.jit
def called(x_ptr, n, FUNCTION: tl.constexpr):
    FUNCTION(x_ptr, n)
    tl.store(x_ptr, n)


@pytest.mark.parametrize("mode", ["cpu", "interpret"])
@pytest.mark.parametrize("function", [pointer_on_one_way, text_on_one_way], ids=lambda one: one.__name__)
def test_what_no_number_stands_for_is_an_error(function: Any, mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_MODE", mode)
    with pytest.raises(errors.DTypeError, match="returns a value on some ways and none on others") as caught:
        called[(1,)](np.zeros(1, np.float32), 5, function)
    assert "called from here" in str(caught.value) and "help: end every way" in str(caught.value)
