"""Random kernels without dots, on a GPU: what two launches of each leave, and nothing else."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from guarded_arrays import Guarded
from random_tiles import arguments, copied, differences, make, program
from tilewright.diagnostics import OutOfResources

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("seed", range(200, 320))
def test_launches_agree_with_the_interpreter(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    one = program(seed)
    values = arguments(one)
    expected = copied(values, one)
    with monkeypatch.context() as patch:
        patch.setenv("TILEWRIGHT_MODE", "interpret")
        make(one)[one.grid](**expected, **one.options)
    monkeypatch.delenv("TILEWRIGHT_MODE", raising=False)
    if seed % 4 == 0:
        monkeypatch.setenv("TILEWRIGHT_ARCH", "sm_80")
    kernel = make(one)
    for _ in range(2):
        own: dict[str, Any] = {
            name: Guarded(value, one.arrays[name.removesuffix("_ptr")].skip) if isinstance(value, np.ndarray) else value
            for name, value in values.items()
        }
        given = {name: value.value if isinstance(value, Guarded) else value for name, value in own.items()}
        try:
            kernel[one.grid](**given, **one.options)
        except OutOfResources:
            return  # its tiles are too large for this GPU
        torch.cuda.synchronize()
        found = {name: value.result() for name, value in own.items() if isinstance(value, Guarded)}
        wrong = differences(one, found, expected)
        assert not wrong, f"{wrong}\n{one.source}"
