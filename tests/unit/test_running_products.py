"""Products that run on until their sums are used, and products that start behind the first one that they can follow."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tilewright as triton
import tilewright.language as tl
from tilewright.runtime.building import nvrtc

POINTERS = "*fp16:16, *fp16:16, *fp16:16, *fp32:16, *fp32:16, *fp32:16"


@triton.jit
def gradients(k_ptr, q_ptr, d_ptr, stats_ptr, dk_ptr, dv_ptr, n, BM: tl.constexpr, BN: tl.constexpr, D: tl.constexpr):
    # Two sums in a loop, of which each needs what is computed of another product.
    d = tl.arange(0, D)
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    k = tl.load(k_ptr + rows[:, None] * D + d[None, :])
    dk = tl.zeros([BM, D], tl.float32)
    dv = tl.zeros([BM, D], tl.float32)
    for start in range(0, n, BN):
        columns = start + tl.arange(0, BN)
        q = tl.load(q_ptr + columns[:, None] * D + d[None, :])
        p = tl.maximum(tl.dot(k, q.T), 0)
        do = tl.load(d_ptr + columns[:, None] * D + d[None, :])
        dv = tl.dot(p.to(tl.float16), do, dv)
        stats = tl.load(stats_ptr + columns)
        # The second product of the tiles.
        ds = tl.where(p > 0, tl.dot(k, do.T) - stats[None, :], 0)
        dk = tl.dot(ds.to(tl.float16), q, dk)
    tl.store(dk_ptr + rows[:, None] * D + d[None, :], dk)
    tl.store(dv_ptr + rows[:, None] * D + d[None, :], dv)


def of_gradients(k: Any, q: Any, do: Any, stats: Any) -> tuple[Any, Any]:
    k, q, do, stats = (tile.astype(float) for tile in (k, q, do, stats))
    p = np.maximum(k @ q.T, 0)
    return np.where(p > 0, k @ do.T - stats, 0) @ q, p @ do


@pytest.mark.parametrize("n", (0, 32, 192))
@pytest.mark.parametrize("warps", (4, 8))
def test_results(run_everywhere: Any, n: int, warps: int) -> None:
    generator = np.random.default_rng(n)
    k, q, do = (generator.integers(-1, 2, (rows, 64)).astype(np.float16) for rows in (128, 192, 192))
    stats = generator.integers(-2, 3, 192).astype(np.float32)
    outs = [np.full((128, 64), np.nan, np.float32) for _ in range(2)]
    *_, dk, dv = run_everywhere(gradients, (1,), k, q, do, stats, *outs, n, BM=128, BN=32, D=64, num_warps=warps)
    wanted = of_gradients(k, q[:n], do[:n], stats[:n])
    np.testing.assert_array_equal(dk, wanted[0])
    np.testing.assert_array_equal(dv, wanted[1])


def test_the_second_product_runs_while_the_first_is_computed_further() -> None:
    text = gradients.translate(f"{POINTERS}, i32:16, 128, 32, 64", num_warps=8).source
    trip = text.split("(the multiplying warps' part)")[-1]
    words = [
        "(its product starts here)", "float product[", "(its product starts here)", "float ds_product[",
        "wgmma_wait<1>();   // product is complete, later products run on", "wgmma_pin(product);", "fmaxf",
        "wgmma_fragment(p_fragments", "wgmma_commit", "wgmma_wait<1>", "wgmma_pin(ds_product);",
        "wgmma_fragment(ds_fragments", "wgmma_commit", "wgmma_wait<0>();   // dv and dk are complete",
    ]  # fmt: skip
    place = 0
    for word in words:
        place = trip.index(word, place) + 1
    assert text.count("// The second product of the tiles.") == 1


@triton.jit
def chunks(w_ptr, k_ptr, v_ptr, out_ptr, state_ptr, n, C: tl.constexpr, H: tl.constexpr, V: tl.constexpr):
    # A state in two halves, which every chunk reads and adds to.
    i, low, j = tl.arange(0, C), tl.arange(0, H), tl.arange(0, V)
    upper = tl.zeros([H, V], tl.float32)
    lower = tl.zeros([H, V], tl.float32)
    for start in range(0, n, C):
        rows = start + i
        inside = rows[:, None] < n
        w = tl.load(w_ptr + rows[:, None] * (2 * H) + low[None, :], mask=inside, other=0.0)
        known = tl.dot(w, upper.to(tl.float16))
        w = tl.load(w_ptr + rows[:, None] * (2 * H) + H + low[None, :], mask=inside, other=0.0)
        known += tl.dot(w, lower.to(tl.float16))
        v = tl.load(v_ptr + rows[:, None] * V + j[None, :], mask=inside, other=0.0)
        new = v - known
        tl.store(out_ptr + rows[:, None] * V + j[None, :], new, mask=inside)
        kept = (new * 0.25).to(tl.float16)
        k = tl.load(k_ptr + rows[None, :] * (2 * H) + low[:, None], mask=rows[None, :] < n, other=0.0)
        upper += tl.dot(k, kept)
        k = tl.load(k_ptr + rows[None, :] * (2 * H) + H + low[:, None], mask=rows[None, :] < n, other=0.0)
        lower += tl.dot(k, kept)
    tl.store(state_ptr + low[:, None] * V + j[None, :], upper)
    tl.store(state_ptr + (H + low)[:, None] * V + j[None, :], lower)


@pytest.mark.parametrize("n", (64, 150))
def test_two_operands_of_one_sum(run_everywhere: Any, n: int) -> None:
    generator = np.random.default_rng(n)
    w, k = (generator.integers(-1, 2, (n, 128)).astype(np.float16) / 8 for _ in range(2))
    v = generator.integers(-1, 2, (n, 32)).astype(np.float16)
    out, state = np.full((n, 32), np.nan, np.float32), np.full((128, 32), np.nan, np.float32)
    *_, out, state = run_everywhere(chunks, (1,), w, k, v, out, state, n, C=64, H=64, V=32, tolerance=2e-3)
    wanted = np.zeros((128, 32))
    for start in range(0, n, 64):
        part = slice(start, min(start + 64, n))
        new = v[part].astype(float) - w[part].astype(float) @ wanted.astype(np.float16).astype(float)
        np.testing.assert_allclose(out[part], new, atol=2e-2)
        wanted += k[part].astype(float).T @ (new * 0.25).astype(np.float16).astype(float)
    np.testing.assert_allclose(state, wanted, atol=2e-2)


def test_operands_of_one_sum_share_a_barrier() -> None:
    text = chunks.translate("*fp16:16, *fp16:16, *fp16:16, *fp32:16, *fp32:16, i32, 64, 64, 32").source
    trip = text[text.rindex("for (int start = ") :]
    # One for the two halves of the state, one for what is added to both.
    assert trip.count("// the operands are in shared memory") == 2
    assert trip.count("wgmma_wait<0>();") == 2 and trip.count("wgmma_commit();") == 4


@triton.jit
def sums_in_turn(a_ptr, b_ptr, out_ptr, n, BM: tl.constexpr, BK: tl.constexpr):
    # The second product begins anew what the first has summed up, and may not be started before that is used.
    i, k = tl.arange(0, BM), tl.arange(0, BK)
    total = tl.zeros([BM, BM], tl.float32)
    for start in range(0, n, BK):
        a = tl.load(a_ptr + i[:, None] * n + (start + k)[None, :])
        b = tl.load(b_ptr + i[:, None] * n + (start + k)[None, :])
        s = tl.dot(a, b.T)
        total += tl.maximum(s, 0)
        s = tl.dot(b, a.T)
        total += 2 * tl.minimum(s, 0)
    tl.store(out_ptr + i[:, None] * BM + i[None, :], total)


def test_a_sum_that_begins_anew_waits(run_everywhere: Any) -> None:
    generator = np.random.default_rng(1)
    a, b = (generator.integers(-2, 3, (64, 192)).astype(np.float16) for _ in range(2))
    *_, out = run_everywhere(sums_in_turn, (1,), a, b, np.full((64, 64), np.nan, np.float32), 192, BM=64, BK=64)
    wanted = np.zeros((64, 64))
    for start in range(0, 192, 64):
        product = a[:, start : start + 64].astype(float) @ b[:, start : start + 64].astype(float).T
        wanted += np.maximum(product, 0) + 2 * np.minimum(product.T, 0)
    np.testing.assert_array_equal(out, wanted)


@triton.jit
def two_large_sums(a_ptr, b_ptr, out_ptr, n, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    i, j, k = tl.arange(0, BM), tl.arange(0, BN), tl.arange(0, BK)
    one = tl.zeros([BM, BN], tl.float32)
    two = tl.zeros([BM, BN], tl.float32)
    for start in range(0, n, BK):
        a = tl.load(a_ptr + i[:, None] * n + (start + k)[None, :])
        b = tl.load(b_ptr + (start + k)[:, None] * BN + j[None, :])
        one = tl.dot(a, b, one)
        two = tl.dot(a, b + b, two)
    tl.store(out_ptr + i[:, None] * BN + j[None, :], one * two)


def test_sums_that_no_thread_can_hold_get_twice_the_warps(run_everywhere: Any) -> None:
    signature = "*fp16:16, *fp16:16, *fp32:16, i32:16, 128, 128, 32"
    artifact = two_large_sums.translate(signature, num_warps=4)
    assert "constexpr int NUM_WARPS = 8;" in artifact.source
    assert "constexpr int NUM_WARPS = 4;" in two_large_sums.translate(signature, num_warps=4, maxnreg=255).source
    if nvrtc.is_available():
        assert nvrtc.compile_text(artifact).spill_bytes == 0
    generator = np.random.default_rng(2)
    a, b = (
        generator.integers(-1, 2, (128, 96)).astype(np.float16),
        generator.integers(-1, 2, (96, 128)).astype(np.float16),
    )
    out = np.full((128, 128), np.nan, np.float32)
    *_, out = run_everywhere(two_large_sums, (1,), a, b, out, 96, BM=128, BN=128, BK=32, num_warps=4)
    np.testing.assert_array_equal(out, 2 * (a.astype(float) @ b.astype(float)) ** 2)


def test_small_loads_go_ahead_where_registers_are_left() -> None:
    signature = f"{POINTERS}, i32:16, 128, 32, 64"
    text = gradients.translate(signature, num_warps=8).source
    assert "stats = tl.load(stats_ptr + columns)    (its copies, made ahead)" in text
    assert "stats_ahead" not in gradients.translate(signature, num_warps=4).source  # two blocks, no register left


@triton.jit
def nearest(a_ptr, b_ptr, out_ptr, m, D: tl.constexpr, BN: tl.constexpr, BM: tl.constexpr, SOFT: tl.constexpr):
    # Distances by products and norms; the norms of each trip's rows stand in front of the product.
    n, d = tl.arange(0, BN), tl.arange(0, D)
    a = tl.load(a_ptr + n[:, None] * D + d[None, :])
    best = tl.full((BN,), float("inf"), tl.float32)
    for first in range(0, m, BM):
        rows = first + tl.arange(0, BM)
        b = tl.load(b_ptr + rows[:, None] * D + d[None, :], mask=rows[:, None] < m, other=0.0)
        norm = tl.sum(b.to(tl.float32) * b.to(tl.float32), 1)
        apart = norm[None, :] - 2.0 * tl.dot(a, tl.trans(b))
        if SOFT:
            apart = tl.exp(apart * 0.01)
        best = tl.minimum(best, tl.min(tl.where(rows[None, :] < m, apart, float("inf")), 1))
    tl.store(out_ptr + n, best)


@pytest.mark.parametrize("soft", [False, True])
def test_a_product_starts_ahead_of_norms(soft: bool, run_everywhere: Any) -> None:
    """The norms are summed up while the tensor cores multiply; not where functions follow, which another warpgroup overlaps."""
    source = nearest.translate(f"*fp16:16, *fp16:16, *fp32:16, i32:16, 64, 128, 64, {soft}", num_warps=8).source
    kernel = source[source.index("__global__") :]
    assert (kernel.index("wgmma_commit();") < kernel.index("norm_reduced")) != soft
    assert ("(its product starts here)" in kernel) != soft
    rng = np.random.default_rng(4)
    a, b = (rng.standard_normal((rows, 64)).astype(np.float16) for rows in (128, 150))
    args = (a, b, np.full(128, np.nan, np.float32), 150)
    best = run_everywhere(nearest, (1,), *args, D=64, BN=128, BM=64, SOFT=soft, num_warps=8, tolerance=2e-3)[2]
    apart = (b.astype(float) ** 2).sum(1) - 2 * a.astype(float) @ b.astype(float).T
    np.testing.assert_allclose(best, (np.exp(apart * 0.01) if soft else apart).min(1), rtol=2e-3, atol=2e-3)
