"""Tensor maps that a kernel makes of what it loads from memory: results, who makes them, and when one may change."""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
import tilewright as triton
import tilewright.language as tl
import tilewright.runtime.cpu as cpu
from tilewright.artifact import Options
from tilewright.diagnostics import KernelFaultError
from tilewright.pipeline import Translation, translate_stages
from tilewright.runtime.arguments.signature import parse_signature
from tilewright.runtime.building import nvrtc
from tilewright.schedule.targets import find_target

WAYS = (("greedy_low", "late"), ("reverse", "early"), ("random", "mixed"))


@triton.jit
def rows_of_groups(
    a_ptr, b_ptr, c_ptr, ends, n, k, groups, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr
):  # fmt: skip
    # The rows of all groups lie one behind the other; a group's end is where its last row ends.
    tile = tl.program_id(0)
    last = 0
    for group in range(groups):
        first = tl.load(ends + group)
        rows = tl.load(ends + group + 1) - first
        columns = tl.cdiv(n, BN)
        tiles = tl.cdiv(rows, BM) * columns
        if tile >= last and tile < last + tiles:
            a_desc = tl.make_tensor_descriptor(a_ptr + first.to(tl.int64) * k, [rows, k], [k, 1], [BM, BK])
            b_desc = tl.make_tensor_descriptor(b_ptr + group.to(tl.int64) * n * k, [n, k], [k, 1], [BN, BK])
            c_desc = tl.make_tensor_descriptor(c_ptr + first.to(tl.int64) * n, [rows, n], [n, 1], [BM, BN])
            while tile >= last and tile < last + tiles:
                row, column = (tile - last) // columns * BM, (tile - last) % columns * BN
                total = tl.zeros((BM, BN), dtype=tl.float32)
                for start in range(0, k, BK):
                    total = tl.dot(a_desc.load([row, start]), b_desc.load([column, start]).T, total)
                c_desc.store([row, column], total)
                tile += tl.num_programs(0)
        last += tiles


@triton.jit
def rows_of_expert(
    a_ptr, b_ptr, c_ptr, experts, starts, ends, n, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr
):  # fmt: skip
    # Which expert a block of rows belongs to, and where its rows lie, is loaded; unused blocks end early.
    expert = tl.load(experts + tl.program_id(0))
    if expert < 0:
        return
    start = tl.load(starts + tl.program_id(0))
    rows = tl.minimum(tl.load(ends + expert) - start, BM)
    a_desc = tl.make_tensor_descriptor(a_ptr + start * k, [rows, k], [k, 1], [BM, BK])
    b_desc = tl.make_tensor_descriptor(b_ptr + expert * n * k, [n, k], [k, 1], [BN, BK])
    c_desc = tl.make_tensor_descriptor(c_ptr + start * n, [rows, n], [n, 1], [BM, BN])
    for column in range(0, n, BN):
        total = tl.zeros((BM, BN), dtype=tl.float32)
        for inner in range(0, k, BK):
            total = tl.dot(a_desc.load([0, inner]), b_desc.load([column, inner]).T, total)
        c_desc.store([0, column], total)


GROUPS_SIGNATURE = "*fp16:16, *fp16:16, *fp32:16, *i32:16, i32:16, i32:16, i32, 64, 32, 32"
EXPERTS_SIGNATURE = "*fp16:16, *fp16:16, *fp32:16, *i32:16, *i32:16, *i32:16, i32:16, i32:16, 64, 32, 32"


def translated(kernel: Any, signature: str, arch: str = "sm_90a", **options: Any) -> Translation:
    return translate_stages(kernel, parse_signature(kernel, signature), Options(**options), find_target(arch))


@pytest.fixture
def each_way(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], None]], None]:
    """Runs something in every order of threads and of asynchronous copies that is tried."""
    monkeypatch.setenv("TILEWRIGHT_MODE", "cpu")
    monkeypatch.setenv("TILEWRIGHT_ARCH", "sm_90a")
    run = cpu.run

    def each(body: Callable[[], None]) -> None:
        for schedule, delivery in WAYS:

            def one(artifact: Any, grid: Any, values: Any, way: tuple[str, str] = (schedule, delivery)) -> None:
                assert "make_tensor_map_2d<" in artifact.source
                run(artifact, grid, values, schedule=way[0], seed=3, delivery=way[1])

            with monkeypatch.context() as patch:
                patch.setattr(cpu, "run", one)
                body()

    return each


def integers(rng: np.random.Generator, *shape: int) -> np.ndarray:
    return rng.integers(-4, 5, shape).astype(np.float16)


