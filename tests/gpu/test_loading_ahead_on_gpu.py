"""The tests of loads that are made ahead, on a GPU."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from test_on_gpu import from_gpu, run_everywhere, to_gpu  # noqa: F401
from unit.test_evict_first import *
from unit.test_joined_trips import test_no_copy_is_late_or_early, test_what_no_mask_bounds_is_right  # noqa: F401
from unit.test_own_stages import *
from unit.test_read_ahead import *
from unit.test_running_totals import *
from unit.test_teams import test_neither_team_overtakes_the_other, test_programs_of_both_teams_are_right  # noqa: F401

pytestmark = pytest.mark.gpu


@pytest.fixture
def run_everyhow(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[list[Any]]]:
    """As in `conftest.py`, but once, on the GPU."""

    def run(kernel: Any, grid: Any, arguments: Sequence[Any], checked: bool = True, **options: Any) -> list[list[Any]]:
        monkeypatch.setenv("TILEWRIGHT_MODE", "gpu")
        moved = [to_gpu(one) if isinstance(one, np.ndarray) else one for one in arguments]
        kernel[grid](*moved, **options)
        pairs = zip(moved, arguments, strict=True)
        return [[from_gpu(there, one) if isinstance(one, np.ndarray) else one for there, one in pairs]]

    return run
