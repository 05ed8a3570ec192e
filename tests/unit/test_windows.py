"""Loads whose trips share elements: a window is loaded once, with the results, the bounds and the warnings of single loads."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
import tilewright as triton
import tilewright.language as tl

RANDOM = np.random.default_rng(0)


@triton.jit
def along_rows(x_ptr, out_ptr, W, START: tl.constexpr, STOP: tl.constexpr, STEP: tl.constexpr, BLOCK: tl.constexpr):
    """Neighbours in a row, which has ends; weights depend on the trip."""
    r = tl.program_id(0)
    c = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for d in tl.static_range(START, STOP, STEP):
        at = c + d
        total += tl.load(x_ptr + r * W + at, mask=(at >= 0) & (at < W), other=0).to(tl.float32) * (d + 9)
    tl.store(out_ptr + r * W + c, total, mask=c < W)


def rows_moved(x: np.ndarray, by: int) -> np.ndarray:
    """Element `c` of each row is element `c + by`, or 0 where there is none."""
    padded = np.pad(x, ((0, 0), (abs(by), abs(by))))
    return padded[:, abs(by) + by : abs(by) + by + x.shape[1]]


@pytest.mark.parametrize("trips", ((-1, 2, 1), (0, 4, 1), (3, -4, -1), (-4, 5, 2), (2, 3, 1), (-3, 0, 1)))
@pytest.mark.parametrize("dtype", (np.uint8, np.float16, np.float32, np.int64))
@pytest.mark.parametrize("width", (1000, 1024, 1))
def test_rows(run_everywhere: Any, trips: tuple[int, int, int], dtype: Any, width: int) -> None:
    x = RANDOM.integers(0, 9, (3, width)).astype(dtype)
    out = np.zeros((3, width), np.float32)
    found = run_everywhere(along_rows, (3, triton.cdiv(width, 512)), x, out, width, *trips, BLOCK=512)[1]
    np.testing.assert_array_equal(found, sum(rows_moved(x.astype(np.float32), d) * (d + 9) for d in range(*trips)))


def windows_of(text: str) -> list[str]:
    """The windows that a text declares: their names and sizes."""
    return re.findall(r"^ *(?:[\w ]+) (\w+_window(?:\[[^\]]*\])+);", text, re.MULTILINE)


def test_the_text_of_rows() -> None:
    """The middle comes by a vector where rows begin at multiples of one, the others one by one, under the same mask."""
    text = along_rows.translate("*u8:16, *fp32:16, i32:16, -1, 2, 1, 512").source
    assert windows_of(text) == ["x_window[ELEMS + 2]"]
    assert text.count("x_ptr[") == 1 and text.count("load_vec_if<VEC>(&x_window[1]") == 1
    assert "each element once: ELEMS neighbours, and 2 beside them." in text
    odd = along_rows.translate("*u8:16, *fp32:16, i32, -1, 2, 1, 512").source
    assert not windows_of(odd)  # neighbouring threads hold neighbouring elements: nothing of a run is shared


@triton.jit
def blurred(x_ptr, w_ptr, out_ptr, H, W, R: tl.constexpr, BH: tl.constexpr, BW: tl.constexpr):
    """A tile of a picture, filtered in both directions, by numbers that are added behind the whole address."""
    r = tl.program_id(0) * BH + tl.arange(0, BH)[:, None]
    c = tl.program_id(1) * BW + tl.arange(0, BW)[None, :]
    total = tl.zeros((BH, BW), tl.float32)
    for dr in tl.static_range(-R, R + 1):
        for dc in tl.static_range(-R, R + 1):
            inside = (r + dr >= 0) & (r + dr < H) & (c + dc >= 0) & (c + dc < W)
            x = tl.load(x_ptr + (r + dr) * W + c + dc, mask=inside, other=0.0)
            w = tl.load(w_ptr + (dr + R) * (2 * R + 1) + dc + R)
            total += tl.where(inside, x * w, 0.5)
    tl.store(out_ptr + r * W + c, total, mask=(r < H) & (c < W))


@pytest.mark.parametrize("shape", ((16, 64), (21, 80), (5, 33)))
@pytest.mark.parametrize("radius", (1, 2))
def test_pictures(run_everywhere: Any, shape: tuple[int, int], radius: int) -> None:
    x = RANDOM.integers(-9, 9, shape).astype(np.float32)
    w = RANDOM.integers(-9, 9, (2 * radius + 1, 2 * radius + 1)).astype(np.float32)
    grid = (triton.cdiv(shape[0], 8), triton.cdiv(shape[1], 64))
    found = run_everywhere(blurred, grid, x, w, np.zeros_like(x), *shape, R=radius, BH=8, BW=64)[2]
    padded, inside = np.pad(x, radius), np.pad(np.ones_like(x), radius)
    expected = np.zeros_like(x)
    for dr in range(2 * radius + 1):
        for dc in range(2 * radius + 1):
            part = slice(dr, dr + shape[0]), slice(dc, dc + shape[1])
            expected += np.where(inside[part] > 0, padded[part] * w[dr, dc], 0.5)
    np.testing.assert_array_equal(found, expected)
    text = blurred.translate(f"*fp32:16, *fp32:16, *fp32:16, i32:16, i32:16, {radius}, 8, 64").source
    assert windows_of(text) == [f"x_window[COLS + {2 * radius}]"]
    assert "for (int dr = -R; dr < R + 1; ++dr)" in text and text.count("tl.load(x_ptr") == 1


@triton.jit
def causal(x_ptr, w_ptr, out_ptr, L, D, WIDTH: tl.constexpr, BL: tl.constexpr, BD: tl.constexpr):
    """Rows that a thread holds one below the other, and an index that numbers are taken away from."""
    steps = tl.program_id(0) * BL + tl.arange(0, BL)
    d = tl.arange(0, BD)
    total = tl.zeros((BL, BD), tl.float32)
    for tap in tl.static_range(WIDTH):
        at = steps - (WIDTH - 1 - tap)
        mask = (at >= 0)[:, None] & (at < L)[:, None] & (d < D)[None, :]
        x = tl.load(x_ptr + at[:, None] * D + d[None, :], mask=mask, other=0.0)
        total += x * tl.load(w_ptr + tap * D + d, mask=d < D, other=0.0)[None, :]
    tl.store(out_ptr + steps[:, None] * D + d[None, :], total, mask=(steps < L)[:, None] & (d < D)[None, :])


@pytest.mark.parametrize("length", (1, 16, 37))
@pytest.mark.parametrize("depth", (128, 101))
def test_rows_below_each_other(run_everywhere: Any, length: int, depth: int) -> None:
    x = RANDOM.integers(-9, 9, (length, depth)).astype(np.float32)
    w = RANDOM.integers(-9, 9, (4, depth)).astype(np.float32)
    grid = (triton.cdiv(length, 16),)
    found = run_everywhere(causal, grid, x, w, np.zeros_like(x), length, depth, WIDTH=4, BL=16, BD=128)[2]
    padded = np.pad(x, ((3, 0), (0, 0)))
    np.testing.assert_array_equal(found, sum(padded[k : k + length] * w[k] for k in range(4)))


def test_the_text_of_rows_below_each_other() -> None:
    text = causal.translate("*fp32:16, *fp32:16, *fp32:16, i32, i32, 4, 16, 128").source
    assert windows_of(text) == ["x_window[BL + 3]"] and "x_window[r + tap]" in text


@triton.jit
def down(x_ptr, w_ptr, out_ptr, H, W, START: tl.constexpr, STOP: tl.constexpr, STEP: tl.constexpr, BH: tl.constexpr):
    """A loop of few trips that is none of tl.static_range, with rows by vectors."""
    y = tl.program_id(0) * BH + tl.arange(0, BH)
    x = tl.program_id(1) * 128 + tl.arange(0, 128)
    total = tl.zeros((BH, 128), tl.float32)
    for r in range(START, STOP, STEP):
        at = y + (r - 1)
        mask = (at[:, None] >= 0) & (at[:, None] < H) & (x[None, :] < W)
        value = tl.load(x_ptr + at[:, None] * W + x[None, :], mask=mask, other=2.0)
        total += value * tl.load(w_ptr + r + 9)
    tl.store(out_ptr + y[:, None] * W + x[None, :], total, mask=(y[:, None] < H) & (x[None, :] < W))


@pytest.mark.parametrize("trips", ((-2, 3, 1), (4, -4, -1), (0, 6, 2), (0, 1, 1), (0, 40, 1), (3, 3, 1)))
@pytest.mark.parametrize("shape", ((32, 128), (19, 144), (16, 77)))
def test_loops_of_few_trips(run_everywhere: Any, trips: tuple[int, int, int], shape: tuple[int, int]) -> None:
    x, w = RANDOM.integers(-9, 9, shape).astype(np.float32), RANDOM.integers(-9, 9, 64).astype(np.float32)
    grid = (triton.cdiv(shape[0], 16), triton.cdiv(shape[1], 128))
    found = run_everywhere(down, grid, x, w, np.zeros_like(x), *shape, *trips, BH=16)[2]
    padded = np.pad(x, ((64, 64), (0, 0)), constant_values=2)
    parts = (padded[63 + r : 63 + r + shape[0]] * w[r + 9] for r in range(*trips))
    np.testing.assert_array_equal(found, sum(parts, np.zeros_like(x)))


def test_the_text_of_loops_of_few_trips() -> None:
    text = down.translate("*fp32:16, *fp32:16, *fp32:16, i32:16, i32:16, -2, 3, 1, 16").source
    assert windows_of(text) == ["value_window[ROWS + 4][COLS]"]
    assert "load_vec_if<VEC>(value_window[" in text and "#pragma unroll\n    for (int r = START" in text
    assert "value_window[i + r + 2][c]" in text
    many = down.translate("*fp32:16, *fp32:16, *fp32:16, i32:16, i32:16, 0, 40, 1, 16").source
    assert not windows_of(many)


@triton.jit
def counted(x_ptr, out_ptr, H, W, STRIDE: tl.constexpr, BH: tl.constexpr):
    """Numbers that the counter makes, and that are the same in all trips."""
    y, x = tl.arange(0, BH), tl.arange(0, 128)
    total = tl.zeros((BH, 128), tl.float32)
    for r in range(1, 5):
        at = y + r
        mask = (at[:, None] < H) & (x[None, :] < W)
        total += tl.load(x_ptr + at[:, None] * W + (r * STRIDE + 1) + x[None, :], mask=mask, other=2.0)
    tl.store(out_ptr + y[:, None] * W + x[None, :], total, mask=(y[:, None] < H) & (x[None, :] < W))


def test_numbers_that_the_counter_makes(run_everywhere: Any) -> None:
    x = RANDOM.integers(-9, 9, (21, 80)).astype(np.float32)
    found = run_everywhere(counted, (1,), x, np.zeros((16, 79), np.float32), 20, 79, STRIDE=0, BH=16)[1]
    rows, columns = np.arange(16)[:, None], np.arange(79)
    parts = (np.where(rows + r < 20, x.ravel()[(rows + r) * 79 + 1 + columns], 2) for r in range(1, 5))
    np.testing.assert_array_equal(found, sum(parts))
    assert len(windows_of(counted.translate("*fp32:16, *fp32:16, i32, i32, 0, 16").source)) == 1


@triton.jit
def many_rows(x_ptr, y_ptr, out_ptr, W, BLOCK: tl.constexpr):
    """Two windows that a thread has no room for at once."""
    c = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for d in tl.static_range(-8, 8):
        at = c + d
        inside = (at >= 0) & (at < W)
        x = tl.load(x_ptr + at, mask=inside, other=0).to(tl.float32)
        total += x * tl.load(y_ptr + at, mask=inside, other=0).to(tl.float32)
    tl.store(out_ptr + c, total, mask=c < W)


def test_windows_of_a_loop_share_its_registers(run_everywhere: Any) -> None:
    x, y = RANDOM.integers(0, 9, (2, 2000), np.uint8)
    found = run_everywhere(many_rows, (1,), x, y, np.zeros(2000, np.float32), 2000, BLOCK=2048)[2]
    padded = np.pad(x.astype(np.float32) * y, 8)
    np.testing.assert_array_equal(found, sum(padded[8 + d : 2008 + d] for d in range(-8, 8)))
    assert windows_of(many_rows.translate("*u8:16, *u8:16, *fp32:16, i32:16, 2048").source) == [
        "x_window[VECS][VEC + 15]"
    ]


@triton.jit
def around(x_ptr, y_ptr, out_ptr, W, BLOCK: tl.constexpr, ROUND: tl.constexpr):
    """Indices that may go round, two windows in one loop, and a loop around it."""
    c = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.int32)
    for row in range(3):
        for d in tl.static_range(3):
            at = (c + d) % W if ROUND else c + d
            x = tl.load(x_ptr + row * W + at)
            y = tl.load(y_ptr + row * W + c + d)
            total += x.to(tl.int32) * y + d
    tl.store(out_ptr + c, total)


@pytest.mark.parametrize("round_", (False, True))
def test_two_windows(run_everywhere: Any, round_: bool) -> None:
    x, y = RANDOM.integers(0, 99, (2, 3 * 512 + 2), np.uint8)
    found = run_everywhere(around, (1,), x, y, np.zeros(512, np.int32), 512, BLOCK=512, ROUND=round_)[2]
    c, rows = np.arange(512), np.arange(3)[:, None] * 512
    parts = (x[rows + ((c + d) % 512 if round_ else c + d)] * y[rows + c + d].astype(np.int32) + d for d in range(3))
    np.testing.assert_array_equal(found, sum(part.sum(0) for part in parts))
    if not round_:
        assert len(windows_of(around.translate("*u8:16, *u8:16, *i32:16, i32:16, 512, False").source)) == 2


@triton.jit
def written_out(x_ptr, out_ptr, W, BLOCK: tl.constexpr):
    """Indices without names, in address and mask."""
    total = tl.zeros((BLOCK,), tl.float32)
    for d in tl.static_range(3):
        mask = tl.arange(0, BLOCK) + d < W
        total += tl.load(x_ptr + tl.arange(0, BLOCK) + d, mask=mask, other=5).to(tl.float32)
    tl.store(out_ptr + tl.arange(0, BLOCK), total)


def test_indices_without_names(run_everywhere: Any) -> None:
    x = RANDOM.integers(0, 99, 512, np.uint8)
    found = run_everywhere(written_out, (1,), x, np.zeros(512, np.float32), 500, BLOCK=512)[1]
    padded = np.concatenate([x[:500], np.full(14, 5)])
    np.testing.assert_array_equal(found, sum(padded[d : d + 512].astype(np.float32) for d in range(3)))
    assert len(windows_of(written_out.translate("*u8:16, *fp32:16, i32:16, 512").source)) == 1


@triton.jit
def beginning_at_zero(x_ptr, out_ptr, W, BLOCK: tl.constexpr):
    """The first trip's mask is the same in all of a vector, where rows are multiples of it; the next loads lie one further on."""
    c = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for d in range(0, 3):
        total += tl.load(x_ptr + c + d, mask=c + d < W, other=3)
        total += tl.load(x_ptr + c + d + 1, mask=c + d + 1 < W, other=2)
    tl.store(out_ptr + c, total, mask=c < W)


