"""Loops whose products are started an iteration ahead: which are, what stands where, and that the results stay right."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tilewright as triton
import tilewright.language as tl
from tilewright.artifact import Options
from tilewright.pipeline import translate
from tilewright.runtime.signature import parse_signature
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


def text(two: bool, behind: bool = False, columns: int = 64) -> str:
    signature = "*fp16:16, *fp16:16, *fp16:16, *fp16:16, *fp32:16, i32:16, i32:16"
    signature = f"{signature}, 128, {columns}, 64, {two}, {behind}"
    return translate(
        weighted, parse_signature(weighted, signature), Options(num_warps=4), find_target("sm_90a")
    ).source


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


def test_the_next_product_is_started_before_the_late_one() -> None:
    body = text(two=False).split("for (int start = ")[-1]
    words = ("wgmma_wait<0>", "if (start + BN < last) start_score(used + 1);", "p_fragments", "wgmma_wait<1>")
    places = [body.index(word) for word in words]
    assert places == sorted(places), "what the late one of the last iteration has summed is there before the next is started"


def test_tiles_of_products_ahead_have_barriers_of_their_own() -> None:
    own = text(two=False)
    assert "Barrier early_full[NUM_STAGES];   // completes when k of a stage has arrived" in own
    # The late product reads k as well: a stage is free as a whole, an iteration later.
    both = text(two=True)
    assert "start_products(used + 1)" in both and "early_full[stage], EARLY_BYTES" in both
    assert "completes when v of a stage has arrived" in both.split("early_full[")[1]


def test_sums_that_are_read_behind_the_late_product_stay_in_step() -> None:
    assert "start_score" not in text(two=False, behind=True)
