"""Stores and loads along another axis than the tile is held by: it changes hands before or after, and whole vectors move."""

from __future__ import annotations

import dataclasses
import re
from typing import Any

import numpy as np
import pytest
import tilewright as triton
import tilewright.language as tl
from tilewright.runtime.building import nvrtc


@triton.jit
def transposed_by_pointers(x_ptr, y_ptr, M, N, BM: tl.constexpr, BN: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)[:, None]
    columns = tl.program_id(1) * BN + tl.arange(0, BN)[None, :]
    mask = (rows < M) & (columns < N)
    tl.store(y_ptr + columns * M + rows, tl.load(x_ptr + rows * N + columns, mask=mask), mask=mask)


@triton.jit
def transposed_by_trans(x_ptr, z_ptr, y_ptr, M, N, BM: tl.constexpr, BN: tl.constexpr):
    rows, columns = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN)
    inside = (rows[:, None] < M) & (columns[None, :] < N)
    x = tl.load(x_ptr + rows[:, None] * N + columns[None, :], mask=inside)
    z = tl.load(z_ptr + rows[:, None] * N + columns[None, :], mask=inside)
    inside = (columns[:, None] < N) & (rows[None, :] < M)
    tl.store(y_ptr + columns[:, None] * M + rows[None, :], tl.trans(x * 2 + z), mask=inside)


@triton.jit
def rotated(x_ptr, y_ptr, A: tl.constexpr, B: tl.constexpr, C: tl.constexpr):
    a, b, c = tl.arange(0, A)[:, None, None], tl.arange(0, B)[None, :, None], tl.arange(0, C)[None, None, :]
    for step in range(3):
        x = tl.load(x_ptr + step * A * B * C + (a * B + b) * C + c)
        tl.store(y_ptr + step * A * B * C + (b * C + c) * A + a, x + step)


