"""Argmax and argmin of several elements in a thread: the extreme value first, then the first place that has it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tilewright as triton
import tilewright.language as tl


@triton.jit
def extremes(x_ptr, value_ptr, place_ptr, M: tl.constexpr, N: tl.constexpr):
    rows = tl.arange(0, M)
    x = tl.load(x_ptr + rows[:, None] * N + tl.arange(0, N)[None, :])
    greatest, first = tl.max(x, 1, return_indices=True)
    least, _ = tl.min(x, 1, return_indices=True)
    tl.store(value_ptr + rows, greatest)
    tl.store(value_ptr + M + rows, least)
    tl.store(place_ptr + rows, first)
    tl.store(place_ptr + M + rows, tl.argmin(x, 1))


@triton.jit
def computed_extremes(x_ptr, place_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    x = tl.load(x_ptr + i)
    tl.store(place_ptr, tl.argmax(x * x - 3, 0))
    tl.store(place_ptr + 1, tl.argmin(tl.where(i % 3 == 0, 100, x), 0))
    tl.store(place_ptr + 2, tl.argmax((x > 2) & (i > 40), 0))


def first_places(x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """What numbers come to along the rows, without any that are not numbers, unless a row has nothing else: that is place 0."""
    low, high = (np.where(np.isnan(x), end, x) for end in (-np.inf, np.inf))
    nothing = np.isnan(x).all(1)
    values = (np.where(nothing, np.nan, found) for found in (low.max(1), high.min(1)))
    # A number wins even where it is what stood in for those that are none.
    places = (
        np.where(nothing, 0, ((x == end.T) & ~np.isnan(x)).argmax(1)) for end in (low.max(1)[None], high.min(1)[None])
    )
    return *values, *places


@pytest.mark.parametrize("shape", ((8, 64), (4, 256), (2, 200), (16, 33)))
@pytest.mark.parametrize("warps", (1, 4))
def test_equal_values_and_what_is_no_number(run_everywhere: Any, shape: tuple[int, int], warps: int) -> None:
    random = np.random.default_rng(shape[1])
    x = random.integers(-2, 3, shape).astype(np.float32)
    x[random.random(shape) < 0.4] = np.nan
    x[0] = np.nan
    x[1, :-1], x[1, -1] = np.nan, -np.inf
    _, values, places = run_everywhere(
        extremes,
        (1,),
        x,
        np.zeros((2, shape[0]), np.float32),
        np.ones((2, shape[0]), np.int32),
        *shape,
        num_warps=warps,
    )
    greatest, least, first, first_least = first_places(x)
    assert np.array_equal(values, [greatest, least], equal_nan=True)
    assert np.array_equal(places, [first, first_least])


@pytest.mark.parametrize("element", (np.int8, np.uint16, np.int32, np.int64, np.float16, np.float64))
@pytest.mark.parametrize("n", (128, 100))
def test_the_ends_of_a_type_are_values_like_others(run_everywhere: Any, element: Any, n: int) -> None:
    """Elements that are padding stand for such an end, and are never the first that has it."""
    ends = np.finfo(element) if np.issubdtype(element, np.floating) else np.iinfo(element)
    x = np.full((4, n), ends.min, element)
    x[1], x[2], x[3, ::2] = ends.max, 0, ends.max
    _, values, places = run_everywhere(
        extremes, (1,), x, np.zeros((2, 4), element), np.ones((2, 4), np.int32), 4, n, num_warps=1
    )
    assert np.array_equal(values, [x.max(1), x.min(1)])
    assert np.array_equal(places, [x.argmax(1), x.argmin(1)])


@pytest.mark.parametrize("element", (np.int8, np.int32, np.float32))
@pytest.mark.parametrize("n", (256, 200))
def test_what_is_computed_for_an_element(run_everywhere: Any, element: Any, n: int) -> None:
    x = np.random.default_rng(n).integers(-9, 10, n).astype(element)
    _, places = run_everywhere(computed_extremes, (1,), x, np.zeros(3, np.int32), n, num_warps=1)
    i = np.arange(n)
    chosen = np.where(i % 3 == 0, 100, x)
    assert places.tolist() == [(x * x - 3).argmax(), chosen.argmin(), ((x > 2) & (i > 40)).argmax()]


def test_a_thread_combines_no_states_of_its_own() -> None:
    text = extremes.translate("*fp32:16, *fp32:16, *i32:16, 4, 256").source
    kernel = text[text.index('extern "C"') :]
    assert "::combine" not in kernel
    assert kernel.count("= fmaxf(") == 1 and kernel.count("= fminf(") == 2
    computed = computed_extremes.translate("*fp32:16, *i32:16, 256").source
    assert computed.count("3.0f") == 1  # the text has what is computed once
