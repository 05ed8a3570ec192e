"""What neighbours in a thread's vector have in common: a quotient, an answer, the access of a store; a loop's loads at once."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
import tilewright as triton
import tilewright.language as tl
from tilewright.artifact import Options
from tilewright.pipeline import Translation, translate_stages
from tilewright.runtime.arguments.signature import parse_signature
from tilewright.schedule.targets import find_target


def planned(kernel: Any, signature: str, **options: Any) -> Translation:
    return translate_stages(kernel, parse_signature(kernel, signature), Options(**options), find_target("sm_90a"))


def body_of(kernel: Any, signature: str) -> str:
    text = planned(kernel, signature).artifact.source
    return " ".join(text[text.index('extern "C"') :].split())


@triton.jit
def places(x_ptr, out_ptr, H, W, total, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    column = i % W
    row = i // W % H
    x = tl.load(x_ptr + (H - 1 - row) * W + (W - 1 - column), mask=i < total, other=0.0)
    tl.store(out_ptr + i, x, mask=i < total)


def test_a_vector_divides_once() -> None:
    body = body_of(places, "*fp32:16, *fp32:16, i32, i32:16, i32:16, 512")
    assert "const int i = program_x * BLOCK + tid * VEC;" in body
    assert "i % W + e" in body and "i / W % H" in body and "i < total" in body
    wide = body_of(places, "*fp32:16, *fp32:16, i32, i32:16, i32:16, 1024")  # two vectors a thread
    assert "% W + e % VEC" in wide


def test_each_element_divides_where_nothing_is_known_of_the_divisor() -> None:
    body = body_of(places, "*fp32:16, *fp32:16, i32, i32, i32, 512")
    assert "i[e] % W" in body and "i[e] / W % H" in body


@pytest.mark.parametrize("mode", ["cpu", "interpret"])
@pytest.mark.parametrize(("height", "width", "block"), [(5, 16, 512), (3, 48, 1024), (7, 5, 512)])
def test_quotients(mode: str, height: int, width: int, block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_MODE", mode)
    x = np.arange(height * width, dtype=np.float32)
    total = 16 * height * width
    out = np.full(total, np.nan, np.float32)
    places[(triton.cdiv(total, block),)](x, out, height, width, total, block)
    np.testing.assert_array_equal(out, np.tile(x[::-1], 16))


@triton.jit
def widened(x_ptr, out_ptr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + i).to(tl.float32))


@triton.jit
def sums_of_rows(x_ptr, out_ptr, rows, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    total = tl.zeros([BLOCK], tl.float32)
    for row in range(rows):
        total += tl.load(x_ptr + row * BLOCK + i)
    tl.store(out_ptr + i, total)


def test_what_is_stored_is_one_access() -> None:
    (layout,) = {layout.vector(0) for layout in planned(widened, "*fp16:16, *fp32:16, 1024").schedule.layouts.values()}
    assert layout == 4  # 16 bytes of fp32: with 8 elements, neighbours' stores would leave gaps of 16 bytes
    behind = planned(sums_of_rows, "*fp16:16, *fp32:16, i32, 1024").schedule.layouts.values()
    assert {layout.vector(0) for layout in behind} == {8}  # the loads are in the loop, the store is not


@triton.jit
def largest_of_rows(x_ptr, out_ptr, rows, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    for row in range(rows):
        tl.store(out_ptr + row, tl.max(tl.load(x_ptr + row * BLOCK + i)))


def test_room_for_the_loads_of_a_loop() -> None:
    def blocks(kernel: Any, block: int, warps: int) -> int | None:
        return planned(kernel, f"*fp16:16, *fp32:16, i32, {block}", num_warps=warps).schedule.blocks_per_multiprocessor

    assert (blocks(sums_of_rows, 1024, 4), blocks(sums_of_rows, 2048, 8)) == (6, 3)
    assert blocks(sums_of_rows, 8192, 4) == 4  # 64 sums, 32 registers of loads and 32 others in each thread
    assert blocks(sums_of_rows, 512, 4) == 1  # 8 bytes a thread
    assert blocks(largest_of_rows, 1024, 4) is None  # threads wait for each other in every iteration


@triton.jit
def gated(x_ptr, y_ptr, out_ptr, BLOCK: tl.constexpr, TIMES: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x, y = tl.load(x_ptr + i).to(tl.float32), tl.load(y_ptr + i).to(tl.float32)
    if TIMES > 0:
        for _ in range(TIMES):
            x += tl.exp(y)
    gate = tl.sigmoid(x)
    up = x * gate
    down = y * gate
    tl.store(out_ptr + i, up * (1 - gate) + gate * down)


def test_what_is_computed_when_it_is_stored_needs_no_multiprocessor_for_itself() -> None:
    def blocks(times: int) -> int | None:
        plan = planned(gated, f"*fp16:16, *fp16:16, *fp32:16, 16384, {times}", num_warps=16)
        return plan.schedule.blocks_per_multiprocessor

    assert (blocks(0), blocks(2)) == (None, 1)


@triton.jit
def of_several_values(x_ptr, out_ptr, BLOCK: tl.constexpr):
    # Of its last value alone, and of that in later trips, a vector's elements lie on one side of `first`.
    cols, x = tl.arange(0, BLOCK), tl.load(x_ptr + tl.arange(0, BLOCK))
    first = tl.program_id(0) + 45
    total = tl.where(cols < first, x, 1.0) + (cols + first) // 4
    for trip in range(3):
        total += tl.where(cols < first, x, 2.0)
        first = tl.program_id(0) * 16 * trip
    tl.store(out_ptr + cols, total + first)


def test_what_holds_of_one_value_need_not_hold_of_another(run_everywhere: Any) -> None:
    x, cols = np.arange(512, dtype=np.float32), np.arange(512)
    _, out = run_everywhere(of_several_values, (1,), x, np.zeros_like(x), BLOCK=512)
    below = cols < 45
    expected = np.where(below, x, 1) + (cols + 45) // 4 + np.where(below, x, 2) + 2 * 2
    np.testing.assert_array_equal(out, expected)


@triton.jit
def halved(x_ptr, out_ptr, N, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < N, other=0) >> 1, mask=i < N)


@pytest.mark.parametrize(
    ("types", "count"), [("*i16:16, *i8:16", 16), ("*i32:16, *i16:16", 8), ("*i32:16, *i32:16", 4)]
)
def test_a_test_of_all_of_a_thread_s_elements_says_so(types: str, count: int) -> None:
    """Loads are of 16 bytes, and several of them make a store: what they rely on is said for all."""
    text = planned(halved, f"{types}, i32:16, {128 * count}", num_warps=4).artifact.source
    said = r"// One test for (\w+) elements: N and the index of the first are multiples of (\w+)\."
    ((elements, divisor),) = re.findall(said, text)
    assert elements == divisor and f"constexpr int {elements} = {count};" in text


@triton.jit
def window(x_ptr, out_ptr, H, W, n, SIDE: tl.constexpr, STEP: tl.constexpr, BLOCK: tl.constexpr):
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    row, column = o // (W // STEP), o % (W // STEP)
    total = tl.zeros([BLOCK], tl.float32)
    for i in range(SIDE):
        for j in range(0, SIDE):
            y, x = row * STEP + i, column * STEP + j
            total += tl.load(x_ptr + y * W + x, mask=(o < n) & (y < H) & (x < W), other=0.0)
    tl.store(out_ptr + o, total, mask=o < n)


@pytest.mark.parametrize("side, factor", [(3, 3), (4, 4), (6, None)])
def test_small_windows_are_written_out(run_everywhere: Any, side: int, factor: int | None) -> None:
    """Nine loads at a time wait for memory once; the compiler writes out the inner loop alone."""
    text = window.translate(f"*fp32:16, *fp32:16, i32, i32, i32, {side}, 2, 512").source
    assert ("#pragma unroll 3\n    for (int i" in text, "#pragma unroll 4\n    for (int i" in text) == (
        factor == 3,
        factor == 4,
    )
    x = np.random.default_rng(side).integers(-9, 10, (20, 24)).astype(np.float32)
    found = run_everywhere(window, (1,), x, np.zeros(120, np.float32), 20, 24, 120, side, 2, 512)[1]
    grown = np.zeros((20 + side, 24 + side), np.float32)
    grown[:20, :24] = x
    wanted = sum(grown[i : i + 20 : 2, j : j + 24 : 2] for i in range(side) for j in range(side))
    assert np.array_equal(found, np.asarray(wanted).ravel())


@triton.jit
def taps(x_ptr, at_ptr, out_ptr, C, N, FOUND: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    at = tl.load(at_ptr + i)
    for channel in range(C):
        if FOUND:
            at = tl.load(at_ptr + channel * N + i)
        start = x_ptr + channel * N
        total = tl.zeros([BLOCK], tl.float32)
        for tap in tl.static_range(4):
            total += tl.load(start + at + tap)
        tl.store(out_ptr + channel * N + i, total)


@pytest.mark.parametrize("found", [False, True])
def test_registers_for_loads_from_places_that_are_known(found: bool) -> None:
    """Few registers have ptxas put uses between the loads of an iteration; places found in it are waited for anyway."""
    text = taps.translate(f"*fp32:16, *i32:16, *fp32:16, i32, i32, {found}, 512").source
    assert ("MIN_BLOCKS" in text) != found


@triton.jit
def sums_inside(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=1.0)
    tl.store(out_ptr, tl.sum(tl.where(i < n, x * x, 0.0)))


@pytest.mark.parametrize("n", ["i32:16", "i32"])
def test_a_vector_is_compared_once(n: str) -> None:
    text = body_of(sums_inside, f"*fp32:16, *fp32:16, {n}, 1024")  # two vectors a thread
    assert ("i[e / VEC] < n ? x[e] * x[e] : 0.0f" in text) == (n == "i32:16"), (
        "only a bound that is aligned splits no vector"
    )


@pytest.mark.parametrize("n", [976, 16, 1000, 3])
def test_sums_inside(run_everywhere: Any, n: int) -> None:
    x = np.random.default_rng(n).standard_normal(1024).astype(np.float32)
    _, out = run_everywhere(sums_inside, (1,), x, np.full(1, np.nan, np.float32), n, 1024, tolerance=1e-5)
    np.testing.assert_allclose(out[0], np.sum(np.square(x[:n].astype(np.float64))), rtol=1e-5)


def test_what_is_summed_stands_in_the_text_once() -> None:
    text = body_of(sums_inside, "*fp32:16, *fp32:16, i32, 1024")
    assert text.count("x[e] * x[e]") == 1 and "= 0.0f; #pragma unroll for (int e = 0;" in text


@triton.jit
def kinked(x_ptr, out_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i)
    few = tl.where(x > 0, x, x * 0.01)
    tl.store(out_ptr + i, tl.where(x <= 1, (1.25 * few - 2.25) * few, ((0.75 * few + 3.75) * few - 6) * few))


def test_several_operations_are_selected_not_branched_around() -> None:
    text = body_of(kinked, "*fp32:16, *fp32:16, 512")
    assert "choose(x[e] <= 1.0f, (1.25f * few[e] - 2.25f) * few[e]," in text
    assert "x[e] > 0.0f ? x[e] : x[e] * 0.01f" in text, "one operation is selected anyway"
