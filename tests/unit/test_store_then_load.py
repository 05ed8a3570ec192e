"""A tile that is stored and loaded again through the same pointers: each thread finds what the others have stored."""

from __future__ import annotations

from typing import Any

import numpy as np
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
    assert "all of the tile has been stored before it is loaded again" in texts[0]
    assert "__syncthreads" not in texts[1]
