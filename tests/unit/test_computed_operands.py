"""Operands of wgmma that are computed from what tensor copies bring: multiplied from registers, B by exchanging the two."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
import tilewright as triton
import tilewright.language as tl
import tilewright.runtime.cpu as cpu
from tilewright.artifact import Options
from tilewright.pipeline import Translation, translate_stages
from tilewright.runtime.arguments.signature import parse_signature
from tilewright.schedule.targets import find_target

WAYS = (("greedy_low", "late"), ("reverse", "early"), ("random", "mixed"))


@triton.jit
def widened(a_ptr, w_ptr, scale_ptr, c_ptr, M, N, K, A_COLUMNS: tl.constexpr, W_COLUMNS: tl.constexpr,
            WIDEN_A: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):  # fmt: skip
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    cols = tl.program_id(1) * BN + tl.arange(0, BN)
    total = tl.zeros((BM, BN), tl.float32)
    for start in range(0, K, BK):
        k = start + tl.arange(0, BK)
        a_places = rows[:, None] + k[None, :] * M if A_COLUMNS else rows[:, None] * K + k[None, :]
        w_places = k[:, None] + cols[None, :] * K if W_COLUMNS else k[:, None] * N + cols[None, :]
        a = tl.load(a_ptr + a_places, mask=(rows < M)[:, None] & (k < K)[None, :], other=0.0)
        w = tl.load(w_ptr + w_places, mask=(k < K)[:, None] & (cols < N)[None, :], other=0.0)
        total = tl.dot(a.to(w.dtype), w, total) if WIDEN_A else tl.dot(a, w.to(a.dtype), total)
    total *= tl.load(scale_ptr + cols, mask=cols < N, other=0.0)[None, :]
    mask = (rows < M)[:, None] & (cols < N)[None, :]
    tl.store(c_ptr + rows[:, None] * N + cols[None, :], total.to(c_ptr.dtype.element_ty), mask=mask)


@triton.jit
def halves_of_bytes(a_ptr, w_ptr, scale_ptr, c_ptr, M, N, K, GROUP: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
                    BK: tl.constexpr):  # fmt: skip
    # Weights of 4 bits, two neighbours along K in each of K bytes, with a scale for every GROUP of these.
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    cols = tl.program_id(1) * BN + tl.arange(0, BN)
    total = tl.zeros((BM, BN), tl.float32)
    for start in range(0, K, BK // 2):
        k = 2 * start + tl.arange(0, BK)
        half = start + tl.arange(0, BK // 2)
        a = tl.load(
            a_ptr + rows[:, None] * 2 * K + k[None, :], mask=(rows < M)[:, None] & (k < 2 * K)[None, :], other=0.0
        )
        w = tl.load(w_ptr + half[:, None] * N + cols[None, :], mask=(half < K)[:, None] & (cols < N)[None, :], other=0)
        scale = tl.load(scale_ptr + start // GROUP * N + cols, mask=cols < N, other=0.0)
        both = tl.join(w & 15, w >> 4).permute(0, 2, 1).reshape(BK, BN)
        total = tl.dot(a, (both.to(tl.float16) - 8.0) * scale[None, :], total)
    mask = (rows < M)[:, None] & (cols < N)[None, :]
    tl.store(c_ptr + rows[:, None] * N + cols[None, :], total.to(tl.float16), mask=mask)


@triton.jit
def packed_along_k(a_ptr, w_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # Weights of 4 bits, two neighbours along K in a byte, and bytes of a column behind one another.
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    cols = tl.program_id(1) * BN + tl.arange(0, BN)
    total = tl.zeros((BM, BN), tl.float32)
    for start in range(0, K, BK):
        k = start + tl.arange(0, BK)
        byte = start // 2 + tl.arange(0, BK // 2)
        a = tl.load(a_ptr + rows[:, None] * K + k[None, :], mask=(rows < M)[:, None] & (k < K)[None, :], other=0.0)
        mask = (cols < N)[:, None] & (byte < K // 2)[None, :]
        w = tl.load(w_ptr + cols[:, None] * (K // 2) + byte[None, :], mask=mask, other=0)
        both = tl.join(w & 15, w >> 4).reshape(BN, BK)
        total = tl.dot(a, (both.to(tl.float16) - 8.0).T, total)
    mask = (rows < M)[:, None] & (cols < N)[None, :]
    tl.store(c_ptr + rows[:, None] * N + cols[None, :], total.to(tl.float16), mask=mask)


@triton.jit
def scales_on_sums(a_ptr, w_ptr, scale_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # A scale for every BK weights of a column, multiplied with their sums.
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    cols = tl.program_id(1) * BN + tl.arange(0, BN)
    total = tl.zeros((BM, BN), tl.float32)
    for start in range(0, K, BK):
        k = start + tl.arange(0, BK)
        a = tl.load(a_ptr + rows[:, None] * K + k[None, :], mask=(rows < M)[:, None] & (k < K)[None, :], other=0.0)
        w = tl.load(w_ptr + k[:, None] * N + cols[None, :], mask=(k < K)[:, None] & (cols < N)[None, :], other=0)
        scale = tl.load(scale_ptr + start // BK * N + cols, mask=cols < N, other=0.0)
        part = tl.dot(a, w.to(tl.float16))
        total += part * scale[None, :]
    mask = (rows < M)[:, None] & (cols < N)[None, :]
    tl.store(c_ptr + rows[:, None] * N + cols[None, :], total, mask=mask)


BF16, FP16 = ml_dtypes.bfloat16, np.float16
E4M3, E5M2 = ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2


def everyhow(monkeypatch: pytest.MonkeyPatch, launch: Any) -> None:
    """Launches in every order of threads and of asynchronous operations, and once under the race detector."""
    run = cpu.run
    monkeypatch.setenv("TILEWRIGHT_MODE", "cpu")
    for schedule, delivery in WAYS:

        def with_way(artifact: Any, grid: Any, values: Any, how: tuple[str, str] = (schedule, delivery)) -> None:
            run(artifact, grid, values, schedule=how[0], seed=3, delivery=how[1])

        monkeypatch.setattr(cpu, "run", with_way)
        launch()
    monkeypatch.setattr(cpu, "run", run)
    monkeypatch.setenv("TILEWRIGHT_MODE", "check")
    launch()


def bytes_of(rng: np.random.Generator, dtype: Any, shape: tuple[int, int]) -> Any:
    """Every value of a type of 8 bits that is a number."""
    numbers = rng.integers(0, 256, shape).astype(np.uint8).view(dtype)
    return np.where(np.isfinite(numbers.astype(np.float32)), numbers, np.zeros_like(numbers))


@pytest.mark.parametrize(
    ("widen_a", "narrow", "wide", "columns", "tile", "warps"),
    [
        (False, np.int8, BF16, (False, False), (128, 128, 64), 8),
        (False, np.int8, FP16, (False, True), (64, 128, 32), 4),
        (False, np.uint8, BF16, (True, False), (64, 64, 64), 4),
        (False, np.uint8, FP16, (False, False), (64, 256, 32), 8),
        (False, E4M3, BF16, (False, True), (128, 128, 32), 8),
        (False, np.int8, BF16, (False, True), (64, 256, 32), 8),
        (False, E5M2, FP16, (True, True), (128, 64, 32), 4),
        (False, E4M3, FP16, (False, False), (64, 64, 64), 4),
        (True, np.int8, BF16, (False, False), (128, 128, 64), 8),
        (True, E4M3, FP16, (True, True), (64, 128, 32), 4),
    ],
)
def test_products(widen_a: bool, narrow: Any, wide: Any, columns: tuple[bool, bool], tile: tuple[int, int, int],
                  warps: int, monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    rng = np.random.default_rng(5)
    m, n, k = tile[0] + 16, tile[1] + 16, 3 * tile[2] + 16
    types = (narrow, wide) if widen_a else (wide, narrow)
    a, w = (
        bytes_of(rng, dtype, shape) if dtype is narrow else rng.standard_normal(shape).astype(wide)
        for dtype, shape in zip(types, ((m, k), (k, n)), strict=True)
    )
    scale = rng.standard_normal(n).astype(np.float32) / 1000
    expected = a.astype(np.float64) @ w.astype(np.float64) * scale
    stored = [np.ascontiguousarray(x.T if turned else x) for x, turned in zip((a, w), columns, strict=True)]

    def launch() -> None:
        c = np.full((m, n), np.nan, wide)
        compiled = widened[(2, 2)](*stored, scale, c, m, n, k, *columns, widen_a, *tile, num_warps=warps)
        assert "_fragments" in compiled.source and ", for the dot" not in compiled.source  # nobody copies an operand
        error = np.linalg.norm(c.astype(np.float64) - expected) / np.linalg.norm(expected)
        assert error < (4e-3 if wide is BF16 else 1e-3)

    everyhow(monkeypatch, launch)


def test_weights_of_four_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(7)
    m, n, k, group = 80, 144, 160, 32
    a = rng.standard_normal((m, k)).astype(FP16)
    numbers = rng.integers(0, 16, (k, n)).astype(np.uint8)
    scale = (rng.integers(1, 9, (-(-k // (2 * group)), n)) / 8).astype(FP16)
    expected = a.astype(np.float64) @ ((numbers - 8.0) * np.repeat(scale.astype(np.float64), 2 * group, 0)[:k])

    def launch() -> None:
        c = np.full((m, n), np.nan, FP16)
        words = numbers[0::2] | numbers[1::2] << 4
        compiled = halves_of_bytes[(2, 2)](a, words, scale, c, m, n, k // 2, group, 64, 128, 64, num_warps=8)
        assert "_fragments" in compiled.source
        assert np.linalg.norm(c.astype(np.float64) - expected) / np.linalg.norm(expected) < 1e-3

    everyhow(monkeypatch, launch)


@pytest.mark.parametrize(("k", "copied"), [(160, True), (144, False)])
def test_weights_of_four_bits_packed_along_k(k: int, copied: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tensor copies bring the bytes where their rows are multiples of 16, which a launch is asked for; threads do elsewhere."""
    rng = np.random.default_rng(8)
    m, n = 80, 144
    a = rng.standard_normal((m, k)).astype(FP16)
    numbers = rng.integers(0, 16, (n, k)).astype(np.uint8)
    expected = a.astype(np.float64) @ (numbers.T - 8.0)

    def launch() -> None:
        c = np.full((m, n), np.nan, FP16)
        words = numbers[:, 0::2] | numbers[:, 1::2] << 4
        compiled = packed_along_k[(2, 2)](a, words, c, m, n, k, 64, 128, 64, num_warps=8)
        assert ("_fragments" in compiled.source) == copied
        assert ("holds for K / 2 % 16 == 0" in compiled.source) == copied
        held = next(line for line in compiled.source.splitlines() if "//              w [128, 32]" in line)
        assert "each element in" not in held  # a thread that has a byte has both of its weights
        assert np.linalg.norm(c.astype(np.float64) - expected) / np.linalg.norm(expected) < 1e-3

    everyhow(monkeypatch, launch)


