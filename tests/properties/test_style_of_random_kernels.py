"""The rubric over kernels that nobody has looked at: random ones, with products and without. NVRTC has no warning about them."""

from __future__ import annotations

from typing import Any

import pytest
import random_product_cases as products
import random_tiles as tiles
import rubric
from random_modules import file_of
from tilewright.artifact import Artifact
from tilewright.diagnostics import OutOfResources
from tilewright.pipeline import translate
from tilewright.runtime.building import nvrtc
from tilewright.runtime.jit import JITFunction, make_options
from tilewright.schedule.targets import find_target

# Random kernels have no comments, more statements than make sense, and calls in each other as deep as their text has them.
WRITTEN = (rubric.user_comments_are_kept, rubric.the_size_is_in_proportion, rubric.index_arithmetic_is_flat)
POINTS = [point for point in rubric.POINTS if point not in WRITTEN]
ARCHS = ("sm_90a", "sm_80", "sm_90a", "sm_120a")


def is_right(kernel: JITFunction, source: str, values: dict[str, Any], options: dict[str, int], seed: int) -> None:
    """Translates a kernel as a launch with these values would, and looks at its text."""
    call = kernel.call_of((), values | options)
    try:
        artifact = translate(
            kernel, call.arguments, make_options(options, False), find_target(ARCHS[seed % len(ARCHS)])
        )
    except OutOfResources:
        return  # its tiles are too large for this GPU
    file = rubric.Generated(artifact.source, source, "kernel")
    found = [(point.__name__, what) for point in POINTS for what in point(file)]
    assert not found, f"{found}\n{source}"
    if seed % 2 == 0 and nvrtc.is_available():
        assert not warnings_of(artifact)


def warnings_of(artifact: Artifact) -> list[str]:
    """What NVRTC says of a text besides what it needs."""
    return [line for line in nvrtc.compile_text(artifact).log.splitlines() if "warning" in line]


@pytest.mark.parametrize("seed", range(48))
def test_tiles(seed: int) -> None:
    one = tiles.program(seed)
    is_right(tiles.make(one), file_of(one.helpers, one.source), tiles.arguments(one), one.options, seed)


@pytest.mark.parametrize("seed", range(32))
def test_products(seed: int) -> None:
    one = products.program(seed)
    is_right(
        products.make(one), file_of(one.helpers, one.source), products.arguments(one, 1, seed)[0], one.options, seed
    )
