"""Descriptors that a kernel makes of addresses, sizes and strides from memory, as grouped products do."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tilewright as triton
import tilewright.language as tl
import tilewright.runtime.cpu as cpu
from tilewright.artifact import Options
from tilewright.pipeline import translate_stages
from tilewright.runtime.arguments.signature import parse_signature
from tilewright.schedule.targets import find_target

WAYS = (("greedy_low", "late"), ("reverse", "early"), ("random", "mixed"))


@triton.jit
def grouped(
    a_places, b_places, c_places, sizes, strides, num_groups, PROGRAMS: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
    BK: tl.constexpr,
):  # fmt: skip
    tile = tl.program_id(0)
    end = 0
    for group in range(num_groups):
        m, n, k = tl.load(sizes + group * 3), tl.load(sizes + group * 3 + 1), tl.load(sizes + group * 3 + 2)
        columns = tl.cdiv(n, BN)
        tiles = tl.cdiv(m, BM) * columns
        if tile >= end and tile < end + tiles:
            a_ptr = tl.load(a_places + group).to(tl.pointer_type(tl.float16))
            b_ptr = tl.load(b_places + group).to(tl.pointer_type(tl.float16))
            c_ptr = tl.load(c_places + group).to(tl.pointer_type(tl.float32))
            a_desc = tl.make_tensor_descriptor(a_ptr, [m, k], [tl.load(strides + group * 3), 1], [BM, BK])
            b_desc = tl.make_tensor_descriptor(b_ptr, [n, k], [tl.load(strides + group * 3 + 1), 1], [BN, BK])
            c_desc = tl.make_tensor_descriptor(c_ptr, [m, n], [tl.load(strides + group * 3 + 2), 1], [BM, BN])
            while tile >= end and tile < end + tiles:
                row, column = (tile - end) // columns * BM, (tile - end) % columns * BN
                total = tl.zeros((BM, BN), dtype=tl.float32)
                for start in range(0, tl.cdiv(k, BK)):
                    a = a_desc.load([row, start * BK])
                    b = b_desc.load([column, start * BK])
                    total += tl.dot(a, b.T)
                c_desc.store([row, column], total)
                tile += PROGRAMS
        end = end + tiles


SIZES = [(64, 48, 96), (70, 20, 40), (16, 16, 200), (100, 33, 8)]
SIGNATURE = "*i64:16, *i64:16, *i64:16, *i32:16, *i32:16, i32, 3, 64, 32, 32"


def spaced(rows: int, columns: int, itemsize: int) -> int:
    """A stride with room between rows: a multiple of 16 bytes, as descriptors ask."""
    return -(-columns * itemsize // 16) * 16 // itemsize + 16 // itemsize


def launch() -> None:
    """Runs the kernel; what lies between rows is NaN, and must be neither used nor written."""
    rng = np.random.default_rng(5)
    kept: list[tuple[Any, ...]] = []
    strides = []
    for m, n, k in SIZES:
        lines = (spaced(m, k, 2), spaced(n, k, 2), spaced(m, n, 4))
        a, b = np.full((m, lines[0]), np.nan, np.float16), np.full((n, lines[1]), np.nan, np.float16)
        a[:, :k], b[:, :k] = rng.integers(-4, 5, (m, k)), rng.integers(-4, 5, (n, k))
        kept.append((a, b, np.full((m, lines[2]), np.nan, np.float32)))
        strides.append(lines)
    places = [np.array([matrices[number].ctypes.data for matrices in kept], np.int64) for number in range(3)]
    grouped[(3,)](
        *places, np.array(SIZES, np.int32), np.array(strides, np.int32), len(SIZES), PROGRAMS=3, BM=64, BN=32, BK=32
    )
    for (a, b, c), (_, n, k) in zip(kept, SIZES, strict=True):
        np.testing.assert_array_equal(c[:, :n], a[:, :k].astype(np.float64) @ b[:, :k].astype(np.float64).T)
        assert np.isnan(c[:, n:]).all()


@pytest.mark.parametrize("arch", ("sm_80", "sm_90a"))
def test_products_are_exact(arch: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_MODE", "cpu")
    monkeypatch.setenv("TILEWRIGHT_ARCH", arch)
    run = cpu.run
    for way in WAYS:

        def with_way(artifact: Any, grid: Any, values: Any, way: tuple[str, str] = way) -> None:
            run(artifact, grid, values, schedule=way[0], seed=3, delivery=way[1])

        with monkeypatch.context() as patch:
            patch.setattr(cpu, "run", with_way)
            launch()


@triton.jit
def in_one_array(a_ptr, b_ptr, c_ptr, starts, strides, m, n, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    a_desc = tl.make_tensor_descriptor(a_ptr + tl.load(starts), [m, k], [tl.load(strides), 1], [BM, BK])
    b_desc = tl.make_tensor_descriptor(b_ptr + tl.load(starts + 1), [k, n], [tl.load(strides + 1), 1], [BK, BN])
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(0, k, BK):
        total = tl.dot(a_desc.load([0, start]), b_desc.load([start, 0]), total)
    c_desc = tl.make_tensor_descriptor(c_ptr, [m, n], [tl.load(strides + 2), 1], [BM, BN])
    c_desc.store([0, 0], total)


@pytest.mark.parametrize("arch", ("sm_80", "sm_90a"))
def test_no_sanitizer_has_a_complaint(arch: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_MODE", "check")
    monkeypatch.setenv("TILEWRIGHT_ARCH", arch)
    m, n, k = 50, 30, 70
    a, b = np.zeros((m + 1, 80), np.float16), np.zeros((k + 2, 40), np.float16)
    a[1:, :k], b[2:, :n] = np.arange(m)[:, None] % 5 - 2, np.arange(n)[None, :] % 7 - 3
    c = np.full((m, 32), np.nan, np.float32)
    starts, strides = np.array([80, 80], np.int32), np.array([80, 40, 32], np.int32)
    in_one_array[(1,)](a, b, c, starts, strides, m, n, k, BM=64, BN=32, BK=32)
    np.testing.assert_array_equal(c[:, :n], a[1:, :k].astype(np.float64) @ b[2:, :n].astype(np.float64))
    assert np.isnan(c[:, n:]).all()


def test_rows_are_known_to_be_aligned() -> None:
    found = translate_stages(grouped, parse_signature(grouped, SIGNATURE), Options(), find_target("sm_80"))
    (ring,) = found.schedule.rings.rings
    text = found.artifact.source
    assert (ring.kind, len(ring.tiles)) == ("cp_async", 2) and not found.artifact.tensor_maps
    assert "cp_async_16(&a[stage]" in text and "cp_async_16(&b[stage]" in text and "_ahead[" not in text
    assert "mma_m16n8k16(" in text and "store_vec_bounded<VEC>(c_ptr" in text


def test_the_kernel_makes_tensor_maps_of_what_it_loads() -> None:
    found = translate_stages(grouped, parse_signature(grouped, SIGNATURE), Options(), find_target("sm_90a"))
    (ring,) = found.schedule.rings.rings
    text = found.artifact.source
    assert (ring.kind, len(ring.tiles)) == ("tma", 2) and not found.artifact.tensor_maps and not found.artifact.guards
    assert [one.name for one in found.schedule.rings.made] == ["a_map", "b_map", "c_map"]
    assert (
        "make_tensor_map_2d<FP16_MAP, SWIZZLE>(a_map, map_drafts, a_ptr, m, k, a_desc_stride_0, BM, 2 * BK);"
        in " ".join(text.split())
    )
    assert "wgmma_m64n32k16(" in text and "tma_store_2d(c_map, row, column," in text and "no TMA" not in text
    assert "if (n % 4 == 0) {" in text  # the rows of a stored tile end where nobody knows


@triton.jit
def replaced_kernel(a_ptr, b_ptr, c_ptr, steps_ptr, B: tl.constexpr):
    i = tl.arange(0, B)
    steps = tl.load(steps_ptr)
    desc = tl.make_tensor_descriptor(a_ptr, [B, B], [B, 1], [B, B])
    total = tl.zeros((B, B), tl.float32)
    for k in range(steps):
        if k == 1:
            desc = tl.make_tensor_descriptor(b_ptr, [B, B], [B, 1], [B, B])
        tile = desc.load([0, 0])
        total = tl.dot(tile, tile, total)
    tl.store(c_ptr + i[:, None] * B + i[None, :], total)


def test_a_descriptor_that_a_loop_replaces_has_no_map(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_MODE", "cpu")
    rng = np.random.default_rng(2)
    a, b = (rng.integers(-2, 3, (64, 64)).astype(np.float16) for _ in range(2))
    c = np.zeros((64, 64), np.float32)
    replaced_kernel[(1,)](a, b, c, np.array([3], np.int32), 64)
    wide_a, wide_b = a.astype(np.float32), b.astype(np.float32)
    np.testing.assert_array_equal(c, wide_a @ wide_a + 2 * (wide_b @ wide_b))