def check_groups(rows: Sequence[int], n: int, k: int, seed: int, warps: int = 4) -> None:
    """Groups of so many rows; what no group has is poisoned, and must be neither used nor written."""
    rng = np.random.default_rng(seed)
    ends = np.cumsum([8, *rows]).astype(np.int32)  # rows before the first group, and behind the last one
    a, b = integers(rng, ends[-1] + 8, k), integers(rng, len(rows), n, k)
    a[: ends[0]] = a[ends[-1] :] = np.nan
    c = np.full((len(a), n), np.nan, np.float32)
    rows_of_groups[(3,)](a, b, c, ends, n, k, len(rows), BM=16 * warps, BN=32, BK=32, num_warps=warps)
    for group, (first, last) in enumerate(zip(ends, ends[1:], strict=False)):
        expected = a[first:last].astype(np.float64) @ b[group].astype(np.float64).T
        np.testing.assert_array_equal(c[first:last], expected)
    assert np.isnan(c[: ends[0]]).all() and np.isnan(c[ends[-1] :]).all()


def test_groups_of_any_size(each_way: Callable[[Callable[[], None]], None]) -> None:
    rng = np.random.default_rng(7)
    for seed in range(4):
        rows = [int(size) * 8 for size in rng.integers(0, 14, 5)] + [0, 8]
        n, k = (int(side) * 16 for side in rng.integers(1, 7, 2))
        each_way(lambda rows=rows, n=n, k=k, seed=seed: check_groups(rows, n, k, seed))  # type: ignore[misc]


def test_two_warpgroups_store_through_maps_of_their_own(each_way: Callable[[Callable[[], None]], None]) -> None:
    each_way(lambda: check_groups([72, 0, 130, 8], 48, 80, 1, warps=8))


def check_experts() -> None:
    rng = np.random.default_rng(2)
    n, k, starts = 48, 80, np.array([0, 64, 72, 0, 136, 200], np.int32)
    experts, ends = np.array([0, 0, 2, -1, 2, 1], np.int32), np.array([72, 208, 140], np.int32)
    a, b = integers(rng, 240, k), integers(rng, 3, n, k)
    c = np.full((240, n), np.nan, np.float32)
    rows_of_expert[(6,)](a, b, c, experts, starts, ends, n, k, BM=64, BN=32, BK=32)
    written = np.zeros(240, bool)
    for expert, start in zip(experts, starts, strict=True):
        last = min(start + 64, ends[expert])
        if expert >= 0:
            written[start:last] = True
            np.testing.assert_array_equal(
                c[start:last], a[start:last].astype(np.float64) @ b[expert].astype(np.float64).T
            )
    assert np.isnan(c[~written]).all()


def test_a_program_that_ends_early_makes_no_map(each_way: Callable[[Callable[[], None]], None]) -> None:
    each_way(check_experts)


