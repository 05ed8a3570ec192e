"""Tiles that tensor copies bring and threads read: large ones beside a loop's operands, and operands that others read too."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tilewright as triton
import tilewright.language as tl
from tilewright.artifact import Options
from tilewright.pipeline import Translation, translate_stages
from tilewright.runtime.arguments.signature import parse_signature
from tilewright.runtime.building import nvrtc
from tilewright.schedule.targets import find_target


@triton.jit
def biased(q_ptr, k_ptr, v_ptr, bias_ptr, out_ptr, N, FIRST: tl.constexpr, COLUMNS: tl.constexpr, BM: tl.constexpr,
           BN: tl.constexpr, D: tl.constexpr):  # fmt: skip
    # A tile of bias for each product, loaded behind its operands or in front of them, contiguous along either axis.
    d = tl.arange(0, D)
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    q = tl.load(q_ptr + rows[:, None] * D + d[None, :])
    out = tl.zeros([BM, D], tl.float32)
    for start in range(0, N, BN):
        columns = start + tl.arange(0, BN)
        places = rows[:, None] + columns[None, :] * 128 if COLUMNS else rows[:, None] * N + columns[None, :]
        if FIRST:
            bias = tl.load(bias_ptr + places, mask=(columns < N)[None, :], other=0)
        k = tl.load(k_ptr + columns[:, None] * D + d[None, :], mask=(columns < N)[:, None], other=0.0)
        if not FIRST:
            bias = tl.load(bias_ptr + places, mask=(columns < N)[None, :], other=0)
        p = tl.maximum(tl.dot(q, k.T) * 2 + bias.to(tl.float32), 0)
        v = tl.load(v_ptr + columns[:, None] * D + d[None, :], mask=(columns < N)[:, None], other=0.0)
        out = tl.dot(p.to(tl.float16), v, out * 2)
    tl.store(out_ptr + rows[:, None] * D + d[None, :], out)


def planned(kernel: Any, signature: str, warps: int = 4) -> Translation:
    return translate_stages(kernel, parse_signature(kernel, signature), Options(num_warps=warps), find_target("sm_90a"))


def bias_plan(first: bool = False, columns: bool = False, depth: int = 64, warps: int = 4) -> Translation:
    pointers = "*fp16:16, *fp16:16, *fp16:16, *fp16:16, *fp32:16"
    return planned(biased, f"{pointers}, i32:16, {first}, {columns}, 128, 64, {depth}", warps)


@pytest.mark.parametrize("first", (False, True))
@pytest.mark.parametrize("columns", (False, True))
@pytest.mark.parametrize("type_", (np.float16, np.float32, np.int8))
def test_tiles_of_bias(run_everywhere: Any, first: bool, columns: bool, type_: Any) -> None:
    generator, keys, depth = np.random.default_rng(first + 2 * columns), 144, 64
    q, k, v = (generator.integers(-1, 2, (n, depth)).astype(np.float16) for n in (128, keys, keys))
    bias = generator.integers(-3, 4, (keys, 128) if columns else (128, keys)).astype(type_)
    out = np.full((128, depth), np.nan, np.float32)
    *_, found = run_everywhere(
        biased, (1,), q, k, v, bias, out, keys, FIRST=first, COLUMNS=columns, BM=128, BN=64, D=depth, num_warps=8
    )
    sums = np.zeros((128, depth))
    for start in range(0, keys, 64):
        part = slice(start, min(start + 64, keys))
        added = bias.T[:, part] if columns else bias[:, part]
        sums = 2 * sums + np.maximum(2 * (q.astype(float) @ k[part].astype(float).T) + added, 0) @ v[part].astype(float)
    np.testing.assert_array_equal(found, sums)


@pytest.mark.parametrize("first", (False, True))
def test_a_large_tile_is_one_copy(first: bool) -> None:
    text = bias_plan(first).artifact.source
    assert "tma_load_2d(bias_tile[stage], bias_map" in text
    assert "cp_async_4" not in text


def test_staggered_loops_free_it_when_it_has_been_read() -> None:
    found = bias_plan(depth=128, warps=8)
    (ring,) = found.schedule.rings.rings
    assert ring.stagger is not None
    assert {tile.name.removesuffix("_tile") for tile in ring.stagger.early} >= {"k"}
    assert len(ring.stagger.early) == 2
    text = found.artifact.source
    body = text[text.index("const auto compute") :]
    order = [
        "const int stage = turn",
        "bias",
        "every lane has read its part",
        "&early_empty[turn",
        "round_pairs(p_half",
    ]
    places = [body.index(word) for word in order]
    assert places == sorted(places)
    assert text.count("&early_empty[") == 2  # the loading thread waits there, and the others arrive at one place


@pytest.mark.skipif(not nvrtc.is_available(), reason="needs NVRTC")
@pytest.mark.parametrize("depth", (64, 128))
def test_products_are_not_serialised(depth: int) -> None:
    assert nvrtc.SERIALISED not in nvrtc.compile_text(bias_plan(depth=depth, warps=8).artifact).log


@triton.jit
def with_norms(x_ptr, y_ptr, out_ptr, M, N, K, TWICE: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
               BK: tl.constexpr):  # fmt: skip
    # Products of rows, and the sums of the squares of both: tiles that are multiplied and read besides.
    rows, columns = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN)
    total = tl.zeros([BM, BN], tl.float32)
    squares, others = tl.zeros([BM], tl.float32), tl.zeros([BN], tl.float32)
    for start in range(0, K, BK):
        k = start + tl.arange(0, BK)
        x = tl.load(x_ptr + rows[:, None] * K + k[None, :], mask=(rows < M)[:, None] & (k < K)[None, :], other=0.0)
        y = tl.load(
            y_ptr + columns[:, None] * K + k[None, :], mask=(columns < N)[:, None] & (k < K)[None, :], other=0.0
        )
        squares += tl.sum(x.to(tl.float32) * x.to(tl.float32), 1)
        if TWICE:
            others += tl.sum(y.to(tl.float32) * y.to(tl.float32), 1)
            total = tl.dot(x, (y * 2).T, total)
        total = tl.dot(x, y.T, total)
    total += squares[:, None] + others[None, :]
    mask = (rows < M)[:, None] & (columns < N)[None, :]
    tl.store(out_ptr + rows[:, None] * N + columns[None, :], total, mask=mask)


@pytest.mark.parametrize("twice", (False, True))
@pytest.mark.parametrize("m, n, k", [(128, 64, 128), (100, 72, 200)])
def test_operands_that_others_read(run_everywhere: Any, twice: bool, m: int, n: int, k: int) -> None:
    generator = np.random.default_rng(m + k)
    x, y = (generator.integers(-2, 3, (rows, k)).astype(np.float16) for rows in (m, n))
    out = np.full((m, n), np.nan, np.float32)
    *_, found = run_everywhere(
        with_norms, (triton.cdiv(m, 64), triton.cdiv(n, 64)), x, y, out, m, n, k, twice, 64, 64, 64, num_warps=4
    )
    x, y = x.astype(float), y.astype(float)
    sums = x @ y.T * (3 if twice else 1) + (x * x).sum(1)[:, None] + ((y * y).sum(1)[None, :] if twice else 0)
    np.testing.assert_array_equal(found, sums)


@pytest.mark.parametrize("twice", (False, True))
def test_they_are_multiplied_where_a_tensor_copy_has_brought_them(twice: bool) -> None:
    found = planned(with_norms, f"*fp16:16, *fp16:16, *fp32:16, i32, i32:16, i32:16, {twice}, 64, 64, 64")
    (ring,) = found.schedule.rings.rings
    assert ring.kind == "tma"
    assert [tile.name for tile in ring.tiles] == ["x_tile", "y_tile" if twice else "y"]
    assert "x_shared" not in found.artifact.source


def test_what_no_tensor_copy_brings_is_loaded_as_before() -> None:
    found = planned(with_norms, "*fp16:16, *fp16:16, *fp32:16, i32, i32, i32, False, 64, 64, 64")
    assert [ring.kind for ring in found.schedule.rings.rings] == ["cp_async"]
    assert [reason.partition(":")[0] for reason in found.schedule.rings.reasons] == ["y"]


@triton.jit
def looked_up(a_ptr, q_ptr, code_ptr, c_ptr, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # Weights by their numbers in a code book.
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    cols = tl.program_id(1) * BN + tl.arange(0, BN)
    total = tl.zeros((BM, BN), tl.float32)
    for start in range(0, K, BK):
        k = start + tl.arange(0, BK)
        a = tl.load(a_ptr + rows[:, None] * K + k[None, :])
        q = tl.load(q_ptr + k[:, None] * N + cols[None, :])
        w = tl.load(code_ptr + q)
        total = tl.dot(a, (w + 1).to(tl.float16), total)
    tl.store(c_ptr + rows[:, None] * N + cols[None, :], total)


def test_numbers_that_a_tensor_copy_brings(run_everywhere: Any) -> None:
    """What they find is loaded when their trip comes: nobody waits for copies that only a load ahead would have needed."""
    generator = np.random.default_rng(5)
    a, q = (
        generator.integers(-3, 4, (64, 192)).astype(np.float16),
        generator.integers(0, 256, (192, 128)).astype(np.uint8),
    )
    code, c = generator.integers(-3, 4, 256).astype(np.float32), np.full((64, 128), np.nan, np.float32)
    *_, found = run_everywhere(looked_up, (1, 1), a, q, code, c, 128, 192, BM=64, BN=128, BK=64, num_warps=8)
    np.testing.assert_array_equal(found, a.astype(np.float32) @ (code[q] + 1))
    source = planned(looked_up, "*fp16:16, *u8:16, *fp32:16, *fp32:16, i32:16, i32:16, 64, 128, 64", 8).artifact.source
    assert "tma_load_2d(q_tile[stage]" in source and "is not used" not in source
