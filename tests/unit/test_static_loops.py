"""Loops of `tl.static_range`: one loop in the text where all trips are the same, trip after trip where they are not."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tilewright as triton
import tilewright.language as tl
from written_kernels import written_kernel


@triton.jit
def neighbours(x_ptr, out_ptr, H, W, BLOCK: tl.constexpr):
    """Weights of places, masks and addresses: all depend on both numbers."""
    r, c = tl.program_id(0), tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for dr in tl.static_range(-1, 2):
        for dc in tl.static_range(-2, 3):
            inside = (r + dr >= 0) & (r + dr < H) & (c + dc >= 0) & (c + dc < W)
            x = tl.load(x_ptr + (r + dr) * W + c + dc, mask=inside, other=0.0)
            total += x * (dr * dr + 3 * dc)
    tl.store(out_ptr + r * W + c, total, mask=c < W)


def test_numbers_in_addresses_masks_and_values(run_everywhere: Any) -> None:
    x = np.random.default_rng(0).integers(-9, 9, (5, 30)).astype(np.float32)
    found = run_everywhere(neighbours, (5,), x, np.zeros_like(x), 5, 30, BLOCK=32)[1]
    padded = np.pad(x, ((1, 1), (2, 2)))
    parts = (padded[1 + r : 6 + r, 2 + c : 32 + c] * (r * r + 3 * c) for r in range(-1, 2) for c in range(-2, 3))
    np.testing.assert_array_equal(found, sum(parts))
    text = neighbours.translate("*fp32:16, *fp32:16, i32, i32, 32").source
    assert "#pragma unroll\n    for (int dr = -1; dr < 2; ++dr) {" in text
    assert "#pragma unroll\n        for (int dc = -2; dc < 3; ++dc) {" in text
    assert text.count("tl.load") == 1 and "written out" not in text and "* (dr * dr + 3 * dc)" in text


@triton.jit
def carried(x_ptr, out_ptr, N: tl.constexpr, WAYS: tl.constexpr):
    """What a trip leaves is read by the next one, and behind the loop; so is the number itself."""
    i = tl.arange(0, N)
    a, b = tl.load(x_ptr + i), tl.load(x_ptr + N + i)
    for k in tl.static_range(WAYS, 0, -2):
        last = a + b * k
        a = b
        b = last - k % 3 + k // 2
    tl.store(out_ptr + i, b)
    tl.store(out_ptr + N + i, last + k)


@pytest.mark.parametrize("ways", (1, 2, 3, 7, 8))
@pytest.mark.parametrize("dtype", (np.int32, np.float32, np.int64))
def test_values_that_outlive_their_trip(run_everywhere: Any, ways: int, dtype: Any) -> None:
    x = np.arange(-16, 16).astype(dtype)
    found = run_everywhere(carried, (1,), x, np.zeros_like(x), N=16, WAYS=ways)[1]
    a, b = x[:16], x[16:]
    for k in range(ways, 0, -2):
        last = a + b * dtype(k)
        a, b = b, last - dtype(k % 3) + dtype(k // 2)
    np.testing.assert_array_equal(found, [*b, *(last + dtype(k))])


@triton.jit
def small(x_ptr, out_ptr, N: tl.constexpr):
    """Literals take the type of the tile that they meet; bits are shifted by the number."""
    i = tl.arange(0, N)
    x = tl.load(x_ptr + i)
    bits = tl.zeros((N,), tl.int32)
    for k in tl.static_range(4):
        bits += ((x >> (2 * k)) & 3).to(tl.int32) * (k + 1)
        x = x + k
    tl.store(out_ptr + i, bits + x)


@pytest.mark.parametrize("dtype", (np.uint8, np.int16, np.int32, np.int64))
def test_types_of_literals(run_everywhere: Any, dtype: Any) -> None:
    x = np.arange(0, 120, 2)[:32].astype(dtype)
    found = run_everywhere(small, (1,), x, np.zeros(32, np.int32), N=32)[1]
    bits, moved = np.zeros(32, np.int32), x
    for k in range(4):
        bits, moved = bits + ((moved >> dtype(2 * k)) & dtype(3)).astype(np.int32) * (k + 1), moved + dtype(k)
    np.testing.assert_array_equal(found, bits + moved.astype(np.int32))


@triton.jit
def branching(x_ptr, out_ptr, n, N: tl.constexpr):
    i = tl.arange(0, N)
    total = tl.zeros((N,), tl.float32)
    for k in tl.static_range(3):
        x = tl.load(x_ptr + k * N + i)
        if k == 1:
            total -= x
        else:
            total += x * 2
    for k in tl.static_range(3):
        for k in tl.static_range(2):
            total += k * n
        total += k
    tl.store(out_ptr + i, total)


def test_trips_that_differ_are_written_out(run_everywhere: Any) -> None:
    x = np.arange(96, dtype=np.float32)
    found = run_everywhere(branching, (1,), x, np.zeros(32, np.float32), 5, N=32)[1]
    np.testing.assert_array_equal(found, 2 * x[:32] - x[32:64] + 2 * x[64:] + 3 * 5 + 3)
    text = branching.translate("*fp32:16, *fp32:16, i32, 32").source
    assert re.findall(r"// L(\d+): for k in[^\n]*written out below", text) != []
    assert "(k = 0, true" in text.replace("false", "true") and "λ" not in text


@triton.jit
def power(x, N: tl.constexpr):
    result = 1
    for k in tl.static_range(N):
        result = result * x + k
    return result


@triton.jit
def functions(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    for trip in range(n):
        total = tl.zeros((BLOCK,), tl.int32)
        for k in tl.static_range(2):
            total += power(tl.load(x_ptr + i) + k, 3)
        tl.store(out_ptr + trip * BLOCK + i, total)


def test_functions_and_loops_around(run_everywhere: Any) -> None:
    x = np.array([4, 3, 2, 9, 1, 0, 7, 5], np.int32)
    found = run_everywhere(functions, (1,), x, np.zeros((3, 8), np.int32), 3, BLOCK=8)[1]
    powers = sum((y * y + 1) * y + 2 for y in (x, x + 1))
    np.testing.assert_array_equal(found, [powers] * 3)


@triton.jit
def taps(x_ptr, w_ptr, out_ptr, n, TAPS: tl.constexpr, BLOCK: tl.constexpr):
    """Index tiles and scalars of a trip's own."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for tap in tl.static_range(TAPS):
        at = i + tap - TAPS // 2
        w = tl.load(w_ptr + tap * 2)
        total += tl.load(x_ptr + at, mask=(at >= 0) & (at < n), other=0.0) * w
    tl.store(out_ptr + i, total, mask=i < n)


