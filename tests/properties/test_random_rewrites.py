"""Random kernels that are written otherwise compute what they did."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import random_product_cases as products
import random_tiles as tiles
from golden_cases import GOLDEN_CASES
from random_rewrites import rewritten, rewritten_kernel
from tilewright.cli import load_kernel
from tilewright.diagnostics import OutOfResources
from tilewright.runtime.building import nvrtc

SAMPLES = Path(__file__).parents[2] / "samples"


@pytest.mark.parametrize("seed", range(500, 524))
def test_tiles(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_VERIFY", "1")
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
    monkeypatch.setenv("TILEWRIGHT_VERIFY", "1")
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


@pytest.mark.parametrize("seed", range(0, 7 * len(GOLDEN_CASES), 13))
def test_samples(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    case = GOLDEN_CASES[seed % len(GOLDEN_CASES)]
    kernel, text = rewritten_kernel(load_kernel(f"{SAMPLES / case.sample}.py:{case.kernel}"), seed)
    monkeypatch.setenv("TILEWRIGHT_VERIFY", "1")
    try:
        artifact = kernel.translate(case.signature, case.arch, **case.options)
    except OutOfResources:
        pytest.skip("its tiles are too large")
    if nvrtc.is_available():
        log = nvrtc.compile_text(artifact).log
        assert "warning #" not in log, f"{log}\n{text}"