@pytest.mark.parametrize("width", (480, 475, 512))
def test_trips_from_zero_on(run_everywhere: Any, width: int) -> None:
    x = RANDOM.integers(0, 99, width, np.uint8)
    found = run_everywhere(beginning_at_zero, (1,), x, np.zeros(width, np.float32), width, BLOCK=512)[1]
    padded = [np.concatenate([x, np.full(5, other)]).astype(np.float32) for other in (3, 2)]
    parts = (padded[0][d : d + width] + padded[1][d + 1 : d + 1 + width] for d in range(3))
    np.testing.assert_array_equal(found, sum(parts))
    text = beginning_at_zero.translate("*u8:16, *fp32:16, i32:16, 512").source
    assert len(windows_of(text)) == 2 and "x_window[e + d]" in text


@triton.jit
def other_ways(x_ptr, out_ptr, W, BLOCK: tl.constexpr):
    """The counter in front, a pointer that holds the index already, and a pointer and an index that trips move on."""
    r = tl.program_id(0)
    c = tl.arange(0, BLOCK)
    row = x_ptr + r * W + c
    p = row
    at = c - 1
    total = tl.zeros((BLOCK,), tl.float32)
    for d in range(-1, 3):
        inside = (d + c >= 0) & (d + c < W)
        total += tl.load(x_ptr + r * W + (d + c), mask=inside, other=0).to(tl.float32)
        total += tl.load(row + d, mask=inside, other=0).to(tl.float32) * 2
        total += tl.load(p - 1, mask=inside, other=0).to(tl.float32) * 4
        p += 1
        total += tl.load(x_ptr + r * W + at, mask=(at >= 0) & (at < W), other=0).to(tl.float32) * 8
        at = 1 + at
    tl.store(out_ptr + r * W + c, total, mask=c < W)


