"""A kernel whose sums change places in a loop of two trips, which threads load ahead for, and what must come of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import tilewright as triton
import tilewright.language as tl


@triton.jit
def exchanged_sums(x_ptr, out_ptr, n, sx, B: tl.constexpr):
    first = tl.program_id(0) & 15  # of which is not known that boxes can start there
    i = tl.arange(0, B)
    at = i[:, None] * B + i[None, :]
    rows = i[:, None] * sx + i[None, :]
    one = clipped(tl.dot(tl.load(x_ptr + rows), tl.load(x_ptr + 8 + rows)))
    other = tl.zeros((B, B), tl.int32)
    for k in range(0, 2 * B, B):
        a = tl.load(x_ptr + rows + k)
        b = tl.load(x_ptr + (k + i)[:, None] + (first + i)[None, :] * sx, mask=(k + i)[:, None] < n, other=0)
        one = clipped(one)
        other = tl.dot(a, b, other)
        one, other = other, one
    tl.store(out_ptr + at, clipped(one))
    tl.store(out_ptr + B * B + at, clipped(other))


@triton.jit
def clipped(x):
    return tl.minimum(tl.maximum(x, -4), 5)


def check(run: Callable[..., Any]) -> None:
    """Compares what `run(x, out, n, sx)` returns as `out`."""
    rng = np.random.default_rng(5)
    x, out = rng.integers(-2, 3, (128, 272)).astype(np.int8), np.full((2, 128, 128), 99, np.int32)
    n = 250
    found = np.asarray(run(x, out, n, x.shape[1])).reshape(out.shape)
    wide = x.astype(np.int64)
    one = np.clip(wide[:, :128] @ wide[:, 8:136], -4, 5)
    products = [
        wide[:, k : k + 128] @ (wide[:, k : k + 128].T * (np.arange(k, k + 128) < n)[:, None]) for k in (0, 128)
    ]
    assert np.array_equal(found[0], np.clip(products[1] + one, -4, 5))
    assert np.array_equal(found[1], np.clip(products[0], -4, 5))
