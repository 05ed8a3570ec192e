"""Rings whose stages are filled again where they have been read: which have them, and that nothing is overwritten too early."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tilewright as triton
import tilewright.language as tl
from changed_text import change_text
from test_rings import planned
from tilewright.diagnostics import KernelFaultError


@triton.jit
def gated(x_ptr, g_ptr, u_ptr, y_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    m, n, k = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN), tl.arange(0, BK)
    gate, up = tl.zeros((BM, BN), tl.float32), tl.zeros((BM, BN), tl.float32)
    for start in range(0, K, BK):
        at = start + k
        x = tl.load(x_ptr + m[:, None] * K + at[None, :], mask=(m[:, None] < M) & (at[None, :] < K), other=0.0)
        inside = (n[None, :] < N) & (at[:, None] < K)
        gate = tl.dot(x, tl.load(g_ptr + n[None, :] * K + at[:, None], mask=inside, other=0.0), gate)
        up = tl.dot(x, tl.load(u_ptr + n[None, :] * K + at[:, None], mask=inside, other=0.0), up)
    tl.store(y_ptr + m[:, None] * N + n[None, :], gate + 2 * up, mask=(m[:, None] < M) & (n[None, :] < N))


USUAL = "*fp16:16, *fp16:16, *fp16:16, *fp32:16, i32:16, i32:16, i32:16"


def ring_of(signature: str, **options: Any) -> Any:
    (ring,) = planned(gated, signature, **options).schedule.rings.rings
    return ring


def test_two_stages_do_what_three_do_where_more_blocks_have_room() -> None:
    ring = ring_of(f"{USUAL}, 32, 64, 64")
    assert ring.refilled and ring.stages == 2
    text = planned(gated, f"{USUAL}, 32, 64, 64").artifact.source
    assert "cp_async_wait<NUM_STAGES - 1>();" in text and "const int ahead = start + NUM_STAGES * BK;" in text
    order = [text.index(words) for words in ("&u[stage]", "which is filled again", "load_tiles(ahead, stage)")]
    assert order == sorted(order)


@pytest.mark.parametrize(
    ("signature", "options"),
    [
        (f"{USUAL}, 16, 64, 64", {}),  # waits for shared memory
        (f"{USUAL}, 32, 32, 32", {}),  # enough blocks have room
        (f"{USUAL}, 64, 64, 64", {}),  # tensor copies
        (f"{USUAL}, 32, 64, 64", {"num_stages": 2}),
        (f"{USUAL}, 32, 64, 64", {"few_programs": True}),
        (f"{USUAL}, 32, 64, 64".replace("i32:16", "i32"), {}),  # rows that are not aligned
        (f"{USUAL}, 32, 128, 128", {}),  # no further block has room
    ],
)
def test_others_are_filled_in_the_next_iteration(signature: str, options: dict[str, Any]) -> None:
    assert not ring_of(signature, **options).refilled


def arrays(k: int) -> tuple[Any, ...]:
    rng = np.random.default_rng(k)
    x, g, u = (rng.integers(-3, 4, (rows, k)).astype(np.float16) for rows in (48, 80, 80))
    wide = [one.astype(np.float64) for one in (x, g, u)]
    return (x, g, u, np.full((48, 80), np.nan, np.float32), 48, 80, k), wide[0] @ wide[1].T + 2 * wide[0] @ wide[2].T


@pytest.mark.parametrize("k", [0, 16, 64, 128, 192, 208, 336])
def test_nothing_is_overwritten_too_early(k: int, run_everyhow: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_ARCH", "sm_90a")
    values, expected = arrays(k)
    for result in run_everyhow(gated, (2, 2), values, BM=32, BN=64, BK=64):
        np.testing.assert_array_equal(result[3], expected)


@pytest.mark.parametrize(
    ("words", "instead"),
    [
        ("__syncthreads();   // everyone has read the stage, which is filled again", ""),
        ("cp_async_wait<NUM_STAGES - 1>();", "cp_async_wait<NUM_STAGES>();"),
    ],
)
def test_each_part_of_it_is_needed(words: str, instead: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_ARCH", "sm_90a")
    monkeypatch.setenv("TILEWRIGHT_MODE", "check")
    change_text(monkeypatch, words, instead)
    values, _ = arrays(208)
    with pytest.raises(KernelFaultError):
        triton.jit(gated.fn)[(2, 2)](*values, BM=32, BN=64, BK=64)
