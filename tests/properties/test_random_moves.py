"""Random kernels that put tiles together, take them apart and reshape them: every way of running does what NumPy does."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import tilewright.language as tl
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from test_random_kernels import make

TYPES = {"fp32": np.float32, "fp16": np.float16, "bf16": ml_dtypes.bfloat16, "i8": np.int8, "i64": np.int64}
MOST = 512  # elements of a tile
Array = np.ndarray[Any, Any]


@dataclass
class Tile:
    """A name in the kernel, and what it must hold."""

    name: str
    value: Array


def places(shape: tuple[int, ...]) -> str:
    """The offsets of a tile of a shape in row-major order."""
    terms = []
    for axis, side in enumerate(shape):
        index = ", ".join(":" if other == axis else "None" for other in range(len(shape)))
        terms.append(f"tl.arange(0, {side})[{index}] * {prod(shape[axis + 1 :])}")
    return " + ".join(terms)


def factored(draw: Any, numel: int) -> tuple[int, ...]:
    """Up to three sides whose product is `numel`."""
    sides = []
    for _ in range(draw(st.integers(0, 2))):
        side = draw(st.sampled_from([d for d in range(1, numel + 1) if numel % d == 0]))
        sides.append(side)
        numel //= side
    return (*sides, numel)


def moved(draw: Any, tiles: list[Tile], number: int) -> tuple[str, list[Tile]]:
    """A line of the kernel and the tiles that it makes."""
    one = draw(st.sampled_from(tiles))
    x, name = one.value, f"t{number}"
    fitting = [tile for tile in tiles if tile.value.shape == x.shape]
    other = draw(st.sampled_from(fitting))
    kinds = ["reshape", "trans", "add"]
    kinds += ["join", "interleave", "cat"] if x.size * 2 <= MOST and x.ndim < 3 else []
    kinds += ["split"] * 4 if x.shape[-1] == 2 and x.ndim > 1 else []
    match draw(st.sampled_from(kinds)):
        case "reshape":
            shape = factored(draw, x.size)
            return f"{name} = tl.reshape({one.name}, {shape})", [Tile(name, x.reshape(shape))]
        case "trans":
            order = draw(st.permutations(range(x.ndim)))
            return f"{name} = tl.permute({one.name}, {tuple(order)})", [Tile(name, x.transpose(order))]
        case "add":
            return f"{name} = {one.name} + {other.name}", [Tile(name, (x + other.value).astype(x.dtype))]
        case "join":
            return f"{name} = tl.join({one.name}, {other.name})", [Tile(name, np.stack([x, other.value], -1))]
        case "interleave":
            both = np.stack([x, other.value], -1).reshape(*x.shape[:-1], -1)
            return f"{name} = tl.interleave({one.name}, {other.name})", [Tile(name, both)]
        case "cat":
            axis = draw(st.integers(0, x.ndim - 1))
            both = np.concatenate([x, other.value], axis)
            return f"{name} = tl.cat({one.name}, {other.name}, dim={axis})", [Tile(name, both)]
    halves = [Tile(f"{name}_a", x[..., 0]), Tile(f"{name}_b", x[..., 1])]
    return f"{name}_a, {name}_b = {one.name}.split()", halves


@st.composite
def programs(draw: Any) -> tuple[str, Array, Array, int]:
    """(source, what is loaded, what must be stored, number of warps)."""
    dtype = TYPES[draw(st.sampled_from(tuple(TYPES)))]
    shape = tuple(draw(st.lists(st.sampled_from((1, 2, 3, 4, 5, 8, 12, 16)), min_size=1, max_size=2)))
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    x = rng.integers(-3, 4, (2, *shape)).astype(dtype)
    lines = ["def kernel(x_ptr, out_ptr):"]
    tiles = []
    for number in (0, 1):
        lines.append(f"    x{number} = tl.load(x_ptr + {number * prod(shape)} + {places(shape)})")
        tiles.append(Tile(f"x{number}", x[number]))
    for number in range(draw(st.integers(1, 6))):
        line, made = moved(draw, tiles, number)
        lines.append(f"    {line}")
        tiles += made
    stored = tiles[-1:] if draw(st.booleans()) else tiles[-3:]
    results = []
    for tile in stored:
        start = sum(value.size for value in results)
        lines.append(f"    tl.store(out_ptr + {start} + {places(tile.value.shape)}, {tile.name})")
        results.append(tile.value.ravel())
    return "\n".join(lines) + "\n", x, np.concatenate(results), draw(st.sampled_from((1, 2, 4)))


@settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(programs())
def test_elements_arrive_where_they_belong(
    monkeypatch: pytest.MonkeyPatch, program: tuple[str, Array, Array, int]
) -> None:
    source, x, expected, warps = program
    assert tl.join is not None  # the text names the language as tl
    function = make(source)
    for mode in ("interpret", "cpu"):
        monkeypatch.setenv("TILEWRIGHT_MODE", mode)
        out = np.full(expected.shape, 77, expected.dtype)
        function[(1,)](x, out, num_warps=warps)
        np.testing.assert_array_equal(out.astype(np.float64), expected.astype(np.float64), err_msg=f"{mode}\n{source}")
