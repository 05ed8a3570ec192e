"""Which loops load ahead, and how; `test_ring_protocol.py` has the protocol of the generated text."""

from __future__ import annotations

import re
from typing import Any

import dot_kernels as kernels
import dot_kernels_more as more
import numpy as np
import pytest
import tilewright as triton
import tilewright.language as tl
from tilewright.artifact import Options
from tilewright.diagnostics import OutOfResources
from tilewright.pipeline import Translation, translate_stages
from tilewright.runtime.arguments.signature import parse_signature
from tilewright.runtime.building import nvrtc
from tilewright.schedule.staging.rings import MOST_STAGES
from tilewright.schedule.targets import find_target

USUAL = "*fp16:16, *fp16:16, *fp32:16, i32:16, i32:16, i32:16"
TILE = "64, 32, 32"
PLAIN = f"{USUAL}, 0, 1, {TILE}"


def planned(kernel: Any, signature: str, arch: str = "sm_90a", **options: Any) -> Translation:
    """All stages of a translation."""
    arguments = parse_signature(kernel, signature)
    return translate_stages(kernel, arguments, Options(**options), find_target(arch))


def rings(kernel: Any, signature: str, arch: str = "sm_90a", **options: Any) -> Any:
    return planned(kernel, signature, arch, **options).schedule.rings


@pytest.mark.parametrize(
    ("kernel", "signature"),
    [
        (kernels.product, PLAIN),
        (more.by_block_pointers, f"{USUAL}, {TILE}".replace("fp32", "fp16")),
        (more.by_descriptors, f"{USUAL}, 4, {TILE}".replace("fp32", "fp16")),
    ],
)
def test_every_spelling_gets_the_same_plan(kernel: Any, signature: str) -> None:
    found = planned(kernel, signature)
    (ring,) = found.schedule.rings.rings
    assert (ring.kind, len(ring.tiles), ring.overlapped) == ("tma", 2, True)
    maps = {m.name: (m.box, m.swizzle) for m in found.artifact.tensor_maps}
    assert list(maps) == ["a_map", "b_map", "c_map"]
    assert maps["a_map"] == ((64, 64), 128) and maps["b_map"] == ((32, 64), 64)
    assert "tma_load_2d" in found.artifact.source and "tma_store_2d" in found.artifact.source


def test_what_is_no_box_is_copied_by_threads() -> None:
    for signature, arch, options in (
        (PLAIN, "sm_80", {}),
        (PLAIN.replace("*fp16:16", "*fp16", 1), "sm_90a", {}),
        (PLAIN, "sm_90a", {"guards": False}),
        (PLAIN, "sm_90a", {"num_warps": 2}),
    ):
        found = planned(kernels.product, signature, arch, **options)
        (ring,) = found.schedule.rings.rings
        assert ring.kind == "cp_async" and not found.artifact.tensor_maps and not found.artifact.guards
        assert not found.artifact.persistent and not found.schedule.rings.has_producer


def test_reasons_stand_in_the_plan() -> None:
    assert rings(kernels.product, PLAIN.replace("*fp16:16", "*fp16", 1)).reasons
    (reason,) = rings(kernels.product, PLAIN, guards=False).reasons[:1]
    assert reason.startswith("a: needs ")
    found = rings(kernels.outer_tile_after_inner_loop, f"*fp16:16, {USUAL}, {TILE}")
    assert any(reason.startswith("w: the loop around its load holds another") for reason in found.reasons)
    assert sorted(ring.kind for ring in found.rings) == ["cp_async", "tma"]
    found = rings(kernels.early_return, f"*fp16:16, *fp16:16, *i32:16, *fp32:16, i32:16, i32:16, i32:16, 1, {TILE}")
    assert any("its place depends on what the block computes together" in reason for reason in found.reasons)


