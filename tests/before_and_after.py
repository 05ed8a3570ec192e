"""A kernel that computes the same from a sum before a product and after it, and what must come of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import tilewright as triton
import tilewright.language as tl


@triton.jit
def before_and_after(x_ptr, y_ptr, out_ptr, n, B: tl.constexpr, N: tl.constexpr, KIND: tl.constexpr):
    # The same of a sum before a product and after it, with the sum from elsewhere and nothing but the product between them.
    i, j, k = tl.arange(0, B), tl.arange(0, N), tl.arange(0, B)
    at = i[:, None] * N + j[None, :]
    acc = tl.load(y_ptr + at)
    before = acc
    if n == n:
        x = tl.load(x_ptr + i[:, None] * B + k[None, :])
        y = tl.load(x_ptr + k[:, None] * N + j[None, :])
        before = computed(acc, KIND)
        acc = tl.dot(x, y, acc)
    acc = computed(acc, KIND)
    tl.store(out_ptr + at, tl.abs(before))
    tl.store(out_ptr + B * N + at, acc)


@triton.jit
def computed(x, KIND: tl.constexpr):
    if KIND == "sum":
        return x + 7.0
    if KIND == "half":
        return x.to(tl.float16).to(tl.float32)
    return tl.minimum(tl.maximum(x, -4.0), 5.0)


KINDS = {
    "sum": lambda x: x + 7,
    "half": lambda x: x.astype(np.float16).astype(np.float32),
    "clip": lambda x: np.clip(x, -4, 5),
}


def check(kind: str, run: Callable[..., Any]) -> None:
    """Compares what `run(x, y, out)` returns as `out`."""
    rng = np.random.default_rng(len(kind))
    x = rng.integers(-2, 3, (64, 64)).astype(np.float16)
    y, out = rng.integers(-5, 6, (64, 32)).astype(np.float32), np.zeros((2, 64, 32), np.float32)
    found = np.asarray(run(x, y, out)).reshape(out.shape)
    after = y + x.astype(np.float32) @ x.reshape(-1)[: 64 * 32].reshape(64, 32)
    assert np.array_equal(found[0], np.abs(KINDS[kind](y))) and np.array_equal(found[1], KINDS[kind](after))
