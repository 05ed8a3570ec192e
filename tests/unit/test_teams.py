"""Two warpgroups that take turns at the programs of a block: who gets them, and that neither overtakes the other."""

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
def layer(x_ptr, w_ptr, b_ptr, y_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    m, n, k = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN), tl.arange(0, BK)
    acc = tl.zeros((BM, BN), tl.float32)
    for start in range(0, K, BK):
        x = tl.load(
            x_ptr + m[:, None] * K + start + k[None, :], mask=(m[:, None] < M) & (start + k[None, :] < K), other=0.0
        )
        w = tl.load(
            w_ptr + n[None, :] * K + start + k[:, None], mask=(n[None, :] < N) & (start + k[:, None] < K), other=0.0
        )
        acc = tl.dot(x, w, acc)
    y = tl.maximum(acc + tl.load(b_ptr + n, mask=n < N, other=0.0)[None, :], 0.0)
    inside = (m[:, None] < M) & (n[None, :] < N)
    tl.store(y_ptr + m[:, None] * N + n[None, :], y.to(y_ptr.dtype.element_ty), mask=inside)


@triton.jit
def by_pointers(x_ptr, w_ptr, y_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """The trips are counted by a name of each program."""
    pid = tl.program_id(0)
    m, n = pid // tl.cdiv(N, BN) * BM + tl.arange(0, BM), pid % tl.cdiv(N, BN) * BN + tl.arange(0, BN)
    k, blocks = tl.arange(0, BK), tl.cdiv(K, BK)
    x, w = x_ptr + m[:, None] * K + k[None, :], w_ptr + n[None, :] * K + k[:, None]
    acc = tl.zeros((BM, BN), tl.float32)
    for i in range(blocks):
        left = k < K - i * BK
        acc += tl.dot(
            tl.load(x, mask=(m[:, None] < M) & left[None, :], other=0.0),
            tl.load(w, mask=(n[None, :] < N) & left[:, None], other=0.0),
        )
        x += BK
        w += BK
    tl.store(y_ptr + m[:, None] * N + n[None, :], acc, mask=(m[:, None] < M) & (n[None, :] < N))


@triton.jit
def three_trips(x_ptr, w_ptr, y_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """No trips of so few are joined."""
    m, n = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), tl.float32)
    for i in range(3):
        k = i * BK + tl.arange(0, BK)
        x = tl.load(x_ptr + m[:, None] * K + k[None, :], mask=(m[:, None] < M) & (k[None, :] < K), other=0.0)
        w = tl.load(w_ptr + k[:, None] * N + n[None, :], mask=(n[None, :] < N) & (k[:, None] < K), other=0.0)
        acc += tl.dot(x, w)
    tl.store(y_ptr + m[:, None] * N + n[None, :], acc.to(tl.float16), mask=(m[:, None] < M) & (n[None, :] < N))


@triton.jit
def normed(x_ptr, w_ptr, y_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """The warps of a program meet to sum up its columns."""
    m, n, k = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN), tl.arange(0, BK)
    acc = tl.zeros((BM, BN), tl.float32)
    for start in range(0, K, BK):
        x = tl.load(
            x_ptr + m[:, None] * K + start + k[None, :], mask=(m[:, None] < M) & (start + k[None, :] < K), other=0.0
        )
        w = tl.load(
            w_ptr + n[None, :] * K + start + k[:, None], mask=(n[None, :] < N) & (start + k[:, None] < K), other=0.0
        )
        acc = tl.dot(x, w, acc)
    y = acc / tl.sum(acc, 0)[None, :]
    tl.store(y_ptr + m[:, None] * N + n[None, :], y, mask=(m[:, None] < M) & (n[None, :] < N))


@triton.jit
def low_rank(x_ptr, w_ptr, u_ptr, y_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """A product that is rounded and multiplied again, by a tile that is copied for this program."""
    m, n, k = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN), tl.arange(0, BK)
    r = tl.arange(0, 16)
    acc = tl.zeros((BM, 16), tl.float32)
    for start in range(0, K, BK):
        x = tl.load(
            x_ptr + m[:, None] * K + start + k[None, :], mask=(m[:, None] < M) & (start + k[None, :] < K), other=0.0
        )
        w = tl.load(w_ptr + r[None, :] * K + start + k[:, None], mask=start + k[:, None] < K, other=0.0)
        acc = tl.dot(x, w, acc)
    u = tl.load(u_ptr + r[:, None] * N + n[None, :], mask=n[None, :] < N, other=0.0)
    y = tl.dot(acc.to(tl.float16), u)
    tl.store(y_ptr + m[:, None] * N + n[None, :], y, mask=(m[:, None] < M) & (n[None, :] < N))


@triton.jit
def lower_half(x_ptr, w_ptr, y_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """The number of trips differs from program to program."""
    m, n, k = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN), tl.arange(0, BK)
    acc = tl.zeros((BM, BN), tl.float32)
    first = tl.program_id(1) * BN
    for start in range(first, first + K, BK):
        x = tl.load(
            x_ptr + m[:, None] * K + start + k[None, :], mask=(m[:, None] < M) & (start + k[None, :] < K), other=0.0
        )
        w = tl.load(
            w_ptr + n[None, :] * K + start + k[:, None], mask=(n[None, :] < N) & (start + k[:, None] < K), other=0.0
        )
        acc = tl.dot(x, w, acc)
    tl.store(y_ptr + m[:, None] * N + n[None, :], acc, mask=(m[:, None] < M) & (n[None, :] < N))


