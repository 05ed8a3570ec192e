"""Helpers that begin with an operation on whole tiles: they cannot be functions of scalars, and are inlined."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tilewright as triton
import tilewright.language as tl
from tilewright.diagnostics import DTypeError, ShapeError


@triton.jit
def turned(x):
    return tl.trans(x)


@triton.jit
def turned_by_attribute(x):
    return x.T


@triton.jit
def permuted(x):
    return tl.permute(x, (1, 0))


@triton.jit
def permuted_from_the_end(x):
    return x.permute(-1, -2)


@triton.jit
def reshaped(x):
    return tl.reshape(x, (x.shape[0] * x.shape[1],)).reshape(x.shape)


@triton.jit
def summed(x):
    return tl.sum(x, axis=-1)[:, None] + x


@triton.jit
def spread(x):
    return tl.expand_dims(tl.max(x, 1), -1) + x


@triton.jit
def joined(x):
    left, right = tl.split(tl.join(x, x + 1))
    return left + right


@triton.jit
def product(x):
    return tl.dot(tl.trans(x), x)


@triton.jit
def tile_kernel(x_ptr, out_ptr, N: tl.constexpr, HELPER: tl.constexpr):
    i = tl.arange(0, N)
    at = i[:, None] * N + i[None, :]
    tl.store(out_ptr + at, HELPER(tl.load(x_ptr + at)))


HELPERS = [
    (turned, lambda x: x.T),
    (turned_by_attribute, lambda x: x.T),
    (permuted, lambda x: x.T),
    (permuted_from_the_end, lambda x: x.T),
    (reshaped, lambda x: x),
    (summed, lambda x: x.sum(1)[:, None] + x),
    (spread, lambda x: x.max(1)[:, None] + x),
    (joined, lambda x: 2 * x + 1),
    (product, lambda x: x.T @ x),
]


@pytest.mark.parametrize("mode", ["cpu", "interpret"])
@pytest.mark.parametrize(("helper", "expected"), HELPERS, ids=[helper.__name__ for helper, _ in HELPERS])
def test_a_helper_may_begin_with_tiles(helper: Any, expected: Any, mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_MODE", mode)
    x = np.random.default_rng(5).integers(-4, 5, (16, 16)).astype(np.float32)
    out = np.zeros_like(x)
    tile_kernel[(1,)](x, out, 16, helper)
    np.testing.assert_array_equal(out, expected(x))


@triton.jit
def turned_row_kernel(x_ptr, out_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(out_ptr + i, tl.trans(tl.load(x_ptr + i)))


@triton.jit
def turned_scalar_kernel(x_ptr, out_ptr, N: tl.constexpr):
    tl.store(out_ptr, tl.trans(tl.load(x_ptr)))


@pytest.mark.parametrize("mode", ["cpu", "interpret"])
@pytest.mark.parametrize("kernel", [turned_row_kernel, turned_scalar_kernel])
def test_a_transpose_needs_two_axes(kernel: Any, mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_MODE", mode)
    x = np.zeros(16, np.float32)
    with pytest.raises(ShapeError, match=r"trans of fp32.*no two axes"):
        kernel[(1,)](x, x.copy(), 16)


@triton.jit
def doubled_above(x, least):
    if x > least:
        x = x * 2
    return x


@triton.jit
def counted_up(x, least):
    while x < least:
        x += 1
    return x


@triton.jit
def summed_up(x, least):
    for k in range(x):
        least += k
    return least


@triton.jit
def one_or_other(x, least):
    return doubled_above(x + 1, least) if least > 3 else x


@triton.jit
def decided_kernel(x_ptr, out_ptr, least, N: tl.constexpr, HELPER: tl.constexpr, TILE: tl.constexpr):
    i = tl.arange(0, N)
    x = tl.load(x_ptr + i) if TILE else tl.load(x_ptr)
    tl.store(out_ptr + i, HELPER(x, least))


@pytest.mark.parametrize("mode", ("cpu", "interpret"))
@pytest.mark.parametrize("helper", (doubled_above, counted_up, summed_up, one_or_other), ids=lambda one: one.__name__)
def test_a_tile_decides_nothing_in_a_helper(helper: Any, mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a scalar may decide, a tile may not: there is one meaning, not one per element."""
    monkeypatch.setenv("TILEWRIGHT_MODE", mode)
    x, out = np.arange(8, dtype=np.int32), np.zeros(8, np.int32)
    decided_kernel[(1,)](x, out, 5, N=8, HELPER=helper, TILE=False)
    with pytest.raises(DTypeError, match="ambiguous|must all be ints") as caught:
        decided_kernel[(1,)](x, out, 5, N=8, HELPER=helper, TILE=True)
    assert "called from here" in str(caught.value)
