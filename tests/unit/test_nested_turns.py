"""Arrays that have their memory only where they are in use, where a kernel has no room otherwise: loops within a loop."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
import tilewright as triton
import tilewright.language as tl
import tilewright.runtime.cpu as cpu
from tilewright import fitting
from tilewright.lower.shared.plan import _nested, bytes_of
from tilewright.lower.shared.turns import NESTED, Sharing, Turn
from tilewright.lower.text.unit import Shared
from tilewright.schedule.staging import rings

M, N, K = 32, 128, 128  # of a product, whose operands take 40 KiB


@triton.jit
def added(acc, a_ptr, b_ptr, first, last, step, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    """Adds the products of every `step`-th tile of a row of them."""
    m, n, k = tl.arange(0, M)[:, None], tl.arange(0, N)[None, :], tl.arange(0, K)
    for part in range(first, last, step):
        a = tl.load(a_ptr + m * K + part * M * K + k[None, :])
        b = tl.load(b_ptr + (part * K + k)[:, None] * N + n)
        acc += tl.dot(a, b)
    return acc


@triton.jit
def one_after_another(a_ptr, b_ptr, out_ptr, tiles, parts, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    """Three loops in a loop."""
    m, n = tl.arange(0, M)[:, None], tl.arange(0, N)[None, :]
    for tile in tl.range(tl.program_id(0), tiles, tl.num_programs(0)):
        acc = tl.zeros([M, N], tl.float32)
        acc = added(acc, a_ptr + tile * parts * M * K, b_ptr, 0, parts, 1, M, N, K)
        acc = added(acc, a_ptr + tile * parts * M * K, b_ptr, 0, parts, 2, M, N, K)
        acc = added(acc, a_ptr + tile * parts * M * K, b_ptr, tile, parts, 1, M, N, K)
        tl.store(out_ptr + (tile * M + m) * N + n, acc)


@triton.jit
def either_or(a_ptr, b_ptr, out_ptr, tiles, parts, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    """One loop or another in every trip, and one behind them."""
    m, n = tl.arange(0, M)[:, None], tl.arange(0, N)[None, :]
    for tile in tl.range(tl.program_id(0), tiles, tl.num_programs(0)):
        acc = tl.zeros([M, N], tl.float32)
        if tile % 2 == 0:
            acc = added(acc, a_ptr + tile * parts * M * K, b_ptr, 0, parts, 1, M, N, K)
        else:
            acc = added(acc, a_ptr + tile * parts * M * K, b_ptr, 0, parts, 2, M, N, K)
        acc = added(acc, a_ptr + tile * parts * M * K, b_ptr, tile, parts, 1, M, N, K)
        tl.store(out_ptr + (tile * M + m) * N + n, acc)


@triton.jit
def three_levels(a_ptr, b_ptr, out_ptr, tiles, parts, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    """Loops in a loop in a loop, around each other loop a tile that lasts."""
    m, n, k = tl.arange(0, M)[:, None], tl.arange(0, N)[None, :], tl.arange(0, K)
    for tile in tl.range(tl.program_id(0), tiles, tl.num_programs(0)):
        total = tl.zeros([M, N], tl.float32)
        for start in range(2):
            acc = tl.zeros([M, N], tl.float32)
            acc = added(acc, a_ptr + tile * parts * M * K, b_ptr, start, parts, 1, M, N, K)
            last = tl.load(a_ptr + (tile + 1) * parts * M * K - M * K + m * K + k[None, :])
            for part in range(start, parts):
                acc += tl.dot(last, tl.load(b_ptr + (part * K + k)[:, None] * N + n))
            acc = added(acc, a_ptr + tile * parts * M * K, b_ptr, 1, parts, 2, M, N, K)
            total += acc * (start + 1)
        tl.store(out_ptr + (tile * M + m) * N + n, total)


def expected(kernel: Any, a: Any, b: Any) -> Any:
    """What a kernel makes of tiles [tile, part, m, k] and [part, k, n]."""
    parts = np.einsum("tpmk,pkn->tpmn", a.astype(np.float64), b.astype(np.float64))
    results = []
    for tile, own in enumerate(parts):
        even, odd, later = own[::2].sum(0), own[1::2].sum(0), own[tile:].sum(0)
        if kernel is one_after_another:
            results.append(own.sum(0) + even + later)
        elif kernel is either_or:
            results.append((even if tile % 2 else own.sum(0)) + later)
        else:
            last = np.einsum("mk,pkn->pmn", a[tile, -1].astype(np.float64), b.astype(np.float64))
            results.append(own.sum(0) + last.sum(0) + odd + 2 * (own[1:].sum(0) + last[1:].sum(0) + odd))
    return np.concatenate(results)


KERNELS = (one_after_another, either_or, three_levels)
SIGNATURE = f"*fp16:16, *fp16:16, *fp32:16, i32, i32, {M}, {N}, {K}"


def launch(kernel: Any, tiles: int = 3, parts: int = 3, **options: Any) -> None:
    """Runs a kernel whose one program has all tiles."""
    generator = np.random.default_rng(tiles)
    a = generator.integers(-2, 3, (tiles, parts, M, K)).astype(np.float16)
    b = generator.integers(-2, 3, (parts, K, N)).astype(np.float16)
    out = np.full((tiles * M, N), np.nan, np.float32)
    kernel[(1,)](a, b, out, tiles, parts, M=M, N=N, K=K, num_warps=4, **options)
    np.testing.assert_array_equal(out, expected(kernel, a, b))


every_kernel = pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.__name__)


@every_kernel
def test_loops_in_a_loop_fit(kernel: Any) -> None:
    """sm_86 has 99 KiB: two stages of one loop's tiles, not a single one of all loops'."""
    artifact = kernel.translate(SIGNATURE, "sm_86", num_warps=4, num_stages=3)
    assert artifact.source.count("union {") == 1 and artifact.shared_bytes <= 99 * 1024
    assert "constexpr int NUM_STAGES = 2;" in artifact.source


def test_a_loop_waits_for_the_one_whose_memory_it_takes() -> None:
    """The first loop for the last one, too, which ran in the trip before."""
    source = one_after_another.translate(SIGNATURE, "sm_86", num_warps=4).source
    waits = re.findall("everyone has read (.*), whose memory (.*) takes", source)
    assert [name for _, name in waits] == ["a", "a_second", "a_third"] and waits[1:] == [
        ("a", "a_second"),
        ("a_second", "a_third"),
    ]
    assert waits[0][0] in ("a_third", "b_third")


@every_kernel
@pytest.mark.parametrize("way", (("greedy_low", "late"), ("reverse", "early"), ("round_robin", "late")), ids=" ".join)
def test_loops_in_a_loop_agree(kernel: Any, way: tuple[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    run = cpu.run

    def with_way(artifact: Any, grid: Any, values: Any) -> None:
        run(artifact, grid, values, schedule=way[0], delivery=way[1])

    monkeypatch.setattr(cpu, "run", with_way)
    monkeypatch.setenv("TILEWRIGHT_ARCH", "sm_86")
    monkeypatch.setenv("TILEWRIGHT_MODE", "cpu")
    launch(kernel)
    launch(kernel, parts=1)  # loops with a single trip, and with none


@every_kernel
@pytest.mark.parametrize("mode", ("interpret", "check"))
def test_no_thread_reads_what_the_next_loop_loads(kernel: Any, mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_ARCH", "sm_86")
    monkeypatch.setenv("TILEWRIGHT_MODE", mode)
    launch(kernel)


def test_the_check_finds_a_missing_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the test above relies on."""
    monkeypatch.setenv("TILEWRIGHT_ARCH", "sm_86")
    monkeypatch.setenv("TILEWRIGHT_MODE", "check")
    monkeypatch.setattr(Turn, "takes_from", lambda self, other: False)
    with pytest.raises(triton.KernelFaultError, match="race on shared_bytes: write .* by cp.async"):
        launch(one_after_another, num_stages=4)  # translated anew


