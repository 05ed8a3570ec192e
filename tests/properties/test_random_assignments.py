"""Random programs that assign names again and again: the CPU run of their text leaves what the interpreter leaves."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from random_assignments import PROGRAMS, Program, arguments, make, program
from random_modules import file_of


def results(one: Program, mode: str, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The arrays after a program ran."""
    monkeypatch.setenv("TILEWRIGHT_MODE", mode)
    given = arguments(one)
    make(one)[(PROGRAMS,)](*given, num_warps=one.warps)
    return given[:-1]


@pytest.mark.parametrize("seed", range(40))
def test_both_runs_agree(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    one = program(seed)
    expected = results(one, "interpret", monkeypatch)
    monkeypatch.setenv("TILEWRIGHT_ARCH", "sm_90a" if seed % 2 else "sm_80")
    monkeypatch.setenv("TILEWRIGHT_VERIFY", "1")
    for found, wanted in zip(results(one, "cpu", monkeypatch), expected, strict=True):
        np.testing.assert_array_equal(found, wanted, file_of(one.helpers, one.source))


def test_a_seed_always_gives_the_same() -> None:
    assert [program(seed) for seed in range(50)] == [program(seed) for seed in range(50)]
