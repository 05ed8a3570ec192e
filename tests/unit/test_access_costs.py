"""How many neighbours a thread has is what all accesses of a tile cost together: rows that are not aligned count as well."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
import tilewright as triton
import tilewright.language as tl
from tilewright.analysis.axis_info import AxisInfo
from tilewright.runtime.building import nvrtc
from tilewright.schedule.tiles.access_costs import access_cost, address_cost
from tilewright.schedule.tiles.layout import blocked
from tilewright.schedule.tiles.layout_problem import Addresses


@triton.jit
def normed(x_ptr, w_ptr, b_ptr, out_ptr, stride, N, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    mask = cols < N
    x = tl.load(x_ptr + row * stride + cols, mask=mask, other=0.0).to(tl.float32)
    mean = tl.sum(x, axis=0) / N
    centred = tl.where(mask, x - mean, 0.0)
    scale = 1 / tl.sqrt(tl.sum(centred * centred, axis=0) / N + eps)
    w = tl.load(w_ptr + cols, mask=mask)
    b = tl.load(b_ptr + cols, mask=mask)
    tl.store(out_ptr + row * stride + cols, centred * scale * w + b, mask=mask)


def one_row(itemsize: int, divisibility: int) -> Addresses:
    """An access to 4096 neighbours, of which the first lies at a multiple of so many bytes."""
    info = AxisInfo((4096,), (divisibility,), (1,))
    return Addresses(info, itemsize, {0: 1}, True, 16 // itemsize, False)


def test_neighbours_share_requests_and_lines() -> None:
    by_fours, single = blocked((4096,), 128, 0, 4), blocked((4096,), 128, 0, 1)
    aligned, shifted = one_row(4, 16), one_row(4, 4)
    assert access_cost(aligned, by_fours) < access_cost(aligned, single)
    assert access_cost(shifted, single) < access_cost(shifted, by_fours)
    # 32 elements of a thread: by four, 8 requests of 4 lines; one by one, 32 of a line, or of 4 lines where they lie apart.
    assert (access_cost(aligned, by_fours), access_cost(shifted, single), access_cost(shifted, by_fours)) == (
        40,
        64,
        160,
    )


@pytest.mark.parametrize(("dtype", "aligned", "shifted"), [("fp32", 4, 1), ("bf16", 8, 2)])
def test_rows_that_are_not_aligned_are_read_by_neighbours(dtype: str, aligned: int, shifted: int) -> None:
    for divisor, expected in ((":16", aligned), ("", shifted)):
        pointers = ", ".join([f"*{dtype}:16"] * 4)
        source = normed.translate(f"{pointers}, i32{divisor}, i32{divisor}, fp32, 4096").source
        found = re.search(r"constexpr int VEC = (\d+);", source)
        assert int(found[1] if found else 1) == expected


@triton.jit
def aligned_rows(u_ptr, out_ptr, W, BLOCK: tl.constexpr):
    x = tl.arange(0, BLOCK)
    here = u_ptr + (tl.program_id(0) + 1) * W + x
    total = tl.load(here - W) + tl.load(here) + tl.load(here + W) + tl.load(here + 1)
    tl.store(out_ptr + tl.program_id(0) * W + x, total)


def test_a_single_shifted_load_among_aligned_ones_leaves_vectors(run_everywhere: Any) -> None:
    source = aligned_rows.translate("*fp32:16, *fp32:16, i32:16, 512").source
    assert len(re.findall(r"load_vec<VEC>\(", source)) == 3  # one of them a row above, by a negative offset
    assert "- W" in source and "+ -W" not in source
    u = np.arange(5 * 80, dtype=np.float32).reshape(5, 80)
    out = run_everywhere(aligned_rows, (3,), u, np.zeros((3, 80), np.float32), 80, BLOCK=64)[1]
    expected = u[:3, :64] + u[1:4, :64] + u[2:, :64] + u[1:4, 1:65]
    np.testing.assert_array_equal(out[:, :64], expected)


@triton.jit
def near(x_ptr, out_ptr, W, R: tl.constexpr, C: tl.constexpr):
    r = 1 + tl.arange(0, R)[:, None]
    c = tl.program_id(0) * C + tl.arange(0, C)[None, :]
    total = tl.load(x_ptr + r * W + c)
    for dr in tl.static_range(-1, 2):
        for dc in tl.static_range(-1, 2, 2):
            total += tl.load(x_ptr + (r + dr) * W + c + dc, mask=(c + dc >= 0) & (c + dc < W), other=0.0)
    tl.store(out_ptr + r * W + c, total)


def test_further_rows_cost_addresses(run_everywhere: Any) -> None:
    """Runs of one element would be best for the shifted accesses, but take four times as many rows of a thread."""
    by_fours, single = blocked((16, 64), 128, 1, 4), blocked((16, 64), 128, 1, 1)
    access = Addresses(AxisInfo((1, 64), (1, 4), (1, 1)), 4, {1: 1}, True, 4, False)
    assert (address_cost(access, by_fours, 1), address_cost(access, single, 1)) == (16, 112)
    known = Addresses(access.info, 4, {0: 512, 1: 1}, True, 4, False)
    assert address_cost(known, single, 1) == 0  # one address, and numbers from it
    source = near.translate("*fp32:16, *fp32:16, i32:16, 16, 64").source
    assert "columns: 16 threads x 4 consecutive" in source
    x = np.random.default_rng(1).standard_normal((18, 128)).astype(np.float32)
    out = run_everywhere(near, (2,), x, np.zeros_like(x), 128, R=16, C=64, tolerance=1e-5)[1]
    wide = np.pad(x, ((0, 0), (1, 1)))
    expected = x[1:17] + sum(wide[1 + dr : 17 + dr, 1 + dc : 129 + dc] for dr in (-1, 0, 1) for dc in (-1, 1))
    np.testing.assert_allclose(out[1:17], expected, rtol=1e-4, atol=1e-4)


def test_rows_of_any_length_are_right(run_everywhere: Any) -> None:
    rng = np.random.default_rng(3)
    x = rng.standard_normal((3, 1001)).astype(np.float32)
    w, b = rng.standard_normal((2, 1001)).astype(np.float32)
    out = run_everywhere(normed, (3,), x, w, b, np.full_like(x, np.nan), 1001, 1001, 1e-5, BLOCK=1024, tolerance=1e-4)[
        3
    ]
    centred = x.astype(np.float64) - x.mean(1, keepdims=True, dtype=np.float64)
    expected = centred / np.sqrt((centred**2).mean(1, keepdims=True) + 1e-5) * w + b
    np.testing.assert_allclose(out, expected, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("warps", [8, 16])
def test_no_room_is_made_for_a_block_where_loads_wait_behind_branches(warps: int) -> None:
    """All elements of w and b are loaded at once there, beside those of x, and two blocks' registers hold a third of them."""
    artifact = normed.translate("*fp32:16, *fp32:16, *fp32:16, *fp32:16, i32, i32, fp32, 16384", num_warps=warps)
    assert "MIN_BLOCKS" not in artifact.source
    if nvrtc.is_available():
        assert nvrtc.compile_text(artifact).spill_bytes == 0  # with two blocks some 600 and 1000