def test_what_a_trip_writes_is_not_loaded_ahead() -> None:
    found = rings(kernels.in_place, "*fp16:16, *fp16:16, i32, 128, 64, 32")
    assert [tile.name for ring in found.rings for tile in ring.tiles] == ["w"]
    listed = f"*fp16:16, *fp16:16, *i32:16, *fp32:16, i32:16, i32:16, i32:16, i32, {{}}, {TILE}"
    assert rings(kernels.places_in_memory, listed.format(0)).has_producer
    assert not rings(kernels.places_in_memory, listed.format(1)).has_producer
    assert not rings(kernels.strided, f"{USUAL}, i32, i32, {TILE}").rings, "the loop's variable is used after the loop"


@pytest.mark.parametrize(
    ("kernel", "signature", "axes"),
    [
        (kernels.product, PLAIN, 2),
        (more.column_sums, f"{USUAL}, {TILE}", 1),
        (kernels.loop_in_loop, f"{USUAL}, {TILE}", 0),
        (kernels.two_loops, f"{USUAL}, {TILE}", 0),
        (more.accumulated, f"{USUAL}, fp32, {TILE}", 0),
        (more.stored_twice, f"{USUAL}, {TILE}", 0),
        (more.talkative, f"{USUAL}, {TILE}", 0),
        (
            kernels.early_return,
            f"*fp16:16, *fp16:16, *i32:16, *fp32:16, i32:16, i32:16, i32:16, 0, {TILE}",
            0,
        ),
    ],
)
def test_who_runs_several_programs(kernel: Any, signature: str, axes: int) -> None:
    found = planned(kernel, signature)
    assert found.schedule.rings.has_producer and found.artifact.program_axes == axes
    counts = [p.name for p in found.artifact.launch_parameters[len(found.artifact.parameters) :]]
    assert counts == [[], ["num_programs"], ["num_programs_x", "num_programs_y"]][axes]
    assert found.artifact.num_threads == 256


@pytest.mark.parametrize(
    ("kernel", "overlapped"),
    [
        (kernels.two_loops, True),
        (more.rescaled, False),
        (kernels.swapped_sums, False),
        (kernels.dot_in_condition, False),
    ],
)
def test_when_products_run_on(kernel: Any, overlapped: bool) -> None:
    found = rings(kernel, f"{USUAL}, {TILE}")
    assert found.rings and all(ring.overlapped is overlapped for ring in found.rings)


TWO_WARPGROUPS = "128, 32, 32"


@pytest.mark.parametrize(
    ("kernel", "signature", "parts"),
    [
        (kernels.product, f"{USUAL}, 0, 1, {TWO_WARPGROUPS}", 2),
        (kernels.loop_in_loop, f"{USUAL}, {TWO_WARPGROUPS}", 2),
        (more.rewritten, f"{USUAL}, {TWO_WARPGROUPS}", 2),
        (
            more.sliding,
            f"{USUAL}, {TWO_WARPGROUPS}",
            1,
        ),  # a row may be the first warpgroup's, and the second's in another trip
        (kernels.product, f"{USUAL}, 0, 1, 64, 128, 32", 1),  # the warpgroups lie side by side
    ],
)
def test_warpgroups_store_their_own_rows_where_these_are_always_theirs(kernel: Any, signature: str, parts: int) -> None:
    found = planned(kernel, signature, num_warps=8)
    (box,) = [m.box for m in found.artifact.tensor_maps if m.name == "c_map"]
    assert set(found.schedule.store_parts.values()) == ({parts} if parts > 1 else set())
    assert box[1] == int(signature.split(", ")[-3]) // parts
    assert ("named_barrier_sync(STORE_BARRIER + warpgroup, WARPGROUP_SIZE)" in found.artifact.source) is (parts > 1)


