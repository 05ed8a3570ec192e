"""Products assigned to one of their own operands: the sum starts when the operand has been read."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
import tilewright as triton
import tilewright.language as tl


@triton.jit
def powers_kernel(x_ptr, y_ptr, out_ptr, N: tl.constexpr, FORM: tl.constexpr):
    i = tl.arange(0, N)
    at = i[:, None] * N + i[None, :]
    x = tl.load(x_ptr + at)
    y = tl.load(y_ptr + at)
    for _ in range(2):
        if FORM == "left":
            x = tl.dot(x, y, out_dtype=x.dtype)
        elif FORM == "right":
            x = tl.dot(y, x, out_dtype=x.dtype)
        elif FORM == "both":
            x = tl.dot(x, x, out_dtype=x.dtype)
        elif FORM == "other start":
            x = tl.dot(x, y, y, out_dtype=x.dtype)
        else:
            x += tl.dot(x, y, out_dtype=x.dtype)
    tl.store(out_ptr + at, x)


FORMS = {
    "left": lambda x, y: x @ y,
    "right": lambda x, y: y @ x,
    "both": lambda x, y: x @ x,
    "other start": lambda x, y: x @ y + y,
    "own start": lambda x, y: x + x @ y,
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("dtype", "side"), [("float32", 4), ("float32", 32), ("float64", 16), ("float16", 64)])
def test_an_operand_is_read_before_the_sum_starts(
    dtype: str, side: int, form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Small integers: exact in all types, on tensor cores and on ordinary ones (a side of 4)."""
    monkeypatch.setenv("TILEWRIGHT_MODE", "cpu")
    rng = np.random.default_rng(side)
    x, y = (rng.integers(-1, 2, (side, side)) * (rng.random((side, side)) < 0.3) for _ in range(2))
    out = np.zeros((side, side), dtype)
    powers_kernel[(1,)](x.astype(dtype), y.astype(dtype), out, side, form)
    for _ in range(2):
        x = FORMS[form](x, y)
    np.testing.assert_array_equal(out, x)


@triton.jit
def exchanged(a_ptr, b_ptr, c_ptr, trips, S: tl.constexpr, K: tl.constexpr):
    # The sum goes on from other elements of itself, which the same thread holds.
    i, k = tl.arange(0, S), tl.arange(0, K)
    a = tl.load(a_ptr + i[:, None] * K + k[None, :])
    b = tl.load(b_ptr + k[:, None] * S + i[None, :])
    c = tl.zeros((S, S), tl.float32)
    for _ in range(trips):
        c = tl.dot(a, b, tl.reshape(tl.permute(tl.reshape(c, (S, S // 32, 2, 2, 8)), (0, 1, 3, 2, 4)), (S, S)))
    tl.store(c_ptr + i[:, None] * S + i[None, :], c)


def test_a_sum_that_starts_from_other_elements_of_itself(run_everywhere: Any) -> None:
    side, depth, trips = 64, 16, 2
    a, b = (
        np.random.default_rng(7).integers(-2, 3, shape).astype(np.float16) for shape in ((side, depth), (depth, side))
    )
    *_, found = run_everywhere(exchanged, (1,), a, b, np.zeros((side, side), np.float32), trips, S=side, K=depth)
    wanted = np.zeros((side, side))
    for _ in range(trips):
        groups = wanted.reshape(side, side // 32, 2, 2, 8)
        wanted = groups.transpose(0, 1, 3, 2, 4).reshape(side, side) + a.astype(float) @ b.astype(float)
    np.testing.assert_array_equal(found, wanted)


@triton.jit
def two_products(x_ptr, y_ptr, out_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    at = i[:, None] * N + i[None, :]
    x, y = tl.load(x_ptr + at), tl.load(y_ptr + at)
    total = tl.zeros((N, N), tl.float32)
    for _ in range(2):
        total += tl.dot(x, y) + tl.dot(y, x)
    twice = tl.dot(x, x) + tl.dot(y, y) + tl.dot(x, y)
    tl.store(out_ptr + at, total + twice)


@pytest.mark.parametrize("arch", ["sm_80", "sm_90a"])
def test_the_second_of_two_products_is_added_to_the_first(run_everywhere: Any, arch: str) -> None:
    rng = np.random.default_rng(5)
    x, y = (rng.integers(-3, 4, (64, 64)).astype(np.float16) for _ in range(2))
    *_, out = run_everywhere(two_products, (1,), x, y, np.zeros((64, 64), np.float32), N=64)
    left, right = x.astype(float), y.astype(float)
    expected = 2 * (left @ right + right @ left) + left @ left + right @ right + left @ right
    np.testing.assert_array_equal(out, expected)
    text = two_products.translate("*fp16:16, *fp16:16, *fp32:16, 64", arch=arch).source
    assert "product_second" not in text and not re.search(r"\] = \w+\[r\]\[c\];", text)