@triton.jit
def other_ways_of_static_loops(x_ptr, out_ptr, W, BLOCK: tl.constexpr):
    """The same, in a loop whose trips are written out."""
    r = tl.program_id(0)
    c = tl.arange(0, BLOCK)
    row = x_ptr + r * W + c
    p = row
    at = c - 1
    total = tl.zeros((BLOCK,), tl.float32)
    for d in tl.static_range(-1, 3):
        inside = (d + c >= 0) & (d + c < W)
        total += tl.load(x_ptr + r * W + (d + c), mask=inside, other=0).to(tl.float32)
        total += tl.load(row + d, mask=inside, other=0).to(tl.float32) * 2
        total += tl.load(p - 1, mask=inside, other=0).to(tl.float32) * 4
        p += 1
        total += tl.load(x_ptr + r * W + at, mask=(at >= 0) & (at < W), other=0).to(tl.float32) * 8
        at = 1 + at
    tl.store(out_ptr + r * W + c, total, mask=c < W)


@pytest.mark.parametrize("kernel", (other_ways, other_ways_of_static_loops))
@pytest.mark.parametrize("width", (512, 400, 333))
def test_other_ways_to_move(run_everywhere: Any, kernel: Any, width: int) -> None:
    x = RANDOM.integers(0, 99, (3, width), np.uint8)
    found = run_everywhere(kernel, (3,), x, np.zeros((3, width), np.float32), width, BLOCK=512)[1]
    np.testing.assert_array_equal(found, 15 * sum(rows_moved(x.astype(np.float32), d) for d in range(-1, 3)))
    text = kernel.translate("*u8:16, *fp32:16, i32:16, 512").source
    assert len(windows_of(text)) == 4 and "for (int d = -1; d < 3; ++d)" in text


