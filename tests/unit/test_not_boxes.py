"""Why loads and stores are no boxes; what is one beside them, or with other arguments, is compared with brute force."""

from __future__ import annotations

import pytest
import tilewright as triton
import tilewright.language as tl
from box_checks import check, described, outcomes


@triton.jit
def other_things(x_ptr, index_ptr, out_ptr, M, stride, odd, n, D: tl.constexpr):
    rows = tl.program_id(0) * D + tl.arange(0, D)
    columns = tl.arange(0, D)
    plain = x_ptr + rows[:, None] * stride + columns[None, :]
    found = tl.load(index_ptr + columns)
    tl.store(out_ptr + found[:, None] * stride + columns[None, :], 0.0)  # gather
    tl.store(out_ptr + rows[:, None] * odd + columns[None, :], 0.0)
    tl.store(out_ptr + rows[:, None] * stride + columns[None, :] * 2, 0.0)
    tl.store(out_ptr + rows[:, None] + columns[None, :], 0.0)
    tl.store(out_ptr + tl.where(rows < M, rows, 0)[:, None] * stride + columns[None, :], 0.0)
    tl.store(out_ptr + (rows // 2)[:, None] * stride + columns[None, :], 0.0)
    tl.store(out_ptr + ((rows + 1) % M)[:, None] * stride + columns[None, :], 0.0)
    tl.store(out_ptr + (rows - D)[:, None] * stride + columns[None, :], 0.0)
    tl.store(out_ptr + rows[:, None] * stride + (columns * 0 + tl.load(index_ptr + 1))[None, :], 0.0)
    a = tl.load(plain, mask=rows[:, None] < M, other=1.0)
    a += tl.load(plain, mask=(rows[:, None] < M) & (n > 3), other=0.0)
    a += tl.load(plain, mask=(rows[:, None] < M) & (rows[:, None] < n), other=0.0)
    a += tl.load(plain, mask=(found[:, None] < M), other=0.0)
    a += tl.load(plain, mask=rows[:, None] + columns[None, :] < M, other=0.0)
    a += tl.load(plain, mask=rows[:, None] < M // stride, other=0.0)
    a += tl.load(plain, mask=rows[:, None] >= 3, other=0.0)
    a += tl.load(plain, volatile=True)
    a += tl.load(plain, cache_modifier=".cg")
    tl.store(plain, a)


def test_reasons() -> None:
    signature = "*fp32:16, *i32:16, *fp32:16, i32, i32:16, i32, i32, 16"
    reasons = [described(box) for _, box in outcomes(other_things, signature)]
    assert isinstance(reasons[0], tuple) and isinstance(reasons[-1], tuple)
    no_sum = "offsets are no sum of multiples of positions in the tile"
    assert reasons[1:-1] == [
        "found is loaded or computed, no function of positions in the tile",
        "the stride odd is not known to be a multiple of 16 bytes",
        "no axis is known to be contiguous",
        "two axes are contiguous",
        f"{no_sum} (where)",
        f"{no_sum} (/)",
        "what is taken modulo does not start at a known multiple of 16",
        "the start along axis 0 may be negative",
        "all elements along axis 1 are the same",
        "other is not 0",
        "the mask depends on a scalar condition",
        "the mask bounds axis 0 twice",
        "the mask is not a bound of a coordinate",
        "the mask is not a bound of a coordinate",
        "the bound along axis 0 is no sum of products of parameters",
        "the mask excludes coordinates below a number other than 0",
        "the load is volatile",
        "it has a cache modifier",
    ]
    check(other_things, signature, 2)


@triton.jit
def irregular(x_ptr, y_ptr, stride, n, SIDE: tl.constexpr):
    rows, columns = tl.arange(0, SIDE), tl.arange(0, SIDE)
    ptrs = x_ptr + rows[:, None] * stride + columns[None, :]
    twice = x_ptr + rows[:, None] * stride + columns[None, :]
    growing = x_ptr + rows[:, None] * stride + columns[None, :]
    walking = x_ptr + rows[:, None] * stride + columns[None, :]
    jump = 0
    for k in range(0, n):
        tl.store(ptrs, 0.0)  # changed under a condition
        tl.store(twice, 0.0)  # changed two times
        tl.store(growing, 0.0)  # changed by something that changes
        if k > 2:
            ptrs += SIDE
        twice += SIDE
        jump += SIDE
        growing += jump
        twice += SIDE
        tl.store(twice, 0.0)
    while n > 0:
        tl.store(walking, 0.0)
        walking += SIDE
        n -= 1
    tl.store(walking, 0.0)
    again = y_ptr + rows[:, None] * stride + columns[None, :]
    for k in range(0, 3):
        jump = k * SIDE
        shifted = again + jump
        jump += 1
        tl.store(shifted, 0.0)
        again += SIDE
        tl.store(again, 0.0)


def test_what_changes_irregularly_is_no_box() -> None:
    signature = "*fp32:16, *fp32:16, i32:16, i32, 16"
    *others, shifted, again = (described(box) for _, box in outcomes(irregular, signature))
    assert others == ["the pointer changes from trip to trip in no regular way"] * 6
    assert shifted[0][0][2] == "add(mul(k, SIDE), mul(k, SIDE))" or shifted[0][0][2] == "mul(mul(k, SIDE), 2)"
    assert again[0][0][2] == "add(mul(k, SIDE), SIDE)"
    check(irregular, signature, 2, n=(0, 9, 1))


@triton.jit
def starts(x_ptr, first, extent, stride, SIDE: tl.constexpr, REVERSED: tl.constexpr):
    rows, columns = tl.arange(0, SIDE), tl.arange(0, SIDE)
    tile = x_ptr + rows[:, None] * stride + columns[None, :]
    tl.store(tile + first, 0.0)
    tl.store(tile + first * stride, 0.0, mask=rows[:, None] < extent)
    back = tl.num_programs(0) - 1 - tl.program_id(0)
    if REVERSED:
        tl.assume(back >= 0)
    tl.store(tile + back * SIDE, 0.0)
    for k in range(4, -1, -1):
        tl.store(tile + k * SIDE, 0.0)
    lowest = tl.load(x_ptr).to(tl.int32)
    for k in range(lowest, lowest + 2):
        tl.store(tile + (k - lowest) * SIDE, 0.0)


def test_starts_are_not_negative() -> None:
    signature = "*i32:16, i32, i32, i32:16, 16"
    plain, rows, back, descending, distance = (
        described(box) for _, box in outcomes(starts, f"{signature}, False")
    )  # fmt: skip
    assert plain[0][0][2] == "first" and plain[1] == ["first >= 0", "first % 4 == 0"]
    assert rows[0][1] == (16, 0, "first", "first + extent", "stride") or rows[0][1][3] == "extent + first"
    assert back == "the start along axis 1 may be negative"
    assert descending[0][0][2] == "mul(k, SIDE)" and descending[1] == []
    assert distance[1] == []
    check(starts, f"{signature}, False", 4, first=(-3, 20, 1))
    check(starts, f"{signature}, True", 5, first=(-3, 20, 1))


@triton.jit
def added_up(x_ptr, steps_ptr, n, stride, SIDE: tl.constexpr):
    tile = x_ptr + tl.arange(0, SIDE)[:, None] * stride + tl.arange(0, SIDE)[None, :]
    listed, counted, both = 0, 0, 0
    for k in range(n):
        tl.store(tile + listed * stride, 0.0)
        tl.store(tile + counted * stride, 0.0)
        tl.store(tile + both * stride, 0.0)
        step = tl.load(steps_ptr + k)
        listed += step * SIDE
        counted += k * k - 3
        both -= k * k


def test_sums_of_what_is_loaded_are_not_negative() -> None:
    """As what is loaded itself; sums of anything else may be."""
    listed, *others = (described(box) for _, box in outcomes(added_up, "*fp32:16, *i32:16, i32, i32:16, 16"))
    assert listed[0][1][2] == "listed" and listed[1] == []
    assert others == ["the start along axis 0 may be negative"] * 2


@triton.jit
def promised(x_ptr, stride, way, SIDE: tl.constexpr):
    tile = x_ptr + tl.arange(0, SIDE)[:, None] * stride + tl.arange(0, SIDE)[None, :]
    back = tl.num_programs(0) - 1 - tl.program_id(0)
    if way > 0:
        tl.assume(back >= 0)
        tl.store(tile + back * SIDE, 0.0)
    tl.store(tile + back * SIDE, 1.0)


def test_a_promise_holds_where_it_is_made() -> None:
    inside, behind = (described(box) for _, box in outcomes(promised, "*i32:16, i32:16, i32, 16"))
    assert inside[1] == [] and behind == "the start along axis 1 may be negative"


@triton.jit
def places_that_are_unsigned(x_ptr, w_ptr, list_ptr, out_ptr, count, S: tl.constexpr):
    rows, columns = tl.arange(0, S)[:, None], tl.arange(0, S)[None, :]
    total = tl.zeros((S, S), tl.float32)
    for i in range(count):
        start = tl.load(list_ptr + i) * S
        x = tl.load(x_ptr + rows * 4096 + (start + columns))
        total = tl.dot(x, tl.load(w_ptr + rows * S + columns), total)
    tl.store(out_ptr + rows * S + columns, total)


@pytest.mark.parametrize("places", ("i32", "u16", "u32", "i8"))
def test_starts_that_wrap_around_are_no_sums(places: str) -> None:
    text = places_that_are_unsigned.translate(f"*fp16:16, *fp16:16, *{places}, *fp32:16, i32, 64").source
    assert "places_that_are_unsigned(" in text
