"""Random kernels with dots in unusual surroundings: the CPU run, with copies early and late, agrees with the interpreter."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tilewright.runtime.cpu as cpu
from dot_cases import small_rings
from random_product_cases import arguments, difference, make, program
from tilewright.diagnostics import OutOfResources

WAYS = (("greedy_low", "late"), ("reverse", "early"))
RESULTS = ("c_ptr", "d_ptr")


@pytest.mark.parametrize("seed", range(36))
def test_both_runs_agree(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    one = program(seed)
    values, grid = arguments(one, 1, seed)
    expected = copied(values)
    monkeypatch.setenv("TILEWRIGHT_MODE", "interpret")
    make(one)[grid](**expected, **one.options)
    monkeypatch.setenv("TILEWRIGHT_MODE", "cpu")
    monkeypatch.setenv("TILEWRIGHT_ARCH", "sm_90a" if seed % 3 else "sm_80")
    small_rings(monkeypatch)
    kernel, run = make(one), cpu.run
    for schedule, delivery in WAYS:

        def with_way(artifact: Any, grid: Any, values: Any, how: tuple[str, str] = (schedule, delivery)) -> None:
            run(artifact, grid, values, schedule=how[0], seed=seed, delivery=how[1])

        monkeypatch.setattr(cpu, "run", with_way)
        own = copied(values)
        try:
            kernel[grid](**own, **one.options)
        except OutOfResources:
            return  # its tiles are too large for this GPU
        wrong = [found for name in RESULTS if (found := difference(one, name, own[name], expected[name]))]
        assert not wrong, f"{schedule}, {delivery}: {wrong}\n{one.source}"


def test_a_seed_always_gives_the_same() -> None:
    assert [program(seed) for seed in range(50)] == [program(seed) for seed in range(50)]


def copied(values: dict[str, Any]) -> dict[str, Any]:
    """Arguments with arrays of their own."""
    return {name: value.copy() if isinstance(value, np.ndarray) else value for name, value in values.items()}
