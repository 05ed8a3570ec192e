"""Random kernels with dots in unusual surroundings, on a GPU: what two launches of each of two sizes leave, and nothing else."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from guarded_arrays import Guarded
from random_product_cases import Program, arguments, difference, make, program
from tilewright.diagnostics import OutOfResources

pytestmark = pytest.mark.gpu
RESULTS = ("c_ptr", "d_ptr")


def launch(one: Program, kernel: Any, values: dict[str, Any], grid: tuple[int, ...], expected: dict[str, Any]) -> None:
    """Starts a program and compares its results."""
    import torch

    own = {name: Guarded(value) if isinstance(value, np.ndarray) else value for name, value in values.items()}
    given = {name: value.value if isinstance(value, Guarded) else value for name, value in own.items()}
    kernel[grid](**given, **one.options)
    torch.cuda.synchronize()
    found = {name: value.result() for name, value in own.items() if isinstance(value, Guarded)}
    wrong = [text for name in RESULTS if (text := difference(one, name, found[name], expected[name]))]
    assert not wrong, f"{wrong}\n{one.source}"


@pytest.mark.parametrize("arch", ["", "sm_80"])
@pytest.mark.parametrize("seed", range(100, 148))
def test_launches_agree_with_the_interpreter(seed: int, arch: str, monkeypatch: pytest.MonkeyPatch) -> None:
    one = program(seed)
    kernel = make(one)
    for scale in (3, 6):
        values, grid = arguments(one, scale, seed)
        expected = {name: value.copy() if isinstance(value, np.ndarray) else value for name, value in values.items()}
        with monkeypatch.context() as patch:
            patch.setenv("TILEWRIGHT_MODE", "interpret")
            make(one)[grid](**expected, **one.options)
        monkeypatch.delenv("TILEWRIGHT_MODE", raising=False)
        if arch:
            monkeypatch.setenv("TILEWRIGHT_ARCH", arch)
        try:
            for _ in range(2):
                launch(one, kernel, values, grid, expected)
        except OutOfResources:
            return  # its tiles are too large for this GPU