@pytest.mark.parametrize(
    ("kernel", "signature", "a", "b"),
    [
        (
            kernels.product,
            PLAIN,
            "num_programs_x * num_programs_y <= (M + BM - 1) / BM",
            "num_programs_x * num_programs_y <= (N + BN - 1) / BN",
        ),
        (kernels.loop_in_loop, f"{USUAL}, {TILE}", None, None),
        (more.streamed, f"{USUAL}, {TILE}", "false", "true"),
    ],
)
def test_what_one_program_reads_leaves_l2_first(kernel: Any, signature: str, a: str | None, b: str | None) -> None:
    text = planned(kernel, signature).artifact.source
    for name, condition in (("a_policy", a), ("b_policy", b)):
        assert (f"{name} = l2_policy({condition});" in text) is (condition is not None), text
    assert text.count("l2_policy(false);   // several may read it") == (a == "false")


@triton.jit
def product_by_parts(
    a_ptr, b_ptr, c_ptr, M, N, K, PART: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr
):
    # A program reads its rows of all parts of K, of each part for a tile of its own.
    m, n = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN)
    for part in range(0, K, PART):
        total = tl.zeros((BM, BN), tl.float32)
        for block in range(0, PART, BK):
            k = part + block + tl.arange(0, BK)
            a = tl.load(a_ptr + m[:, None] * K + k[None, :], mask=(m[:, None] < M) & (k[None, :] < K), other=0.0)
            b = tl.load(b_ptr + k[:, None] * N + n[None, :], mask=(k[:, None] < K) & (n[None, :] < N), other=0.0)
            total = tl.dot(a, b, total)
        tl.store(c_ptr + part * M * N + m[:, None] * N + n[None, :], total, mask=(m[:, None] < M) & (n[None, :] < N))


def test_nothing_is_said_of_copies_that_an_outer_loop_moves() -> None:
    found = planned(product_by_parts, f"{USUAL}, 128, {TILE}")
    (ring,) = found.schedule.rings.rings
    assert ring.kind == "tma" and "l2_policy" not in found.artifact.source


@pytest.mark.parametrize(
    ("kernel", "tile", "warps", "blocks"),
    [
        (
            more.accumulated,
            "fp32, 64, 32, 32",
            4,
            2,
        ),  # atomics: one program a block, whose start and end another one covers
        (
            more.accumulated,
            "fp32, 128, 128, 64",
            8,
            1,
        ),  # ptxas has 80 registers for each of two blocks' threads, and needs 90
        (kernels.loop_in_loop, "64, 32, 32", 4, 1),  # loops over its tiles by itself
        (kernels.product, "0, 1, 64, 32, 32", 4, 1),  # runs one program after another
    ],
)
def test_a_second_block_where_a_block_runs_one_program(kernel: Any, tile: str, warps: int, blocks: int) -> None:
    found = planned(kernel, f"{USUAL}, {tile}", num_warps=warps)
    assert found.schedule.rings.has_producer and found.schedule.blocks_per_multiprocessor == blocks
    assert found.artifact.shared_bytes * blocks <= 227 * 1024


@pytest.mark.parametrize(
    ("kernel", "signature", "warps", "teams", "blocks"),
    [
        (more.chained, f"*fp16:16, {USUAL}, {TILE}", 4, 2, 1),
        (more.chained, f"*fp16:16, {USUAL}, 128, 32, 32", 8, 1, 2),
        (kernels.product, PLAIN, 4, 1, 1),
    ],
)
def test_a_second_team_or_block_where_a_product_becomes_a_factor(
    kernel: Any, signature: str, warps: int, teams: int, blocks: int
) -> None:
    """While one makes an operand of its sums, the tensor cores have the products of the other."""
    found = planned(kernel, signature, num_warps=warps)
    (ring,) = found.schedule.rings.rings
    assert ring.kind == "tma" and ring.overlapped and found.artifact.persistent
    assert (found.schedule.rings.teams, found.schedule.blocks_per_multiprocessor) == (teams, blocks)


