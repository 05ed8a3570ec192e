"""Names that a kernel uses again for something else: each use has a variable of its own where no line sees two of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tilewright as triton
import tilewright.language as tl


@triton.jit
def in_branches(x_ptr, y_ptr, flag, N: tl.constexpr):
    i = tl.arange(0, N)
    if flag > 0:
        x = tl.load(x_ptr + i)
        z = x * 2
        tl.store(y_ptr + i, z)
    else:
        x = tl.load(x_ptr + i + N)
        z = x + 1
        if flag < -1:
            z = z * 3
        tl.store(y_ptr + i, z)


@pytest.mark.parametrize("flag", [1, 0, -2])
def test_branches_have_their_own(run_everywhere: Any, flag: int) -> None:
    x = np.arange(256, dtype=np.float32)
    _, y = run_everywhere(in_branches, (1,), x, np.zeros(128, np.float32), flag, N=128)
    assert np.array_equal(y, x[:128] * 2 if flag > 0 else (x[128:] + 1) * (3 if flag < -1 else 1))


def test_they_are_declared_where_they_are_assigned() -> None:
    lines = in_branches.translate("*fp32:16, *fp32:16, i32, 128").source.splitlines()
    branch = next(number for number, line in enumerate(lines) if line.lstrip().startswith("if (flag > 0)"))
    declared = [
        number for number, line in enumerate(lines) if line.lstrip().startswith(("const float x =", "float z ="))
    ]
    declared += [number for number, line in enumerate(lines) if line.lstrip().startswith("const float z =")]
    assert len(declared) == 4 and all(number > branch for number in declared)


@triton.jit
def in_loops(x_ptr, y_ptr, n, m, N: tl.constexpr):
    i = tl.arange(0, N)
    for tile in range(0, n):
        tl.store(y_ptr + tile * N + i, tl.load(x_ptr + tile * N + i))
    start = 0
    while start < m:
        tile = n + start // 2
        tl.store(y_ptr + tile * N + i, tl.load(x_ptr + tile * N + i) + 1)
        start += 2


def test_a_loop_carries_no_name_that_it_assigns_first(run_everywhere: Any) -> None:
    x = np.arange(512, dtype=np.float32)
    _, y = run_everywhere(in_loops, (1,), x, np.zeros(512, np.float32), 2, 4, N=128)
    assert np.array_equal(y, np.concatenate((x[:256], x[256:] + 1)))
    source = in_loops.translate("*fp32:16, *fp32:16, i32, i32, 128").source
    assert "for (int tile = 0; tile < n; ++tile) {" in source and "const int tile = n + start / 2;" in source
    assert "tile_" not in source


@triton.jit
def what_is_read_behind(x_ptr, y_ptr, n, flag, N: tl.constexpr):
    i = tl.arange(0, N)
    x = tl.load(x_ptr + i)
    last = 0
    for k in range(0, n):
        x = tl.load(x_ptr + k * N + i)
        if flag > k:
            last = k
            x = x + 1
        else:
            last = last + 2
        tl.store(y_ptr + k * N + i, x * last)
    if flag > 1:
        x = x * 2
    tl.store(y_ptr + n * N + i, x + last)


@pytest.mark.parametrize(("n", "flag"), [(0, 5), (3, 1), (3, 2), (2, 0)])
def test_values_that_meet_stay_together(run_everywhere: Any, n: int, flag: int) -> None:
    x = np.arange(512, dtype=np.float32)
    _, y = run_everywhere(what_is_read_behind, (1,), x, np.zeros(512, np.float32), n, flag, N=128)
    expected, tile, last = np.zeros(512, np.float32), x[:128], 0
    for k in range(n):
        tile = x[k * 128 : (k + 1) * 128] + (flag > k)
        last = k if flag > k else last + 2
        expected[k * 128 : (k + 1) * 128] = tile * last
    expected[n * 128 : (n + 1) * 128] = tile * (2 if flag > 1 else 1) + last
    assert np.array_equal(y, expected)


@triton.jit
def unread_before_a_loop(x_ptr, y_ptr, n, N: tl.constexpr):
    i = tl.arange(0, N)
    x = tl.load(x_ptr + i)
    for k in range(0, n):
        x = tl.load(x_ptr + k * N + i)
        tl.store(y_ptr + k * N + i, x)


def test_a_value_that_nothing_reads_is_none() -> None:
    source = unread_before_a_loop.translate("*fp32:16, *fp32:16, i32, 128").source
    assert "x = tl.load(x_ptr + i)    (its value is not used)" in source and source.count("= x_ptr[") == 1


@triton.jit
def in_static_loops(x_ptr, y_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    key = 1
    x = tl.load(x_ptr + i)
    for _ in tl.static_range(5):
        x = x * 2 + key
        key += 3
    tl.store(y_ptr + i, x)


def test_static_loops_stay_loops(run_everywhere: Any) -> None:
    x = np.arange(128, dtype=np.float32)
    _, y = run_everywhere(in_static_loops, (1,), x, np.zeros(128, np.float32), N=128)
    for key in (1, 4, 7, 10, 13):
        x = x * 2 + key
    assert np.array_equal(y, x)
    assert "iteration < 5;" in in_static_loops.translate("*fp32:16, *fp32:16, 128").source
