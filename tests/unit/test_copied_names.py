"""Names that hold what another name holds cost nothing, and hide nothing from what loads ahead."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tilewright as triton
import tilewright.language as tl
from tilewright.artifact import Options
from tilewright.pipeline import translate
from tilewright.runtime.arguments.signature import parse_signature
from tilewright.schedule.targets import find_target


@triton.jit
def place_of(tile, num_m, num_n, GROUP: tl.constexpr):
    first_m = tile // (GROUP * num_n) * GROUP
    size_m = min(num_m - first_m, GROUP)
    pid_m = first_m + tile % (GROUP * num_n) % size_m
    pid_n = tile % (GROUP * num_n) // size_m
    return pid_m, pid_n


@triton.jit
def persistent(a_ptr, b_ptr, c_ptr, M, N, K, stride_a, stride_b, stride_c,
               SIDE: tl.constexpr, BLOCK_K: tl.constexpr, PROGRAMS: tl.constexpr):  # fmt: skip
    num_m, num_n = tl.cdiv(M, SIDE), tl.cdiv(N, SIDE)
    stored = tl.program_id(0) - PROGRAMS
    for tile in tl.range(tl.program_id(0), num_m * num_n, PROGRAMS, flatten=True):
        pid_m, pid_n = place_of(tile, num_m, num_n, 2)
        offs_m = pid_m * SIDE + tl.arange(0, SIDE)
        offs_n = pid_n * SIDE + tl.arange(0, SIDE)
        offs_m = tl.where(offs_m < M, offs_m, 0)
        offs_n = tl.where(offs_n < N, offs_n, 0)
        offs_m = tl.max_contiguous(tl.multiple_of(offs_m, SIDE), SIDE)
        offs_n = tl.max_contiguous(tl.multiple_of(offs_n, SIDE), SIDE)
        acc = tl.zeros((SIDE, SIDE), dtype=tl.float32)
        for k in range(tl.cdiv(K, BLOCK_K)):
            offs_k = k * BLOCK_K + tl.arange(0, BLOCK_K)
            a = tl.load(a_ptr + offs_m[:, None] * stride_a + offs_k[None, :], mask=offs_k[None, :] < K, other=0.0)
            b = tl.load(b_ptr + offs_n[:, None] * stride_b + offs_k[None, :], mask=offs_k[None, :] < K, other=0.0)
            b = b.T
            acc = tl.dot(a, b, acc)
        # The epilogue's place is computed anew, so that its registers need not live through the loop.
        stored += PROGRAMS
        pid_m, pid_n = place_of(stored, num_m, num_n, 2)
        rows = pid_m * SIDE + tl.arange(0, SIDE)
        columns = pid_n * SIDE + tl.arange(0, SIDE)
        mask = (rows[:, None] < M) & (columns[None, :] < N)
        tl.store(c_ptr + rows[:, None] * stride_c + columns[None, :], acc.to(tl.float16), mask=mask)


def source_of(kernel: Any, signature: str) -> Any:
    return translate(kernel, parse_signature(kernel, signature), Options(), find_target("sm_90a"))


SIGNATURE = "*fp16:16, *fp16:16, *fp16:16, i32, i32:16, i32, i32:16, i32:16, i32:16, 64, 32, 3"


def test_names_assigned_again_in_a_loop_hide_no_box() -> None:
    artifact = source_of(persistent, SIGNATURE)
    assert len(artifact.tensor_maps) == 3 and not artifact.guards


def test_results_of_inlined_functions_take_the_callers_names() -> None:
    source = source_of(persistent, SIGNATURE).source
    assert "pid_m_" not in source and "pid_n_" not in source
    assert "int pid_m = first_m + " in source


@pytest.mark.parametrize("sizes", ((70, 100, 40), (64, 64, 32), (130, 10, 8)))
def test_the_persistent_kernel_runs(sizes: tuple[int, int, int]) -> None:
    m, n, k = sizes
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal((rows, 48)).astype(np.float16) for rows in (m, n))
    c = np.full((m, 112), np.nan, np.float16)
    persistent[(3,)](a, b, c, m, n, k, 48, 48, 112, SIDE=64, BLOCK_K=32, PROGRAMS=3)
    expected = a[:, :k].astype(np.float64) @ b[:, :k].astype(np.float64).T
    assert np.allclose(c[:, :n], expected, atol=2e-2, rtol=2e-3)
    assert np.isnan(c[:, n:]).all()


# ----------------------------------------------------------------------------------- several names in one assignment


@triton.jit
def pair(x, y):
    a = x + y
    b = x * tl.sum(y)
    return a, b


@triton.jit
def same(x):
    a = x + tl.sum(x)
    return a, a


@triton.jit
def orders(x_ptr, out_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    a = tl.load(x_ptr + i)
    b = tl.load(x_ptr + N + i)
    a, b = b, a
    tl.store(out_ptr + i, a - b)
    a, b = pair(a, b)  # reads what it is about to assign
    tl.store(out_ptr + N + i, a - b)
    b, a = pair(b, a)  # crosswise
    tl.store(out_ptr + 2 * N + i, a - b)
    a, c = same(a)
    a = a + 1
    tl.store(out_ptr + 3 * N + i, a - c)
    for _ in range(0, 2):
        a, b = pair(b, a)
        i = i + 0
    tl.store(out_ptr + 4 * N + i, a - b)


def test_several_names_at_once() -> None:
    x = np.random.default_rng(1).integers(-3, 4, 16).astype(np.float32)
    out = np.full(40, np.nan, np.float32)
    orders[(1,)](x, out, N=8)

    def both(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return x + y, x * y.sum()

    b, a = x[:8], x[8:]
    expected = [a - b]
    a, b = both(a, b)
    expected.append(a - b)
    b, a = both(b, a)
    expected.append(a - b)
    a = c = a + a.sum()
    a = a + 1
    expected.append(a - c)
    for _ in range(2):
        a, b = both(b, a)
    expected.append(a - b)
    assert np.allclose(out.reshape(5, 8), expected, rtol=1e-5)


@triton.jit
def widened(x_ptr, out_ptr, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs)
    x = x.to(tl.float32)
    tl.store(out_ptr + offs, x * 2)


@pytest.mark.parametrize(("dtype", "name", "same"), [(np.float32, "fp32", True), (np.float16, "fp16", False)])
def test_a_conversion_to_the_own_type_is_no_code(run_everywhere: Any, dtype: Any, name: str, same: bool) -> None:
    _, out = run_everywhere(widened, (1,), np.arange(64).astype(dtype), np.zeros(64, np.float32), BLOCK=64)
    assert np.array_equal(out, 2.0 * np.arange(64))
    text = widened.translate(f"*{name}:16, *fp32:16, 64").source
    assert ("x = x.to(tl.float32)    (the same elements)" in text) == same
