"""Random layers on a GPU, with teams wherever that is possible, and more programs than there are multiprocessors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from guarded_arrays import Guarded
from random_layers import random_layer
from tilewright.diagnostics import OutOfResources

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("wherever", [True, False])
@pytest.mark.parametrize("seed", range(100, 132))
def test_layers_agree_with_the_interpreter(seed: int, wherever: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    if wherever:
        monkeypatch.setattr("tilewright.schedule.staging.teams.serves_teams", lambda *_: True)
        monkeypatch.setenv("TILEWRIGHT_VERIFY", "1")  # translations are made anew
    one = random_layer(seed)
    values, grid, product = one.launch(seed, 20)
    expected = [value.copy() if isinstance(value, np.ndarray) else value for value in values]
    with monkeypatch.context() as patch:
        patch.setenv("TILEWRIGHT_MODE", "interpret")
        one.kernel()[grid](*expected, **one.tile, **one.options)
    monkeypatch.delenv("TILEWRIGHT_MODE", raising=False)
    kernel, tolerance = one.kernel(), 2e-2 * max(float(np.abs(product).max()), 1.0)
    for _ in range(3):
        own = [Guarded(value) if isinstance(value, np.ndarray) else value for value in values]
        given: list[Any] = [one.value if isinstance(one, Guarded) else one for one in own]
        try:
            kernel[grid](*given, **one.tile, **one.options)
        except OutOfResources:
            pytest.skip("its tiles are too large")
        torch.cuda.synchronize()
        for found, wanted in zip(own[3:5], expected[3:5], strict=True):
            result = found.result().astype(np.float64)
            np.testing.assert_allclose(result, wanted.astype(np.float64), rtol=2e-2, atol=tolerance, err_msg=one.source)