TO_HALVES = "*fp16:16, *fp16:16, *fp32:16, *fp16:16, i32:16, i32:16, i32:16"
USUAL = "*fp16:16, *fp16:16, *fp32:16, i32:16, i32:16, i32:16"


def teams(kernel: Any, signature: str, **options: Any) -> int:
    return planned(kernel, signature, **options).schedule.rings.teams


def test_a_block_that_is_alone_has_two_teams() -> None:
    for tile in ("128, 128, 64", "128, 64, 64", "64, 64, 64", "64, 64, 32", "64, 256, 64"):
        found = planned(layer, f"{TO_HALVES}, {tile}")
        assert found.schedule.rings.teams == 2 and found.artifact.num_threads == 3 * 128
        assert 2 * found.artifact.shared_bytes > 226 * 1024
        (ring,) = found.schedule.rings.rings
        assert ring.stages >= 3


@pytest.mark.parametrize(
    ("kernel", "signature", "options"),
    [
        (layer, f"{TO_HALVES}, 64, 32, 64", {}),  # another block has room
        (layer, f"{TO_HALVES}, 128, 256, 64", {"num_warps": 8}),  # two warpgroups multiply each program
        (layer, f"{TO_HALVES}, 128, 128, 64", {"maxnreg": 128}),
        (layer, f"{TO_HALVES}, 128, 128, 64".replace("i32:16", "i32"), {}),  # threads copy
        (lower_half, f"{USUAL}, 64, 64, 64", {}),
    ],
)
def test_others_have_one(kernel: Any, signature: str, options: dict[str, Any]) -> None:
    assert teams(kernel, signature, **options) == 1


def test_what_the_text_says() -> None:
    artifact = planned(layer, f"{TO_HALVES}, 128, 128, 64").artifact
    text = " ".join(artifact.source.replace("//", "").split())
    assert "warpgroups 0 and 1 multiply in turns, a program each; warpgroup 2 loads" in text
    assert "const int trips = max((K + BK - 1) / BK, 0);" in artifact.source
    assert "if (turn++ % NUM_TEAMS != team) { the other team multiplies this program used += trips; continue; }" in text
    assert "half y_shared[NUM_TEAMS][STORE_BUFFERS][BM * PIECE_WIDTH];" in artifact.source
    assert "auto& y_shared = shared.y_shared[team % NUM_TEAMS];" in artifact.source
    assert "named_barrier_sync(CONSUMER_BARRIER + team, NUM_THREADS);" in artifact.source
    assert artifact.threads == "NUM_TEAMS * NUM_THREADS + WARPGROUP_SIZE"
    order = [
        artifact.source.index(word)
        for word in ("named_barrier_sync(TURN", "wgmma_wait<0>", "named_barrier_arrive(TURN")
    ]
    assert order == sorted(order)


def test_trips_are_counted_of_parameters() -> None:
    """What a program computes of them has its name inside of the loop over programs only."""
    artifact = planned(by_pointers, f"{USUAL}, 128, 64, 64").artifact
    assert "const int trips = max((K + BK - 1) / BK, 0);" in artifact.source
    short = planned(by_pointers, f"{USUAL}, 128, 64, 32").artifact.source
    assert "const int trips = max(((K + BK - 1) / BK + 1) / 2, 0);" in short


def test_what_each_team_has_lies_in_dynamic_memory_however_little_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """A static array could not be named again as that of a team."""
    little = "*fp16:16, *fp16:16, *fp16:16, i32:16, i32:16, i32:16, 64, 32, 16"
    assert planned(three_trips, little).artifact.static_shared_bytes > 0
    monkeypatch.setattr("tilewright.schedule.staging.teams.serves_teams", lambda *_: True)
    artifact = planned(three_trips, little).artifact
    assert "[team % NUM_TEAMS]" in artifact.source
    assert artifact.static_shared_bytes == 0 < artifact.shared_bytes < 48 << 10


def arrays(m: int, n: int, k: int) -> tuple[Any, Any, Any, Any]:
    rng = np.random.default_rng(m + n + k)
    x, w = rng.normal(size=(m, k)).astype(np.float16), rng.normal(size=(n, k)).astype(np.float16)
    b = rng.normal(size=n).astype(np.float32)
    return x, w, b, np.maximum(x.astype(np.float64) @ w.astype(np.float64).T + b, 0)


