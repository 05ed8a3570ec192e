"""Tiles of bytes that are not contiguous along K: transposed in shared memory, no bank twice; results on the CPU."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
import tilewright as triton
import tilewright.language as tl
import tilewright.runtime.cpu as cpu
from dot_cases import small_rings
from tilewright.artifact import Options
from tilewright.pipeline import Translation, translate_stages
from tilewright.runtime.arguments.signature import parse_signature
from tilewright.schedule.products.shared_tiles import SharedTile
from tilewright.schedule.targets import find_target

WAYS = (("greedy_low", "late"), ("reverse", "early"), ("random", "mixed"))
DTYPES = {"e4m3": ml_dtypes.float8_e4m3fn, "e5m2": ml_dtypes.float8_e5m2, "int8": np.int8}


@triton.jit
def product(
    a_ptr, b_ptr, c_ptr, M, N, K, stride_am, stride_ak, stride_bk, stride_bn, ACC: tl.constexpr, BM: tl.constexpr,
    BN: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    m, n = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN)
    total = tl.zeros((BM, BN), ACC)
    for start in range(0, K, BK):
        k = start + tl.arange(0, BK)
        a = tl.load(a_ptr + m[:, None] * stride_am + k[None, :] * stride_ak, mask=m[:, None] < M)
        b = tl.load(b_ptr + k[:, None] * stride_bk + n[None, :] * stride_bn, mask=n[None, :] < N)
        total += tl.dot(a, b, out_dtype=ACC)
    tl.store(c_ptr + m[:, None] * N + n[None, :], total, mask=(m[:, None] < M) & (n[None, :] < N))


def launch(layouts: str, dtype: str, tile: tuple[int, int, int], **options: Any) -> None:
    """Multiplies matrices that lie by rows (N) or by columns (T); the result must be exact."""
    bm, bn, bk = tile
    m, n, k = bm + 16, 2 * bn - 16, 3 * bk
    rng = np.random.default_rng(bm + bn)
    a, b = (rng.integers(-6, 7, shape).astype(DTYPES[dtype]) for shape in ((m, k), (k, n)))
    left, right = (x if by == "N" else np.ascontiguousarray(x.T) for x, by in zip((a, b), layouts, strict=True))
    strides = [
        s
        for x, by in ((left, layouts[0]), (right, layouts[1]))
        for s in ((x.shape[1], 1) if by == "N" else (1, x.shape[1]))
    ]
    c = np.full((m, n), -1, np.int32 if dtype == "int8" else np.float32)
    acc = tl.int32 if dtype == "int8" else tl.float32
    grid = (triton.cdiv(m, bm), triton.cdiv(n, bn))
    product[grid](left, right, c, m, n, k, *strides, acc, bm, bn, bk, **options)
    np.testing.assert_array_equal(c, a.astype(np.float64) @ b.astype(np.float64))


SHAPES = [("NN", (64, 32, 64), 4), ("TN", (64, 64, 32), 4), ("TT", (128, 16, 128), 8), ("NN", (64, 256, 32), 4),
          ("TN", (128, 128, 128), 8), ("NN", (16, 16, 32), 2), ("TN", (32, 128, 64), 8)]  # fmt: skip


@pytest.mark.parametrize(
    ("dtype", "arch"), [("e4m3", "sm_90a"), ("int8", "sm_90a"), ("e5m2", "sm_89"), ("int8", "sm_80")]
)
@pytest.mark.parametrize(("layouts", "tile", "warps"), SHAPES)
def test_products_are_exact(
    layouts: str, tile: tuple[int, int, int], warps: int, dtype: str, arch: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TILEWRIGHT_MODE", "cpu")
    monkeypatch.setenv("TILEWRIGHT_ARCH", arch)
    small_rings(monkeypatch)
    run, texts = cpu.run, []
    for way in WAYS:

        def with_way(artifact: Any, grid: Any, values: Any, way: tuple[str, str] = way) -> None:
            texts.append(artifact.source)
            run(artifact, grid, values, schedule=way[0], seed=3, delivery=way[1])

        with monkeypatch.context() as patch:
            patch.setattr(cpu, "run", with_way)
            launch(layouts, dtype, tile, num_warps=warps)
    assert texts[0].count(" transpose_bytes<") == layouts.count("N", 1) + layouts.count("T", 0, 1)


@pytest.mark.parametrize("layouts", ("NN", "TT"))
@pytest.mark.parametrize("arch", ("sm_89", "sm_90a"))
def test_no_sanitizer_has_a_complaint(layouts: str, arch: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_MODE", "check")
    monkeypatch.setenv("TILEWRIGHT_ARCH", arch)
    small_rings(monkeypatch)
    launch(layouts, "e4m3", (64, 32, 64), num_warps=4)


def planned(layouts: str, tile: tuple[int, int, int], arch: str, **options: Any) -> Translation:
    strides = {"NN": "i32:16, i32:1, i32:16, i32:1", "TN": "i32:1, i32:16, i32:16, i32:1"}[layouts]
    signature = (
        f"*fp8e4nv:16, *fp8e4nv:16, *fp32:16, i32:16, i32:16, i32:16, {strides}, fp32, {', '.join(map(str, tile))}"
    )
    return translate_stages(product, parse_signature(product, signature), Options(**options), find_target(arch))


@pytest.mark.parametrize(("arch", "kind"), [("sm_89", "cp_async"), ("sm_90a", "tma")])
def test_both_operands_are_loaded_ahead(arch: str, kind: str) -> None:
    (ring,) = planned("TN", (64, 64, 64), arch).schedule.rings.rings
    assert (ring.kind, len(ring.tiles)) == (kind, 2)


# ---------------------------------------------------------------------------------------------------------------- banks


def units(lines: int, width: int, warps: int) -> set[tuple[int, int]]:
    """The (first line, first column) of each piece, as the helper shares them out."""
    across = min(width // 16, warps)
    down = warps // across
    found = [
        (line + warp // across * 32, column + warp % across * 16)
        for warp in range(warps)
        if warp // across * 32 < lines
        for column in range(0, width, across * 16)
        for line in range(0, lines, down * 32)
    ]
    assert len(found) == len(set(found))
    return set(found)


@pytest.mark.parametrize("width", (16, 32, 64, 128, 256))
@pytest.mark.parametrize("lines", (32, 64, 128, 256))
def test_no_bank_is_met_twice(lines: int, width: int) -> None:
    """The addresses of the helper, by arithmetic: of eight rows that go together, and of 32 words.

    stmatrix stores these words in the same places, eight rows of 16 bytes: lines that differ modulo 8 for it too.
    """
    source, target = SharedTile((lines, width), 1, 1), SharedTile((lines, width), 0, 1)
    for warps in (1, 2, 4, 8):
        assert units(lines, width, warps) == {(k, n) for k in range(0, lines, 32) for n in range(0, width, 16)}
    memory = np.full(lines * width, -1)
    for first in range(0, lines, 32):
        for column in range(0, width, 16):
            pairs = np.zeros((4, 32, 4), int)  # of a matrix, a lane, a byte: line * width + column
            for matrix in range(4):
                rows = []
                for lane in range(8 * matrix, 8 * matrix + 8):
                    row = lane % 8 // 2
                    rows.append(first + lane // 16 * 16 + row * 4 + (row // 2 ^ lane // 8 % 2) * 2 + lane % 2)
                places = [source.offset((line, column)) for line in rows]
                assert len({place // 16 % 8 for place in places}) == 8 and not any(place % 16 for place in places)
                for lane in range(32):
                    at = [rows[lane % 4 * 2 + j] * width + column + lane // 4 * 2 + i for j in (0, 1) for i in (0, 1)]
                    pairs[matrix, lane] = at
            for half in (0, 1):
                for second in (False, True):
                    banks = set()
                    for lane in range(32):
                        odd = lane // 16
                        selector = (0x6420 if lane % 4 < 2 else 0x2064) + odd * 0x1111
                        selector ^= 0x1111 if second else 0
                        line = column + lane // 4 * 2 + (1 - odd if second else odd)
                        place = target.offset((first + half * 16 + lane % 4 * 4, line))
                        row = (
                            8 * (2 * half + second) + lane // 4
                        )  # the lane whose address stmatrix takes for these bytes
                        to = column + row % 8 * 2 + (row // 8 % 2 ^ row % 8 // 4)
                        assert target.offset((first + row // 16 * 16, to)) + lane % 4 * 4 == place
                        assert place % 4 == 0
                        banks.add(place // 4 % 32)
                        both = [*pairs[2 * half, lane], *pairs[2 * half + 1, lane]]
                        memory[place : place + 4] = [both[selector >> 4 * byte & 7] for byte in range(4)]
                    assert len(banks) == 32
    for line in range(lines):
        for column in range(width):
            assert memory[target.offset((line, column))] == line * width + column
