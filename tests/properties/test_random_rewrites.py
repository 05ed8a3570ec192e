"""Random kernels that are written otherwise compute what they did."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import random_product_cases as products
import random_tiles as tiles
from random_rewrites import rewritten
from tilewright.diagnostics import OutOfResources


@pytest.mark.parametrize("seed", range(500, 524))
def test_tiles(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    one = tiles.program(seed)
    source, helpers = rewritten(one.source, one.helpers, seed)
    other = replace(one, source=source, helpers=helpers)
    values = tiles.arguments(one)
    expected, *both = (tiles.copied(values, one) for _ in range(3))
    monkeypatch.setenv("TILEWRIGHT_MODE", "interpret")
    tiles.make(one)[one.grid](**expected, **one.options)
    for mode, found in zip(("interpret", "cpu"), both, strict=True):
        monkeypatch.setenv("TILEWRIGHT_MODE", mode)
        tiles.make(other)[one.grid](**found, **one.options)
        arrays = {name: value for name, value in found.items() if isinstance(value, np.ndarray)}
        assert not tiles.differences(one, arrays, expected), "\n".join([*helpers.values(), source])


@pytest.mark.parametrize("seed", range(500, 514))
def test_products(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    one = products.program(seed)
    source, helpers = rewritten(one.source, one.helpers, seed)
    other = replace(one, source=source, helpers=helpers)
    monkeypatch.setenv("TILEWRIGHT_ARCH", "sm_90a" if seed % 3 else "sm_80")
    expected, found = (products.arguments(one, 1, seed)[0] for _ in range(2))
    grid = products.arguments(one, 1, seed)[1]
    monkeypatch.setenv("TILEWRIGHT_MODE", "interpret")
    products.make(one)[grid](**expected, **one.options)
    monkeypatch.setenv("TILEWRIGHT_MODE", "cpu")
    try:
        products.make(other)[grid](**found, **one.options)
    except OutOfResources:
        pytest.skip("its tiles are too large")
    for name in ("c_ptr", "d_ptr"):
        wrong = products.difference(one, name[0], found[name], expected[name])
        assert wrong is None, "\n".join([wrong, *helpers.values(), source])
