"""Atomics: each kernel runs on the CPU and in the interpreter, and must agree with NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tilewright as triton
import tilewright.language as tl

RNG = np.random.default_rng(7)


@triton.jit
def atomic_kernel(x_ptr, sum_ptr, max_ptr, bits_ptr, count_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0.0)
    tl.atomic_add(sum_ptr + i % 4, x, mask=i < n)
    tl.atomic_max(max_ptr, tl.max(tl.where(i < n, x, -1e30), axis=0))
    tl.atomic_or(bits_ptr, 1 << tl.program_id(0))
    ticket = tl.atomic_add(count_ptr, 1)
    tl.store(count_ptr + 1 + ticket, ticket)


def test_atomics(run_everywhere: Any) -> None:
    x = RNG.standard_normal(500, dtype=np.float32)
    arrays = (np.zeros(4, np.float32), np.full(1, -1e30, np.float32), np.zeros(1, np.int32), np.zeros(6, np.int32))
    _, total, largest, bits, count = run_everywhere(atomic_kernel, (4,), x, *arrays, 500, BLOCK=128, tolerance=1e-5)
    np.testing.assert_allclose(total, [x[k::4].sum() for k in range(4)], rtol=1e-4, atol=1e-5)
    assert largest[0] == x.max() and bits[0] == 15
    np.testing.assert_array_equal(count, [4, 0, 1, 2, 3, 0])


@triton.jit
def sums_kernel(x_ptr, sum_ptr, n, ROWS: tl.constexpr, COLS: tl.constexpr):
    row, col = tl.arange(0, ROWS), tl.arange(0, COLS)
    x = tl.load(x_ptr + (tl.program_id(0) * ROWS + row)[:, None] * COLS + col[None, :])
    tl.atomic_add(sum_ptr + row[:, None] * COLS + col[None, :], x * 2.0, mask=row[:, None] < n, sem="relaxed")


@pytest.mark.parametrize(("arch", "cols", "text"), [
    ("sm_90a", 64, "atomic_add_vec<VEC>("), ("sm_90a", 32, "atomic_add_vec<VEC>("), ("sm_80", 64, "atomicAdd(sum_ptr")
])  # fmt: skip
def test_sums_that_nobody_reads_are_added_by_vectors(
    arch: str, cols: int, text: str, run_everywhere: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TILEWRIGHT_ARCH", arch)
    x = RNG.standard_normal((16, cols), dtype=np.float32)
    _, sums = run_everywhere(
        sums_kernel, (2,), x, np.zeros((8, cols), np.float32), 7, ROWS=8, COLS=cols, tolerance=1e-6
    )
    np.testing.assert_allclose(sums[:7], 2 * (x[:7] + x[8:15]), rtol=1e-6)
    assert not sums[7].any()
    monkeypatch.setenv("TILEWRIGHT_MODE", "cpu")
    compiled = sums_kernel[(2,)](x, sums, 7, ROWS=8, COLS=cols)
    assert text in compiled.source


@triton.jit
def lock_kernel(lock_ptr, out_ptr):
    while tl.atomic_cas(lock_ptr, 0, 1) == 1:
        pass
    value = tl.load(out_ptr)
    tl.store(out_ptr, value + 1)
    tl.debug_barrier()
    tl.atomic_xchg(lock_ptr, 0)


def test_spin_lock(run_everywhere: Any) -> None:
    lock, out = run_everywhere(lock_kernel, (20,), np.zeros(1, np.int32), np.zeros(1, np.int32))
    assert lock[0] == 0 and out[0] == 20


@triton.jit
def signalling(x_ptr, out_ptr, flag_ptr, BEFORE: tl.constexpr, SEM: tl.constexpr, N: tl.constexpr):
    i = tl.arange(0, N)
    x = tl.load(x_ptr + i)
    if BEFORE == "store":
        tl.store(out_ptr + i, x)
    elif BEFORE == "atomic":
        tl.atomic_add(out_ptr + i, x, sem="relaxed")
    total = tl.sum(x, 0)
    if BEFORE == "loop":
        for _ in range(2):
            tl.atomic_add(flag_ptr, total, sem=SEM)
    elif BEFORE == "load":
        tl.atomic_add(flag_ptr, 1.0, sem=SEM)
        tl.store(out_ptr + i, x)
    else:
        tl.atomic_add(flag_ptr, total, sem=SEM)


@pytest.mark.parametrize("sem", ("acq_rel", "release", "acquire", "relaxed"))
@pytest.mark.parametrize("before", ("store", "atomic", "loop", "load", "nothing"))
def test_fences_stand_where_there_is_something_to_release(run_everywhere: Any, before: str, sem: str) -> None:
    text = signalling.translate(f"*fp32, *fp32, *fp32, {before!r}, {sem!r}, 128").source
    assert ("__threadfence();" in text) == (before != "nothing" and sem in ("acq_rel", "release"))
    x = np.arange(128, dtype=np.float32)
    *_, flag = run_everywhere(
        signalling, (1,), x, np.zeros(128, np.float32), np.zeros(1, np.float32), before, sem, N=128
    )
    assert flag[0] == {"loop": 2 * x.sum(), "load": 1}.get(before, x.sum())


@triton.jit
def exchanged_rows(x_ptr, y_ptr, out_ptr, N: tl.constexpr):
    """What is exchanged is held by rows of a tile, what was there before is needed by its columns."""
    i = tl.arange(0, N)
    mine = tl.load(x_ptr + i)
    scaled = mine * 3
    shifted = scaled + 1
    y = tl.load(y_ptr + i[:, None] * N + i[None, :]) + shifted[:, None]
    old = tl.atomic_xchg(out_ptr + i, mine)
    old += 1
    tl.store(out_ptr + N + i, tl.sum(old[None, :] * y, 0))
    tl.store(out_ptr + 2 * N + i, old)


@pytest.mark.parametrize("warps", (1, 2, 4))
def test_old_elements_go_to_the_threads_that_use_them(run_everywhere: Any, warps: int) -> None:
    x, y, out = (RNG.integers(-99, 99, shape).astype(np.int32) for shape in (16, (16, 16), (3, 16)))
    found = run_everywhere(exchanged_rows, (1,), x, y, out, 16, num_warps=warps)[2]
    old = out[0] + 1
    np.testing.assert_array_equal(found, [x, (old * (y + 3 * x[:, None] + 1)).sum(0), old])