@pytest.mark.parametrize("k", [0, 16, 64, 208])
@pytest.mark.parametrize("grid", [(1, 1), (3, 1), (2, 3)])
def test_programs_of_both_teams_are_right(k: int, grid: tuple[int, int], run_everywhere: Any, monkeypatch: Any) -> None:
    monkeypatch.setenv("TILEWRIGHT_ARCH", "sm_90a")
    m, n = 64 * grid[0] - 16, 64 * grid[1] - 32
    x, w, b, expected = arrays(m, n, k)
    y = np.full((m, n), 9, np.float16)
    y = run_everywhere(layer, grid, x, w, b, y, m, n, k, BM=64, BN=64, BK=64, tolerance=2e-2)[3]
    np.testing.assert_allclose(y, expected, rtol=2e-2, atol=2e-2)


@pytest.mark.parametrize("n", [128, 72, 71])
def test_results_that_are_not_aligned_move_through_memory_of_the_team(
    n: int, run_everywhere: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TILEWRIGHT_ARCH", "sm_90a")
    signature = (
        f"{TO_HALVES}, 64, 64, 64"
        if n % 16 == 0
        else f"{TO_HALVES.removesuffix(', i32:16, i32:16')}, i32, i32:16, 64, 64, 64"
    )
    found = planned(layer, signature)
    assert found.schedule.rings.teams == 2 and bool(found.schedule.conversions) == (n % 16 > 0)
    x, w, b, expected = arrays(150, n, 208)
    y = np.full((150, n), 9, np.float16)
    y = run_everywhere(layer, (3, 2), x, w, b, y, 150, n, 208, BM=64, BN=64, BK=64, tolerance=2e-2)[3]
    np.testing.assert_allclose(y, expected, rtol=2e-2, atol=2e-2)


def test_teams_reduce_tiles_by_themselves(run_everywhere: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_ARCH", "sm_90a")
    found = planned(normed, f"{USUAL}, 64, 64, 64")
    assert found.schedule.rings.teams == 2 and "[NUM_TEAMS][NUM_WARPS]" in found.artifact.source
    x, w, _, _ = arrays(192, 128, 208)
    x, w = np.abs(x), np.abs(w)
    y = np.full((192, 128), 9, np.float32)
    y = run_everywhere(normed, (3, 2), x, w, y, 192, 128, 208, BM=64, BN=64, BK=64, tolerance=2e-2)[2]
    products = x.astype(np.float64) @ w.astype(np.float64).T
    np.testing.assert_allclose(y, products / products.reshape(3, 64, 128).sum(1).repeat(64, 0), rtol=2e-3)


def test_teams_copy_operands_of_their_programs(run_everywhere: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_ARCH", "sm_90a")
    found = planned(low_rank, f"*fp16:16, {USUAL}, 128, 64, 64")
    assert found.schedule.rings.teams == 2 and "half u[NUM_TEAMS][" in found.artifact.source
    x, w, _, _ = arrays(384, 16, 208)
    u = np.random.default_rng(3).normal(size=(16, 128)).astype(np.float16)
    y = np.full((384, 128), 9, np.float32)
    y = run_everywhere(low_rank, (3, 2), x, w, u, y, 384, 128, 208, BM=128, BN=64, BK=64, tolerance=5e-2)[3]
    np.testing.assert_allclose(y, x.astype(np.float64) @ w.astype(np.float64).T @ u, rtol=2e-2, atol=1.0)


def test_neither_team_overtakes_the_other(run_everyhow: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_ARCH", "sm_90a")
    """A program has more trips than the ring has stages: a stage's barrier is back where it was."""
    x, w, b, expected = arrays(192, 64, 1088)
    values = (x, w, b, np.full((192, 64), 9, np.float16), 192, 64, 1088)
    for *_, y, _, _, _ in run_everyhow(layer, (3, 1), values, BM=64, BN=64, BK=64):
        np.testing.assert_allclose(y, expected, rtol=2e-2, atol=5e-2)


@pytest.mark.parametrize(
    ("line", "instead"),
    [
        ("named_barrier_sync(TURN_BARRIER + team, NUM_TEAMS * NUM_THREADS);", ";"),
        ("used += trips;", ";"),
        ("shared.y_shared[team % NUM_TEAMS]", "shared.y_shared[0]"),
    ],
)
def test_each_part_of_it_is_needed(line: str, instead: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_ARCH", "sm_90a")
    monkeypatch.setenv("TILEWRIGHT_MODE", "check" if "y_shared" in line else "cpu")
    change_text(monkeypatch, line, instead)
    x, w, b, expected = arrays(192, 64, 1088)
    y = np.full((192, 64), 9, np.float16)
    with pytest.raises((KernelFaultError, AssertionError)):
        triton.jit(layer.fn)[(3, 1)](x, w, b, y, 192, 64, 1088, BM=64, BN=64, BK=64)  # one that nothing knows yet
        np.testing.assert_allclose(y, expected, rtol=2e-2, atol=5e-2)


def test_names_of_programs_do_not_leave_them(run_everywhere: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_ARCH", "sm_90a")
    x, w, _, _ = arrays(192, 128, 208)
    y = np.full((192, 128), 9, np.float32)
    y = run_everywhere(by_pointers, (6,), x, w, y, 192, 128, 208, BM=64, BN=64, BK=64, tolerance=2e-2)[2]
    np.testing.assert_allclose(y, x.astype(np.float64) @ w.astype(np.float64).T, rtol=2e-2, atol=2e-2)