@triton.jit
def in_steps(x_ptr, out_ptr, BLOCK: tl.constexpr, STEP: tl.constexpr, WAY: tl.constexpr):
    """Distances that go with the counter, faster or slower than it does, and those that do not."""
    c = tl.arange(0, BLOCK)
    p = x_ptr + 8 + c
    total = tl.zeros((BLOCK,), tl.float32)
    for d in tl.static_range(0, 4 * STEP, STEP):
        if WAY == "half":
            total += tl.load(x_ptr + c + d // 2 + 3)
        elif WAY == "back":
            total += tl.load(x_ptr + (9 + c - 3 - d))
        elif WAY == "slow":
            total += tl.load(p)
            p -= 1
        elif WAY == "fast":
            total += tl.load(p)
            p += 2
        else:
            total += tl.load(x_ptr + c + d * d // 8)
    tl.store(out_ptr + c, total)


STEPS: dict[str, tuple[int, Any, str]] = {
    "half": (2, lambda d: d // 2 + 3, "d / 2"),
    "back": (2, lambda d: 6 - d, "6 - d"),
    "slow": (2, lambda d: 8 - d // 2, "3 - d / 2"),
    "fast": (1, lambda d: 8 + 2 * d, "d * 2"),
    "squares": (2, lambda d: d * d // 8, "d * d / 8"),
}


@pytest.mark.parametrize("way", STEPS)
def test_steps_of_windows(run_everywhere: Any, way: str) -> None:
    step, first, start = STEPS[way]
    x = RANDOM.integers(0, 99, 540, np.uint8)
    found = run_everywhere(in_steps, (1,), x, np.zeros(512, np.float32), BLOCK=512, STEP=step, WAY=way)[1]
    wanted = sum(x[first(d) : first(d) + 512].astype(np.float32) for d in range(0, 4 * step, step))
    np.testing.assert_array_equal(found, wanted)
    text = in_steps.translate(f"*u8:16, *fp32:16, 512, {step}, '{way}'").source
    assert len(windows_of(text)) == 1 and f"_window[e + {start}]" in text
    assert way != "back" or "c_near = c + place;" in text  # 9 - 3 - 6 is nothing


@triton.jit
def no_window(x_ptr, out_ptr, BLOCK: tl.constexpr, WAY: tl.constexpr):
    """Trips that write what the next one reads, that lie far apart, that share nothing, or whose masks go other ways."""
    c = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for d in tl.static_range(3):
        if WAY == "stores":
            total += tl.load(x_ptr + c + d)
            tl.store(x_ptr + 4 * BLOCK + c, total)
        elif WAY == "far":
            total += tl.load(x_ptr + c + d * BLOCK)
        elif WAY == "strides":
            total += tl.load(x_ptr + c * (d + 1))
        elif WAY == "masks":
            total += tl.load(x_ptr + c + d, mask=c - d >= 0, other=0.0)
        else:
            total += tl.load(x_ptr + c + d, mask=c < BLOCK - 3, other=0.0)
    tl.store(out_ptr + c, total)


@pytest.mark.parametrize("way", ("stores", "far", "strides", "masks", "own masks"))
def test_loads_without_a_window(run_everywhere: Any, way: str) -> None:
    assert not windows_of(no_window.translate(f"*fp32:16, *fp32:16, 512, '{way}'").source)
    x = RANDOM.integers(-9, 9, 512 * 5 + 3).astype(np.float32)
    found = run_everywhere(no_window, (1,), x, np.zeros(512, np.float32), BLOCK=512, WAY=way)[1]
    c = np.arange(512)
    wanted = {
        "far": lambda d: x[c + d * 512],
        "strides": lambda d: x[c * (d + 1)],
        "masks": lambda d: np.where(c - d >= 0, x[c + d], 0),
        "own masks": lambda d: np.where(c < 509, x[c + d], 0),
    }
    np.testing.assert_array_equal(found, sum(wanted.get(way, lambda d: x[c + d])(d) for d in range(3)))


def test_nothing_else_is_touched(monkeypatch: pytest.MonkeyPatch) -> None:
    """The checks of the CPU run see no access outside of the arrays, nor one that is not aligned."""
    monkeypatch.setenv("TILEWRIGHT_MODE", "check")
    for width in (48, 47, 5):
        x, out = RANDOM.integers(0, 9, (2, width)).astype(np.uint8), np.zeros((2, width), np.float32)
        along_rows[(2, 1)](x, out, width, -2, 3, 1, BLOCK=512)
        np.testing.assert_array_equal(out, sum(rows_moved(x.astype(np.float32), d) * (d + 9) for d in range(-2, 3)))


@triton.jit
def clamped(x_ptr, w_ptr, out_ptr, W, LIMIT, BLOCK: tl.constexpr):
    """Indices that stay within a row; what lies behind a limit counts as nothing."""
    c = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for d in tl.static_range(-2, 3):
        at = tl.minimum(tl.maximum(c + d, 0), W - 1)
        total += tl.load(x_ptr + at, mask=at < LIMIT, other=0.0)
        total += tl.load(w_ptr + at)
    tl.store(out_ptr + c, total, mask=c < W)


def test_an_index_that_is_clamped_has_a_name(run_everywhere: Any) -> None:
    """Where address and mask both have it; windows of two loads call their indices alike."""
    x, w = RANDOM.integers(0, 9, (2, 500)).astype(np.float32)
    found = run_everywhere(clamped, (1,), x, w, np.zeros(500, np.float32), 500, 497, BLOCK=512)[2]
    at = np.clip(np.arange(500) + np.arange(-2, 3)[:, None], 0, 499)
    np.testing.assert_array_equal(found, (np.where(at < 497, x[at], 0) + w[at]).sum(0))
    text = clamped.translate("*fp32:16, *fp32:16, *fp32:16, i32, i32, 512").source
    assert "const int c_read = min(max(c_near, 0), W - 1);" in text and "c_read < LIMIT ? x_ptr[c_read]" in text
    assert "= w_ptr[min(max(c_near, 0), W - 1)];" in text and "c_near_second" not in text
