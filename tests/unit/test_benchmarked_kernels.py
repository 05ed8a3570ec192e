"""The benchmarks of kernels that users write: what they compare on a GPU is right on the CPU, at small sizes."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"


@pytest.mark.parametrize(
    ("script", "word", "number"),
    [("everyday.py", "cosine", 1), ("everyday.py", "state_update", 1), ("computed_operands.py", "int4_weights", 3)],
)
def test_small_cases_are_right(script: str, word: str, number: int) -> None:
    environment = {**os.environ, "TILEWRIGHT_MODE": "interpret"}
    command = [sys.executable, str(BENCHMARKS / script), "--small", "--only", word]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=300, check=False)
    lines = done.stdout.split("\n\n")[0].strip().splitlines()
    assert done.returncode == 0 and len(lines) == number, done.stdout + done.stderr
    assert all(re.match(rf"{word} [\dx]+ {{'tilewright': \d[\d.e-]+}} *$", line) for line in lines), done.stdout
