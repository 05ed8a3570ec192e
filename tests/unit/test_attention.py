"""Attention: products of products whose left operand stays in registers, loops that share their stages, two blocks."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
import tilewright as triton
import tilewright.language as tl
from numpy.typing import NDArray
from tilewright.artifact import Artifact, Options
from tilewright.pipeline import translate
from tilewright.runtime.arguments.signature import parse_signature
from tilewright.schedule.targets import find_target


@triton.jit
def over_keys(
    out, total, largest, q, k_ptr, v_ptr, rows, first, last, BN: tl.constexpr, D: tl.constexpr, DIAGONAL: tl.constexpr
):
    d = tl.arange(0, D)
    for start in range(first, last, BN):
        columns = start + tl.arange(0, BN)
        k = tl.load(k_ptr + columns[:, None] * D + d[None, :])
        score = tl.dot(q, k.T)
        if DIAGONAL:
            score = tl.where(rows[:, None] >= columns[None, :], score, -float("inf"))
        larger = tl.maximum(largest, tl.max(score, 1))
        scale = tl.exp2(largest - larger)
        p = tl.exp2(score - larger[:, None])
        v = tl.load(v_ptr + columns[:, None] * D + d[None, :])
        out = tl.dot(p.to(tl.float16), v, out * scale[:, None])
        total = total * scale + tl.sum(p, 1)
        largest = larger
    return out, total, largest


@triton.jit
def attention(
    q_ptr, k_ptr, v_ptr, out_ptr, scale, N, BM: tl.constexpr, BN: tl.constexpr, D: tl.constexpr, CAUSAL: tl.constexpr
):
    row, d = tl.program_id(0) * BM, tl.arange(0, D)
    rows = row + tl.arange(0, BM)
    head = tl.program_id(1).to(tl.int64) * N * D
    q = tl.load(q_ptr + head + rows[:, None] * D + d[None, :])
    q = (q * scale).to(tl.float16)
    largest = tl.full([BM], -float("inf"), tl.float32)
    total = tl.zeros([BM], tl.float32)
    out = tl.zeros([BM, D], tl.float32)
    if CAUSAL:
        out, total, largest = over_keys(out, total, largest, q, k_ptr + head, v_ptr + head, rows, 0, row, BN, D, False)
        out, total, largest = over_keys(
            out, total, largest, q, k_ptr + head, v_ptr + head, rows, row, row + BM, BN, D, True
        )
    else:
        out, total, largest = over_keys(out, total, largest, q, k_ptr + head, v_ptr + head, rows, 0, N, BN, D, False)
    out /= total[:, None]
    tl.store(out_ptr + head + rows[:, None] * D + d[None, :], out.to(tl.float16))


def expected(q: NDArray[Any], k: NDArray[Any], v: NDArray[Any], scale: float, causal: bool) -> NDArray[Any]:
    """The same in float64, of [heads, N, D]."""
    scores = (q * np.float32(scale)).astype(np.float16).astype(float) @ k.astype(float).transpose(0, 2, 1)
    if causal:
        scores[:, ~np.tri(q.shape[1], dtype=bool)] = -np.inf
    weights = 2.0 ** (scores - scores.max(2, keepdims=True))
    return weights @ v / weights.sum(2, keepdims=True)


@pytest.mark.parametrize("causal", (False, True))
@pytest.mark.parametrize("warps, block, depth", [(4, 64, 64), (8, 128, 32), (4, 128, 64), (2, 32, 32)])
def test_attention(run_everywhere: Any, warps: int, block: int, depth: int, causal: bool) -> None:
    heads, length = 2, 256
    generator = np.random.default_rng(1)
    q, k, v = (generator.standard_normal((heads, length, depth)).astype(np.float16) for _ in range(3))
    grid = (length // block, heads)
    *_, out = run_everywhere(
        attention, grid, q, k, v, np.zeros_like(q), 0.25, length, BM=block, BN=32, D=depth, CAUSAL=causal,
        num_warps=warps, tolerance=4e-3,
    )  # fmt: skip
    np.testing.assert_allclose(out.astype(float), expected(q, k, v, 0.25, causal), atol=4e-3)


def translated(sides: str, **options: Any) -> Artifact:
    signature = f"*fp16:16, *fp16:16, *fp16:16, *fp16:16, fp32, i32:16, {sides}"
    return translate(attention, parse_signature(attention, signature), Options(**options), find_target("sm_90a"))


def test_probabilities_stay_in_registers() -> None:
    text = translated("128, 64, 64, False", num_warps=4).source
    assert "wgmma_fragment(" in text and "p_shared" not in text
    # Across the columns of the scores, a warp has a part of what it needs: one barrier does not do.
    assert "wgmma_fragment(" not in translated("64, 128, 64, False", num_warps=8).source


def test_what_a_product_is_added_to_is_changed_in_its_place() -> None:
    text = translated("128, 64, 64, False", num_warps=4).source
    assert re.search(r"\[r\]\[c\] \*= scale\w*\[r\];", text) and not re.search(r"(\w+\[r\]\[c\]) = \1 \* ", text)


def test_a_thread_s_part_of_a_long_row_is_reduced_by_two_chains(run_everywhere: Any) -> None:
    short, long = (translated(sides, num_warps=4).source for sides in ("64, 32, 32, False", "64, 64, 32, False"))
    assert "_odd" not in short
    assert "score_max_odd = fmaxf(score_max_odd, score[r][c + 1]);" in long
    assert "p_sum_odd += p[r][c + 1];" in long
    q, k, v = np.random.default_rng(2).standard_normal((3, 1, 128, 32)).astype(np.float16)
    sides = {"BM": 64, "BN": 64, "D": 32, "CAUSAL": False}
    *_, out = run_everywhere(attention, (2, 1), q, k, v, np.zeros_like(q), 0.25, 128, **sides, tolerance=4e-3)
    np.testing.assert_allclose(out.astype(float), expected(q, k, v, 0.25, False), atol=4e-3)


def test_what_a_loop_does_not_change_is_copied_before_it() -> None:
    text = translated("128, 64, 64, False", num_warps=4).source
    assert 0 < text.index("&q_shared[q_place]") < text.rindex("for (int start = ")


def test_loops_over_the_same_tiles_share_their_stages() -> None:
    text = translated("128, 64, 64, True", num_warps=4).source
    assert text.count("mbarrier_init<NUM_STAGES>(full, 1)") == 1 and "full_second" not in text
    assert text.count(" half k[NUM_STAGES]") == 1


@pytest.mark.parametrize(
    "sides, warps, blocks",
    [("128, 64, 64, True", 4, 2), ("128, 64, 128, False", 4, 2), ("128, 128, 128, True", 8, 1)],
)
def test_two_blocks_keep_the_tensor_cores_busy(sides: str, warps: int, blocks: int) -> None:
    found = translated(sides, num_warps=warps)
    wanted = "MIN_BLOCKS" if blocks > 1 else "1"
    assert f"__launch_bounds__(NUM_THREADS + WARPGROUP_SIZE, {wanted})" in found.source
    assert (f"MIN_BLOCKS = {blocks};" in found.source) == (blocks > 1)
    assert found.shared_bytes * blocks <= 227 * 1024


@triton.jit
def both_ways(a_ptr, b_ptr, c_ptr, down_ptr, up_ptr, N, BM: tl.constexpr, BN: tl.constexpr, D: tl.constexpr):
    # Two loops over tiles that are transposed in one of them, as in the backward pass of attention.
    d = tl.arange(0, D)
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    a = tl.load(a_ptr + rows[:, None] * D + d[None, :])
    down = tl.zeros([BM, D], tl.float32)
    for start in range(0, N, BN):
        columns = start + tl.arange(0, BN)
        b = tl.load(b_ptr + columns[None, :] * D + d[:, None])
        p = tl.maximum(tl.dot(a, b), 0)
        down += tl.dot(p.to(tl.float16), tl.trans(b))
    tl.store(down_ptr + rows[:, None] * D + d[None, :], down)
    c = tl.load(c_ptr + rows[:, None] * D + d[None, :])
    up = tl.zeros([BM, D], tl.float32)
    for start in range(0, N, BN):
        columns = start + tl.arange(0, BN)
        e = tl.load(b_ptr + columns[:, None] * D + d[None, :])
        p = tl.maximum(tl.dot(c, tl.trans(e)), 0)
        up += tl.dot(p.to(tl.float16), e)
    tl.store(up_ptr + rows[:, None] * D + d[None, :], up)


def test_loops_over_tiles_and_transposed_ones_share_memory(run_everywhere: Any) -> None:
    n, depth = 128, 64
    generator = np.random.default_rng(2)
    a, b, c = (generator.integers(-1, 2, (n, depth)).astype(np.float16) for _ in range(3))
    outs = [np.zeros((n, depth), np.float32) for _ in range(2)]
    *_, down, up = run_everywhere(both_ways, (1,), a, b, c, *outs, n, BM=128, BN=32, D=depth, num_warps=4)
    for found, left in ((down, a), (up, c)):
        np.testing.assert_array_equal(found, np.maximum(left.astype(float) @ b.T.astype(float), 0) @ b)
    signature = "*fp16:16, *fp16:16, *fp16:16, *fp32:16, *fp32:16, i32:16, 128, 32, 64"
    found = translate(both_ways, parse_signature(both_ways, signature), Options(num_warps=4), find_target("sm_90a"))
    assert "auto& e = b;" in found.source and "e [32, 64]: the memory of b" in found.source


def test_tiles_of_parts_of_a_kernel_take_turns(run_everywhere: Any) -> None:
    """Two blocks have room for it where what one part of the kernel needs lies in the memory of the other's."""
    n, depth = 128, 128
    signature = f"*fp16:16, *fp16:16, *fp16:16, *fp32:16, *fp32:16, i32:16, 64, {n}, {depth}"
    found = translate(both_ways, parse_signature(both_ways, signature), Options(num_warps=4), find_target("sm_90a"))
    assert "MIN_BLOCKS = 2;" in found.source and found.source.count("union {") == 2
    generator = np.random.default_rng(3)
    a, b, c = (generator.integers(-1, 2, (n, depth)).astype(np.float16) for _ in range(3))
    outs = [np.zeros((n, depth), np.float32) for _ in range(2)]
    *_, down, up = run_everywhere(both_ways, (2,), a, b, c, *outs, n, BM=64, BN=n, D=depth, num_warps=4)
    for result, left in ((down, a), (up, c)):
        np.testing.assert_array_equal(result, np.maximum(left.astype(float) @ b.T.astype(float), 0) @ b)
