"""Arrays of single statements that share their memory, where a kernel has no room otherwise."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tilewright as triton
import tilewright.language as tl
from tilewright.lower.shared.plan import bytes_of
from tilewright.lower.text.unit import Shared


@triton.jit
def long_chain(x_ptr, w_ptr, out_ptr, S: tl.constexpr, TURNS: tl.constexpr):
    rows, columns = tl.arange(0, S)[:, None], tl.arange(0, S)[None, :]
    x = tl.load(x_ptr + rows * S + columns)
    w = tl.load(w_ptr + rows * S + columns) - 1
    for _ in range(TURNS):
        x = tl.dot(x + 1, w)
        x = tl.dot(x - 1, w)
        x += tl.sum(x, 1)[:, None]
        x = tl.dot(w, x + x.T)
        x = x % 4
    tl.store(out_ptr + rows * S + columns, x)


def chained(x: Any, w: Any, turns: int) -> Any:
    w = w - 1
    for _ in range(turns):
        x = ((x + 1) @ w - 1) @ w
        x = x + x.sum(1, keepdims=True)
        x = np.fmod(w @ (x + x.T), 4)
    return x


SIDE = 128


def operands() -> tuple[Any, Any]:
    generator = np.random.default_rng(11)
    x = generator.integers(0, 2, (SIDE, SIDE)).astype(np.float32)
    w = np.ones((SIDE, SIDE), np.float32)  # one element of a row of w - 1 is not zero: the numbers stay small
    w[np.arange(SIDE), generator.permutation(SIDE)] = 2
    return x, w


@pytest.mark.parametrize("warps", (4, 8))
def test_statements_take_turns(run_everywhere: Any, warps: int) -> None:
    x, w = operands()
    *_, out = run_everywhere(long_chain, (1,), x, w, np.zeros_like(x), S=SIDE, TURNS=3, num_warps=warps)
    np.testing.assert_array_equal(out, chained(x.astype(np.float64), w.astype(np.float64), 3))
    artifact = long_chain.translate(f"*fp32:16, *fp32:16, *fp32:16, {SIDE}, 3", num_warps=warps)
    assert "union {" in artifact.source and artifact.shared_bytes < 6 * SIDE * SIDE * 4


def test_no_thread_reads_what_the_next_statement_writes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_MODE", "check")
    x, w = operands()
    out = np.zeros_like(x)
    long_chain[(1,)](x, w, out, S=SIDE, TURNS=2, num_warps=4)
    np.testing.assert_array_equal(out, chained(x.astype(np.float64), w.astype(np.float64), 2))


@triton.jit
def two_loops(x_ptr, w_ptr, v_ptr, out_ptr, N, S: tl.constexpr):
    rows, columns = tl.arange(0, S)[:, None], tl.arange(0, S)[None, :]
    out = tl.zeros([S, S], tl.float32)
    for start in range(0, N, S):
        x = tl.load(x_ptr + (start + rows) * S + columns)
        w = tl.load(w_ptr + (start + rows) * S + columns)
        out += tl.dot(x, tl.dot(w, x).to(tl.float16))
    for start in range(0, N, S):
        v = tl.load(v_ptr + (start + rows) * S + columns)
        other = tl.load(w_ptr + (start + rows) * S + columns)
        out += tl.dot(v, tl.dot(other, v).to(tl.float16))
    tl.store(out_ptr + rows * S + columns, out)


def loop_operands(side: int, turns: int) -> list[Any]:
    generator = np.random.default_rng(12)
    return [generator.integers(-1, 2, (side * turns, side)).astype(np.float16) for _ in range(3)]


def loops_expected(x: Any, w: Any, v: Any, side: int) -> Any:
    parts = [[one.astype(np.float64)[at : at + side] for at in range(0, len(x), side)] for one in (x, w, v)]
    return sum(a @ (b @ a) + c @ (b @ c) for a, b, c in zip(*parts, strict=True))


@pytest.mark.parametrize("mode", ("cpu", "check"))
@pytest.mark.parametrize(("target", "stages"), [("sm_86", 1), ("sm_80", 2)])
def test_loops_take_turns(monkeypatch: pytest.MonkeyPatch, target: str, stages: int, mode: str) -> None:
    """Tiles of 32 KiB: sm_86 has room for those of one loop, sm_80 for two stages of them."""
    monkeypatch.setenv("TILEWRIGHT_ARCH", target)
    monkeypatch.setenv("TILEWRIGHT_MODE", mode)
    side, turns = 128, 3
    x, w, v = loop_operands(side, turns)
    out = np.zeros((side, side), np.float32)
    two_loops[(1,)](x, w, v, out, side * turns, S=side, num_warps=8)
    np.testing.assert_array_equal(out, loops_expected(x, w, v, side))
    source = two_loops.translate(f"*fp16:16, *fp16:16, *fp16:16, *fp32:16, i32, {side}", target, num_warps=8).source
    assert source.count("union {") == 2 and ("constexpr int NUM_STAGES = 2;" in source) == (stages == 2)


def test_bytes_of_the_struct() -> None:
    def array(size: int, align: int, turn: str) -> Shared:
        return Shared("a", "char", f"[{size}]", size, "", align, (turn,) if turn else (), "statements" if turn else "")

    assert bytes_of([array(1024, 1024, ""), array(20, 16, "")]) == 2048
    assert bytes_of([array(16, 16, ""), array(48, 16, "p"), array(20, 16, "p"), array(64, 16, "q")]) == 16 + 80
    assert bytes_of([array(16, 16, ""), array(1024, 1024, "p"), array(64, 16, "q")]) == 2048
    assert bytes_of([array(1024, 1024, "p"), array(16, 16, "p"), array(3000, 16, "q")]) == 3072
    # A union is as large as its alignment says, whichever of its structs is the largest.
    assert bytes_of([array(16, 16, ""), array(1024, 1024, "p"), array(1040, 16, "q")]) == 3072
