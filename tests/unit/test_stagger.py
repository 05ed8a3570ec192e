"""Loops whose products are started an iteration ahead: which are, what stands where, and that the results stay right."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tilewright as triton
import tilewright.language as tl
from tilewright.artifact import Artifact, Options
from tilewright.pipeline import translate
from tilewright.runtime.arguments.signature import parse_signature
from tilewright.runtime.building import nvrtc
from tilewright.schedule.targets import find_target


@triton.jit
def weighted(
    q_ptr, g_ptr, k_ptr, v_ptr, out_ptr, first, last, BM: tl.constexpr, BN: tl.constexpr, D: tl.constexpr,
    TWO: tl.constexpr, BEHIND: tl.constexpr,
):  # fmt: skip
    # One or two products of tiles, what is computed of them, and a product by a tile that they may have read as well.
    d = tl.arange(0, D)
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    q = tl.load(q_ptr + rows[:, None] * D + d[None, :])
    g = tl.load(g_ptr + rows[:, None] * D + d[None, :])
    out = tl.zeros([BM, D], tl.float32)
    for start in range(first, last, BN):
        columns = start + tl.arange(0, BN)
        k = tl.load(k_ptr + columns[:, None] * D + d[None, :])
        v = tl.load(v_ptr + columns[:, None] * D + d[None, :])
        score = tl.dot(q, k.T)
        p = tl.maximum(score, 0)
        if TWO:
            p *= tl.dot(g, v.T)
            out = tl.dot(p.to(tl.float16), k, out)
        else:
            out = tl.dot(p.to(tl.float16), v, out * 2)
        if BEHIND:
            out += tl.max(score, 1)[:, None]
    tl.store(out_ptr + rows[:, None] * D + d[None, :], out)


def artifact(two: bool, behind: bool = False) -> Artifact:
    signature = (
        f"*fp16:16, *fp16:16, *fp16:16, *fp16:16, *fp32:16, i32:16, i32:16, {'128, 64, 128' if two else '128, 64, 64'}"
    )
    options = Options(num_warps=8 if two else 4)
    return translate(
        weighted, parse_signature(weighted, f"{signature}, {two}, {behind}"), options, find_target("sm_90a")
    )


def text(two: bool, behind: bool = False) -> str:
    return artifact(two, behind).source


def expected(q: Any, g: Any, k: Any, v: Any, first: int, last: int, step: int, two: bool) -> Any:
    q, g, k, v = (tile.astype(float) for tile in (q, g, k, v))
    out = np.zeros_like(q)
    for start in range(first, last, step):
        tile, other = k[start : start + step], v[start : start + step]
        p = np.maximum(q @ tile.T, 0)
        out = out + (p * (g @ other.T)) @ tile if two else 2 * out + p @ other
    return out


@pytest.mark.parametrize("two", (False, True))
@pytest.mark.parametrize("first, last", [(0, 256), (64, 128), (64, 64), (32, 288)])
def test_results(run_everywhere: Any, two: bool, first: int, last: int) -> None:
    depth, keys = 64, 320
    generator = np.random.default_rng(first + last)
    q, g = (generator.integers(-1, 2, (128, depth)).astype(np.float16) for _ in range(2))
    k, v = (generator.integers(-1, 2, (keys, depth)).astype(np.float16) for _ in range(2))
    out = np.full((128, depth), np.nan, np.float32)
    *_, found = run_everywhere(
        weighted, (1,), q, g, k, v, out, first, last, BM=128, BN=32, D=depth, TWO=two, BEHIND=False, num_warps=8,
    )  # fmt: skip
    np.testing.assert_array_equal(found, expected(q, g, k, v, first, last, 32, two))


@triton.jit
def downwards(q_ptr, k_ptr, out_ptr, last, BM: tl.constexpr, BN: tl.constexpr, D: tl.constexpr):
    d = tl.arange(0, D)
    rows = tl.arange(0, BM)
    q = tl.load(q_ptr + rows[:, None] * D + d[None, :])
    out = tl.zeros([BM, D], tl.float32)
    for start in range(last - BN, -1, -BN):
        columns = start + tl.arange(0, BN)
        k = tl.load(k_ptr + columns[:, None] * D + d[None, :])
        v = tl.load(k_ptr + columns[:, None] * D + d[None, :])
        p = tl.maximum(tl.dot(q, k.T), 0)
        out = tl.dot(p.to(tl.float16), v, out * 2)
    tl.store(out_ptr + rows[:, None] * D + d[None, :], out)


@pytest.mark.parametrize("last", (0, 64, 192))
def test_loops_downwards(run_everywhere: Any, last: int) -> None:
    generator = np.random.default_rng(last)
    q, k = (generator.integers(-1, 2, (rows, 64)).astype(np.float16) for rows in (128, 256))
    out = np.full((128, 64), np.nan, np.float32)
    *_, found = run_everywhere(downwards, (1,), q, k, out, last, BM=128, BN=64, D=64, num_warps=4)
    sums = np.zeros((128, 64))
    for start in range(last - 64, -1, -64):
        tile = k[start : start + 64].astype(float)
        sums = 2 * sums + np.maximum(q.astype(float) @ tile.T, 0) @ tile
    np.testing.assert_array_equal(found, sums)


@triton.jit
def from_a_program(q_ptr, k_ptr, out_ptr, last, BM: tl.constexpr, BN: tl.constexpr, D: tl.constexpr):
    d = tl.arange(0, D)
    rows = tl.arange(0, BM)
    q = tl.load(q_ptr + rows[:, None] * D + d[None, :])
    out = tl.zeros([BM, D], tl.float32)
    for block in range(tl.program_id(1) >> 1, last):
        columns = block * BN + tl.arange(0, BN)
        k = tl.load(k_ptr + columns[:, None] * D + d[None, :])
        v = tl.load(k_ptr + columns[:, None] * D + d[None, :])
        p = tl.maximum(tl.dot(q, k.T), 0)
        out = tl.dot(p.to(tl.float16), v, out * 2)
    tl.store(out_ptr + (tl.program_id(1) * BM + rows)[:, None] * D + d[None, :], out)


def test_loops_from_where_an_expression_says(run_everywhere: Any) -> None:
    # The second iteration, with which the loop's text begins, once began where the first one did: a deadlock.
    generator = np.random.default_rng(7)
    q, k = (generator.integers(-1, 2, (rows, 64)).astype(np.float16) for rows in (128, 192))
    out = np.full((4 * 128, 64), np.nan, np.float32)
    *_, found = run_everywhere(from_a_program, (1, 4), q, k, out, 3, BM=128, BN=64, D=64, num_warps=4)
    for program in range(4):
        sums = np.zeros((128, 64))
        for block in range(program >> 1, 3):
            tile = k[block * 64 : block * 64 + 64].astype(float)
            sums = 2 * sums + np.maximum(q.astype(float) @ tile.T, 0) @ tile
        np.testing.assert_array_equal(found[program * 128 : program * 128 + 128], sums)


def test_the_late_product_runs_on_while_an_iteration_computes() -> None:
    body = text(two=False).split("for (int start = ")[-1]
    words = (
        "start_score(used);",
        "add_to_out(used - 1);",
        "wgmma_wait<1>",
        "compute(start, used);",
        "&empty[(used - 1)",
    )
    places = [body.index(word) for word in words]
    assert places == sorted(places)


def test_what_the_late_product_reads_is_computed_when_the_last_one_is_complete() -> None:
    body = text(two=False).split("const auto compute")[1]
    words = ("fmaxf(", "mbarrier_wait(&full[", "wgmma_wait<0>", "round_pairs(p_half", "wgmma_fragment(p_fragments")
    places = [body.index(word) for word in words]
    assert places == sorted(places)


@pytest.mark.skipif(not nvrtc.is_available(), reason="needs NVRTC")
@pytest.mark.parametrize("two", (False, True))
def test_the_assembler_lets_products_overlap(two: bool) -> None:
    log = nvrtc.compile_text(artifact(two)).log
    assert nvrtc.SERIALISED not in log, log


def test_tiles_of_products_ahead_have_barriers_of_their_own() -> None:
    own = text(two=False)
    assert "Barrier early_full[NUM_STAGES];   // completes when k of a stage has arrived" in own
    # Of two products ahead one reads what the late one reads as well: these tiles are free an iteration later.
    both = text(two=True)
    start = both.split("const auto start_products")[1].split("};")[0]
    assert "completes when v of a stage has arrived" in both.split("early_full[")[1]
    assert "v has arrived" in start and "k has arrived" in start


def test_sums_that_are_read_behind_the_late_product_stay_in_step() -> None:
    assert "start_score" not in text(two=False, behind=True)