def test_scales_on_sums(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(8)
    m, n, k = 80, 80, 112
    a, w = rng.standard_normal((m, k)).astype(FP16), rng.integers(-128, 128, (k, n)).astype(np.int8)
    scale = (rng.integers(1, 9, (4, n)) / 8).astype(np.float32)
    expected = a.astype(np.float64) @ (w * np.repeat(scale.astype(np.float64), 32, 0)[:k])

    def launch() -> None:
        c = np.full((m, n), np.nan, np.float32)
        compiled = scales_on_sums[(2, 2)](a, w, scale, c, m, n, k, 64, 64, 32, num_warps=4)
        assert "_fragments" in compiled.source
        assert np.linalg.norm(c - expected) / np.linalg.norm(expected) < 1e-6

    everyhow(monkeypatch, launch)


def planned(kernel: Any, signature: str, **options: Any) -> Translation:
    return translate_stages(kernel, parse_signature(kernel, signature), Options(**options), find_target("sm_90a"))


SIGNATURE = "*bf16:16, *{}:16, *fp32:16, *bf16:16, i32:16, i32:16, i32:16, 0, 0, 0, {}"


def test_columns_of_b_are_rows_of_the_instruction() -> None:
    translation = planned(widened, SIGNATURE.format("i8", "128, 256, 64"), num_warps=8)
    (plan,) = translation.schedule.dots.values()
    assert plan.exchanged and plan.rows_in_registers and plan.rows.variable.name == "w"
    layout = translation.schedule.layouts[plan.rows.variable]
    assert layout.run(1) == 4  # 64 neighbouring columns in a warp, four of them in a lane
    assert "load_vec<VEC>(loaded, &w_tile[stage][w_tile_place]);" in translation.artifact.source


@pytest.mark.parametrize(
    ("signature", "why"),
    [
        (
            "*bf16:16, *i8, *fp32:16, *bf16:16, i32:16, i32:16, i32:16, 0, 0, 0, 128, 128, 64",
            "no tensor copy can bring it",
        ),
        (SIGNATURE.format("i8", "128, 64, 64"), "two warpgroups would compute the same"),
        (SIGNATURE.format("i8", "16, 64, 64"), "mma.sync"),
    ],
)
def test_where_operands_stay_as_they_were(signature: str, why: str) -> None:
    translation = planned(widened, signature, num_warps=8)
    assert not any(plan.exchanged or plan.fragment for plan in translation.schedule.dots.values()), why
    brought = {tile.name for ring in translation.schedule.rings.rings if ring.kind == "tma" for tile in ring.tiles}
    # A tensor copy that could bring it does so even if threads then carry what they compute to shared memory.
    assert ("w_tile" in brought) == (why == "two warpgroups would compute the same"), why


@triton.jit
def two_sums(a_ptr, w_ptr, u_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rows, cols = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN)
    first, second = tl.zeros((BM, BN), tl.float32), tl.zeros((BM, BN), tl.float32)
    for start in range(0, K, BK):
        k = start + tl.arange(0, BK)
        a = tl.load(a_ptr + rows[:, None] * K + k[None, :], mask=(rows < M)[:, None] & (k < K)[None, :], other=0.0)
        w = tl.load(w_ptr + k[:, None] * N + cols[None, :], mask=(k < K)[:, None] & (cols < N)[None, :], other=0)
        u = tl.load(u_ptr + k[:, None] * N + cols[None, :], mask=(k < K)[:, None] & (cols < N)[None, :], other=0)
        first = tl.dot(a, w.to(tl.bfloat16), first)
        second = tl.dot(a, u.to(tl.bfloat16), second)
    mask = (rows < M)[:, None] & (cols < N)[None, :]
    tl.store(c_ptr + rows[:, None] * N + cols[None, :], (first * second).to(tl.bfloat16), mask=mask)


def test_operands_of_two_products_leave_no_room_for_a_second_block() -> None:
    signature = "*bf16:16, *i8:16, *i8:16, *bf16:16, i32:16, i32:16, i32:16, 64, 128, 64"
    schedule = planned(two_sums, signature, num_warps=8).schedule
    assert all(plan.exchanged and plan.rows_in_registers for plan in schedule.dots.values())
    assert schedule.blocks_per_multiprocessor == 1  # ptxas would serialise the products, for want of registers
