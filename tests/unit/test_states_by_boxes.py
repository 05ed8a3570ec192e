"""Tiles of a recurrence's loop that tensor copies bring: one multiplied across its lines, one converted for its product."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
import tilewright as triton
import tilewright.language as tl

TRIPS, SIDE = 3, 64


@triton.jit
def states(k_ptr, w_ptr, v_ptr, g_ptr, out_ptr, T, H: tl.constexpr, K: tl.constexpr, V: tl.constexpr,
           B: tl.constexpr):  # fmt: skip
    """Chunk by chunk, state += (k * decay)^T (w + v); all states are stored."""
    head = tl.program_id(0).to(tl.int64)
    k_ptr += head * K
    w_ptr += head * V
    v_ptr += head * V
    out_ptr += head * K * V
    d, e = tl.arange(0, K), tl.arange(0, V)
    state, other = tl.zeros((K, V), tl.float32), tl.zeros((K, V), tl.float32)
    for trip in range(tl.cdiv(T, B)):
        t = trip * B + tl.arange(0, B)
        inside = (t < T)[:, None]
        k = tl.load(k_ptr + t[:, None] * (H * K) + d[None, :], mask=inside, other=0.0)
        w = tl.load(w_ptr + t[:, None] * (H * V) + e[None, :], mask=inside, other=0.0)
        v = tl.load(v_ptr + t[:, None] * (H * V) + e[None, :], mask=inside, other=0.0)
        g = tl.load(g_ptr + t, mask=t < T, other=0.0)
        decayed = (k * g[:, None]).to(tl.float16)
        state += tl.dot(tl.trans(decayed), w)
        other += tl.dot(tl.trans(decayed), v.to(tl.float16))
        place = out_ptr + trip.to(tl.int64) * (H * K * V)
        tl.store(place + d[:, None] * V + e[None, :], (state + other).to(tl.float16))


SIGNATURE = "*fp16:16, *fp16:16, *bf16:16, *fp32:16, *fp16:16, i32:16, 2, {}, {}, {}"


@pytest.mark.parametrize("rows", (SIDE * TRIPS, SIDE * TRIPS - 5))
@pytest.mark.parametrize("across, warps", ((SIDE, 4), (SIDE, 8), (2 * SIDE, 4)))
def test_the_states(run_everywhere: Any, rows: int, across: int, warps: int) -> None:
    generator, along = np.random.default_rng(rows), SIDE * SIDE // across
    k, w, v = (generator.integers(-2, 3, (rows, 2, side)) for side in (across, along, along))
    g = generator.integers(0, 2, rows).astype(np.float32)
    out = np.full((TRIPS, 2, across, along), np.nan, np.float16)
    given = k.astype(np.float16), w.astype(np.float16), v.astype(ml_dtypes.bfloat16), g, out
    found = run_everywhere(states, (2,), *given, rows, H=2, K=across, V=along, B=SIDE, num_warps=warps)[4]
    decayed, state = k * g[:, None, None], np.zeros((2, across, along))
    for trip in range(TRIPS):
        part = slice(trip * SIDE, (trip + 1) * SIDE)
        state += np.einsum("thi,thj->hij", decayed[part], (w + v)[part])
        np.testing.assert_array_equal(found[trip], state)


def test_tiles_are_read_by_16_bytes_and_by_matrices() -> None:
    text = states.translate(SIGNATURE.format(SIDE, SIDE, SIDE), "sm_90a", num_warps=4).source
    assert "load_matrices(&k[0][vec * 4], &k[1][vec * 4], &k_tile[stage][k_tile_place]);" in text
    assert "load_vec<V_VEC>(v[r], &v_tile[stage][v_tile_place]);" in text
    assert "store_vec<V_VEC>(&v_shared[v_place], v_half[r]);" in text
    wide = states.translate(SIGNATURE.format(2 * SIDE, SIDE // 2, SIDE), "sm_90a", num_warps=4).source
    assert "load_matrices(&k[r * 2][vec * 4], &k[r * 2 + 1][vec * 4]," in wide
