"""A tile that is stored and loaded again through the same pointers: each thread finds what the others have stored."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tilewright as triton
import tilewright.language as tl
from tilewright.artifact import Options
from tilewright.pipeline import translate
from tilewright.runtime.signature import parse_signature
from tilewright.schedule.targets import find_target


@triton.jit
def through_memory(x_ptr, kept_ptr, out_ptr, M: tl.constexpr, N: tl.constexpr):
    # Sums of rows lie in several threads each, of which one stores.
    m, n = tl.arange(0, M), tl.arange(0, N)
    x = tl.load(x_ptr + m[:, None] * N + n[None, :])
    kept_ptrs = kept_ptr + m
    tl.store(kept_ptrs, tl.sum(x, 1))
    again = tl.load(kept_ptrs)
    tl.store(out_ptr + m[:, None] * N + n[None, :], x + again[:, None])


@triton.jit
def in_place(x_ptr, n, N: tl.constexpr):
    for start in range(0, n, N):
        pointers = x_ptr + start + tl.arange(0, N)
        tl.store(pointers, tl.load(pointers) * 2)


@triton.jit
def shifted(x_ptr, kept_ptr, out_ptr, n, N: tl.constexpr):
    # Each thread stores one element and loads another's.
    offsets = tl.arange(0, N)
    tl.store(kept_ptr + offsets, tl.load(x_ptr + offsets))
    tl.store(out_ptr + offsets, tl.load(kept_ptr + (offsets + 1) % N))


@triton.jit
def in_two_loops(x_ptr, kept_ptr, out_ptr, n, N: tl.constexpr):
    for start in range(0, n, N):
        places = start | tl.arange(0, N)
        tl.store(kept_ptr + places, tl.load(x_ptr + places) + 1)
    for start in range(0, n, N):
        places = start + tl.arange(0, N)
        tl.store(out_ptr + places, tl.load(kept_ptr + places) * 2)


@triton.jit
def on_one_way(x_ptr, kept_ptr, out_ptr, n, N: tl.constexpr):
    offsets = tl.arange(0, N)
    tl.store(kept_ptr + offsets, tl.load(x_ptr + offsets))
    if n > 5000:
        tl.debug_barrier()
    for _ in range(n - 2048):
        tl.debug_barrier()
    tl.store(out_ptr + offsets, tl.load(kept_ptr + N - 1 - offsets))


@pytest.mark.parametrize(
    ("kernel", "expected"),
    [
        (shifted, lambda x: np.r_[np.roll(x[:1024], -1), np.zeros(1024)]),
        (in_two_loops, lambda x: (x + 1) * 2),
        (on_one_way, lambda x: np.r_[x[:1024][::-1], np.zeros(1024)]),
    ],
)
def test_other_threads_load_what_was_stored(run_everywhere: Any, kernel: Any, expected: Any) -> None:
    x = np.random.default_rng(2).integers(-9, 9, 2048).astype(np.float32)
    *_, out = run_everywhere(kernel, (1,), x, np.zeros_like(x), np.zeros_like(x), 2048, N=1024)
    np.testing.assert_array_equal(out, expected(x))


def test_a_stored_tile_is_loaded_again(run_everywhere: Any) -> None:
    x = np.random.default_rng(8).integers(-4, 5, (32, 64)).astype(np.float32)
    kept, out = np.zeros(32, np.float32), np.zeros_like(x)
    *_, out = run_everywhere(through_memory, (1,), x, kept, out, M=32, N=64, num_warps=4)
    np.testing.assert_array_equal(out, x + x.sum(1)[:, None])


def test_what_only_its_thread_reads_needs_no_barrier() -> None:
    options, target = Options(num_warps=4), find_target("sm_90a")
    texts = [
        translate(kernel, parse_signature(kernel, signature), options, target).source
        for kernel, signature in (
            (through_memory, "*fp32:16, *fp32:16, *fp32:16, 32, 64"),
            (in_place, "*fp32:16, i32, 1024"),
        )
    ]
    assert "every thread has stored to kept_ptr before it is loaded again" in texts[0]
    assert "__syncthreads" not in texts[1]


@triton.jit
def assigned_twice(x_ptr, N: tl.constexpr):
    # One variable, loaded twice, of one element per thread: the second time its declaration stands above.
    for step in tl.static_range(2):
        offsets = step * N + tl.arange(0, N)
        x = tl.load(x_ptr + offsets)
        tl.store(x_ptr + 1 + offsets, x + 1)


def test_a_variable_that_is_loaded_again_waits(run_everywhere: Any) -> None:
    x = np.arange(100, 165, dtype=np.float32)
    (found, *_) = run_everywhere(assigned_twice, (1,), x, N=32, num_warps=1)
    expected = x.copy()
    for start in (0, 32):
        expected[start + 1 : start + 33] = expected[start : start + 32] + 1
    np.testing.assert_array_equal(found, expected)
    source = assigned_twice.translate("*fp32:16, 32", num_warps=1).source
    assert source.count("every thread has stored to x_ptr before it is loaded again") == 1
