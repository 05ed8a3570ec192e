"""Random programs that assign names again and again, on a GPU: a launch leaves what the interpreter leaves."""

from __future__ import annotations

import numpy as np
import pytest
from random_assignments import PROGRAMS, arguments, make, program
from random_modules import file_of

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("seed", range(200, 280))
def test_launches_agree_with_the_interpreter(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    one = program(seed)
    expected = arguments(one)
    with monkeypatch.context() as patch:
        patch.setenv("TILEWRIGHT_MODE", "interpret")
        make(one)[(PROGRAMS,)](*expected, num_warps=one.warps)
    monkeypatch.delenv("TILEWRIGHT_MODE", raising=False)
    if seed % 4 == 0:
        monkeypatch.setenv("TILEWRIGHT_ARCH", "sm_80")
    given = [torch.from_numpy(value).cuda() if isinstance(value, np.ndarray) else value for value in arguments(one)]
    make(one)[(PROGRAMS,)](*given, num_warps=one.warps)
    for found, wanted in zip(given[:-1], expected[:-1], strict=True):
        np.testing.assert_array_equal(found.cpu().numpy(), wanted, file_of(one.helpers, one.source))
