"""Loads whose masks have parts in common: all parts are computed before any decides."""

from __future__ import annotations

from typing import Any

import numpy as np
import tilewright as triton
import tilewright.language as tl
from tilewright.artifact import Options
from tilewright.pipeline import translate_stages
from tilewright.runtime.arguments.signature import parse_signature
from tilewright.schedule.targets import find_target


@triton.jit
def stencil(u_ptr, out_ptr, H, W, BH: tl.constexpr, BW: tl.constexpr):
    y = tl.program_id(0) * BH + tl.arange(0, BH)[:, None]
    x = tl.program_id(1) * BW + tl.arange(0, BW)[None, :]
    inside = (y < H) & (x < W)
    above = tl.load(u_ptr + y * W + x - W, mask=inside & (y > 0), other=0.0)
    left = tl.load(u_ptr + y * W + x - 1, mask=inside & (x > 0), other=0.0)
    tl.store(out_ptr + y * W + x, above + left, mask=inside)


@triton.jit
def window(u_ptr, out_ptr, H, W, BH: tl.constexpr, BW: tl.constexpr):
    y = tl.program_id(0) * BH + tl.arange(0, BH)[:, None]
    x = tl.program_id(1) * BW + tl.arange(0, BW)[None, :]
    total = tl.zeros((BH, BW), tl.float32)
    for dx in tl.static_range(-1, 2):
        inside = (y < H) & (x + dx >= 0) & (x + dx < W)
        total += tl.load(u_ptr + y * W + x + dx, mask=inside, other=0.0)
    tl.store(out_ptr + y * W + x, total, mask=(y < H) & (x < W))


@triton.jit
def alone(u_ptr, out_ptr, H, W, BH: tl.constexpr, BW: tl.constexpr):
    y = tl.program_id(0) * BH + tl.arange(0, BH)[:, None]
    x = tl.program_id(1) * BW + tl.arange(0, BW)[None, :]
    inside = (y < H) & (x < W)
    tl.store(out_ptr + y * W + x, tl.load(u_ptr + y * W + x, mask=inside, other=0.0), mask=inside)


def text(kernel: Any) -> str:
    arguments = parse_signature(kernel, "*fp32:16, *fp32:16, i32, i32, 8, 32")
    return translate_stages(kernel, arguments, Options(num_warps=4), find_target("sm_90a")).artifact.source


def test_no_part_of_a_common_mask_is_a_branch(run_everywhere: Any) -> None:
    u, out = np.arange(13 * 37, dtype=np.float32).reshape(13, 37), np.full((13, 37), np.nan, np.float32)
    *_, found = run_everywhere(stencil, (2, 2), u, out, 13, 37, BH=8, BW=32)
    padded = np.pad(u, ((1, 0), (1, 0)))
    np.testing.assert_array_equal(found, padded[:-1, 1:] + padded[1:, :-1])
    source = text(stencil)
    assert "< H) & (x < W) & (" in source and "> 0 ?" not in source
    assert "if (y" in source and "&& x < W)" in source  # the store is alone


def test_trips_of_a_static_loop_are_several_loads(run_everywhere: Any) -> None:
    u, out = np.arange(13 * 37, dtype=np.float32).reshape(13, 37), np.full((13, 37), np.nan, np.float32)
    *_, found = run_everywhere(window, (2, 2), u, out, 13, 37, BH=8, BW=32)
    padded = np.pad(u, ((0, 0), (1, 1)))
    np.testing.assert_array_equal(found, padded[:, :-2] + padded[:, 1:-1] + padded[:, 2:])
    assert "< H) & (x + dx >= 0) & (x + dx < W)" in text(window)


def test_one_load_may_branch() -> None:
    assert "< H && x < W ?" in text(alone)
