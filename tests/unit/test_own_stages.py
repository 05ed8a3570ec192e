"""Loads that threads make ahead for themselves, and operands that stay in registers: plans, text, and results everyhow."""

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


@triton.jit
def row_sums(x_ptr, y_ptr, out_ptr, rows, cols, stride, BLOCK: tl.constexpr, STAGES: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for row in tl.range(tl.program_id(0), rows, tl.num_programs(0), num_stages=STAGES):
        x = tl.load(x_ptr + row * stride + offsets, mask=offsets < cols, other=-2.0)
        y = tl.load(y_ptr + row * stride + offsets, mask=offsets < cols)
        total += x * tl.where(offsets < cols, y, 1.0)
        tl.store(out_ptr + row * BLOCK + offsets, total)


@triton.jit
def scaled_rows(x_ptr, scale_ptr, shift_ptr, half_ptr, out_ptr, rows, BLOCK: tl.constexpr, STAGES: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    for row in tl.range(tl.program_id(0), rows, tl.num_programs(0), num_stages=STAGES):
        x = tl.load(x_ptr + row * BLOCK + offsets)
        scale = tl.load(scale_ptr + row)
        shift = tl.load(shift_ptr + row, mask=row > 1, other=-3.0)
        half = tl.load(half_ptr + row, mask=row != 3, other=7.0)  # two bytes: cp.async has no such copy
        tl.store(out_ptr + row * BLOCK + offsets, x * scale + shift + half)


@triton.jit
def sums_of_what_is_there(x_ptr, scale_ptr, out_ptr, rows, cols, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for row in tl.range(0, rows, num_stages=3):
        x = tl.load(x_ptr + row * BLOCK + offsets, mask=(offsets < cols) & (row != 2), other=0.0)
        scale = tl.load(scale_ptr + row, mask=row != 1, other=0.0)
        total += x * scale + x
    tl.store(out_ptr + offsets, total)


@triton.jit
def sum_of_scalars(x_ptr, out_ptr, rows):
    total = 0.0
    for row in tl.range(0, rows, num_stages=4):
        total += tl.load(x_ptr + row)
    tl.store(out_ptr, total)


@triton.jit
def smallest_of_rows(x_ptr, out_ptr, rows, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    for row in tl.range(tl.program_id(0), rows, tl.num_programs(0), num_stages=3):
        tl.store(out_ptr + row, tl.min(tl.load(x_ptr + row * BLOCK + offsets)))


@triton.jit
def shares_of_rows(x_ptr, out_ptr, rows, cols, BLOCK: tl.constexpr, STAGES: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    for row in tl.range(tl.program_id(0), rows, tl.num_programs(0), num_stages=STAGES):
        x = tl.exp(tl.load(x_ptr + row * cols + offsets, mask=offsets < cols, other=0.0).to(tl.float32))
        tl.store(out_ptr + row * cols + offsets, x / tl.sum(x), mask=offsets < cols)


@triton.jit
def in_place(x_ptr, out_ptr, rows, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    for row in tl.range(0, rows, num_stages=3):
        x = tl.load(x_ptr + row * BLOCK + offsets)
        tl.store(x_ptr + (row + 1) * BLOCK + offsets, x + 1.0)
        tl.store(out_ptr + row * BLOCK + offsets, x)


@triton.jit
def dequantised(
    a_ptr, w_ptr, scale_ptr, c_ptr, M, N, K, BITS: tl.constexpr, BY_COLUMNS: tl.constexpr, BM: tl.constexpr,
    BN: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    # Weights of BITS bits, several along K in an int32, times a scale per column and block of K.
    FIELDS: tl.constexpr = 32 // BITS
    m = tl.program_id(1) * BM + tl.arange(0, BM)
    n = tl.program_id(0) * BN + tl.arange(0, BN)
    k = tl.arange(0, BK)
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for block in range(0, K // BK):
        at = block * BK + k
        a = tl.load(a_ptr + m[:, None] * K + at[None, :], mask=m[:, None] < M, other=0.0)
        if BY_COLUMNS:
            word = tl.load(w_ptr + n[:, None] * (K // FIELDS) + at[None, :] // FIELDS)
            field = (word >> (at[None, :] % FIELDS * BITS)) & ((1 << BITS) - 1)
            b = (field - (1 << BITS) // 2).to(a.dtype) * tl.load(scale_ptr + block * N + n)[:, None]
            b = b.T
        else:
            word = tl.load(w_ptr + at[:, None] // FIELDS * N + n[None, :])
            field = (word >> (at[:, None] % FIELDS * BITS)) & ((1 << BITS) - 1)
            b = (field - (1 << BITS) // 2).to(a.dtype) * tl.load(scale_ptr + block * N + n)[None, :]
        total = tl.dot(a, b, total)
    tl.store(c_ptr + m[:, None] * N + n[None, :], total, mask=m[:, None] < M)


@triton.jit
def columns(a_ptr, w_ptr, c_ptr, N, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # A row of blocks of C, from the same rows of A: nothing in the loop is loaded for the block as a whole.
    m, k = tl.arange(0, BM), tl.arange(0, BK)
    a = tl.load(a_ptr + m[:, None] * BK + k[None, :])
    for block in tl.range(tl.program_id(0), N // BN, tl.num_programs(0), num_stages=3):
        n = block * BN + tl.arange(0, BN)
        word = tl.load(w_ptr + k[:, None] // 8 * N + n[None, :])
        b = (((word >> (k[:, None] % 8 * 4)) & 15) - 8).to(a.dtype)
        tl.store(c_ptr + m[:, None] * N + n[None, :], tl.dot(a, b))


def planned(kernel: Any, signature: str, arch: str = "sm_90a", **options: Any) -> Translation:
    """All stages of a translation."""
    return translate_stages(kernel, parse_signature(kernel, signature), Options(**options), find_target(arch))


@pytest.mark.parametrize("stages", [2, 3, 5])
@pytest.mark.parametrize(("rows", "cols", "programs"), [(7, 250, 2), (1, 256, 3), (5, 256, 1)])
def test_rows_are_loaded_ahead(stages: int, rows: int, cols: int, programs: int, run_everyhow: Any) -> None:
    rng = np.random.default_rng(1)
    x, y = (rng.standard_normal((rows, 256)).astype(np.float32) for _ in range(2))
    out = np.full((rows, 256), np.nan, np.float32)
    (ring,) = planned(row_sums, f"*fp32:16, *fp32:16, *fp32:16, i32, i32, i32:16, 256, {stages}").schedule.rings.rings
    assert (ring.kind, ring.stages, len(ring.own)) == ("own", stages - 1, 2)
    inside = np.arange(256) < cols
    products = np.where(inside, x, -2.0) * np.where(inside, y, 1.0)
    expected = np.stack([products[row % programs : row + 1 : programs].sum(axis=0) for row in range(rows)])
    for *_, found, _, _, _ in (
        r[:6] for r in run_everyhow(
            row_sums, (programs,), [x, y, out, rows, cols, 256], BLOCK=256, STAGES=stages, checked=False
        )
    ):  # fmt: skip
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("stages", [2, 4])
def test_scalars_are_loaded_ahead_with_tiles(stages: int, run_everyhow: Any) -> None:
    rng = np.random.default_rng(4)
    x, scale, shift = (rng.standard_normal(shape).astype(np.float32) for shape in ((9, 256), 9, 9))
    half, out = rng.standard_normal(9).astype(np.float16), np.full((9, 256), np.nan, np.float32)
    signature = f"*fp32:16, *fp32:16, *fp32:16, *fp16:16, *fp32:16, i32, 256, {stages}"
    text = planned(scaled_rows, signature).artifact.source
    assert "cp_async_4(&shift_ahead" in text and "row > 1 ? 4 : 0);" in text and "half_half = next_half;" in text
    expected = x * scale[:, None] + np.where(np.arange(9) > 1, shift, -3)[:, None]
    expected += np.where(np.arange(9) != 3, half, 7)[:, None]
    arguments = [x, scale, shift, half, out, 9]
    for result in run_everyhow(scaled_rows, (2,), arguments, BLOCK=256, STAGES=stages, checked=False):
        np.testing.assert_allclose(result[4], expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("cols", [0, 3, 250, 256])
def test_copies_leave_zeros_where_a_mask_is_false(cols: int, run_everyhow: Any) -> None:
    rng = np.random.default_rng(5)
    x, scale = rng.standard_normal((5, 256)).astype(np.float32), rng.standard_normal(5).astype(np.float32)
    text = planned(sums_of_what_is_there, "*fp32:16, *fp32:16, *fp32:16, i32, i32, 256").artifact.source
    assert "load_vec<" in text and "load_vec_" not in text and "scale = scale_ahead[stage][tid];" in text
    there = np.where((np.arange(256) < cols) & (np.arange(5) != 2)[:, None], x, 0)
    expected = (there * (np.where(np.arange(5) != 1, scale, 0) + 1)[:, None]).sum(axis=0)
    arguments = [x, scale, np.full(256, np.nan, np.float32), 5, cols]
    for result in run_everyhow(sums_of_what_is_there, (1,), arguments, BLOCK=256, checked=False):
        np.testing.assert_allclose(result[2], expected, rtol=1e-5, atol=1e-5)


def test_copies_of_several_elements_have_the_alignment_that_they_need(run_everyhow: Any) -> None:
    """Behind the partial minima, two bytes each, a compiler places an array of halves at any multiple of two."""
    x = np.random.default_rng(6).standard_normal((5, 2048)).astype(np.float16)
    text = planned(smallest_of_rows, "*fp16:16, *fp16:16, i32, 2048").artifact.source
    assert "__shared__ __align__(16) half x_ahead" in text and "__shared__ half x_min_partial" in text
    for result in run_everyhow(smallest_of_rows, (2,), [x, np.zeros(5, np.float16), 5], BLOCK=2048, checked=False):
        assert np.array_equal(result[1], x.min(axis=1))


@pytest.mark.parametrize(("rows", "test"), [("3", ""), ("i32", "if (stage < rows) ")])
def test_the_first_copies_are_tested_where_numbers_do_not_tell(rows: str, test: str) -> None:
    """Three are started before the loop, of as many rows as there are."""
    text = sums_of_what_is_there.translate(f"*fp32:16, *fp32:16, *fp32:16, {rows}, i32, 512", arch="sm_80").source
    assert f"{{\n        {test}load_tiles(stage, stage);\n" in text


def test_scalars_alone_need_no_stages() -> None:
    assert not planned(sum_of_scalars, "*fp32:16, *fp32:16, i32").schedule.rings.rings


def test_a_sanitizer_sees_no_race(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_MODE", "check")
    x, out = np.ones((6, 128), np.float32), np.full((6, 128), np.nan, np.float32)
    row_sums[(2,)](x, x, out, 6, 128, 128, BLOCK=128, STAGES=3)
    assert (out == np.repeat([1, 2, 3], 2)[:, None]).all()


@pytest.mark.parametrize(
    ("kernel", "signature", "own"),
    [
        (in_place, "*fp32:16, *fp32:16, i32, 256", []),
    ],
)
def test_what_cannot_be_loaded_ahead_is_not(kernel: Any, signature: str, own: list[str]) -> None:
    rings = planned(kernel, signature).schedule.rings.rings
    assert [tile.name for ring in rings for tile in ring.own] == own


def test_what_many_blocks_hide_needs_no_stages() -> None:
    softmax = "*fp32:16, *fp32:16, *fp32:16, i32, i32, i32:16"
    small = planned(row_sums, f"{softmax}, 1024, None", num_warps=4).schedule.rings.rings
    large = planned(row_sums, f"{softmax}, 16384, None", num_warps=8).schedule.rings.rings
    assert not small and [ring.kind for ring in large] == ["own"]


@pytest.mark.parametrize(
    ("block", "num_warps", "stages", "kind", "cols", "blocks"),
    [
        (16384, 16, None, "fp32", "i32:16", 2),  # 32 registers of x, and half of the shared memory
        (16384, 8, None, "fp32", "i32:16", None),  # 128 registers for 64 of x: enough that nobody asks
        (16384, 16, 4, "fp32", "i32:16", None),  # three stages that the loop asks for, more than half of that memory
        (24576, 16, None, "fp32", "i32:16", None),  # 48 registers of x leave no room for a second block
        (16384, 16, None, "fp32", "i32", None),  # 32 copies, of one element and with one address each
        (16384, 16, None, "bf16", "i32:16", None),  # widened for the sum and again for the quotient, or kept
    ],
)
def test_registers_leave_room_for_the_blocks_that_stages_leave_it_for(
    block: int, num_warps: int, stages: int | None, kind: str, cols: str, blocks: int | None
) -> None:
    signature = f"*{kind}:16, *{kind}:16, i32, {cols}, {block}, {stages}"
    found = planned(shares_of_rows, signature, num_warps=num_warps)
    assert [ring.kind for ring in found.schedule.rings.rings] == ["own"]
    assert found.schedule.blocks_per_multiprocessor == blocks
    assert ("NUM_THREADS, MIN_BLOCKS)" in found.artifact.source) == bool(blocks)


@triton.jit
def shares_of_blocks(x_ptr, out_ptr, rows, cols, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    for start in tl.range(tl.program_id(0) * ROWS, rows, tl.num_programs(0) * ROWS):
        offsets = (start + tl.arange(0, ROWS))[:, None] * cols + tl.arange(0, BLOCK)[None, :]
        mask = (tl.arange(0, BLOCK) < cols)[None, :]
        x = tl.exp(tl.load(x_ptr + offsets, mask=mask, other=0.0))
        x = tl.exp(x - tl.max(x, axis=1)[:, None])
        tl.store(out_ptr + offsets, x / tl.sum(x, axis=1)[:, None], mask=mask)


def test_a_block_of_one_row_has_the_registers_of_a_row() -> None:
    """Results of one element are no tiles that registers are foreseen for: they were, and the second block was gone."""
    found = planned(shares_of_blocks, "*fp32:16, *fp32:16, i32, i32:16, 1, 16384", num_warps=16)
    assert [ring.kind for ring in found.schedule.rings.rings] == ["own"]
    assert found.schedule.blocks_per_multiprocessor == 2


DEQUANTISED = [
    (bits, by_columns, dtype, shape, warps)
    for bits in (2, 4, 8)
    for by_columns in (False, True)
    for dtype, shape, warps in (
        (np.float16, (16, 64, 64), 4),
        (np.float16, (16, 64, 64), 1),
        (np.float16, (32, 32, 128), 1),
    )
]


@pytest.mark.parametrize("arch", ["sm_80", "sm_90a"])
@pytest.mark.parametrize(("bits", "by_columns", "dtype", "shape", "warps"), DEQUANTISED)
def test_dequantised_operands_stay_in_registers(
    bits: int, by_columns: bool, dtype: Any, shape: tuple[int, int, int], warps: int, arch: str,
    monkeypatch: pytest.MonkeyPatch, run_everyhow: Any,
) -> None:  # fmt: skip
    monkeypatch.setenv("TILEWRIGHT_ARCH", arch)
    rng = np.random.default_rng(2)
    bm, bn, bk = shape
    m, n, k = bm - 3, 2 * bn, 3 * bk
    a, scale = rng.standard_normal((m, k)).astype(dtype), rng.uniform(0.5, 1, (k // bk, n)).astype(dtype)
    fields = rng.integers(0, 1 << bits, (k, n))
    weights = (fields - (1 << bits) // 2).astype(dtype) * np.repeat(scale, bk, axis=0)
    several = 32 // bits
    words = np.zeros((k // several, n), np.uint32)
    for field in range(several):
        words |= fields[field::several].astype(np.uint32) << np.uint32(bits * field)
    words = np.ascontiguousarray(words.T if by_columns else words).view(np.int32)
    c = np.full((m, n), np.nan, np.float32)
    options = {"BITS": bits, "BY_COLUMNS": by_columns, "BM": bm, "BN": bn, "BK": bk, "num_warps": warps}
    signature = f"*fp16:16, *i32:16, *fp16:16, *fp32:16, i32, i32:16, i32:16, {bits}, {by_columns}, {bm}, {bn}, {bk}"
    schedule = planned(dequantised, signature, arch, num_warps=warps).schedule
    (plan,) = schedule.dots.values()
    assert plan.held is not None and plan.held.run >= 4
    assert {tile.name for ring in schedule.rings.rings for tile in ring.own} >= {"word"}
    expected = a.astype(np.float64) @ weights.astype(np.float64)
    for result in run_everyhow(dequantised, (2, 1), [a, words, scale, c, m, n, k], **options, checked=False):
        np.testing.assert_allclose(result[3], expected, rtol=2e-3, atol=2e-2)


@pytest.mark.parametrize("mode", ["everyhow", "check"])
def test_large_tiles_are_loaded_ahead_beside_tensor_copies(
    mode: str, monkeypatch: pytest.MonkeyPatch, run_everyhow: Any
) -> None:
    """Weights of a product by wgmma: the loading warpgroup brings A, those who multiply their words and scales.

    Four lines of words are too few for a tensor copy.
    """
    rng = np.random.default_rng(6)
    bm, bn, bk = 64, 256, 16
    m, n, k = 2 * bm - 16, 2 * bn, 9 * bk
    a, scale = rng.standard_normal((m, k)).astype(np.float16), rng.uniform(0.5, 1, (k // bk, n)).astype(np.float16)
    fields = rng.integers(0, 256, (k, n))
    weights = (fields - 128).astype(np.float16) * np.repeat(scale, bk, axis=0)
    words = sum(fields[field::4].astype(np.uint32) << np.uint32(8 * field) for field in range(4)).view(np.int32)
    signature = f"*fp16:16, *i32:16, *fp16:16, *fp32:16, i32:16, i32:16, i32:16, 8, False, {bm}, {bn}, {bk}"
    translation = planned(dequantised, signature)
    (ring,) = translation.schedule.rings.rings
    assert ring.kind == "tma" and [tile.name for tile in ring.own] == ["word", "scale"]
    assert "cp_async_wait<NUM_STAGES - 1>();" in translation.artifact.source
    arguments = [a, words, scale, np.full((m, n), np.nan, np.float32), m, n, k]
    options = {"BITS": 8, "BY_COLUMNS": False, "BM": bm, "BN": bn, "BK": bk}
    if mode == "check":
        monkeypatch.setenv("TILEWRIGHT_MODE", "check")
        dequantised[(2, 2)](*arguments, **options)
        results = [arguments]
    else:
        results = run_everyhow(dequantised, (2, 2), arguments, **options, checked=False)
    for result in results:
        np.testing.assert_allclose(result[3], a.astype(np.float64) @ weights.astype(np.float64), rtol=3e-3, atol=0.5)


def test_a_word_is_loaded_once() -> None:
    signature = "*fp16:16, *i32:16, *fp16:16, *fp32:16, i32, i32:16, i32:16, 4, False, 16, 128, 128"
    text = planned(dequantised, signature).artifact.source
    assert "r += 8) {\n            cp_async_16(&word_ahead" in text
    assert (
        "fields_half2<-8, 0xf, 8>(word[c][r], " in " ".join(text.split())
        and "b_shared" not in text
        and "pack_pair(b[" in text
    )


@pytest.mark.parametrize("mode", ["everyhow", "check"])
def test_lanes_copy_for_others(mode: str, monkeypatch: pytest.MonkeyPatch, run_everyhow: Any) -> None:
    """Of a ring that needs no barrier, a warp's lanes wait for each other: before they read, and before they overwrite."""
    rng = np.random.default_rng(4)
    n, bn = 5 * 128, 128
    a = rng.standard_normal((16, 64)).astype(np.float16)
    weights = rng.integers(-8, 8, (64, n))
    words = sum((weights[k::8] + 8).astype(np.uint32) << np.uint32(4 * k) for k in range(8)).view(np.int32)
    arguments = [a, words, np.full((16, n), np.nan, np.float32), n]
    translation = planned(columns, "*fp16:16, *i32:16, *fp32:16, i32:16, 16, 128, 64")
    (ring,), copies = translation.schedule.rings.rings, translation.schedule.warp_copies
    assert ring.kind == "own" and [tile.name for tile in copies] == ["word"]
    text = translation.artifact.source
    assert text.count("__syncwarp();") == 2 and "slot_filled" in text and "slot_read" in text
    options = {"BM": 16, "BN": bn, "BK": 64}
    if mode == "check":
        monkeypatch.setenv("TILEWRIGHT_MODE", "check")
        columns[(2,)](*arguments, **options)
        results = [arguments]
    else:
        results = run_everyhow(columns, (2,), arguments, **options, checked=False)
    for result in results:
        np.testing.assert_allclose(result[2], a.astype(np.float64) @ weights, rtol=1e-3, atol=1e-2)


@triton.jit
def scaled_product_of_listed_rows(
    a_ptr, b_ptr, row_ptr, a_scale_ptr, b_scale_ptr, out_ptr, N, K, count,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    rows = tl.load(row_ptr + tl.program_id(0) * BM + tl.arange(0, BM))
    there = rows < count
    columns, ks = tl.program_id(1) * BN + tl.arange(0, BN), tl.arange(0, BK)
    a_ptrs = a_ptr + rows[:, None] * K + ks[None, :]
    b_ptrs = b_ptr + ks[:, None] + columns[None, :] * K
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, K // BK):
        a = tl.load(a_ptrs, mask=there[:, None], other=0.0)
        b = tl.load(b_ptrs)
        # Four lanes hold the same rows. Which rows these are was loaded: no lane knows those of another.
        a_scale = tl.load(a_scale_ptr + rows * (K // BK) + k, mask=there, other=0.0)
        b_scale = tl.load(b_scale_ptr + columns // BN * (K // BK) + k)
        total += tl.dot(a, b) * a_scale[:, None] * b_scale[None, :]
        a_ptrs += BK
        b_ptrs += BK
    tl.store(out_ptr + rows[:, None] * N + columns[None, :], total, mask=there[:, None])


def test_lanes_do_not_copy_for_others_from_places_that_only_those_know(run_everyhow: Any) -> None:
    rng = np.random.default_rng(6)
    m, n, k, bk = 100, 64, 256, 64
    a, b = (rng.integers(-3, 4, size).astype(np.float16) for size in ((m, k), (n, k)))
    a_scale = rng.integers(1, 9, (m, k // bk)).astype(np.float32)
    b_scale = rng.integers(1, 9, (n // 32, k // bk)).astype(np.float32)
    rows = np.concatenate([rng.permutation(m), np.full(28, m)]).astype(np.int32)
    arguments = [a, b, rows, a_scale, b_scale, np.full((m, n), np.nan, np.float32), n, k, m]
    results = run_everyhow(
        scaled_product_of_listed_rows, (2, 2), arguments, BM=64, BN=32, BK=bk, num_warps=4, checked=False
    )
    blocks = np.einsum("mks,nks->mnk", a.reshape(m, -1, bk).astype(np.float64), b.reshape(n, -1, bk))
    expected = np.einsum("mnk,mk,nk->mn", blocks, a_scale, b_scale.repeat(32, 0))
    for result in results:
        np.testing.assert_array_equal(result[5], expected)


@triton.jit
def of_zero_points(
    a_ptr, w_ptr, scale_ptr, zero_ptr, c_ptr, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr
):
    m, n, k = tl.arange(0, BM), tl.program_id(0) * BN + tl.arange(0, BN), tl.arange(0, BK)
    total = tl.zeros((BM, BN), tl.float32)
    for block in range(0, K // BK):
        scale = tl.load(scale_ptr + block * N + n)
        zero = tl.load(zero_ptr + block * N + n)
        a = tl.load(a_ptr + m[:, None] * K + (block * BK + k)[None, :])
        w = (tl.load(w_ptr + ((block * BK + k) // 8)[:, None] * N + n[None, :]) >> (k % 8 * 4)[:, None]) & 15
        total += tl.dot(a, (w.to(tl.float16) - zero[None, :]) * scale[None, :])
    tl.store(c_ptr + m[:, None] * N + n[None, :], total)


def test_tiles_that_lie_alike_have_one_place() -> None:
    """scale_slot and zero_slot were the same, and a reader looked for the difference."""
    pointers = "*fp16:16, *i32:16, *fp16:16, *fp16:16, *fp32:16"
    translation = planned(of_zero_points, f"{pointers}, i32:16, i32:16, 16, 64, 128", num_warps=4)
    copied = [tile.name for tile in translation.schedule.warp_copies]
    text = translation.artifact.source
    places = re.findall(r"const int (?:\w+ = .*, )?(\w*slot_\w+) = (.*?);", text)
    assert {"scale", "zero"} <= set(copied) and text.count("[slot_read * ") == 2
    assert len(dict(places)) == len({place for _, place in places}) == len(places)


def test_the_header_says_in_which_order_arrays_have_their_axes() -> None:
    """A tile [rows, columns] was an array [columns][rows], without a word."""
    pointers = "*fp16:16, *i32:16, *fp16:16, *fp16:16, *fp32:16"
    text = planned(of_zero_points, f"{pointers}, i32:16, i32:16, 16, 64, 128", num_warps=4).artifact.source
    header = " ".join(re.sub(r"^//", "", line).strip() for line in text.splitlines() if line.startswith("//   "))
    (array,) = re.findall(r"int (\w+)\[\w*COLS\]\[\w*ROWS\];", text)
    assert re.search(rf"\b{array}\b[\w, ]* \[128, 64\]: [^\[]*; arrays by columns, then rows", header)


@triton.jit
def decoded(q_ptr, k_ptr, v_ptr, o_ptr, keys, G: tl.constexpr, D: tl.constexpr, BLOCK: tl.constexpr):
    g, d = tl.arange(0, G), tl.arange(0, D)
    q = tl.load(q_ptr + g[:, None] * D + d[None, :])
    m, l = tl.full((G,), float("-inf"), tl.float32), tl.zeros((G,), tl.float32)
    acc = tl.zeros((G, D), tl.float32)
    for start in range(0, keys, BLOCK):
        n = start + tl.arange(0, BLOCK)
        k = tl.load(k_ptr + n[None, :] * D + d[:, None], mask=n[None, :] < keys, other=0)
        s = tl.where(n[None, :] < keys, tl.dot(q, k.to(tl.float16)) * 0.01, float("-inf"))
        larger = tl.maximum(m, tl.max(s, 1))
        p, a = tl.exp(s - larger[:, None]), tl.exp(m - larger)
        l = l * a + tl.sum(p, 1)
        v = tl.load(v_ptr + n[:, None] * D + d[None, :], mask=n[:, None] < keys, other=0)
        acc = acc * a[:, None] + tl.dot(p.to(tl.float16), v.to(tl.float16))
        m = larger
    tl.store(o_ptr + g[:, None] * D + d[None, :], acc / l[:, None])


def test_stages_leave_room_for_no_more_blocks_than_products_do(run_everyhow: Any) -> None:
    """Tiles alone would leave registers for seven blocks, and each of these room for one stage."""
    signature = "*fp16:16, *i8:16, *i8:16, *fp32:16, i32, 16, 128, 64"
    (ring,) = planned(decoded, signature, num_warps=4, num_stages=3).schedule.rings.rings
    assert (ring.kind, ring.stages, {tile.stem for tile in ring.own}) == ("own", 2, {"k", "v"})
    rng, keys = np.random.default_rng(8), 200
    q = rng.normal(size=(16, 128)).astype(np.float16)
    k, v = (rng.integers(-9, 9, (keys, 128)).astype(np.int8) for _ in range(2))
    p = np.exp(q.astype(np.float64) @ k.T * 0.01)
    for result in run_everyhow(decoded, (1,), [q, k, v, np.zeros((16, 128), np.float32), keys], checked=False, G=16, D=128,
                               BLOCK=64, num_warps=4, num_stages=3):  # fmt: skip
        np.testing.assert_allclose(result[3], p @ v / p.sum(1, keepdims=True), rtol=1e-2, atol=1e-2)


@triton.jit
def counted_products(a_ptr, j_ptr, out_ptr, K, BK: tl.constexpr):
    """What a line loads and computes with at once, ahead, beside operands that no copy can take."""
    r, k = tl.arange(0, 5), tl.arange(0, BK)
    total, count = tl.zeros((5, 5), tl.float32), 0
    for start in tl.range(0, K, BK, num_stages=3):
        at = start + k
        a = tl.load(a_ptr + r[:, None] * K + at[None, :], mask=at[None, :] < K, other=0.0)
        b = tl.load(a_ptr + r[None, :] * K + at[:, None], mask=at[:, None] < K, other=0.0)
        total += tl.dot(a, b)
        count += tl.load(j_ptr + start // BK) % 3
    tl.store(out_ptr + r[:, None] * 5 + r[None, :], total + count)


def test_a_scalar_is_read_before_its_place_is_filled_again(run_everyhow: Any) -> None:
    rng = np.random.default_rng(0)
    a, j = rng.integers(-2, 3, (5, 239)).astype(np.float16), rng.integers(0, 99, 8).astype(np.int32)
    options = {"BK": 32, "num_warps": 1}
    text = counted_products.translate("*fp16:16, *i32:16, *fp32:16, i32, 32", num_warps=1).source
    assert "j_ahead[stage][tid]" in text
    expected = a.astype(np.float32) @ a.astype(np.float32).T + (j % 3).sum()
    for result in run_everyhow(counted_products, (1,), [a, j, np.zeros((5, 5), np.float32), 239], **options):
        np.testing.assert_array_equal(result[2], expected)
