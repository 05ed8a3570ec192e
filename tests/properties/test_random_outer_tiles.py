"""Random kernels of tiles that are made of rows, columns and planes and reduced: every way of running does what NumPy does."""

from __future__ import annotations

from itertools import combinations
from math import prod
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from test_random_kernels import make

SIDES = (1, 2, 3, 4, 5, 8, 12, 16, 32)
MOST = 4096  # elements of a tile
REDUCTIONS = {"sum": np.sum, "max": np.max, "min": np.min, "argmax": np.argmax}
Array = np.ndarray[Any, Any]


def index(axes: tuple[int, ...], axis: int) -> str:
    """How a range along `axis` is spelled in a tile of these axes."""
    return ", ".join(":" if other == axis else "None" for other in axes)


def places(axes: tuple[int, ...], sides: tuple[int, ...]) -> str:
    """The offsets of a tile of some axes in row-major order; a scalar is at 0."""
    terms = []
    for number, axis in enumerate(axes):
        step = prod(sides[other] for other in axes[number + 1 :])
        terms.append(f"tl.arange(0, {sides[axis]})[{index(axes, axis)}] * {step}")
    return " + ".join(terms) or "0"


@st.composite
def programs(draw: Any) -> tuple[str, list[Array], list[Array], int]:
    """(source, what is loaded, what must be stored, number of warps)."""
    sides = tuple(draw(st.lists(st.sampled_from(SIDES), min_size=2, max_size=3)))
    while prod(sides) > MOST:
        sides = tuple(max(side // 2, 1) for side in sides)
    rank, trips = len(sides), draw(st.sampled_from((1, 1, 3)))
    every = tuple(range(rank))
    parts = [axes for count in range(1, rank) for axes in combinations(every, count)]
    chosen = draw(st.lists(st.sampled_from(parts), min_size=rank, max_size=4))
    chosen += [(axis,) for axis in every if not any(axis in axes for axes in chosen)]
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    arrays, lines, whole = [], [], np.zeros((trips, *sides), np.float32)
    for number, axes in enumerate(chosen):
        own = tuple(sides[axis] for axis in axes)
        array = rng.integers(-2, 3, (trips, *own)).astype(np.float32)
        arrays.append(array)
        spread = ", ".join(":" if axis in axes else "None" for axis in every)
        line = f"part{number} = tl.load(in{number} + trip * {prod(own)} + {places(axes, sides)})[{spread}]"
        operator = draw(st.sampled_from("+-*")) if number else "+"
        lines += [line, f"whole = whole {operator} part{number}" if number else f"whole = part{number} + zeros"]
        wide = array.reshape((trips, *(sides[axis] if axis in axes else 1 for axis in every)))
        whole = {"+": whole + wide, "-": whole - wide, "*": whole * wide}[operator]
    results, stores = [], []
    before = [f"zeros = tl.zeros({sides}, tl.float32)"]
    for number in range(draw(st.integers(1, 2))):
        name, axis = draw(st.sampled_from(tuple(REDUCTIONS))), draw(st.integers(0, rank - 1))
        left = tuple(side for other, side in enumerate(sides) if other != axis)
        before.append(f"total{number} = tl.zeros({left}, tl.float32)")
        lines.append(f"total{number} += tl.{name}(whole, axis={axis}).to(tl.float32)")
        stores.append(f"tl.store(out{number} + {places(tuple(range(rank - 1)), left)}, total{number})")
        results.append(REDUCTIONS[name](whole, axis=axis + 1).astype(np.float32).sum(0))
    pointers = [f"in{number}" for number in range(len(arrays))] + [f"out{number}" for number in range(len(results))]
    source = [
        f"def kernel({', '.join(pointers)}):",
        *before,
        f"for trip in range({trips}):",
        *("    " + one for one in lines),
        *stores,
    ]
    text = source[0] + "\n" + "".join(f"    {line}\n" for line in source[1:])
    return text, arrays, results, draw(st.sampled_from((1, 2, 4, 8)))


@settings(max_examples=40, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(programs())
def test_results_are_those_of_numpy(
    monkeypatch: pytest.MonkeyPatch, program: tuple[str, list[Array], list[Array], int]
) -> None:
    source, arrays, expected, warps = program
    function = make(source)
    for mode in ("interpret", "cpu"):
        monkeypatch.setenv("TILEWRIGHT_MODE", mode)
        found = [np.full_like(one, np.nan) for one in expected]
        function[(1,)](*arrays, *found, num_warps=warps)
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_array_equal(one, other, err_msg=f"{mode}\n{source}")
