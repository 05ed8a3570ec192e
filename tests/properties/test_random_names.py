"""Kernels whose variables are called as the translator calls its own: they are right, and nobody's name hides another's."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import random_product_cases as products
import random_tiles as tiles
from random_names import with_names_of_text
from tilewright.diagnostics import OutOfResources
from tilewright.pipeline import translate
from tilewright.runtime.building import nvrtc
from tilewright.runtime.jit import JITFunction, make_options
from tilewright.schedule.targets import find_target


def text_of(kernel: JITFunction, values: dict[str, Any], options: dict[str, int], arch: str) -> Any:
    """What a launch with these values would compile; None where it does not fit."""
    arguments = kernel.call_of((), values | options).arguments
    try:
        return translate(kernel, arguments, make_options(options, False), find_target(arch))
    except OutOfResources:
        return None


@pytest.mark.parametrize("seed", range(40))
def test_products_compile(seed: int) -> None:
    if not nvrtc.is_available():
        pytest.skip("no NVRTC")
    one, arch = products.program(seed), "sm_90a" if seed % 3 else "sm_80"
    values = products.arguments(one, 1, seed)[0]
    first = text_of(products.make(one), values, one.options, arch)
    if first is not None:
        other = replace(one, source=with_names_of_text(one.source, first.source, seed))
        again = text_of(products.make(other), values, one.options, arch)
        assert nvrtc.compile_text(again).code, other.source


@pytest.mark.parametrize("seed", range(400, 416))
def test_tiles_are_right(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    one = tiles.program(seed)
    values = tiles.arguments(one)
    first = text_of(tiles.make(one), values, one.options, "sm_90a")
    if first is None:
        pytest.skip("its tiles are too large for this GPU")
    other = replace(one, source=with_names_of_text(one.source, first.source, seed))
    expected, found = tiles.copied(values, one), tiles.copied(values, one)
    monkeypatch.setenv("TILEWRIGHT_MODE", "interpret")
    tiles.make(one)[one.grid](**expected, **one.options)
    monkeypatch.setenv("TILEWRIGHT_MODE", "cpu")
    tiles.make(other)[one.grid](**found, **one.options)
    arrays = {name: value for name, value in found.items() if isinstance(value, np.ndarray)}
    assert not tiles.differences(one, arrays, expected), other.source
