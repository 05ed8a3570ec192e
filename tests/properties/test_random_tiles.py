"""Random kernels without dots: the CPU run of their text, and its check, agree with the interpreter; NVRTC has no objection."""

from __future__ import annotations

from typing import Any

import pytest
from random_tiles import Program, arguments, copied, differences, make, program
from tilewright.artifact import Artifact
from tilewright.runtime import cpu
from tilewright.runtime.building import nvrtc

QUIET = 40  # of the first seeds, those that NVRTC compiles, too
KNOWN = ("#186-D",)  # a comparison of an unsigned number with zero stands so in the kernel


def launch(one: Program, mode: str, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The arguments of a kernel after it ran."""
    monkeypatch.setenv("TILEWRIGHT_MODE", mode)
    own = copied(arguments(one), one)
    make(one)[one.grid](**own, **one.options)
    return own


@pytest.mark.parametrize("seed", range(60))
def test_both_runs_agree(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    one = program(seed)
    expected = launch(one, "interpret", monkeypatch)
    monkeypatch.setenv("TILEWRIGHT_ARCH", "sm_90a" if seed % 3 else "sm_80")
    monkeypatch.setenv("TILEWRIGHT_VERIFY", "1")
    texts: list[Artifact] = []
    run = cpu.run

    def noting(artifact: Artifact, *arguments: Any, **options: Any) -> None:
        texts.append(artifact)
        run(artifact, *arguments, **options)

    monkeypatch.setattr(cpu, "run", noting)
    wrong = differences(one, launch(one, "cpu", monkeypatch), expected)
    assert not wrong, f"{wrong}\n{one.source}"
    if seed < QUIET and nvrtc.is_available():
        warnings = [line for line in nvrtc.compile_text(texts[0]).log.split("\n") if ": warning #" in line]
        assert all(any(known in line for known in KNOWN) for line in warnings), f"{warnings}\n{one.source}"


@pytest.mark.parametrize("seed", range(60, 64))
def test_the_check_finds_nothing(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    one = program(seed)
    wrong = differences(one, launch(one, "check", monkeypatch), launch(one, "interpret", monkeypatch))
    assert not wrong, f"{wrong}\n{one.source}"


def test_a_seed_always_gives_the_same() -> None:
    assert [program(seed) for seed in range(50)] == [program(seed) for seed in range(50)]
