"""Loops over short lines, of which several trips are one: tensor copies bring lines of 128 bytes."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
import tilewright as triton
import tilewright.language as tl
from test_rings import planned


@triton.jit
def product(a_ptr, b_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    m, n, k = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN), tl.arange(0, BK)
    acc = tl.zeros((BM, BN), tl.float32)
    for start in range(0, K, BK):
        a = tl.load(
            a_ptr + m[:, None] * K + start + k[None, :], mask=(m[:, None] < M) & (start + k[None, :] < K), other=0.0
        )
        b = tl.load(
            b_ptr + n[None, :] * K + start + k[:, None], mask=(n[None, :] < N) & (start + k[:, None] < K), other=0.0
        )
        acc = tl.dot(a, b, acc)
    tl.store(c_ptr + m[:, None] * N + n[None, :], acc, mask=(m[:, None] < M) & (n[None, :] < N))


@triton.jit
def tile_after_tile(
    a_ptr, b_ptr, c_ptr, M, N, K, tiles, FIRST: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr
):
    k = tl.arange(0, BK)
    for tile in range(tl.program_id(0) if FIRST == "PROGRAM" else 0, tiles, tl.num_programs(0)):
        m, n = tile * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN)
        acc = tl.zeros((BM, BN), tl.float32)
        for start in range(0, K, BK):
            at = start + k
            a = tl.load(a_ptr + m[:, None] * K + at[None, :], mask=(m[:, None] < M) & (at[None, :] < K), other=0.0)
            b = tl.load(b_ptr + n[None, :] * K + at[:, None], mask=(n[None, :] < N) & (at[:, None] < K), other=0.0)
            acc = tl.dot(a, b, acc)
        tl.store(c_ptr + m[:, None] * N + n[None, :], acc, mask=(m[:, None] < M) & (n[None, :] < N))


@triton.jit
def unmasked(a_ptr, b_ptr, c_ptr, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    m, n, k = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN), tl.arange(0, BK)
    a, b = a_ptr + m[:, None] * K + k[None, :], b_ptr + k[:, None] * N + n[None, :]
    acc = tl.zeros((BM, BN), tl.float32)
    for _ in range(0, tl.cdiv(K, BK)):
        acc += tl.dot(tl.load(a), tl.load(b))
        a += BK
        b += BK * N
    tl.store(c_ptr + m[:, None] * N + n[None, :], acc)


@triton.jit
def split(a_ptr, b_ptr, c_ptr, M, N, K, own, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """Each program multiplies `own` of K: behind its last trip lies what the next program reads."""
    m, n, k = tl.program_id(0) * BM + tl.arange(0, BM), tl.arange(0, BN), tl.arange(0, BK)
    first = tl.program_id(1) * own
    acc = tl.zeros((BM, BN), tl.float32)
    for start in range(first, first + own, BK):
        at = start + k
        a = tl.load(a_ptr + m[:, None] * K + at[None, :], mask=(m[:, None] < M) & (at[None, :] < K), other=0.0)
        b = tl.load(b_ptr + n[None, :] * K + at[:, None], mask=(n[None, :] < N) & (at[:, None] < K), other=0.0)
        acc = tl.dot(a, b, acc)
    tl.atomic_add(c_ptr + m[:, None] * N + n[None, :], acc, mask=(m[:, None] < M) & (n[None, :] < N))


@triton.jit
def summed(a_ptr, b_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """Something else happens to the sum in each trip."""
    m, n, k = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN), tl.arange(0, BK)
    acc = tl.zeros((BM, BN), tl.float32)
    for start in range(0, K, BK):
        a = tl.load(
            a_ptr + m[:, None] * K + start + k[None, :], mask=(m[:, None] < M) & (start + k[None, :] < K), other=0.0
        )
        b = tl.load(
            b_ptr + n[None, :] * K + start + k[:, None], mask=(n[None, :] < N) & (start + k[:, None] < K), other=0.0
        )
        acc = tl.dot(a, b, acc) * 0.5
    tl.store(c_ptr + m[:, None] * N + n[None, :], acc, mask=(m[:, None] < M) & (n[None, :] < N))


USUAL = "*fp16:16, *fp16:16, *fp32:16, i32:16, i32:16, i32:16"


def trips(kernel: Any, signature: str, **options: Any) -> list[int]:
    return [ring.trips for ring in planned(kernel, signature, **options).schedule.rings.rings]


@pytest.mark.parametrize(
    ("element", "tile", "number"),
    [
        ("fp16", "64, 64, 64", 1),
        ("fp16", "64, 64, 32", 2),
        ("bf16", "128, 64, 16", 4),
        ("fp32", "64, 64, 32", 1),
        ("fp32", "64, 64, 16", 2),
        ("fp8e4nv", "64, 64, 32", 4),
    ],
)
def test_as_many_trips_as_make_a_line(element: str, tile: str, number: int) -> None:
    assert trips(product, f"{USUAL}, {tile}".replace("fp16", element)) == [number]


def test_what_the_text_says() -> None:
    artifact = planned(product, f"{USUAL}, 64, 64, 32").artifact
    maps = {one.name: (one.sizes, one.box, one.swizzle) for one in artifact.tensor_maps}
    assert maps["a_map"] == (("K", "M"), (64, 64), 128)
    assert "a [64, 64]: shared, 8 stages of 8192 bytes, 128-byte swizzle; of 2 trips" in artifact.source
    assert re.search(r"BK = 32; +// columns of a, rows of b, in a trip", artifact.source)
    assert "half a[NUM_STAGES][BM * 2 * BK];" in artifact.source
    assert artifact.source.count("start += 2 * BK, ++") == 2, "both roles take the same steps"
    text = " ".join(artifact.source.replace("//", "").split())
    assert text.count("2 trips at once, for lines of 128 bytes; zeros lie behind the last") == 2


def test_memory_stays_what_it_was() -> None:
    """Another block has room where it had some: stages are larger, and fewer. Teams have the block to themselves."""
    joined, plain = (planned(product, f"{USUAL}, 64, 64, {side}", maxnreg=168) for side in (32, 64))
    assert joined.artifact.shared_bytes < 115_000 < plain.artifact.shared_bytes
    assert planned(product, f"{USUAL}, 64, 64, 32").schedule.rings.rings[0].stages == 8


def test_a_loop_over_tiles_has_the_memory_to_itself() -> None:
    """A block on each multiprocessor takes tile after tile; a loop around that begins elsewhere may be anything."""
    for first, stages in (("PROGRAM", 8), ("OFFSET", 4)):
        found = planned(tile_after_tile, f"{USUAL}, i32, {first!r}, 64, 64, 32")
        (ring,) = found.schedule.rings.rings
        assert (ring.trips, ring.stages) == (2, stages)


def test_nothing_is_read_that_no_trip_reads() -> None:
    """Where no mask bounds them, tensors end where the last trip does, and what lies behind it is zero."""
    artifact = planned(unmasked, "*fp16:16, *fp16:16, *fp32:16, i32:16, i32:16, 64, 64, 32").artifact
    sizes = {one.name: one.sizes for one in artifact.tensor_maps}
    assert sizes["a_map"][0] == sizes["b_map"][1] == "(K + 31) // 32 * 32"
    artifact = planned(unmasked, "*fp16:16, *fp16:16, *fp32:16, i32:16, i32:16, 64, 64, 16").artifact
    assert {one.name: one.sizes for one in artifact.tensor_maps}["a_map"][0] == "(K + 15) // 16 * 16"


@pytest.mark.parametrize(
    ("kernel", "signature"),
    [
        (split, f"{USUAL}, i32:16, 64, 64, 32"),
        (summed, f"{USUAL}, 64, 64, 32"),
        (product, f"{USUAL.replace('i32:16', 'i32')}, 64, 64, 32"),
    ],
)
def test_others_are_as_they_were(kernel: Any, signature: str) -> None:
    assert trips(kernel, signature) == [1]


@pytest.mark.parametrize("k", [16, 32, 48, 64, 208])
@pytest.mark.parametrize("tile", [(64, 64, 32), (64, 32, 16)])
def test_products_of_any_depth_are_right(k: int, tile: tuple[int, ...], run_everywhere: Any, monkeypatch: Any) -> None:
    monkeypatch.setenv("TILEWRIGHT_ARCH", "sm_90a")
    rng = np.random.default_rng(k)
    a, b = rng.normal(size=(80, k)).astype(np.float16), rng.normal(size=(48, k)).astype(np.float16)
    sides = dict(zip(("BM", "BN", "BK"), tile, strict=True))
    grid, c = (2, -(-48 // tile[1])), np.full((80, 48), 9, np.float32)
    c = run_everywhere(product, grid, a, b, c, 80, 48, k, **sides, tolerance=1e-2)[2]
    np.testing.assert_allclose(c, a.astype(np.float64) @ b.astype(np.float64).T, rtol=1e-2, atol=1e-2)


@pytest.mark.parametrize("k", [32, 96, 112])
def test_what_no_mask_bounds_is_right(k: int, run_everywhere: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Behind what the trips read lie numbers that would make the sums wrong; where K is no multiple, a trip reads some itself."""
    monkeypatch.setenv("TILEWRIGHT_ARCH", "sm_90a")
    rng, read = np.random.default_rng(k), -(-k // 32) * 32
    room = rng.normal(size=64 * k + 128).astype(np.float16)
    room[64 * k + read - k :] = np.nan
    b = np.full((read + 64, 64), np.nan, np.float16)
    b[:read] = rng.normal(size=(read, 64))
    b[k:read] = 0
    tile = {"BM": 64, "BN": 64, "BK": 32}
    c = run_everywhere(unmasked, (1, 1), room, b, np.zeros((64, 64), np.float32), 64, k, **tile, tolerance=1e-2)[2]
    a = room[: 64 * k].reshape(64, k).astype(np.float64)
    np.testing.assert_allclose(c, a @ b[:k].astype(np.float64), rtol=1e-2, atol=1e-2)


def test_no_copy_is_late_or_early(run_everyhow: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_ARCH", "sm_90a")
    rng = np.random.default_rng(1)
    a, b = rng.normal(size=(64, 400)).astype(np.float16), rng.normal(size=(64, 400)).astype(np.float16)
    tile = {"BM": 64, "BN": 64, "BK": 32}
    for *_, c, _, _, _ in run_everyhow(product, (1, 1), (a, b, np.zeros((64, 64), np.float32), 64, 64, 400), **tile):
        np.testing.assert_allclose(c, a.astype(np.float64) @ b.astype(np.float64).T, rtol=1e-2, atol=1e-2)
