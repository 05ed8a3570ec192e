"""Masks of several comparisons that a text would spell again and again: they are called by the user's name."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tilewright as triton
import tilewright.language as tl

RANDOM = np.random.default_rng(0)


@triton.jit
def cross(x_ptr, out_ptr, H, W, BH: tl.constexpr, BW: tl.constexpr):
    """The sum of a point and its four neighbours, as far as there are such."""
    y = tl.program_id(1) * BH + tl.arange(0, BH)[:, None]
    x = tl.program_id(0) * BW + tl.arange(0, BW)[None, :]
    inside = (y < H) & (x < W)
    at = x_ptr + y * W + x
    total = tl.load(at, mask=inside, other=0.0)
    total += tl.load(at - W, mask=inside & (y > 0), other=0.0)
    total += tl.load(at + W, mask=inside & (y + 1 < H), other=0.0)
    total += tl.load(at - 1, mask=inside & (x > 0), other=0.0)
    total += tl.load(at + 1, mask=inside & (x + 1 < W), other=0.0)
    tl.store(out_ptr + y * W + x, total, mask=inside)


@pytest.mark.parametrize("tile", [(4, 128), (1, 128), (2, 16)])
def test_a_stencil_names_its_mask(run_everywhere: Any, tile: tuple[int, int]) -> None:
    x = RANDOM.random((9, 150), np.float32)
    grid = (triton.cdiv(150, tile[1]), triton.cdiv(9, tile[0]))
    found = run_everywhere(cross, grid, x, np.zeros_like(x), 9, 150, BH=tile[0], BW=tile[1], num_warps=1)[1]
    near = np.pad(x, 1)
    wanted = x + near[:-2, 1:-1] + near[2:, 1:-1] + near[1:-1, :-2] + near[1:-1, 2:]
    np.testing.assert_allclose(found, wanted, rtol=1e-6)


def test_an_array_or_a_bool() -> None:
    several = cross.translate("*fp32:16, *fp32:16, i32, i32, 8, 128").source
    assert "bool inside[BH];" in several and "inside[r] = y[r] < H && x < W;" in several
    assert several.count("inside[r]") == 7 and "inside[r] & (y[r] > 0)" in several and "if (inside[r])" in several
    assert ": inside = (y < H) & (x < W)\n" in several, "nothing is tested elsewhere any more"
    single = cross.translate("*fp32:16, *fp32:16, i32, i32, 1, 128").source
    assert "const bool inside = y < H && x < W;" in single and "inside & (x > 0) ?" in single


def test_many_answers_stay_comparisons() -> None:
    """They would be registers of a thread."""
    assert "bool inside" not in cross.translate("*fp32:16, *fp32:16, i32, i32, 32, 128").source


@triton.jit
def seldom(x_ptr, y_ptr, out_ptr, H, W, BH: tl.constexpr, BW: tl.constexpr):
    """Two loads and a store under one mask."""
    y = tl.program_id(1) * BH + tl.arange(0, BH)[:, None]
    x = tl.program_id(0) * BW + tl.arange(0, BW)[None, :]
    inside = (y < H) & (x < W)
    at = y * W + x
    total = tl.load(x_ptr + at, mask=inside) + tl.load(y_ptr + at, mask=inside)
    tl.store(out_ptr + at, total, mask=inside)


def test_what_is_spelled_seldom_has_no_name() -> None:
    text = seldom.translate("*fp32:16, *fp32:16, *fp32:16, i32, i32, 8, 128").source
    assert "bool inside" not in text and "(tested where it is used)" in text


@triton.jit
def parts(x_ptr, out_ptr, H, W, T: tl.constexpr, BH: tl.constexpr, BW: tl.constexpr):
    """A mask within another; trips that stay a loop; a choice; a name that means another thing in the loop."""
    y = tl.program_id(1) * BH + tl.arange(0, BH)[:, None]
    x = tl.program_id(0) * BW + tl.arange(0, BW)[None, :]
    tall = (y > 0) & (y < H - 1)
    inside = tall & (x > 0) & (x < W - 1)
    at = x_ptr + y * W + x
    total = tl.zeros((BH, BW), tl.float32)
    for t in tl.static_range(T):
        total += tl.load(at + t % 2, mask=inside, other=0.0)
        total += tl.load(at - t % 2, mask=inside, other=0.0)
    total = tl.where(inside, total, 1.0)
    total = tl.where(inside, total * total, 2.0)
    tl.store(out_ptr + y * W + x, total, mask=(y < H) & (x < W))


def test_masks_in_masks_and_loops(run_everywhere: Any) -> None:
    x = RANDOM.integers(0, 9, (6, 40)).astype(np.float32)
    found = run_everywhere(parts, (2, 2), x, np.zeros_like(x), 6, 40, T=3, BH=4, BW=32, num_warps=1)[1]
    wanted = np.full_like(x, 2.0)
    inner = 4 * x[1:-1, 1:-1] + x[1:-1, 2:] + x[1:-1, :-2]
    wanted[1:-1, 1:-1] = inner * inner
    np.testing.assert_array_equal(found, wanted)
    text = parts.translate("*fp32:16, *fp32:16, i32, i32, 3, 4, 128").source
    assert text.count("y[r] > 0") == 1 and "inside[r] ?" in text
    assert "bool tall" not in text, "who reads the whole does not read its part"


@triton.jit
def trips(x_ptr, out_ptr, H, W, T: tl.constexpr, BH: tl.constexpr, BW: tl.constexpr):
    """One load in a loop whose trips have one text."""
    y = tl.program_id(1) * BH + tl.arange(0, BH)[:, None]
    x = tl.program_id(0) * BW + tl.arange(0, BW)[None, :]
    inside = (y < H) & (x < W)
    total = tl.zeros((BH, BW), tl.float32)
    for t in tl.static_range(T):
        total += tl.load(x_ptr + t * H * W + y * W + x, mask=inside, other=0.0)
    tl.store(out_ptr + y * W + x, total, mask=inside)


def test_the_trips_of_a_loop_spell_it_once() -> None:
    assert "bool inside" not in trips.translate("*fp32:16, *fp32:16, i32, i32, 9, 8, 128").source
