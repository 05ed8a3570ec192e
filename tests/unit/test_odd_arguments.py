"""Arguments that are odd: each gives an error of ours that is short, or the right result, in every mode."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tilewright as triton
import tilewright.language as tl


@triton.jit
def doubled(x_ptr, out_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(out_ptr + i, tl.load(x_ptr + i) * 2)


X = np.arange(16, dtype=np.float32)


@pytest.fixture(autouse=True, params=("cpu", "interpret"))
def mode(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_MODE", request.param)


def said(x: Any, n: Any = 16) -> str:
    with pytest.raises(triton.TilewrightError) as caught:
        doubled[(1,)](x, np.zeros(16, np.float32), N=n)
    return str(caught.value)


def ring() -> list[Any]:
    found: list[Any] = []
    found.append(found)
    return found


def deep() -> Any:
    found: Any = 1.0
    for _ in range(5000):
        found = (found,)
    return found


@pytest.mark.parametrize("make", (ring, deep))
def test_tuples_without_an_end(make: Any) -> None:
    assert "argument x_ptr is a tuple that nests too deep, or that contains itself" in said(make())
    assert "argument N is a tuple that nests too deep, or that contains itself" in said(X, make())


def test_a_long_list_gives_a_short_message() -> None:
    assert len(said([1.0] * 1000)) < 500


def test_masks_of_arrays_are_not_passed_over() -> None:
    assert "argument x_ptr: a masked array" in (text := said(np.ma.array(X, mask=X > 3))) and "x.filled(0)" in text
    for plain in (np.ma.array(X), np.ma.array(X, mask=np.zeros(16, bool))):  # nothing is masked
        doubled[(1,)](plain, out := np.zeros(16, np.float32), N=16)
        np.testing.assert_array_equal(out, X * 2)