def test_stages_are_a_hint() -> None:
    large = f"{USUAL}, 0, 1, 128, 256, 64"
    assert [rings(kernels.product, PLAIN, "sm_80", num_stages=s).rings[0].stages for s in (1, 2, 3, 5)] == [2, 2, 3, 5]
    plain = PLAIN.replace(TILE, "64, 32, 64")
    assert [rings(kernels.product, plain, num_stages=s).rings[0].stages for s in (2, 9)] == [MOST_STAGES, 9]
    for asked in (2, 5):
        found = planned(kernels.product, large, num_warps=8, num_stages=asked)
        (ring,) = found.schedule.rings.rings
        assert ring.stages >= 3 and found.artifact.shared_bytes <= 227 * 1024
        assert found.artifact.shared_bytes + 48 * 1024 > 227 * 1024, "as many stages as fit"
    on_ada = planned(kernels.product, large, "sm_89", num_warps=8, num_stages=4)
    assert on_ada.artifact.shared_bytes <= 99 * 1024
    with pytest.raises(OutOfResources, match="shared memory"):
        planned(kernels.product, f"{USUAL}, 0, 1, 256, 256, 256", "sm_89", num_warps=8)


def test_stores_to_one_place_stay_in_order() -> None:
    once = planned(kernels.product, PLAIN).artifact.source
    assert "tma_store_2d" in once and "tma_store_complete" not in once
    again = planned(more.running_sums, f"{USUAL}, 1, {TILE}").artifact.source
    assert "tma_store_complete<0>();" in again and again.index("tma_store_complete<0>();") < again.rindex(
        "tma_store_2d("
    )
    below = planned(kernels.loop_in_loop, f"{USUAL}, {TWO_WARPGROUPS}", num_warps=8).artifact.source
    assert "tma_store_2d" in below and "tma_store_complete" not in below  # other rows in every trip
    assert "tma_store_2d" not in planned(more.stored_twice, f"{USUAL}, {TILE}").artifact.source


