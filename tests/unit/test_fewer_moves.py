"""What does not move between threads: vectors that are loaded for each of two layouts, tiles that are rounded before they move.

And A of a product whose B is computed in registers, where A lies along its rows: ldmatrix brings it in B's order of K.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tilewright as triton
import tilewright.language as tl

EXCHANGE = "through shared memory to the threads"


@triton.jit
def chunk_states(
    k_ptr, v_ptr, g_ptr, h_ptr, length, K: tl.constexpr, V: tl.constexpr, T: tl.constexpr, OF_V: tl.constexpr
):
    k, v = tl.arange(0, K), tl.arange(0, V)
    state = tl.zeros([K, V], tl.float32)
    for chunk in range(tl.cdiv(length, T)):
        t = chunk * T + tl.arange(0, T)
        tl.store(h_ptr + chunk * K * V + k[:, None] * V + v[None, :], state.to(tl.bfloat16))
        keys = tl.load(k_ptr + t[None, :] * K + k[:, None], mask=t[None, :] < length, other=0.0)
        values = tl.load(v_ptr + t[:, None] * V + v[None, :], mask=t[:, None] < length, other=0.0)
        if OF_V:
            decays = tl.load(g_ptr + t, mask=t < length, other=0.0)
            values = (values * tl.exp2(decays)[:, None]).to(values.dtype)
        else:
            last = tl.load(g_ptr + (min((chunk + 1) * T, length) - 1) * K + k)
            decays = tl.load(g_ptr + t[None, :] * K + k[:, None], mask=t[None, :] < length, other=0.0)
            state *= tl.exp2(last)[:, None]
            keys = (keys * tl.exp2(last[:, None] - decays)).to(keys.dtype)
        state = tl.dot(keys, values, state)


def states(keys: Any, values: Any, decays: Any, of_v: bool) -> Any:
    found, state = [], np.zeros((keys.shape[1], values.shape[1]))
    for start in range(0, len(keys), 32):
        rows = slice(start, min(start + 32, len(keys)))
        k, v, g = (array[rows].astype(float) for array in (keys, values, decays))
        found.append(state)
        if of_v:
            state = state + k.T @ (v * np.exp2(g)[:, None])
        else:
            state = state * np.exp2(g[-1])[:, None] + (k * np.exp2(g[-1] - g)).T @ v
    return np.stack(found)


def small(generator: np.random.Generator, *shape: int) -> Any:
    """Sums of so few powers of two that none is rounded, for all that is added to them."""
    return generator.integers(-1, 2, shape).astype(np.float32)


@pytest.mark.parametrize("of_v", [False, True])
@pytest.mark.parametrize("length", [96, 75])
def test_states_of_chunks(run_everyhow: Any, of_v: bool, length: int) -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    generator = np.random.default_rng(length)
    k, v = (small(generator, length, side).astype(ml_dtypes.bfloat16) for side in (64, 32))
    g = -generator.integers(0, 2, (length,) if of_v else (length, 64)).astype(np.float32)
    h = np.full((-(-length // 32), 64, 32), np.nan, ml_dtypes.bfloat16)
    options = {"K": 64, "V": 32, "T": 32, "OF_V": of_v, "num_warps": 1, "num_stages": 2}
    for *_, found, _ in run_everyhow(chunk_states, (1,), (k, v, g, h, length), **options):
        np.testing.assert_allclose(found.astype(float), states(k, v, g, of_v), rtol=2**-7, atol=2**-7)


def text(of_v: bool, warps: int = 1) -> str:
    signature = f"*bf16:16, *bf16:16, *fp32:16, *bf16:16, i32, 64, 32, 32, {of_v}"
    return chunk_states.translate(signature, num_warps=warps, num_stages=2).source


def test_a_vector_is_loaded_for_each_of_its_layouts() -> None:
    source = text(of_v=False)
    assert "(again, for L36)" in source and "last_for_keys" in source
    assert EXCHANGE not in source


def test_what_is_stored_moves_in_few_bits() -> None:
    source = text(of_v=False)
    rounded, moves = (source.index(word) for word in ("round_pairs(state_rounded", "state_rounded moves between"))
    assert rounded < moves and "float state_moved" not in source


def test_ldmatrix_reads_a_in_the_order_of_a_computed_b() -> None:
    source = text(of_v=True)
    assert "in the order in which values is computed" in source
    assert "ldmatrix_x4_trans(a_frag[0]" in source and "a_run" not in source


@triton.jit
def differences(x_ptr, out_ptr, rest_ptr, N: tl.constexpr, WHAT: tl.constexpr):
    i = tl.arange(0, N)
    if WHAT == "written":
        tl.store(x_ptr + N + i, tl.load(x_ptr + i) * 2)
    x = tl.load(x_ptr + i)
    if WHAT == "chain":
        x = tl.exp2(x.to(tl.float32))
    if WHAT == "gathered":
        x = tl.load(x_ptr + tl.load(rest_ptr + i))
    tl.store(out_ptr + i[:, None] * N + i[None, :], (x[:, None] - x[None, :]).to(tl.float32))


@pytest.mark.parametrize("what", ["plain", "chain", "gathered", "written"])
def test_one_statement_needs_both(run_everywhere: Any, what: str) -> None:
    generator = np.random.default_rng(7)
    x, rest = generator.integers(-3, 4, 128).astype(np.float16), generator.integers(0, 64, 64).astype(np.int32)
    _, found, _ = run_everywhere(differences, (1,), x, np.full((64, 64), np.nan, np.float32), rest, N=64, WHAT=what)
    values = x[:64].astype(float)
    values = np.exp2(values) if what == "chain" else x[rest].astype(float) if what == "gathered" else values
    np.testing.assert_array_equal(found, values[:, None] - values[None, :])
    source = differences.translate(f"*fp16:16, *fp32:16, *i32:16, 64, '{what}'").source
    loaded_twice = what in ("plain", "chain")
    assert ("x_of_columns" in source) == loaded_twice
    assert (EXCHANGE in source) == (not loaded_twice)


@triton.jit
def halves(x_ptr, out_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    x = tl.load(x_ptr + i)
    even, odd = tl.split(x.reshape(N // 2, 2))
    tl.store(out_ptr + tl.arange(0, N // 2), even - odd)


def test_what_only_one_layout_needs_is_loaded_once() -> None:
    assert "again" not in halves.translate("*fp32:16, *fp32:16, 256").source


@triton.jit
def means(a_ptr, b_ptr, weights_ptr, out_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    places = i[:, None] * N + i[None, :]
    total = tl.dot(tl.load(a_ptr + places), tl.load(b_ptr + places))
    weight = tl.load(weights_ptr + i)
    tl.store(out_ptr + places, (total / weight[:, None]).to(tl.float16))


def test_all_of_a_value_is_computed_before_it_moves(run_everywhere: Any) -> None:
    generator = np.random.default_rng(8)
    a, b = (generator.integers(-2, 3, (64, 64)).astype(np.float16) for _ in range(2))
    weights = 2.0 ** generator.integers(0, 3, 64).astype(np.float32)
    out = np.full((64, 64), np.nan, np.float16)
    *_, found = run_everywhere(means, (1,), a, b, weights, out, N=64)
    np.testing.assert_array_equal(found, a.astype(float) @ b.astype(float) / weights[:, None])
    source = means.translate("*fp16:16, *fp16:16, *fp32:16, *fp16:16, 64").source
    assert "half total_rounded[" in source and "float total_moved" not in source
