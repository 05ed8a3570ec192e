"""What a loop carries keeps its type: the interpreter, to which Python would let it change, says so as the translator does."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tilewright as triton
import tilewright.language as tl
from tilewright import diagnostics as errors


@triton.jit
def number_to_tile(x_ptr, o_ptr, n, B: tl.constexpr):
    total = 0.0
    for k in range(n):
        total += tl.load(x_ptr + tl.arange(0, B))
    tl.store(o_ptr, tl.sum(total, axis=0))


@triton.jit
def integer_to_float(x_ptr, o_ptr, n, B: tl.constexpr):
    factor = 1
    while factor < n:
        factor = factor * 2.0
    tl.store(o_ptr, factor)


@triton.jit
def in_an_inner_loop(x_ptr, o_ptr, n, B: tl.constexpr):
    last = tl.load(x_ptr)
    for k in range(n):
        for j in tl.static_range(2):
            last = tl.load(x_ptr + tl.arange(0, B)) + j
    tl.store(o_ptr, n + tl.sum(last, axis=0))


@triton.jit
def one_of_two(x_ptr, o_ptr, n, B: tl.constexpr):
    total = 0
    for k in range(n):
        if k == 2:
            total = 1.0
    tl.store(o_ptr, total)


@pytest.mark.parametrize("mode", ["cpu", "interpret"])
@pytest.mark.parametrize(
    ("kernel", "said"),
    [
        (number_to_tile, r"variable total has initial type fp32 but is re-assigned to fp32\[8\] in loop"),
        (integer_to_float, "variable factor has initial type i32 but is re-assigned to fp32 in loop"),
        (in_an_inner_loop, r"variable last has initial type fp32 but is re-assigned to fp32\[8\] in loop"),
        (one_of_two, "total"),
    ],
    ids=lambda one: getattr(one, "__name__", ""),
)
def test_types_that_change(kernel: Any, said: str, mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_MODE", mode)
    with pytest.raises(errors.DTypeError, match=said) as caught:
        kernel[(1,)](np.zeros(8, np.float32), np.zeros(1, np.float32), 4, 8)
    assert "test_carried_types.py:" in str(caught.value) and "help: " in str(caught.value)


@triton.jit
def types_that_stay(x_ptr, o_ptr, n, B: tl.constexpr):
    total = tl.zeros((B,), tl.float32)
    k = 0.5
    for k in range(2):
        row = tl.load(x_ptr + tl.arange(0, B))
        for j in tl.static_range(2):
            row = row if j == 0 else tl.sum(row, axis=0)
        total += row + k
    steps = 0
    while (steps < n) & (steps < 9):
        part = (steps, total)
        total = part[1] + 1
        steps += 1
    tl.store(o_ptr + tl.arange(0, B), total)


def test_what_is_only_called_the_same_may_have_other_types(run_everywhere: Any) -> None:
    x = np.arange(8, dtype=np.float32)
    found = run_everywhere(types_that_stay, (1,), x, np.zeros(8, np.float32), 3, 8)[1]
    np.testing.assert_array_equal(found, np.full(8, 2 * 28 + 1 + 3, np.float32))


@triton.jit
def names_of_one_loop(x_ptr, o_ptr, n, B: tl.constexpr):
    i = tl.arange(0, B)
    for k in range(n):
        t = tl.load(x_ptr + i) * k
        tl.store(o_ptr + i, t)
    for k in range(n):
        for j in range(2):
            t = k + 10 * j  # nothing that the loop before could have left
            tl.store(o_ptr + k * 2 + j, t)
        t = i * 2
        tl.store(o_ptr + B + i, t)
    while n > 2:
        t = n
        tl.store(o_ptr + n, t)
        n -= 1


@triton.jit
def names_of_one_branch(x_ptr, o_ptr, n, B: tl.constexpr):
    i = tl.arange(0, B)
    if n > 2:
        at = i + B
        tl.store(o_ptr + at, tl.load(x_ptr + i))
    for k in range(n):
        if n > 1:
            at = k * 2
            tl.store(o_ptr + at, k)
    for k in range(n):
        at = i
        tl.store(o_ptr + at, k)


@pytest.mark.parametrize("kernel", [names_of_one_loop, names_of_one_branch])
def test_names_that_are_given_again(kernel: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    found = []
    for mode in ("cpu", "interpret"):
        monkeypatch.setenv("TILEWRIGHT_MODE", mode)
        out = np.full(16, -1, np.float32)
        kernel[(1,)](np.arange(8, dtype=np.float32), out, 4, 8)
        found.append(out.tolist())
    assert found[0] == found[1] and max(found[0]) > 0


@triton.jit
def of_a_known_branch(x_ptr, o_ptr, n, B: tl.constexpr):
    if B > 2:
        total = 0.5
    for k in range(n):
        total += tl.load(x_ptr + tl.arange(0, B))
    tl.store(o_ptr, tl.sum(total, axis=0))


@pytest.mark.parametrize("mode", ["cpu", "interpret"])
def test_a_known_branch_binds(mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_MODE", mode)
    with pytest.raises(errors.DTypeError, match="variable total has initial type fp32 but is re-assigned"):
        of_a_known_branch[(1,)](np.zeros(8, np.float32), np.zeros(1, np.float32), 4, 8)
