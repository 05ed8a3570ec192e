"""Environment variables with values that mean nothing, or whose name is none: nothing goes by in silence."""

from __future__ import annotations

import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tilewright as triton
import tilewright.language as tl
from tilewright.runtime import environment
from tilewright.runtime.environment import KNOWN, check_settings, is_on


@triton.jit
def stored(x_ptr, B: tl.constexpr):
    tl.store(x_ptr + tl.arange(0, B), 1.0)


@pytest.fixture(autouse=True)
def said_nothing_yet() -> None:
    environment._warn.cache_clear()


@pytest.mark.parametrize("mode", ("cpu", "interpret"))
def test_a_bound_of_the_cache_is_looked_at_before_it_is_reached(mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_MODE", mode)
    stored[(1,)](np.zeros(16, np.float32), B=16)  # what is compiled lies in the cache from here on
    stored.forget()
    monkeypatch.setenv("TILEWRIGHT_CACHE_MB", "abc")
    with pytest.raises(triton.TilewrightError, match="TILEWRIGHT_CACHE_MB is 'abc'; it must be .*, such as 1024"):
        stored[(1,)](np.zeros(16, np.float32), B=16)


def test_a_variable_that_nothing_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_CACHEDIR", "/tmp")
    monkeypatch.setenv("TILEWRIGHT_COLOUR", "green")
    with pytest.warns(RuntimeWarning) as said:
        for _ in range(2):
            check_settings()
    texts = sorted(str(one.message) for one in said)
    assert len(texts) == 2 and texts[0].endswith("nothing reads; did you mean TILEWRIGHT_CACHE_DIR?")
    assert texts[1] == f"TILEWRIGHT_COLOUR is set, which nothing reads; there are {', '.join(KNOWN)}"


def test_the_names_that_count_are_those_of_the_readme() -> None:
    text = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
    assert {line.split("`")[1] for line in text.splitlines() if line.startswith("| `TILEWRIGHT_")} == {*KNOWN}


@pytest.mark.parametrize(("value", "wanted"), (("1", True), (" TRUE ", True), ("0", False), ("", False), ("No", False)))
def test_values_of_switches(value: str, wanted: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_DEBUG", value)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert is_on("TRITON_DEBUG", default=not wanted) is wanted


def test_a_switch_that_is_neither_on_nor_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_INTERPRET", "ture")
    with pytest.warns(
        RuntimeWarning, match="TRITON_INTERPRET is 'ture', which counts as off; it must be one of 1, true"
    ):
        assert not is_on("TRITON_INTERPRET")


def test_the_command_line_says_so_too(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def run(**settings: str) -> Any:
        for name, value in settings.items():
            monkeypatch.setenv(name, value)
        command = [sys.executable, "-m", "tilewright", "cache", "list"]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    monkeypatch.setenv("TILEWRIGHT_CACHE_DIR", str(tmp_path / "cache"))
    done = run(TILEWRIGHT_MOD="cpu")
    assert done.returncode == 0 and "TILEWRIGHT_MOD is set, which nothing reads; did you mean" in done.stderr
    done = run(TILEWRIGHT_CACHE_MB="1.5")
    assert done.returncode == 1 and "tilewright: TILEWRIGHT_CACHE_MB is '1.5'" in done.stderr
    assert "Traceback" not in done.stderr