@triton.jit
def places_of_the_loader_kernel(a_desc, b_desc, c_ptr, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    start_m = tl.program_id(0) * BM
    start_n = tl.program_id(1) * BN
    acc = tl.zeros((BM, BN), tl.float32)
    for turn in range(tl.cdiv(K, BK)):
        start_k = turn * BK
        acc = tl.dot(a_desc.load([start_m, start_k]), b_desc.load([start_k, start_n]), acc)
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    tl.store(c_ptr + rows[:, None] * N + columns[None, :], acc)


@pytest.mark.skipif(not nvrtc.is_available(), reason="NVRTC is not installed")
def test_the_multiplying_warps_compute_no_places_of_copies() -> None:
    descriptors = "tensordesc<fp16[128, 64]>, tensordesc<fp16[64, 128]>"
    artifact = places_of_the_loader_kernel.translate(f"{descriptors}, *fp32:16, i32:16, i32:16, 128, 128, 64")
    assert "tma_load_2d" in artifact.source
    for name in ("start_m", "start_n", "start_k"):
        assert len(re.findall(rf"int {name} =", artifact.source)) == 1, name
    assert "warning" not in nvrtc.compile_text(artifact).log


def test_tensor_copies_fill_aligned_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where a line is a single chunk, so that none change places, and few stages are declared as arrays."""
    monkeypatch.setattr("tilewright.schedule.staging.rings.MOST_STAGES", 2)
    text = planned(kernels.product, f"{USUAL}, 0, 1, 64, 8, 64", num_stages=2).artifact.source
    (declared,) = re.findall(r"__shared__ (.*)\bb\[NUM_STAGES\]", text)
    assert "tma_load_2d(b[stage]" in text and "b [64, 8]: shared, 2 stages of 1024 bytes, no swizzle" in text
    assert declared == "__align__(128) half "


@triton.jit
def gate_and_value(a_desc, b_desc, w_desc, c_ptr, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    start_m, start_n = tl.program_id(0) * BM, tl.program_id(1) * BN
    acc = tl.zeros((BM, BN), tl.float32)
    for start_k in tl.range(0, K, BK, num_stages=2):
        acc = tl.dot(a_desc.load([start_m, start_k]), b_desc.load([start_k, start_n]), acc)
    acc = acc / (1 + tl.exp(-acc))
    for start_k in tl.range(0, K, BK, num_stages=2):
        acc = tl.dot(a_desc.load([start_m, start_k]), w_desc.load([start_k, start_n]), acc)
    rows, columns = start_m + tl.arange(0, BM), start_n + tl.arange(0, BN)
    tl.store(c_ptr + rows[:, None] * N + columns[None, :], acc)


@pytest.mark.skipif(not nvrtc.is_available(), reason="NVRTC is not installed")
@pytest.mark.parametrize("side", [16, 64])
def test_a_tile_in_the_memory_of_another_has_its_name(side: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where few stages are declared as arrays, of which no struct tells the names."""
    monkeypatch.setattr("tilewright.schedule.staging.rings.MOST_STAGES", 2)
    tiles = f"tensordesc<fp16[64, {side}]>, tensordesc<fp16[{side}, 64]>, tensordesc<fp16[{side}, 64]>"
    artifact = gate_and_value.translate(f"{tiles}, *fp32:16, i32:16, i32:16, 64, 64, {side}", num_warps=4)
    assert "tma_load_2d(w[stage]" in artifact.source
    assert artifact.source.count("auto& w = b;   // the same memory: their loops follow each other") == 1
    assert "warning" not in nvrtc.compile_text(artifact).log


@triton.jit
def two_blocks(a_ptr, b_ptr, c_ptr, T, K: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rows, columns = tl.program_id(0) * BM + tl.arange(0, BM), tl.arange(0, BN)
    total = tl.zeros((BM, BN), tl.float32)
    for block in range(tl.cdiv(K, BK)):
        k = block * BK + tl.arange(0, BK)
        a = tl.load(a_ptr + rows[:, None] * K + k[None, :], mask=(rows[:, None] < T) & (k[None, :] < K), other=0.0)
        b = tl.load(b_ptr + k[:, None] * BN + columns[None, :], mask=k[:, None] < K, other=0.0)
        total += tl.dot(a, b)
    tl.store(c_ptr + rows[:, None] * BN + columns[None, :], total, mask=rows[:, None] < T)


def test_no_more_stages_than_trips() -> None:
    for k, stages in ((64, 2), (96, 3), (256, 5)):
        signature = f"*fp16:16, *fp16:16, *fp32:16, i32, {k}, 64, 64, 32"
        (ring,) = rings(two_blocks, signature, "sm_80", num_stages=5).rings
        assert ring.stages == stages


def test_few_programs_load_further_ahead_where_threads_copy() -> None:
    signature = "*fp16:16, *fp16:16, *fp32:16, i32, {}, {}, 64, 64"
    usual, few = (planned(two_blocks, signature.format(4096, 16), few_programs=way) for way in (False, True))
    assert usual.artifact.for_many and not few.artifact.for_many
    assert [one.schedule.rings.rings[0].stages for one in (usual, few)] == [3, 8]
    assert "meant for no more programs than there are multiprocessors" in few.artifact.source
    assert "meant for" not in usual.artifact.source and "NUM_STAGES = 8;" in few.artifact.source
    short = planned(two_blocks, signature.format(320, 16), few_programs=True)
    assert short.schedule.rings.rings[0].stages == 5  # there are no more trips
    by_tma = planned(two_blocks, signature.format(4096, 64))
    rows = "*fp16:16, *fp16:16, *fp32:16, i32, 1001, 16, 64, 64"
    assert not planned(two_blocks, rows).artifact.for_many
    assert planned(two_blocks, rows, few_programs=True).schedule.rings.rings[0].stages == 3
    words = "*fp32:16, *fp32:16, *fp32:16, i32, 1001, 16, 64, 64"
    assert not planned(two_blocks, words).artifact.for_many
    alone = planned(two_blocks, signature.format(4096, 64), few_programs=True)
    assert (by_tma.schedule.rings.teams, alone.schedule.rings.teams) == (2, 1) and by_tma.artifact.for_many
    assert not planned(two_blocks, signature.format(4096, 128), num_warps=8).artifact.for_many
    assert not planned(two_blocks, signature.format(4096, 16), num_stages=8).artifact.for_many


@triton.jit
def two_starts(a_ptr, b_ptr, c_ptr, first_ptr, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """Loops over tiles of one format, whose starts are no numbers."""
    m, n, k, first = tl.arange(0, BM), tl.arange(0, BN), tl.arange(0, BK), tl.load(first_ptr)
    total = tl.zeros((BM, BN), tl.float32)
    for t in range(first * 2, tl.cdiv(K, BK)):
        at = t * BK + k
        a = tl.load(a_ptr + m[:, None] * K + at[None, :], mask=at[None, :] < K, other=0.0)
        b = tl.load(b_ptr + n[None, :] * K + at[:, None], mask=at[:, None] < K, other=0.0)
        total = tl.dot(a, b, total)
    for t in range(first * 3, tl.cdiv(K, BK)):
        at = t * BK + k
        a = tl.load(a_ptr + m[:, None] * K + at[None, :], mask=at[None, :] < K, other=0.0)
        b = tl.load(b_ptr + n[None, :] * K + at[:, None], mask=at[:, None] < K, other=0.0)
        total = tl.dot(a, b, total)
    tl.store(c_ptr + m[:, None] * BN + n[None, :], total)


def test_loops_of_one_ring_name_where_each_begins() -> None:
    signature = "*fp16:16, *fp16:16, *fp32:16, *i32:16, i32:16, 64, 64, 64"
    source = planned(two_starts, signature).artifact.source
    declared = re.findall(r"const int (first_used\w*) = used;", source)
    assert len(declared) == len(set(declared))
    assert not nvrtc.is_available() or "error" not in nvrtc.compile_text(planned(two_starts, signature).artifact).log


@triton.jit
def chosen_product(a_ptr, b_ptr, i_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """Two numbers of one name: of the first those that multiply alone know, of the second all."""
    m, n, k = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN), tl.arange(0, BK)
    acc = tl.zeros((BM, BN), tl.float32)
    for i in range(tl.load(i_ptr)):
        acc += i
    if tl.load(i_ptr + 1) % 2 == 0:
        for start in range(0, K, BK):
            at = start + k
            a = tl.load(a_ptr + m[:, None] * K + at[None, :], mask=(m[:, None] < M) & (at[None, :] < K), other=0.0)
            b = tl.load(b_ptr + n[None, :] * K + at[:, None], mask=(n[None, :] < N) & (at[:, None] < K), other=0.0)
            acc = tl.dot(a, b, acc)
    tl.store(c_ptr + m[:, None] * N + n[None, :], acc, mask=(m[:, None] < M) & (n[None, :] < N))


@pytest.mark.parametrize("second", [4, 5])
def test_each_role_declares_what_it_assigns(second: int, run_everywhere: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_ARCH", "sm_90a")
    rng = np.random.default_rng(0)
    a, b = rng.integers(-4, 4, (64, 32)).astype(np.float16), rng.integers(-4, 4, (32, 32)).astype(np.float16)
    c, numbers = np.full((64, 32), 9, np.float32), np.array([3, second], np.int32)
    c = run_everywhere(chosen_product, (1, 1), a, b, numbers, c, 64, 32, 32, BM=64, BN=32, BK=32)[3]
    np.testing.assert_array_equal(c, 3 + (a.astype(np.float64) @ b.T if second % 2 == 0 else 0))
