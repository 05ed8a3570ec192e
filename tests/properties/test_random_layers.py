"""Random layers on the CPU, with teams wherever that is possible: with copies early and late they agree with the interpreter."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tilewright.runtime.compilations as compilations
import tilewright.runtime.cpu as cpu
from random_layers import random_layer
from tilewright.diagnostics import OutOfResources

WAYS = (("greedy_low", "late"), ("reverse", "early"))


@pytest.fixture
def texts(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The texts that are made from here on: teams wherever they are possible, however much room there is."""
    found: list[str] = []
    translated = compilations.translated

    def kept(*arguments: Any, **named: Any) -> Any:
        artifact, is_new = translated(*arguments, **named)
        found.append(artifact.source)
        return artifact, is_new

    monkeypatch.setattr(compilations, "translated", kept)
    monkeypatch.setattr("tilewright.schedule.staging.teams.serves_teams", lambda *_: True)
    monkeypatch.setenv("TILEWRIGHT_ARCH", "sm_90a")
    monkeypatch.setenv("TILEWRIGHT_VERIFY", "1")
    return found


def run(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs a layer in both ways, and in the interpreter."""
    one = random_layer(seed)
    values, grid, product = one.launch(seed)
    launch, results = cpu.run, []
    for way in (*WAYS, None):
        own = [value.copy() if isinstance(value, np.ndarray) else value for value in values]
        with monkeypatch.context() as patch:
            patch.setenv("TILEWRIGHT_MODE", "cpu" if way else "interpret")
            if way:
                patch.setattr(
                    cpu, "run",
                    lambda artifact, grid, values, how=way: launch(
                        artifact, grid, values, schedule=how[0], seed=seed, delivery=how[1]
                    ),
                )  # fmt: skip
            one.kernel()[grid](*own, **one.tile, **one.options)
        results.append([own[3].astype(np.float64), own[4].astype(np.float64)])
    tolerance = 2e-2 * max(float(np.abs(product).max()), 1.0)
    for found in results[:-1]:
        for left, right in zip(found, results[-1], strict=True):
            np.testing.assert_allclose(left, right, rtol=2e-2, atol=tolerance, err_msg=one.source)
    if "y = total\n    tl.store" in one.source:
        np.testing.assert_allclose(results[0][0], product, rtol=5e-2, atol=2 * tolerance, err_msg=one.source)


@pytest.mark.parametrize("seed", range(40))
def test_layers_agree(seed: int, texts: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    try:
        run(seed, monkeypatch)
    except OutOfResources:
        pytest.skip("its tiles are too large")


def test_they_are_what_they_are_for(texts: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Enough of them have teams, and trips that are joined."""
    for seed in range(40):
        one = random_layer(seed)
        values, grid, _ = one.launch(seed)
        monkeypatch.setenv("TILEWRIGHT_MODE", "cpu")
        monkeypatch.setattr(cpu, "run", lambda *_, **__: None)
        one.kernel()[grid](*values, **one.tile, **one.options)
    assert sum("NUM_TEAMS" in text for text in texts) >= 10
    assert sum("trips at once" in text for text in texts) >= 10