@triton.jit
def every_second(q_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    q = tl.load(q_ptr + i, mask=i < n, other=0)
    tl.store(out_ptr + 2 * i, q.to(tl.float32), mask=i < n)


@pytest.mark.parametrize(("bytes_of_q", "expected"), [("u8", 1), ("fp32", 1)])
def test_elements_that_lie_a_few_apart_are_stored_by_neighbours(bytes_of_q: str, expected: int) -> None:
    """With eight bytes to a thread each of its stores touched 32 lines."""
    source = every_second.translate(f"*{bytes_of_q}:16, *fp32:16, i32:16, 1024").source
    found = re.search(r"constexpr int VEC = (\d+);", source)
    assert int(found[1] if found else 1) == expected


@triton.jit
def gray(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    red = tl.load(x_ptr + 3 * i, mask=i < n, other=0).to(tl.float32)
    green = tl.load(x_ptr + 3 * i + 1, mask=i < n, other=0).to(tl.float32)
    tl.store(out_ptr + i, (red + green).to(tl.float16), mask=i < n)


def test_bytes_that_a_sector_holds_anyway_keep_their_runs() -> None:
    """Of a picture's bytes one thread's run lies in one sector: its result is stored by whole vectors."""
    assert "constexpr int VEC = 8;" in gray.translate("*u8:16, *fp16:16, i32:16, 1024").source