@triton.jit
def counts_of_bins(x_ptr, count_ptr, n, BINS: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x, bins = tl.load(x_ptr + i, mask=i < n, other=BINS), tl.arange(0, BINS)
    tl.atomic_add(count_ptr + bins, tl.sum((x[:, None] == bins[None, :]).to(tl.int32), 0))


@triton.jit
def largest_of_rows(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    for row in range(tl.program_id(0), n, tl.num_programs(0)):
        tl.atomic_max(out_ptr + i, tl.load(x_ptr + row * BLOCK + i), sem="relaxed")


@triton.jit
def add_rows(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    for row in range(tl.program_id(0), n, tl.num_programs(0)):
        tl.atomic_add(out_ptr + i, tl.load(x_ptr + row * BLOCK + i), sem="relaxed")


@triton.jit
def with_residual(x_ptr, w_ptr, r_ptr, y_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """Every program takes every second tile of a product that something is added to."""
    k = tl.arange(0, BK)
    for tile in range(tl.program_id(0), tl.cdiv(M, BM) * tl.cdiv(N, BN), tl.num_programs(0)):
        rows, cols = tile // tl.cdiv(N, BN) * BM + tl.arange(0, BM), tile % tl.cdiv(N, BN) * BN + tl.arange(0, BN)
        acc = tl.zeros((BM, BN), tl.float32)
        for i in range(0, K, BK):
            x = tl.load(x_ptr + rows[:, None] * K + i + k[None, :], mask=rows[:, None] < M, other=0.0)
            acc += tl.dot(x, tl.load(w_ptr + (i + k)[:, None] * N + cols[None, :]))
        at, inside = rows[:, None] * N + cols[None, :], rows[:, None] < M
        acc += tl.load(r_ptr + at, mask=inside, other=0.0).to(tl.float32)
        tl.store(y_ptr + at, acc.to(y_ptr.dtype.element_ty), mask=inside)


SIGNATURE = "*{0}:16, *{0}:16, i32:16, i32:16, 64, 64"


@pytest.mark.parametrize("dtype", ("int8", "float16", "float32", "float64"))
@pytest.mark.parametrize(("m", "n", "warps"), [(64, 128, 4), (37, 75, 2), (96, 80, 8), (16, 16, 1)])
def test_transposes(run_everywhere: Any, dtype: str, m: int, n: int, warps: int) -> None:
    x = np.random.default_rng(m).integers(-100, 100, (m, n)).astype(dtype)
    grid = (triton.cdiv(m, 32), triton.cdiv(n, 64))
    for_tile = {"BM": 32, "BN": 64, "num_warps": warps}
    _, y = run_everywhere(transposed_by_pointers, grid, x, np.zeros((n, m), dtype), m, n, **for_tile)
    assert np.array_equal(y, x.T)
    z = x[::-1].copy() // 2
    *_, y = run_everywhere(transposed_by_trans, grid, x // 4, z, np.zeros((n, m), dtype), m, n, **for_tile)
    assert np.array_equal(y, (x // 4 * 2 + z).T)


@triton.jit
def moved_by_a_column(x_ptr, y_ptr, trips, M: tl.constexpr, N: tl.constexpr):
    # What a trip stores, the next one covers but for a column, from other threads.
    rows, columns = tl.arange(0, M)[:, None], tl.arange(0, N)[None, :]
    to = y_ptr
    moving = y_ptr + columns * M + rows
    for trip in range(trips):
        x = tl.load(x_ptr + (trip * M + rows) * N + columns)
        tl.store(to + columns * M + rows, x)
        to += M
        moving += M
        tl.store(moving, tl.load(moving) + x)


def test_a_store_whose_place_moves_meets_that_of_the_trip_before(run_everywhere: Any) -> None:
    x = np.random.default_rng(4).integers(-9, 9, (5, 32, 64)).astype(np.float32)
    _, y = run_everywhere(moved_by_a_column, (1,), x, np.zeros((64 + 5, 32), np.float32), 5, M=32, N=64)
    expected = np.zeros_like(y)
    for trip, tile in enumerate(x):
        expected[trip : trip + 64] = tile.T
        expected[trip + 1 : trip + 65] += tile.T
    assert np.array_equal(y, expected)


def test_axes_change_places_in_a_loop(run_everywhere: Any) -> None:
    x = np.arange(3 * 8 * 16 * 32, dtype=np.float32).reshape(3, 8, 16, 32)
    _, y = run_everywhere(rotated, (1,), x, np.zeros((3, 16, 32, 8), np.float32), A=8, B=16, C=32)
    assert np.array_equal(y, np.moveaxis(x, 1, 3) + np.arange(3, dtype=np.float32)[:, None, None, None])


@pytest.mark.parametrize("dtype", ("fp16", "fp32"))
def test_whole_vectors_are_written(dtype: str) -> None:
    text = transposed_by_pointers.translate(SIGNATURE.format(dtype)).source
    body = text[text.index('extern "C"') :]
    assert "x_moved" in body
    assert re.search(r"\bstore_vec<\w*VEC>\(y_ptr", body) and not re.search(r"\by_ptr\[", body)


def test_a_tile_without_room_is_stored_as_it_is() -> None:
    text = transposed_by_pointers.translate("*fp32:16, *fp32:16, i32:16, i32:16, 256, 256", num_warps=8).source
    assert "moved" not in text


@triton.jit
def products_to_listed_rows(a_ptr, b_ptr, rows_ptr, c_ptr, N, M: tl.constexpr, BN: tl.constexpr, K: tl.constexpr):
    # Rows that a list gives have no tensor copy: threads store what the tensor cores have left in their registers.
    m, n, k = tl.arange(0, M), tl.arange(0, BN), tl.arange(0, K)
    a = tl.load(a_ptr + m[:, None] * K + k[None, :])
    b = tl.load(b_ptr + k[:, None] * BN + n[None, :])
    rows = tl.load(rows_ptr + m)
    c_ptrs = c_ptr + rows[:, None] * N + n[None, :]
    c = tl.dot(a, b).to(c_ptr.dtype.element_ty)
    tl.store(c_ptrs, c, mask=(rows[:, None] >= 0) & (n[None, :] < N))


@pytest.mark.parametrize(
    ("dtype", "name", "exchanges"),
    [(np.float16, "fp16", ["2, 1", "4, 2"]), (np.int8, "i8", []), (np.float32, "fp32", [])],
)
@pytest.mark.parametrize(("m", "bn", "warps"), [(16, 64, 1), (64, 128, 4), (128, 128, 8)])
def test_neighbouring_lanes_exchange_what_tensor_cores_leave(
    run_everywhere: Any, dtype: Any, name: str, exchanges: list[str], m: int, bn: int, warps: int
) -> None:
    signature = f"*fp16:16, *fp16:16, *i32:16, *{name}:16, i32:16, {m}, {bn}, 32"
    text = products_to_listed_rows.translate(signature, num_warps=warps).source
    assert re.findall(r"swap_with_lane<(\d, \d)>\(", text) == exchanges
    rng, n = np.random.default_rng(m), bn - 16
    a, b = (rng.integers(-2, 3, shape).astype(np.float16) for shape in ((m, 32), (32, bn)))
    rows = rng.permutation(m + 5)[:m].astype(np.int32)
    rows[::7] = -1
    expected = np.zeros((m + 5, n), dtype)
    expected[rows[rows >= 0]] = (a.astype(float) @ b)[rows >= 0, :n]
    arguments = (a, b, rows, np.zeros_like(expected), n, m, bn, 32)
    found = run_everywhere(products_to_listed_rows, (1,), *arguments, num_warps=warps)
    np.testing.assert_array_equal(found[3], expected)


@triton.jit
def sums_of_rows(x_ptr, out_ptr, M: tl.constexpr, N: tl.constexpr):
    rows = tl.program_id(0) * M + tl.arange(0, M)[:, None]
    x = tl.load(x_ptr + rows * N + tl.arange(0, N)[None, :])
    tl.store(out_ptr + rows, tl.sum(x, 1)[:, None])


def test_what_few_threads_store_is_stored_as_it_is(run_everywhere: Any) -> None:
    """A row that many threads share has one element to store: an exchange would have all of them wait."""
    x = np.random.default_rng(0).standard_normal((64, 64)).astype(np.float32)
    _, out = run_everywhere(sums_of_rows, (2,), x, np.zeros(64, np.float32), M=32, N=64, num_warps=8, tolerance=1e-5)
    np.testing.assert_allclose(out, x.astype(np.float64).sum(1), rtol=1e-4, atol=1e-5)
    assert "__shared__" not in sums_of_rows.translate("*fp32:16, *fp32:16, 32, 64", num_warps=8).source


@triton.jit
def sum_with_transposed(x_ptr, y_ptr, out_ptr, M, N, SIDE: tl.constexpr):
    rows = tl.program_id(0) * SIDE + tl.arange(0, SIDE)[:, None]
    columns = tl.program_id(1) * SIDE + tl.arange(0, SIDE)[None, :]
    inside = (rows < M) & (columns < N)
    x = tl.load(x_ptr + rows * N + columns, mask=inside)
    y = tl.load(y_ptr + columns * M + rows, mask=inside)
    tl.store(out_ptr + rows * N + columns, x + y, mask=inside)


@triton.jit
def sums_with_transposed(x_ptr, out_ptr, SIDE: tl.constexpr, STEPS: tl.constexpr):
    rows, columns = tl.arange(0, SIDE)[:, None], tl.arange(0, SIDE)[None, :]
    total = tl.zeros((SIDE, SIDE), dtype=tl.float32)
    for step in range(STEPS):
        total += tl.load(x_ptr + step * SIDE * SIDE + columns * SIDE + rows)
    tl.store(out_ptr + rows * SIDE + columns, total)


@pytest.mark.parametrize("dtype", ("int8", "float16", "float32"))
@pytest.mark.parametrize(("m", "n"), [(64, 128), (37, 75)])
def test_a_transposed_load_goes_through_shared_memory(run_everywhere: Any, dtype: str, m: int, n: int) -> None:
    rng = np.random.default_rng(m)
    x, y = (rng.integers(-50, 50, shape).astype(dtype) for shape in ((m, n), (n, m)))
    grid = (triton.cdiv(m, 32), triton.cdiv(n, 32))
    *_, out = run_everywhere(sum_with_transposed, grid, x, y, np.zeros((m, n), dtype), m, n, SIDE=32)
    assert np.array_equal(out, x + y.T)
    text = sum_with_transposed.translate("*fp16:16, *fp16:16, *fp16:16, i32:16, i32:16, 64").source
    assert text.count("load_vec_if<") == 2 and "y_shared[SIDE][SIDE]" in text


def test_a_transposed_load_of_a_loop_stays(run_everywhere: Any) -> None:
    x = np.random.default_rng(8).integers(-9, 9, (3, 32, 32)).astype(np.float32)
    _, out = run_everywhere(sums_with_transposed, (1,), x, np.zeros((32, 32), np.float32), SIDE=32, STEPS=3)
    assert np.array_equal(out, x.sum(0).T)
    assert "x_shared" not in sums_with_transposed.translate("*fp16:16, *fp32:16, 64, 3").source


@triton.jit
def added_in_a_loop(x_ptr, y_ptr, out_ptr, steps, SIDE: tl.constexpr):
    rows, columns = tl.arange(0, SIDE)[:, None], tl.arange(0, SIDE)[None, :]
    total = tl.load(x_ptr + rows * SIDE + columns).to(tl.float32)
    y = tl.load(y_ptr + columns * SIDE + rows)
    for step in range(steps):
        total = total * 2 + y
    tl.store(out_ptr + rows * SIDE + columns, total)


def test_a_transposed_load_that_a_loop_reads_stays(run_everywhere: Any) -> None:
    """The way through shared memory would be one of every trip."""
    x, y = np.random.default_rng(9).integers(-9, 9, (2, 32, 32)).astype(np.float32)
    *_, out = run_everywhere(added_in_a_loop, (1,), x, y, np.zeros((32, 32), np.float32), 3, SIDE=32)
    assert np.array_equal(out, x * 8 + y.T * 7)
    assert "__shared__" not in added_in_a_loop.translate("*fp16:16, *fp16:16, *fp32:16, i32, 64").source


@triton.jit
def channels_last(x_ptr, y_ptr, BATCHES: tl.constexpr, C: tl.constexpr, HW: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    channel, batch = at % C, at // C
    for place in range(HW):
        x = tl.load(x_ptr + batch * C * HW + channel * HW + place)
        tl.store(y_ptr + channel + C * place + C * HW * 7000 * batch, x)


def test_a_vector_is_stored_in_one_piece_where_numbers_multiply_several_terms() -> None:
    text = channels_last.translate("*fp16:16, *fp16:16, 4, 256, 100, 1024").source
    assert "store_vec_wb<VEC>(" in text and "__stwb(reinterpret_cast<uint4*>(target), packet);" in text
    assert "_wb" not in transposed_by_pointers.translate(SIGNATURE.format("fp16")).source


@triton.jit
def from_where_a_head_begins(x_ptr, out_ptr, T, H: tl.constexpr, C: tl.constexpr):
    first = (tl.program_id(1).to(tl.int64) * T * H + tl.program_id(0)) * C
    x_ptr += first
    out_ptr += first
    rows = tl.arange(0, 64)
    places = rows[:, None] * (H * C) + tl.arange(0, C)[None, :]
    tl.store(out_ptr + places, tl.load(x_ptr + places) * 2, mask=(rows < T)[:, None])


@pytest.mark.skipif(not nvrtc.is_available(), reason="NVRTC is not installed")
def test_or_pointers_that_are_added_to() -> None:
    """NVRTC 13.5 made four stores of a plain one."""
    artifact = from_where_a_head_begins.translate("*fp16:16, *fp16:16, i32, 4, 64", "sm_80")
    ptx = nvrtc.compile_ptx(artifact)
    assert "store_vec_wb<VEC>(" in artifact.source and "v4.u32" in ptx and "st.global.u32" not in ptx
    plain = dataclasses.replace(artifact, source=re.sub(r"__stwb\((.*), packet\);", r"*\1 = packet;", artifact.source))
    assert "st.global.v4.u32" not in nvrtc.compile_ptx(plain), "no longer needed"


@triton.jit
def states_of_heads(x_ptr, out_ptr, heads, P: tl.constexpr, C: tl.constexpr):
    head = tl.program_id(1) * heads + tl.program_id(2)
    p = tl.program_id(0) * 64 + tl.arange(0, 64)
    places = (head.to(tl.int64) * P + p[:, None]) * C + tl.arange(0, C)[None, :]
    x = tl.load(x_ptr + places)
    tl.store(out_ptr + places, x * 2)


@pytest.mark.skipif(not nvrtc.is_available(), reason="NVRTC is not installed")
def test_or_places_of_which_each_is_multiplied_by_a_number() -> None:
    """Of `(head * P + p) * C` the compiler makes two products, where the text has one."""
    artifact = states_of_heads.translate("*fp32:16, *fp32:16, i32, 64, 128", "sm_80")
    assert "store_vec_wb<VEC>(" in artifact.source and "st.global.u32" not in nvrtc.compile_ptx(artifact)
    plain = dataclasses.replace(artifact, source=re.sub(r"__stwb\((.*), packet\);", r"*\1 = packet;", artifact.source))
    assert "st.global.v4.u32" not in nvrtc.compile_ptx(plain), "no longer needed"


@triton.jit
def into_a_batch(x_ptr, out_ptr, stride_b, stride_r, rows, C: tl.constexpr):
    r, c = tl.program_id(1) * 64 + tl.arange(0, 64), tl.arange(0, C)
    x = tl.load(x_ptr + r[:, None] * C + c[None, :])
    places = tl.program_id(0) * stride_b + r[:, None] * stride_r + c[None, :]
    tl.store(out_ptr + places, x * 2, mask=(r < rows)[:, None])


@pytest.mark.skipif(not nvrtc.is_available(), reason="NVRTC is not installed")
def test_or_strides_that_are_arguments() -> None:
    artifact = into_a_batch.translate("*fp16:16, *fp16:16, i32:16, i32:16, i32, 64", "sm_80", guards=False)
    assert "store_vec_wb<VEC>(" in artifact.source and "st.global.v2.u16" not in nvrtc.compile_ptx(artifact)


@triton.jit
def upsampled(x_ptr, out_ptr, H, W, C: tl.constexpr):
    x, c = tl.program_id(1) * 64 + tl.arange(0, 64), tl.arange(0, C)
    a = tl.load(x_ptr + x[:, None] * C + c[None, :])
    image, y = tl.program_id(0) // H, tl.program_id(0) % H
    for dy in tl.static_range(2):
        for dx in tl.static_range(2):
            at = ((image * 2 * H + 2 * y + dy) * 2 * W + 2 * x[:, None] + dx) * C + c[None, :]
            tl.store(out_ptr + at, a * 2, mask=x[:, None] < W)


@pytest.mark.skipif(not nvrtc.is_available(), reason="NVRTC is not installed")
def test_or_a_number_that_multiplies_a_sum_of_products(run_everywhere: Any) -> None:
    artifact = upsampled.translate("*fp16:16, *fp16:16, i32:16, i32:16, 64", "sm_90a", guards=False)
    assert "store_vec_wb<VEC>(" in artifact.source and "st.global.v2.u16" not in nvrtc.compile_ptx(artifact)
    plain = dataclasses.replace(artifact, source=re.sub(r"__stwb\((.*), packet\);", r"*\1 = packet;", artifact.source))
    assert "st.global.v2.u16" in nvrtc.compile_ptx(plain), "no longer needed"
    x = np.random.default_rng(4).integers(-9, 9, (128, 64)).astype(np.float16)
    _, out = run_everywhere(upsampled, (6, 2), x, np.zeros((2, 6, 160, 64), np.float16), 3, 80, C=64)
    assert np.array_equal(out, np.broadcast_to(np.repeat(2 * x[:80], 2, axis=0), out.shape))


@triton.jit
def one_or_the_other(x_ptr, y_ptr, out_ptr, turned, SIDE: tl.constexpr):
    rows, columns = tl.arange(0, SIDE)[:, None], tl.arange(0, SIDE)[None, :]
    if turned > 0:
        tile = tl.load(x_ptr + columns * SIDE + rows)
    else:
        tile = tl.load(y_ptr + rows * SIDE + columns)
    tl.store(out_ptr + rows * SIDE + columns, tile * 2)


@pytest.mark.parametrize("turned", (0, 1))
def test_a_tile_that_is_loaded_in_two_places(run_everywhere: Any, turned: int) -> None:
    x = np.random.default_rng(9).integers(-9, 9, (2, 32, 32)).astype(np.float32)
    *_, out = run_everywhere(one_or_the_other, (1,), x[0], x[1], np.zeros((32, 32), np.float32), turned, SIDE=32)
    assert np.array_equal(out, 2 * (x[0].T if turned else x[1]))


def test_atomics_of_one_element_go_to_neighbouring_threads(run_everywhere: Any) -> None:
    x = np.random.default_rng(5).integers(0, 64, 700).astype(np.int32)
    _, count = run_everywhere(counts_of_bins, (3,), x, np.zeros(64, np.int32), 700, 64, 256)
    np.testing.assert_array_equal(count, np.bincount(x, minlength=64))
    source = counts_of_bins.translate("*i32:16, *i32:16, i32, 64, 256").source
    assert "if (tid < SLOT_THREADS) atomicAdd(count_ptr + bins_slot, sum_moved);" in source


def test_atomics_beside_loads_of_vectors(run_everywhere: Any) -> None:
    x = np.random.default_rng(6).integers(-99, 99, (9, 512)).astype(np.int32)
    _, out = run_everywhere(largest_of_rows, (2,), x, np.full(512, -999, np.int32), 9, 512)
    np.testing.assert_array_equal(out, x.max(0))
    tiles = largest_of_rows.translate("*i32:16, *i32:16, i32, 512").source
    assert "4 x 128 threads" in tiles  # by vectors, four requests would each touch every fourth element


def test_sums_of_floats_stay_vectors() -> None:
    source = add_rows.translate("*fp32:16, *fp32:16, i32, 512", arch="sm_90a").source
    assert "atomic_add_vec<VEC>" in source
    assert "4 x 128 threads" in add_rows.translate("*fp32:16, *fp32:16, i32, 512", arch="sm_80").source


@pytest.mark.parametrize("m", (128, 70))
def test_residuals_come_in_whole_pieces(run_everywhere: Any, m: int) -> None:
    random = np.random.default_rng(m)
    x, w, r = (random.integers(-3, 4, shape).astype(np.float16) for shape in ((m, 64), (64, 128), (m, 128)))
    arguments = (x, w, r, np.zeros((m, 128), np.float16), m, 128, 64, 64, 64, 32)
    *_, y = run_everywhere(with_residual, (2,), *arguments)
    np.testing.assert_array_equal(y, x.astype(np.float32) @ w.astype(np.float32) + r)


def test_residuals_go_from_lane_to_lane() -> None:
    signature = "*{0}:16, *{0}:16, *{1}:16, *{1}:16, i32, i32:16, i32:16, 128, 128, 64"
    halves = with_residual.translate(signature.format("fp16", "fp16"), num_warps=8, arch="sm_90a").source
    assert "moves between neighbouring lanes, to those that compute with it." in halves
    floats = with_residual.translate(signature.format("fp16", "fp32"), num_warps=8, arch="sm_90a").source
    assert "swap_with_lane" not in floats  # four lanes have a sector between them


@triton.jit
def rows_added_anywhere(ids_ptr, x_ptr, out_ptr, total, N: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    row = tl.load(ids_ptr + i // N, mask=i < total, other=0)
    tl.atomic_add(out_ptr + row * N + i % N, tl.load(x_ptr + i, mask=i < total), mask=i < total)


@pytest.mark.parametrize(("n", "moves"), [(63, True), (64, False)])
def test_atomics_of_rows_that_are_not_aligned_go_to_neighbours(n: int, moves: bool, run_everywhere: Any) -> None:
    """Eight halves of a thread would be eight requests for scattered sectors; aligned pairs go to memory as they are."""
    text = rows_added_anywhere.translate(f"*i32:16, *fp16:16, *fp16:16, i32:16, {n}, 1024").source
    assert ("x_shared" in text) == moves and ("atomicAdd(out_ptr" in text) == moves
    ids = np.random.default_rng(11).integers(0, 5, 40).astype(np.int32)
    x = np.random.default_rng(12).integers(-4, 5, (40, n)).astype(np.float16)
    *_, out = run_everywhere(rows_added_anywhere, (5,), ids, x, np.zeros((5, n), np.float16), 40 * n, n, 512)
    expected = np.zeros((5, n))
    np.add.at(expected, ids, x.astype(np.float64))
    assert np.array_equal(out, expected)


@triton.jit
def gated_rows(x_ptr, w_ptr, y_ptr, sum_ptr, N, BLOCK: tl.constexpr, TRIPS: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    for trip in range(TRIPS):
        i = trip * BLOCK + at
        y = tl.load(x_ptr + row * N + i, mask=i < N, other=0.0) * tl.load(w_ptr + i, mask=i < N, other=0.0)
        tl.store(y_ptr + row * N + i, y, mask=i < N)
        if TRIPS == 1:
            tl.store(sum_ptr + row * BLOCK + i, y + 1)


def test_rows_that_are_not_aligned_are_stored_by_neighbours(run_everywhere: Any) -> None:
    """A thread holds runs for the sake of the weights' vectors: stored one by one, these would write sectors in pieces."""
    signature = "*fp16:16, *fp16:16, *fp16:16, *fp16:16"
    odd = gated_rows.translate(f"{signature}, i32, 1024, 1").source
    assert "y_shared" in odd and "sum_shared" not in odd
    assert re.search(r"i_at\[e\]\]\s+= y_moved\[e\];", odd), "neighbouring threads store neighbours"
    assert "y_shared" not in gated_rows.translate(f"{signature}, i32:16, 1024, 1").source, "aligned: vectors"
    assert "y_shared" not in gated_rows.translate(f"{signature}, i32, 1024, 4").source, (
        "a barrier in every trip costs more"
    )
    x, w = np.random.default_rng(3).integers(-9, 9, (2, 3, 101)).astype(np.float16)
    found = run_everywhere(gated_rows, (3,), x, w[0], x * 0, np.zeros((3, 128), np.float16), 101, BLOCK=128, TRIPS=1)
    np.testing.assert_array_equal(found[2], x * w[0])
    np.testing.assert_array_equal(found[3][:, :101], x * w[0] + 1)


@triton.jit
def two_moments(p_ptr, g_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = tl.load(p_ptr + i, mask=i < n) * 0.5 + tl.load(g_ptr + i, mask=i < n)
    tl.store(out_ptr + i, m, mask=i < n)
    tl.store(out_ptr + n + i, m, mask=i < n)


def test_what_is_loaded_by_vectors_moves_to_neighbours(run_everywhere: Any) -> None:
    """Loaded a second time for the rows that are not aligned it would be loaded one by one."""
    source = two_moments.translate("*fp32:16, *fp32:16, *fp32:16, i32, 1024").source
    assert source.count("load_vec_bounded<VEC>(&") == 2 and "m_shared" in source and "again" not in source
    p, g = np.random.default_rng(4).integers(-9, 9, (2, 131)).astype(np.float32)
    out = run_everywhere(two_moments, (2,), p, g, np.zeros((2, 131), np.float32), 131, BLOCK=128)[2]
    np.testing.assert_array_equal(out, np.stack([p / 2 + g] * 2))
