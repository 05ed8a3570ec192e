"""What the processor or the user refuses while a kernel runs on the CPU is an error, and Python goes on."""

from __future__ import annotations

import os
import signal
import threading

import numpy as np
import pytest
import tilewright as triton
import tilewright.language as tl
from tilewright.diagnostics import KernelFaultError


@pytest.fixture(autouse=True)
def on_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_MODE", "cpu")


@triton.jit
def far_away(x_ptr, distance, B: tl.constexpr):
    tl.store(x_ptr + tl.arange(0, B) + distance, 1.0)


@pytest.mark.parametrize("distance", (2**45, -(2**43)))
def test_an_access_where_no_memory_is(distance: int) -> None:
    x = np.zeros(64, np.float32)
    with pytest.raises(KernelFaultError, match=r"where no memory is.*TILEWRIGHT_MODE=check"):
        far_away[(2,)](x, distance, B=64)
    far_away[(1,)](x, 0, B=64)
    assert x.sum() == 64


@triton.jit
def many_at_once(x_ptr, out_ptr, B: tl.constexpr):
    i = tl.arange(0, B)
    a = tl.load(x_ptr + i)
    b = tl.load(x_ptr + (B - 1 - i))
    c = tl.load(x_ptr + (i ^ 1))
    d = tl.load(x_ptr + (i ^ 2))
    total = tl.sum(a) + tl.sum(b) + tl.sum(c) + tl.sum(d)
    tl.store(out_ptr + i, tl.where(total > 0, a, b) + tl.where(total > 1, c, d))


def test_tiles_that_do_not_fit_on_a_threads_stack() -> None:
    x, out = np.ones(1 << 20, np.float64), np.zeros(1 << 20, np.float64)
    with pytest.raises(KernelFaultError, match="smaller blocks or more warps"):
        many_at_once[(1,)](x, out, B=1 << 20, num_warps=1)
    many_at_once[(1,)](x, out, B=1 << 20, num_warps=8)
    assert (out == 2).all()


@triton.jit
def counting(x_ptr, n):
    k = 0
    while n > 0:
        k += 1
        tl.store(x_ptr, k)


def test_a_kernel_without_an_end_is_interrupted() -> None:
    x = np.zeros(1, np.int32)
    counting[(1,)](x, 0)
    former = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell has its background jobs ignore it
    timer = threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            counting[(1,)](x, 3)
        timer.join()
    finally:
        signal.signal(signal.SIGINT, former)
    counting[(1,)](x, 0)