@triton.jit
def chain(x_ptr, w_ptr, out_ptr, turns, S: tl.constexpr):
    """Tiles and copies of operands in one block: some while others are in use, some behind them."""
    rows, columns = tl.arange(0, S)[:, None], tl.arange(0, S)[None, :]
    x = tl.load(x_ptr + rows * S + columns)
    for turn in range(turns):
        w = tl.load(w_ptr + turn * S * S + rows * S + columns)
        y = tl.dot(w, tl.dot(x, w).to(tl.float16))
        v = tl.load(w_ptr + turn * S * S + rows + columns * S)
        x = ((y + tl.dot(v, (y + tl.sum(y, 1)[:, None]).to(tl.float16))) % 4).to(tl.float16)
    tl.store(out_ptr + rows * S + columns, x)


@pytest.mark.parametrize("mode", ("interpret", "cpu", "check"))
@pytest.mark.parametrize("arch", ("sm_80", "sm_90a"))
def test_everything_takes_turns(mode: str, arch: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As if there were no other room: small tiles, copies of operands and partial results."""
    lower = fitting.lower_kernel
    monkeypatch.setattr(fitting, "lower_kernel", lambda *args: lower(*args[:3], Sharing.NESTED))
    monkeypatch.setenv("TILEWRIGHT_MODE", mode)
    monkeypatch.setenv("TILEWRIGHT_ARCH", arch)
    side, turns = 64, 3
    generator = np.random.default_rng(3)
    x = generator.integers(0, 2, (side, side)).astype(np.float16)
    w = np.zeros((turns, side, side), np.float16)
    for one in w:  # a single 1 in every row and column: the numbers stay small
        one[np.arange(side), generator.permutation(side)] = 1
    out = np.zeros_like(x)
    compiled = chain[(1,)](x, w, out, turns, S=side, num_warps=4, num_stages=1)
    assert mode == "interpret" or "union {" in compiled.asm["cu"]
    value = x.astype(np.float64)
    for one in w.astype(np.float64):
        y = one @ (value @ one)
        value = np.fmod(y + one.T @ (y + y.sum(1, keepdims=True)), 4)
    np.testing.assert_array_equal(out, value)


@triton.jit
def two_products(a_ptr, b_ptr, c_ptr, x_ptr, y_ptr, parts, S: tl.constexpr):
    """Of bytes that are not contiguous along K: each product reads a transposed copy."""
    r, c = tl.arange(0, S)[:, None], tl.arange(0, S)[None, :]
    x = tl.zeros([S, S], tl.int32)
    y = tl.zeros([S, S], tl.int32)
    for part in range(parts):
        a = tl.load(a_ptr + part * S * S + r * S + c)
        x = tl.dot(a, tl.load(b_ptr + part * S * S + r * S + c), x)
        y = tl.dot(a, tl.load(c_ptr + part * S * S + r * S + c), y)
    tl.store(x_ptr + r * S + c, x)
    tl.store(y_ptr + r * S + c, y)


@pytest.mark.parametrize("mode", ("cpu", "check"))
@pytest.mark.parametrize("sharing", Sharing)
def test_products_on_their_way_keep_what_they_read(
    sharing: Sharing, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both copies have one piece of memory: the second one waits for the products of the first, which else run on."""
    lower = fitting.lower_kernel
    monkeypatch.setattr(fitting, "lower_kernel", lambda *args: lower(*args[:3], sharing))
    monkeypatch.setattr(rings, "_boxes", lambda *_: None)  # copies by threads
    monkeypatch.setenv("TILEWRIGHT_MODE", mode)
    monkeypatch.setenv("TILEWRIGHT_ARCH", "sm_90a")
    side, parts = 64, 3
    generator = np.random.default_rng(5)
    a, b, c = (generator.integers(-3, 4, (parts, side, side)).astype(np.int8) for _ in range(3))
    x, y = np.zeros((2, side, side), np.int32)
    kernel = triton.jit(two_products.fn)  # translated anew
    source = kernel[(1,)](a, b, c, x, y, parts, S=side, num_warps=4).asm["cu"]
    assert "b_turned" in source and source.count("wgmma_wait<0>();") == (1 if sharing is Sharing.NONE else 2)
    for found, other in ((x, b), (y, c)):
        np.testing.assert_array_equal(found, np.einsum("pmk,pkn->mn", a.astype(np.int64), other))


def test_turns_lie_within_others() -> None:
    """One that alternates with no other has its memory in the one around."""

    def array(name: str, size: int) -> Shared:
        return Shared(name, "char", f"[{size}]", size, "", None, (f"for_{name}",), NESTED)

    parts = {"q": (0, 20), "a": (1, 8), "b": (10, 19), "c": (11, 12), "d": (13, 14), "m": (25, 25), "e": (5, 5)}
    arrays = tuple(array(name, 16 << place) for place, name in enumerate(parts))
    found = {one.name: one for one in _nested(arrays, {name: Turn(NESTED, *part) for name, part in parts.items()})}
    assert {name: one.turn for name, one in found.items()} == {
        "q": ("for_q",),
        "a": ("for_q", "for_a"),
        "e": ("for_q", "for_a"),
        "b": ("for_q", "for_b"),
        "c": ("for_q", "for_b", "for_c"),
        "d": ("for_q", "for_b", "for_d"),
        "m": ("for_m",),
    }
    sizes = {name: one.size for name, one in found.items()}
    inner = sizes["b"] + max(sizes["c"], sizes["d"])
    assert bytes_of(found.values()) == max(sizes["q"] + max(sizes["a"] + sizes["e"], inner), sizes["m"])
