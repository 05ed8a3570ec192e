"""Arrays of single statements that share their memory, where a kernel has no room otherwise."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tilewright as triton
import tilewright.language as tl
from tilewright.lower.shared_plan import bytes_of
from tilewright.lower.unit import Shared


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


def test_bytes_of_the_struct() -> None:
    def array(size: int, align: int, turn: str) -> Shared:
        return Shared("a", "char", f"[{size}]", size, "", align, turn)

    assert bytes_of([array(1024, 1024, ""), array(20, 16, "")]) == 2048
    assert bytes_of([array(16, 16, ""), array(48, 16, "p"), array(20, 16, "p"), array(64, 16, "q")]) == 16 + 80
    assert bytes_of([array(16, 16, ""), array(1024, 1024, "p"), array(64, 16, "q")]) == 2048
    assert bytes_of([array(1024, 1024, "p"), array(16, 16, "p"), array(3000, 16, "q")]) == 3072
