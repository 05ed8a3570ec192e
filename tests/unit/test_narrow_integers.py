"""Tiles of 64-bit integers that fit in 32 bits are computed in 32, with the same values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tilewright as triton
import tilewright.language as tl

EDGES = np.array(
    [0, 1, -1, 5, 99, 100, 101, -(2**31), 2**31 - 1, -(2**31) + 1, 2**31 - 2, 7, 2**30, -(2**30), 64, 31], np.int32
)
WIDE = np.array(
    [0, -1, 2**31, -(2**31) - 1, 2**62, -(2**63), 2**63 - 1, 77, 100, 99, 2**32, 2**33 + 5, 3, -9, 1, 2], np.int64
)


@triton.jit
def clamped(x_ptr, table_ptr, out_ptr, BLOCK: tl.constexpr):
    # As torch resizes a picture: places in 64 bits, clamped to its sides.
    i = tl.arange(0, BLOCK)
    place = tl.load(x_ptr + i) - tl.full([1], 1, tl.int64)
    above = tl.where(place > 0, place, 0)
    row = tl.where(above < 99, above, 99)
    column = tl.where(row >= 50, row - 50, row)
    tl.store(out_ptr + i, tl.load(table_ptr + (column + 100 * row)) + 1000000 * row)


def test_clamped_places(run_everywhere: Any) -> None:
    table = np.arange(10000, dtype=np.int64)
    _, _, out = run_everywhere(clamped, (1,), EDGES, table, np.zeros(16, np.int64), BLOCK=16)
    row = np.clip(EDGES.astype(np.int64) - 1, 0, 99)
    column = np.where(row >= 50, row - 50, row)
    np.testing.assert_array_equal(out, column + 100 * row + 1000000 * row)


def test_clamped_places_in_the_text() -> None:
    text = clamped.translate("*i32:16, *i64:16, *i64:16, 1024").source
    assert "long long place[" in text  # of any 32-bit number, one less may need more
    assert all(f"int {name}[" in text and f"long long {name}[" not in text for name in ("above", "row", "column"))
    assert "table_ptr[column[e] + 100 * row[e]]" in text and "1000000LL * row[e]" in text
    assert text.count("(fits in 32 bits)") == 3


@triton.jit
def chosen(x_ptr, out_ptr, BLOCK: tl.constexpr, WAY: tl.constexpr, LIMIT: tl.constexpr):
    # Every way to write a maximum or a minimum, from both sides.
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i)
    if WAY == 0:
        y = tl.where(x > LIMIT, LIMIT, x)
    elif WAY == 1:
        y = tl.where(x >= LIMIT, x, LIMIT)
    elif WAY == 2:
        y = tl.where(LIMIT < x, x, LIMIT)
    elif WAY == 3:
        y = tl.where(LIMIT <= x, LIMIT, x)
    elif WAY == 4:
        y = tl.where(x < LIMIT, x, -x)  # bounds one way alone
    else:
        y = tl.minimum(tl.maximum(x, -LIMIT), LIMIT)
    tl.store(out_ptr + i, y)
    tl.store(out_ptr + BLOCK + i, tl.minimum(tl.maximum(y, -LIMIT), LIMIT) * 2 + 1)
    tl.store(out_ptr + 2 * BLOCK + i, (y < LIMIT).to(tl.int64) + (y <= 2147483647).to(tl.int64))


@pytest.mark.parametrize("limit", [0, 99, 2**30, 2**31 - 1, 2**31, 2**40])
@pytest.mark.parametrize("way", range(6))
def test_choices(way: int, limit: int, run_everywhere: Any) -> None:
    _, out = run_everywhere(chosen, (1,), WIDE, np.zeros((3, 16), np.int64), BLOCK=16, WAY=way, LIMIT=limit)
    least = np.maximum(WIDE, limit)
    with np.errstate(over="ignore"):
        below = np.where(WIDE < limit, WIDE, -WIDE)
    ways = [np.minimum(WIDE, limit), least, least, np.minimum(WIDE, limit), below, np.clip(WIDE, -limit, limit)]
    np.testing.assert_array_equal(out[0], ways[way])
    np.testing.assert_array_equal(out[1], np.clip(ways[way], -limit, limit) * 2 + 1)
    np.testing.assert_array_equal(out[2], (ways[way] < limit).astype(int) + (ways[way] <= 2**31 - 1))


@triton.jit
def asked_before(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    # What was compared is not what is chosen: the name has another value since.
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i)
    for _ in range(n):
        small = x < 100
        x = x * 65536 * 65536 + 5
        below = tl.where(small, x, 100)
        between = tl.where(below > 0, below, 0)
        tl.store(out_ptr + i, between)


def test_a_name_that_has_another_value_since(run_everywhere: Any) -> None:
    x = np.arange(-120, 136, 1, dtype=np.int64)
    _, out = run_everywhere(asked_before, (1,), x, np.zeros(256, np.int64), 2, BLOCK=256)
    np.testing.assert_array_equal(out, np.where(x * 2**32 + 5 < 100, 5 * 2**32 + 5, 100))


@triton.jit
def bits(x_ptr, y_ptr, out_ptr, BLOCK: tl.constexpr):
    # What fits before does not behind it, and the other way round.
    i = tl.arange(0, BLOCK)
    x, y = tl.load(x_ptr + i), tl.load(y_ptr + i).to(tl.int64)
    low = x & 0x7FFFFFFF
    small = x & 63
    tl.store(out_ptr + i, low * 2 - low)
    tl.store(out_ptr + BLOCK + i, (low >> 40) + (low >> small))
    tl.store(out_ptr + 2 * BLOCK + i, (small - 64) * (small + 33554432))
    tl.store(out_ptr + 3 * BLOCK + i, (y * 2) // 2 + (-y) % 7 + (y ^ small))
    tl.store(out_ptr + 4 * BLOCK + i, tl.abs(y) + (small * -(1 << 40)) // (1 << 38))


def test_bits(run_everywhere: Any) -> None:
    _, _, out = run_everywhere(bits, (1,), WIDE, EDGES, np.zeros((5, 16), np.int64), BLOCK=16)
    y, low, small = EDGES.astype(np.int64), WIDE & 0x7FFFFFFF, WIDE & 63
    np.testing.assert_array_equal(out[0], low)
    np.testing.assert_array_equal(out[1], (low >> 40) + (low >> small))
    np.testing.assert_array_equal(out[2], (small - 64) * (small + 33554432))
    np.testing.assert_array_equal(out[3], y + np.fmod(-y, 7) + (y ^ small))
    np.testing.assert_array_equal(out[4], np.abs(y) - small * 4)


@triton.jit
def within_bounds(x_ptr, out_ptr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    first, last = tl.full([1], 100, tl.int64), tl.full([1], 3000, tl.int64)
    inside = (i >= first) & (i < last)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=inside, other=0.0))


def test_comparisons_with_numbers(run_everywhere: Any) -> None:
    text = within_bounds.translate("*fp32:16, *fp32:16, 1024").source
    assert ">= 100 " in text and "< 3000" in text and "long long" not in text
    x = np.random.default_rng(5).standard_normal(4096).astype(np.float32)
    _, out = run_everywhere(within_bounds, (4,), x, np.ones(4096, np.float32), BLOCK=1024)
    places = np.arange(4096)
    np.testing.assert_array_equal(out, np.where((places >= 100) & (places < 3000), x, 0))


@triton.jit
def wrapped_place(place, side):
    return tl.where(place < 0, place + side, place)


@triton.jit
def in_a_function(x_ptr, out_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    row = tl.load(x_ptr + i).to(tl.int64) % 100
    tl.store(out_ptr + i, wrapped_place(row, 50))


def test_what_is_passed_to_a_function_has_its_width(run_everywhere: Any) -> None:
    _, out = run_everywhere(in_a_function, (1,), EDGES, np.zeros(16, np.int64), BLOCK=16)
    row = np.fmod(EDGES.astype(np.int64), 100)
    np.testing.assert_array_equal(out, np.where(row < 0, row + 50, row))
    assert "wrapped_place(static_cast<long long>(row" in in_a_function.translate("*i32:16, *i64:16, 1024").source


@triton.jit
def heads(x_ptr, out_ptr, H: tl.constexpr, K: tl.constexpr):
    head = tl.program_id(0).to(tl.int64) % H
    places = head * K + tl.arange(0, K)
    tl.store(out_ptr + places, tl.load(x_ptr + places))


def test_numbers_keep_their_names() -> None:
    text = heads.translate("*fp32:16, *fp32:16, 8, 128").source
    assert "const int places = head * K + tid;" in text


def test_divisors_need_no_cast_to_64_bits() -> None:
    text = heads.translate("*fp32:16, *fp32:16, 8, 128").source
    assert "const int head = program_x % H;" in text


@triton.jit
def planes(x_ptr, out_ptr, C, H, W, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    place = x_ptr + (tl.program_id(0) * C + tl.program_id(1)) * H * W + i
    tl.store(out_ptr + (tl.program_id(0) * C + tl.program_id(1)) * BLOCK + i, tl.load(place))


def test_a_product_that_begins_with_64_bits_has_as_many(run_everywhere: Any) -> None:
    x = np.arange(2 * 3 * 20, dtype=np.float32)
    out = run_everywhere(planes, (2, 3), x, np.zeros(96, np.float32), 3, 4, 5, BLOCK=16)[1]
    np.testing.assert_array_equal(out.reshape(6, 16), x.reshape(6, 20)[:, :16])
    source = planes.translate("*fp32:16, *fp32:16, i32, i32, i32, 16").source
    assert "(static_cast<long long>(program_x) * C + program_y) * H * W" in source


@triton.jit
def tiles_of_a_batch(x_ptr, out_ptr, T, D: tl.constexpr, ROWS: tl.constexpr):
    # As kernels of long sequences have it: everything from 64-bit program ids, so that addresses cannot overflow.
    block, batch = tl.program_id(1).to(tl.int64), tl.program_id(2).to(tl.int64)
    head = batch % 4
    start = (batch // 4) * T
    rows = block * ROWS + tl.arange(0, ROWS)
    d = tl.arange(0, D)
    total = tl.zeros([ROWS, D], tl.float32)
    for first in range(0, min((block + 1) * ROWS, T), ROWS):
        others = first + tl.arange(0, ROWS)
        x = tl.load(x_ptr + ((start + others) * 4 + head)[:, None] * D + d[None, :], mask=others[:, None] < T, other=0)
        total += tl.where((rows[:, None] >= others[:, None]), x, 0)
    for last in range(block * ROWS, -ROWS, -ROWS):
        total += last
    tl.store(out_ptr + ((start + rows) * 4 + head)[:, None] * D + d[None, :], total, mask=rows[:, None] < T)


@pytest.mark.parametrize("length", [1, 7, 16, 40])
def test_scalars_and_loops_that_fit(length: int, run_everywhere: Any) -> None:
    x = np.random.default_rng(length).integers(-9, 9, (2, length, 4, 8)).astype(np.float32)
    blocks = -(-length // 16)
    got = run_everywhere(tiles_of_a_batch, (1, blocks, 8), x, np.zeros_like(x), length, D=8, ROWS=16)[1]
    expected = np.zeros_like(x)
    for row in range(length):
        first = row // 16 * 16
        for other in range(row % 16, first + 1 + row % 16, 16):
            expected[:, row] += x[:, other]
        expected[:, row] += sum(range(first, -16, -16))
    np.testing.assert_array_equal(got, expected)


def test_scalars_and_loops_that_fit_in_the_text() -> None:
    source = tiles_of_a_batch.translate("*fp32:16, *fp32:16, i32, 8, 16").source
    assert "const int block = blockIdx.y;" in source
    assert "for (int first = 0; first < min((block + 1) * ROWS, T); first += ROWS) {" in source
    assert "for (int last = block * ROWS; last > -ROWS; last -= ROWS) {" in source
    assert "const int others = first + row;" in source and "static_cast<float>(last)" in source
    assert "const long long start = " in source  # of any T, which no number of programs bounds


@triton.jit
def blocks_across(out_ptr, BLOCK: tl.constexpr):
    # There may be 2**31 - 1 programs along the first axis: what is made of their number needs 64 bits.
    start = tl.program_id(0).to(tl.int64) * BLOCK
    tl.store(out_ptr + start + tl.arange(0, BLOCK), start + tl.arange(0, BLOCK))


def test_what_does_not_fit_stays() -> None:
    source = blocks_across.translate("*i64:16, 1024").source
    assert "const long long start = " in source


@triton.jit
def counts_on(out_ptr, first, stop):
    # The number that a loop goes on to behind its last trip must fit, too.
    for i in range(first.to(tl.int64), min(stop, 2147483647).to(tl.int64), 1000):
        tl.store(out_ptr, i)


def test_what_a_loop_adds_behind_its_last_trip_counts(run_everywhere: Any) -> None:
    assert "for (long long i = " in counts_on.translate("*i64:16, i32, i32").source
    (out,) = run_everywhere(counts_on, (1,), np.zeros(1, np.int64), 2**31 - 2500, 2**31 - 1)
    assert out[0] == 2**31 - 500


@triton.jit
def sought(x_ptr, target_ptr, out_ptr, n, WAY: tl.constexpr, BLOCK: tl.constexpr):
    # Which of the columns a loaded number is, whatever its size.
    row = tl.program_id(0)
    target = tl.load(target_ptr + row)
    for first in range(0, n, BLOCK):
        offs = first + tl.arange(0, BLOCK)
        if WAY == "is":
            found = offs == target
        elif WAY == "is not":
            found = target != offs
        elif WAY == "before":
            found = offs < target
        else:
            found = offs - 9 == target
        x = tl.load(x_ptr + row * n + offs, mask=offs < n, other=0)
        tl.store(out_ptr + row * n + offs, tl.where(found, x - 1, x), mask=offs < n)


@pytest.mark.parametrize("way", ["is", "is not", "before", "nine further"])
def test_a_number_of_any_size_among_indices(way: str, run_everywhere: Any) -> None:
    targets = np.array([*WIDE, 2**32 + 5, -(2**32) + 7, 2**31 - 1, -1, 19], np.int64)
    columns = np.arange(20)
    x = np.arange(20 * len(targets), dtype=np.int32).reshape(-1, 20)
    _, _, out = run_everywhere(sought, (len(targets),), x, targets, np.zeros_like(x), 20, WAY=way, BLOCK=16)
    found = {
        "is": columns == targets[:, None], "is not": columns != targets[:, None], "before": columns < targets[:, None],
        "nine further": columns - 9 == targets[:, None],
    }[way]  # fmt: skip
    np.testing.assert_array_equal(out, x - found)


def test_a_number_of_any_size_is_compared_in_32_bits() -> None:
    texts = {
        way: sought.translate(f"*i32:16, *i64:16, *i32:16, i32, '{way}', 1024").source
        for way in ("is", "is not", "before", "nine further")
    }
    once = "const int target_or_none = target == static_cast<int>(target) ? static_cast<int>(target) : -1;"
    assert all(texts[way].count(once) == 1 for way in ("is", "is not"))
    assert "offs[e] == target_or_none" in texts["is"] and "offs[e] != target_or_none" in texts["is not"]
    assert all("or_none" not in texts[way] for way in ("before", "nine further"))  # the latter may be -1 as well


@triton.jit
def bits_of_narrow(x_ptr, u_ptr, f_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    least = tl.minimum(tl.full([BLOCK], 1, tl.int64), tl.load(x_ptr + i))
    tl.store(u_ptr + i, least.to(tl.uint64, bitcast=True))
    tl.store(f_ptr + i, least.to(tl.float64, bitcast=True))


@pytest.mark.parametrize("dtype", [np.int32, np.uint32])
def test_bits_of_what_fits_are_those_of_64(dtype: Any, run_everywhere: Any) -> None:
    x = EDGES.astype(dtype)
    _, bits, numbers = run_everywhere(
        bits_of_narrow, (1,), x, np.zeros(16, np.uint64), np.zeros(16, np.float64), BLOCK=16
    )
    expected = np.minimum(x.astype(np.int64), 1)
    np.testing.assert_array_equal(bits, expected.view(np.uint64))
    np.testing.assert_array_equal(numbers.view(np.uint64), expected.view(np.uint64))