@triton.jit
def maybe_empty(place, sizes, b_ptr, c_ptr, n, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    a_ptr = tl.load(place).to(tl.pointer_type(tl.float16))
    a_desc = tl.make_tensor_descriptor(a_ptr, [tl.load(sizes), tl.load(sizes + 1)], [64, 1], [BM, BK])
    b_desc = tl.make_tensor_descriptor(b_ptr, [n, 64], [64, 1], [BN, BK])
    c_desc = tl.make_tensor_descriptor(c_ptr, [tl.load(sizes + 2), n], [n, 1], [BM, BN])
    for column in range(0, n, BN):
        total = tl.zeros((BM, BN), dtype=tl.float32)
        for start in range(0, 64, BK):
            total = tl.dot(a_desc.load([0, start]), b_desc.load([column, start]).T, total)
        c_desc.store([0, column], total + 1)


def test_empty_tensors_are_zeros_and_keep_nothing(each_way: Callable[[Callable[[], None]], None]) -> None:
    def check() -> None:
        a, b = np.full((64, 64), np.nan, np.float16), np.ones((64, 64), np.float16)
        for rows, columns, stored in ((0, 64, 64), (64, 0, 64), (0, 0, 0), (-8, 64, -8)):
            sizes, place = np.array([rows, columns, stored], np.int32), np.array([a.ctypes.data], np.int64)
            c = np.full((64, 64), 7, np.float32)
            maybe_empty[(1,)](place, sizes, b, c, 64, BM=64, BN=32, BK=32)
            np.testing.assert_array_equal(c, 1 if stored > 0 else 7)

    each_way(check)


def test_no_sanitizer_has_a_complaint(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_MODE", "check")
    monkeypatch.setenv("TILEWRIGHT_ARCH", "sm_90a")
    check_groups([72, 0, 40], 48, 48, 5)


@pytest.mark.parametrize("wait", ("for (int fill = max(", "tma_store_complete<0>();   // no copy reads the map"))
def test_a_map_that_changes_too_early_is_reported(wait: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_MODE", "cpu")
    monkeypatch.setenv("TILEWRIGHT_ARCH", "sm_90a")
    run = cpu.run

    def without_wait(artifact: Any, grid: Any, values: Any) -> None:
        never = "for (int fill = filled + max(" if wait.startswith("for") else "//"
        broken = dataclasses.replace(artifact, source=artifact.source.replace(wait, never))
        assert broken.source != artifact.source
        run(broken, grid, values, delivery="late")

    monkeypatch.setattr(cpu, "run", without_wait)
    with pytest.raises(KernelFaultError, match="a tensor map changes while a copy that reads it is under way"):
        check_groups([64, 64, 64, 64, 64, 64], 32, 32, 5)


@triton.jit
def loaded_stride(a_ptr, b_ptr, c_ptr, strides, n, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    a_desc = tl.make_tensor_descriptor(a_ptr, [BM, BK], [tl.load(strides), 1], [BM, BK])
    b_desc = tl.make_tensor_descriptor(b_ptr, [n, BK], [BK, 1], [BN, BK])
    for column in range(0, n, BN):
        total = tl.zeros((BM, BN), dtype=tl.float32)
        for start in range(0, BK, BK):
            total = tl.dot(a_desc.load([0, start]), b_desc.load([column, start]).T, total)
        tl.store(c_ptr + tl.arange(0, BM)[:, None] * n + column + tl.arange(0, BN)[None, :], total)


def test_strides_are_not_below_zero(each_way: Callable[[Callable[[], None]], None]) -> None:
    rng = np.random.default_rng(4)
    a, b = integers(rng, 64, 40), integers(rng, 64, 32)

    def launch(stride: int) -> np.ndarray:
        c = np.full((64, 64), np.nan, np.float32)
        loaded_stride[(1,)](a, b, c, np.array([stride], np.int32), 64, BM=64, BN=32, BK=32)
        return c

    def check() -> None:
        exact = a[:, :32].astype(np.float64), b.astype(np.float64).T
        np.testing.assert_array_equal(launch(40), exact[0] @ exact[1])
        np.testing.assert_array_equal(launch(0), (exact[0][:1] @ exact[1]).repeat(64, 0))
        with pytest.raises(KernelFaultError, match="a tensor map with a negative stride"):
            launch(-40)

    each_way(check)


# -------------------------------------------------------------------------------------------------- what is decided


def test_each_role_makes_the_maps_that_it_uses() -> None:
    found = translated(rows_of_groups, GROUPS_SIGNATURE)
    made = {one.name: one.made for one in found.schedule.rings.maps}
    assert made == {"a_map": True, "b_map": False, "c_map": True}
    assert [one.name for one in found.artifact.tensor_maps] == ["b_map"]  # b's place is a function of the parameters
    text = found.artifact.source
    producer, consumer = text[text.index("extern") :].split("} else {   // the others multiply")
    assert (
        re.search(r"make_tensor_map_2d<FP16_MAP, SWIZZLE>\(a_map, map_drafts,\s+a_ptr \+ ", producer)
        and "(c_map" not in producer
    )
    assert (
        re.search(r"make_tensor_map_2d<FP32_MAP, SWIZZLE>\(c_map, map_drafts,\s+c_ptr \+ ", consumer)
        and "(a_map" not in consumer
    )
    assert re.search(r"maps +a_map: made in the kernel \(L\d+\); box \[64, 64\], 128-byte swizzle", text)


LARGE_TILES = EXPERTS_SIGNATURE.replace("64, 32, 32", "128, 256, 64")


@pytest.mark.parametrize(
    ("kernel", "signature", "warps", "is_dynamic", "blocks"),
    [  # by threads, by shared memory, by shared memory for a single one
        (rows_of_groups, GROUPS_SIGNATURE.replace("64, 32, 32", "64, 16, 16"), 4, False, 8),
        (rows_of_groups, GROUPS_SIGNATURE, 4, True, 3),
        (rows_of_expert, LARGE_TILES, 8, True, 1),
    ],
)
def test_all_blocks_that_run_at_once_find_slots(
    kernel: Any, signature: str, warps: int, is_dynamic: bool, blocks: int
) -> None:
    """With fewer slots, threads would wait for other blocks to end before they load anything."""
    found = translated(kernel, signature, num_warps=warps)
    artifact, threads = found.artifact, found.schedule.launch_threads
    assert (artifact.shared_bytes > 0) == is_dynamic and threads == 32 * warps + 128
    assert blocks * threads <= 2048 and blocks * (artifact.shared_bytes + 1024) <= 228 << 10
    if is_dynamic:
        assert (blocks + 1) * (artifact.shared_bytes + 1024) > 228 << 10
    constants = dict(re.findall(r"constexpr int (MAP_\w+) = ([^;]+);", artifact.source))
    makers = int(constants["MAP_MAKERS"])
    assert makers == threads // 128  # the loading warpgroup has one, and each that stores
    factors = [makers if factor == "MAP_MAKERS" else int(factor) for factor in constants["MAP_SLOTS"].split(" * ")]
    assert math.prod(factors) == 4 * 144 * blocks * makers


@triton.jit
def ends_late(a_ptr, b_ptr, c_ptr, starts, n, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    start = tl.load(starts + tl.program_id(0))
    rows = tl.load(starts + tl.program_id(0) + 1) - start
    a_desc = tl.make_tensor_descriptor(a_ptr + start * k, [rows, k], [k, 1], [BM, BK])
    b_desc = tl.make_tensor_descriptor(b_ptr, [n, k], [k, 1], [BN, BK])
    c_desc = tl.make_tensor_descriptor(c_ptr + start * n, [rows, n], [n, 1], [BM, BN])
    for column in range(0, n, BN):
        total = tl.zeros((BM, BN), dtype=tl.float32)
        for inner in range(0, k, BK):
            total = tl.dot(a_desc.load([0, inner]), b_desc.load([column, inner]).T, total)
        c_desc.store([0, column], total)
    if rows == BM:
        return
    for column in range(0, n, BN):
        c_desc.store([0, column], tl.zeros((BM, BN), dtype=tl.float32))


ENDS_SIGNATURE = "*fp16:16, *fp16:16, *fp32:16, *i32:16, i32:16, i32:16, 64, 32, 32"


def test_slots_are_given_back_on_every_way() -> None:
    early, late = (
        translated(kernel, signature).artifact.source
        for kernel, signature in ((rows_of_expert, EXPERTS_SIGNATURE), (ends_late, ENDS_SIGNATURE))
    )
    for text in (early, late):
        assert text.count("= take_map_slot()") == 1 and text.count("? take_map_slot()") == 1
    body = early[early.index('extern "C"') :]
    assert body.index("return;") < body.index("take_map_slot()") and body.count("free_map_slot(map_slot)") == 2
    lines = [line.strip() for line in late[late.index('extern "C"') :].splitlines()]
    ends = [number for number, line in enumerate(lines) if line == "return;"]
    assert ends and all("free_map_slot(map_slot);" in lines[end - 2 : end] for end in ends)
    assert late.count("free_map_slot(map_slot)") == len(ends) + 2


def test_more_programs_than_slots_end_early(each_way: Callable[[Callable[[], None]], None]) -> None:
    def check() -> None:
        rng, n, k = np.random.default_rng(3), 64, 32
        starts = np.cumsum([0, *rng.choice([8, 64], 30)]).astype(np.int32)
        a, b = integers(rng, starts[-1], k), integers(rng, n, k)
        c = np.full((len(a), n), np.nan, np.float32)
        ends_late[(30,)](a, b, c, starts, n, k, BM=64, BN=32, BK=32)
        expected = a.astype(np.float64) @ b.astype(np.float64).T
        for first, last in zip(starts, starts[1:], strict=False):
            if last - first < 64:
                expected[first:last] = 0
        np.testing.assert_array_equal(c, expected)

    each_way(check)


@triton.jit
def moving_base(places, b_ptr, c_ptr, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    b_desc = tl.make_tensor_descriptor(b_ptr, [BN, k], [k, 1], [BN, BK])
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(0, k, BK):
        a_ptr = tl.load(places + start).to(tl.pointer_type(tl.float16))
        a_desc = tl.make_tensor_descriptor(a_ptr, [BM, k], [k, 1], [BM, BK])
        total = tl.dot(a_desc.load([0, start]), b_desc.load([0, start]).T, total)
    c_desc = tl.make_tensor_descriptor(c_ptr, [BM, BN], [BN, 1], [BM, BN])
    c_desc.store([0, 0], total)


@triton.jit
def tile_of_group(places, b_ptr, c_ptr, m, n, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    a_ptr = tl.load(places + tl.program_id(0)).to(tl.pointer_type(tl.float16))
    a_desc = tl.make_tensor_descriptor(a_ptr, [BM, k], [k, 1], [BM, BK])
    b_desc = tl.make_tensor_descriptor(b_ptr, [n, k], [k, 1], [BN, BK])
    c_desc = tl.make_tensor_descriptor(c_ptr, [m, n], [n, 1], [BM, BN])
    column = tl.program_id(1) * BN
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(0, k, BK):
        total = tl.dot(a_desc.load([0, start]), b_desc.load([column, start]).T, total)
    c_desc.store([tl.program_id(0) * BM, column], total)


def test_no_map_is_made_for_a_tile_alone() -> None:
    found = translated(tile_of_group, "*i64:16, *fp16:16, *fp32:16, i32, i32:16, i32:16, 64, 32, 32")
    (ring,) = found.schedule.rings.rings
    assert ring.kind == "cp_async" and not found.schedule.rings.maps
    reason = r"no TMA +\w+: its tensor map, made in the kernel, would serve one tile"
    assert re.search(reason, found.artifact.source)


def test_a_large_tile_has_its_map_made_under_the_products_before(
    each_way: Callable[[Callable[[], None]], None],
) -> None:
    large = "*i64:16, *fp16:16, *fp32:16, i32, i32:16, i32:16, 128, 256, 32"
    found = translated(tile_of_group, large, num_warps=8)
    assert found.artifact.persistent and [one.name for one in found.schedule.rings.made] == ["a_map"]

    def check() -> None:
        rng, n, k = np.random.default_rng(6), 512, 48
        groups, b = [integers(rng, 128, k) for _ in range(3)], integers(rng, n, k)
        places = np.array([group.ctypes.data for group in groups], np.int64)
        c = np.full((384, n), np.nan, np.float32)
        tile_of_group[(3, 2)](places, b, c, 384, n, k, BM=128, BN=256, BK=32, num_warps=8)
        np.testing.assert_array_equal(c, np.concatenate(groups).astype(np.float64) @ b.astype(np.float64).T)

    each_way(check)


def test_no_map_changes_within_the_loop_that_loads_ahead() -> None:
    found = translated(moving_base, "*i64:16, *fp16:16, *fp32:16, i32:16, 64, 32, 32")
    assert not found.schedule.rings.made and "make_tensor_map" not in found.artifact.source


@triton.jit
def by_pointers(a_ptr, b_ptr, c_ptr, strides, m, n, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    lda = tl.load(strides)
    rows, columns, inner = tl.arange(0, BM), tl.arange(0, BN), tl.arange(0, BK)
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(0, k, BK):
        mask = (rows[:, None] < m) & (start + inner[None, :] < k)
        a = tl.load(a_ptr + rows[:, None] * lda + start + inner[None, :], mask=mask, other=0.0)
        b = tl.load(b_ptr + columns[:, None] * k + start + inner[None, :], mask=start + inner[None, :] < k, other=0.0)
        total = tl.dot(a, b.T, total)
    tl.store(c_ptr + rows[:, None] * n + columns[None, :], total, mask=rows[:, None] < m)


def test_a_stride_of_which_nothing_is_promised_has_no_map() -> None:
    found = translated(by_pointers, "*fp16:16, *fp16:16, *fp32:16, *i32:16, i32, i32:16, i32:16, 64, 32, 32")
    assert not found.schedule.rings.made and "no TMA" in found.artifact.source


def test_other_architectures_have_none() -> None:
    for arch in ("sm_80", "sm_100", "sm_120"):
        assert not translated(rows_of_groups, GROUPS_SIGNATURE, arch).schedule.rings.maps


@pytest.mark.skipif(not nvrtc.is_available(), reason="NVRTC is not installed")
def test_ptxas_takes_it_without_spills() -> None:
    for kernel, signature in ((rows_of_groups, GROUPS_SIGNATURE), (rows_of_expert, EXPERTS_SIGNATURE)):
        for num_warps in (4, 8):
            signature = signature.replace("64, 32, 32", f"{16 * num_warps}, 32, 32")
            artifact = translated(kernel, signature, num_warps=num_warps).artifact
            assert "make_tensor_map_2d<" in artifact.source
            cubin = nvrtc.compile_text(artifact, "sm_90a")
            assert "warning" not in cubin.log and nvrtc.SERIALISED not in cubin.log, cubin.log
            assert "0 bytes spill stores" in cubin.log, cubin.log