def test_names_of_a_trip_are_declared_in_the_loop(run_everywhere: Any) -> None:
    rng = np.random.default_rng(1)
    x, w = rng.integers(-9, 9, 100).astype(np.float32), rng.integers(-9, 9, 10).astype(np.float32)
    found = run_everywhere(taps, (2,), x, w, np.zeros_like(x), 100, TAPS=5, BLOCK=64)[2]
    np.testing.assert_array_equal(found, np.convolve(x, w[::2][::-1], "same"))
    text = taps.translate("*fp32:16, *fp32:16, *fp32:16, i32, 5, 64").source
    body = text[text.index("for (int tap = 0; tap < TAPS; ++tap) {") :]
    assert "const float w = w_ptr[tap * 2];" in body and "_second" not in text and "written out" not in text


def test_constants_of_the_bounds_keep_their_names() -> None:
    text = carried.translate("*fp32:16, *fp32:16, 16, 8").source
    assert "for (int k = WAYS; k > 0; k += -2) {" in text and "float last;" in text.partition("for (int k")[0]


@triton.jit
def reduced(x_ptr, out_ptr, ROWS: tl.constexpr, N: tl.constexpr, FIRST: tl.constexpr, STEP: tl.constexpr):
    """Every trip has an array in shared memory for its warps' parts."""
    c = tl.arange(0, N)
    for j in tl.static_range(2):
        for r in tl.static_range(FIRST, FIRST + ROWS * STEP, STEP):
            x = tl.load(x_ptr + ((r - FIRST) // STEP * 2 + j) * N + c)
            x -= tl.max(x, axis=0)
            tl.store(out_ptr + (r - FIRST) // STEP * 2 + j, tl.sum(x, axis=0))


@triton.jit
def descending(x_ptr, out_ptr, LAST: tl.constexpr, N: tl.constexpr):
    for r in tl.static_range(LAST, 0, -2):
        tl.store(out_ptr + r, tl.sum(tl.load(x_ptr + r * N + tl.arange(0, N)), axis=0))


@pytest.mark.parametrize(("first", "step"), ((0, 1), (-1, 1), (3, 2), (2, -1), (4, -3)))
def test_shared_arrays_of_trips_are_rows_of_one(run_everywhere: Any, first: int, step: int) -> None:
    x = np.random.default_rng(2).integers(-9, 9, (6, 256)).astype(np.float32)
    out = run_everywhere(reduced, (1,), x, np.zeros(6, np.float32), ROWS=3, N=256, FIRST=first, STEP=step)[1]
    np.testing.assert_array_equal(out, (x - x.max(axis=1, keepdims=True)).sum(axis=1))


def test_rows_are_found_by_the_number_of_the_trip() -> None:
    text = reduced.translate("*fp32:16, *fp32:16, 3, 256, 0, 1").source
    assert "__shared__ float x_sum_partial[2][3][NUM_WARPS];" in text and "x_sum_partial[j][r - FIRST])" in text
    assert "out_ptr[(r - FIRST) / STEP * 2 + j] = x_sum;" in text
    text = descending.translate("*fp32:16, *fp32:16, 6, 256").source
    assert "__shared__ float x_sum_partial[3][NUM_WARPS];" in text and "x_sum_partial[(LAST - r) / 2])" in text


@triton.jit
def rounded(x_ptr, out_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    x = tl.load(x_ptr + i)
    for k in tl.static_range(1, 5):
        x = x * k + (k - 3)
    tl.store(out_ptr + i, x)


@pytest.mark.parametrize("dtype", (np.float16, np.float32, np.float64))
def test_numbers_beside_floats(run_everywhere: Any, dtype: Any) -> None:
    x = (np.arange(64) / 8).astype(dtype)
    found = run_everywhere(rounded, (1,), x, np.zeros_like(x), N=64)[1]
    for k in range(1, 5):
        x = x * dtype(k) + dtype(k - 3)
    np.testing.assert_allclose(found, x, rtol=1e-3 if dtype is np.float16 else 0)
    short = {np.float16: "fp16", np.float32: "fp32", np.float64: "fp64"}[dtype]
    assert "for (int k = 1; k < 5; ++k) {" in rounded.translate(f"*{short}:16, *{short}:16, 64").source


@triton.jit
def many_loads(x_ptr, out_ptr, W, SIDE: tl.constexpr, BLOCK: tl.constexpr):
    c = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for i in tl.static_range(SIDE):
        for j in tl.static_range(SIDE):
            total += tl.load(x_ptr + i * W + c + j)
    tl.store(out_ptr + c, total)


def test_the_outer_loop_stays_where_there_are_many_loads() -> None:
    """Of 8 elements a thread: 9 trips have 72 loads, 25 have 200."""
    few = many_loads.translate("*fp32:16, *fp32:16, i32, 3, 1024").source
    many = many_loads.translate("*fp32:16, *fp32:16, i32, 5, 1024").source
    assert "#pragma unroll 1" not in few and "    #pragma unroll 1\n    for (int i = 0; i < SIDE; ++i) {" in many


@triton.jit
def nested_sum(x, DEPTH: tl.constexpr, ADDED: tl.constexpr):
    """The same loop inside of itself, with numbers of both."""
    total = x * 0
    for k in tl.static_range(2):
        if DEPTH == 0:
            total += x * k + ADDED
        else:
            total += nested_sum(x + k, DEPTH - 1, ADDED + 3 * k)
    return total


@triton.jit
def recursive(x_ptr, out_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(out_ptr + i, nested_sum(tl.load(x_ptr + i), 2, 0))


def _nested_sum(x: Any, depth: int, added: int) -> Any:
    ways = (x * k + added if depth == 0 else _nested_sum(x + k, depth - 1, added + 3 * k) for k in range(2))
    return sum(ways)


def test_a_loop_inside_of_itself(run_everywhere: Any) -> None:
    x = np.arange(32, dtype=np.float32)
    found = run_everywhere(recursive, (1,), x, np.zeros_like(x), N=32)[1]
    np.testing.assert_array_equal(found, _nested_sum(x, 2, 0))


@triton.jit
def words_of_ours(x_ptr, out_ptr, trip3_of_loop7, N: tl.constexpr):
    i = tl.arange(0, N)
    trip0_of_loop0 = tl.load(x_ptr + i)  # trip0_of_loop0λ
    for trip_of_loop0 in tl.static_range(3):
        trip0_of_loop0 += trip_of_loop0 * trip3_of_loop7
    tl.store(out_ptr + i, trip0_of_loop0)


def test_names_that_are_words_of_ours(run_everywhere: Any) -> None:
    x = np.arange(32, dtype=np.float32)
    found = run_everywhere(words_of_ours, (1,), x, np.zeros_like(x), 5, N=32)[1]
    np.testing.assert_array_equal(found, x + 15)


@triton.jit
def weighted(x_ptr, i, ADDED: tl.constexpr):
    total = tl.load(x_ptr + i) * 0
    for k in tl.static_range(3):
        total += tl.load(x_ptr + i) * k + ADDED
    return total


@triton.jit
def loops_of_one_name(x_ptr, out_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    total = tl.zeros((N,), tl.float32)
    for k in tl.static_range(1, 4):
        total += weighted(x_ptr, i, k) * k
    tl.store(out_ptr + i, total)


def test_the_number_of_an_outer_loop_is_not_hidden(run_everywhere: Any) -> None:
    x = np.arange(32, dtype=np.float32)
    found = run_everywhere(loops_of_one_name, (1,), x, np.zeros_like(x), N=32)[1]
    np.testing.assert_array_equal(found, sum((3 * x + 3 * k) * k for k in range(1, 4)))
    text = loops_of_one_name.translate("*fp32:16, *fp32:16, 32").source
    assert "for (int k = 1; k < 4; ++k) {" in text and "for (int k_second = 0; k_second < 3; ++k_second) {" in text


HEADER = """import tilewright as triton
import tilewright.language as tl
@triton.jit
def kernel(x_ptr, out_ptr, R: tl.constexpr, N: tl.constexpr):
"""
COUNTED = """rows, i = tl.arange(0, R), tl.arange(0, N)
x = tl.load(x_ptr + rows[:, None] * N + i[None, :])
total = 0.0
for {name} in tl.static_range(4):
    total += tl.sum(x * ({name} + 1))
tl.store(out_ptr, total)"""


@pytest.mark.parametrize("name", ("r", "c", "j", "v"))
def test_element_loops_do_not_hide_the_number_of_a_trip(run_everywhere: Any, tmp_path: Path, name: str) -> None:
    """`for r in tl.static_range(4)` around a loop over a thread's rows, r as well, gave a wrong result."""
    kernel = written_kernel(tmp_path / f"counted_{name}.py", HEADER, COUNTED.format(name=name))
    x = np.random.default_rng(3).standard_normal((64, 16)).astype(np.float32)
    out = run_everywhere(kernel, (1,), x, np.zeros(1, np.float32), R=64, N=16, num_warps=1, tolerance=1e-2)[1]
    np.testing.assert_allclose(out, [10 * x.astype(np.float64).sum()], rtol=1e-4)


@triton.jit
def products_of_taps(x_ptr, w_ptr, out_ptr, TAPS: tl.constexpr, SIDE: tl.constexpr):
    """Every trip brings both operands of a product from registers to shared memory."""
    i = tl.arange(0, SIDE)
    place = i[:, None] * SIDE + i[None, :]
    total = tl.zeros((SIDE, SIDE), tl.float32)
    for tap in tl.static_range(TAPS):
        x = tl.load(x_ptr + place + tap) * 2
        w = tl.load(w_ptr + place + tap * SIDE) + tap
        total = tl.dot(x, w, total)
    tl.store(out_ptr + place, total)


@pytest.mark.parametrize(("taps", "side"), ((2, 64), (6, 128)))
def test_operands_of_products_in_all_trips(
    run_everywhere: Any, monkeypatch: pytest.MonkeyPatch, taps: int, side: int
) -> None:
    monkeypatch.setenv("TILEWRIGHT_ARCH", "sm_90a")
    random = np.random.default_rng(0)
    x, w = (random.integers(-4, 4, (side + taps) * side).astype(np.float16) for _ in "xw")
    out, sides = np.zeros((side, side), np.float32), {"TAPS": taps, "SIDE": side}
    found = run_everywhere(products_of_taps, (1,), x, w, out, **sides, num_warps=4)[2]
    tiles = ((2 * x[k:], w[k * side :] + k) for k in range(taps))
    parts = (tuple(one[: side * side].reshape(side, side).astype(np.float32) for one in pair) for pair in tiles)
    np.testing.assert_array_equal(found, sum(a @ b for a, b in parts))


@pytest.mark.parametrize(("taps", "array"), ((2, "[TAPS][SIDE * SIDE]"), (6, "[SIDE * SIDE]")))
def test_trips_share_the_memory_of_operands_where_there_is_not_enough_for_each(taps: int, array: str) -> None:
    text = products_of_taps.translate(f"*fp16:16, *fp16:16, *fp32:16, {taps}, 128", num_warps=4, arch="sm_90a").source
    assert "for (int tap = 0; tap < TAPS; ++tap) {" in text and text.count("wgmma_commit();") == 1
    # Written out, the addresses of all trips would be kept in registers that there are not: 6 KB were spilled of such a text.
    assert "// One iteration at a time: registers have no room for" in text and "#pragma unroll 1" in text
    assert f"half w_shared{array};" in text and "_second" not in text
    waits = "__syncthreads();   // everyone has read x_shared before it is written again"
    assert text.count(waits) == (taps == 6)


@triton.jit
def largest_of_window(x_ptr, out_ptr, H, W, BLOCK: tl.constexpr):
    """What a trip loads is a function in the text, since it is read once."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    row, col = i // W, i % W
    best = tl.full((BLOCK,), -1000, tl.float32)
    for dy in tl.static_range(3):
        for dx in tl.static_range(3):
            y, x = row + dy - 1, col + dx - 1
            inside = (y >= 0) & (y < H) & (x >= 0) & (x < W) & (i < H * W)
            best = tl.maximum(best, tl.load(x_ptr + y * W + x, mask=inside, other=-1000))
    tl.store(out_ptr + i, best, mask=i < H * W)


def test_functions_of_trips_have_one_name(run_everywhere: Any) -> None:
    x = np.random.default_rng(0).integers(-99, 99, (13, 17)).astype(np.float16)
    found = run_everywhere(largest_of_window, (1,), x, np.zeros_like(x, np.float32), 13, 17, BLOCK=256)[1]
    padded = np.pad(x, 1, constant_values=-1000)
    np.testing.assert_array_equal(found, np.max([padded[d // 3 :, d % 3 :][:13, :17] for d in range(9)], axis=0))
    text = largest_of_window.translate("*fp16:16, *fp32:16, i32, i32, 1024").source
    assert text.count("const auto x_loaded = [&](int e) {") == 1 and "for (int dx = 0; dx < 3; ++dx) {" in text


@triton.jit
def chosen(x_ptr, share_ptr, out_ptr, N: tl.constexpr):
    """The number of a trip chooses a value, by its truth and by comparison."""
    i = tl.arange(0, N)
    share = tl.load(share_ptr + i)
    total = tl.zeros((N,), tl.float32)
    for k in tl.static_range(3):
        weight = (share if k else 1.0 - share) * (share * 0.5 if 2 <= k else share + 1.0)
        total += weight * tl.load(x_ptr + i + k)
    tl.store(out_ptr + i, total)


def test_values_chosen_by_the_number_of_a_trip(run_everywhere: Any) -> None:
    random = np.random.default_rng(0)
    x, share = random.standard_normal(34).astype(np.float32), random.random(32).astype(np.float32)
    found = run_everywhere(chosen, (1,), x, share, np.zeros(32, np.float32), N=32, tolerance=1e-6)[2]
    weights = [(1 - share) * (share + 1), share * (share + 1), share * share / 2]
    np.testing.assert_allclose(found, sum(w * x[k : 32 + k] for k, w in enumerate(weights)), 1e-5, 1e-5)
    text = chosen.translate("*fp32:16, *fp32:16, *fp32:16, 32").source
    assert "k != 0 ? share : 1.0f - share" in text and "2 <= k ? share * 0.5f : share + 1.0f" in text


@triton.jit
def chosen_statically(x_ptr, out_ptr, N: tl.constexpr):
    """Sides that one trip does not have, that load, or that are places in memory: each trip takes its own."""
    i = tl.arange(0, N)
    for k in tl.static_range(3):
        total = tl.load(x_ptr + i) * 1.0 if k == 0 else total + 1.0  # noqa: F821
        at = i if k < 2 else N - 1 - i
        total = total if k == 1 else total + tl.load(x_ptr + at)
    tl.store(out_ptr + i, total)


def test_sides_that_are_more_than_values_are_chosen_at_compile_time(run_everywhere: Any) -> None:
    x = np.arange(32, dtype=np.float32)
    found = run_everywhere(chosen_statically, (1,), x, np.zeros(32, np.float32), N=32)[1]
    np.testing.assert_array_equal(found, x + x + 2 + x[::-1])
    assert "k == 1 ?" not in chosen_statically.translate("*fp32:16, *fp32:16, 32").source


@triton.jit
def mixed_bits(x_ptr, out_ptr, seed, N: tl.constexpr):
    """Rounds of a generator; the same of integers that are places, which stay what the loads are known to read."""
    i = tl.arange(0, N)
    a, b = i.to(tl.uint32), tl.zeros((N,), tl.uint32)
    for _ in tl.static_range(6):
        before = a
        a = tl.umulhi(b, 0xCD9E8D57) ^ before * 5 ^ seed
        b = before * 0xD2511F53 + b
    at = i
    for _ in tl.static_range(3):
        at += N
    tl.store(out_ptr + i, (a ^ b).to(tl.int32) + tl.load(x_ptr + at))


def test_bits_that_trips_mix_are_one_variable(run_everywhere: Any) -> None:
    x = np.arange(4 * 512, dtype=np.int32)
    found = run_everywhere(mixed_bits, (1,), x, np.zeros(512, np.int32), 77, N=512)[1]
    a, b = np.arange(512, dtype=np.uint64), np.zeros(512, np.uint64)
    for _ in range(6):
        a, b = ((b * 0xCD9E8D57 >> 32) ^ a * 5 ^ 77) & 0xFFFFFFFF, (a * 0xD2511F53 + b) & 0xFFFFFFFF
    np.testing.assert_array_equal(found, (a ^ b).astype(np.uint32).view(np.int32) + x[3 * 512 :])
    text = mixed_bits.translate("*i32:16, *i32:16, i32, 512").source
    assert "for (int iteration = 0; iteration < 6; ++iteration) {" in text and "a_second" not in text
    assert "load_vec<VEC>(" in text


@triton.jit
def stored_and_loaded(x_ptr, total_ptr, N: tl.constexpr, TRIPS: tl.constexpr):
    """Each trip loads what other threads may have stored, and stores it."""
    r, c = tl.arange(0, N), tl.arange(0, 32)
    total = tl.sum(tl.load(total_ptr + r[:, None] * 32 + c[None, :]), axis=1)
    tl.store(x_ptr + r * TRIPS, total)
    for k in tl.static_range(TRIPS):
        w = tl.load(x_ptr + r * TRIPS + k)
        tl.store(x_ptr + r * TRIPS + k, w / total)


def test_a_word_of_a_remark_is_no_name(run_everywhere: Any) -> None:
    """`stored` is an array of each trip, and in the remark of the barrier between trips something that threads have done."""
    total = np.ones((64, 32), np.float32)
    found = run_everywhere(stored_and_loaded, (1,), np.full((64, 2), 64, np.float32), total, N=64, TRIPS=2)[0]
    np.testing.assert_allclose(found, np.tile(np.float32([1, 2]), (64, 1)), rtol=1e-6)
    text = stored_and_loaded.translate("*fp32:16, *fp32:16, 64, 2").source
    assert "has stored to x_ptr" in text and "float stored[" in text and "written out" not in text


@triton.jit
def loops_ahead(x_ptr, out_ptr, n, N: tl.constexpr, TRIPS: tl.constexpr):
    """Each trip has a loop that loads ahead, and counts what it has loaded."""
    r = tl.arange(0, N)
    for t in tl.static_range(TRIPS):
        for i in tl.range(4, n, 2, num_stages=3):
            tl.store(out_ptr + (t * n + i) * N + r, tl.load(x_ptr + i * N + r))


def test_stages_of_loops_within_trips_are_counted(run_everywhere: Any) -> None:
    x = np.arange(15 * 128, dtype=np.float32).reshape(15, 128)
    found = run_everywhere(loops_ahead, (1,), x, np.zeros((2, 15, 128), np.float32), 15, N=128, TRIPS=2)[1]
    np.testing.assert_array_equal(found[:, 4::2], np.stack((x[4::2], x[4::2])))
    assert not found[:, 5::2].any() and not found[:, :4].any()
    text = loops_ahead.translate("*fp32:16, *fp32:16, i32, 128, 2").source
    assert "\n        int used = 0;" in text and "written out" not in text
