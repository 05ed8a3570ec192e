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


SASS = """
        /*0000*/                   LDC R1, c[0x0][0x28] ;
.L_x_1:
        /*0010*/                   IADD3 R4, R4, 0x1, RZ ;
.L_x_0:
        /*0020*/              @P1 LDG.E.U16 R0, desc[UR4][R2.64] ;
        /*0030*/                   FADD R5, R0, R5 ;
        /*0040*/              @!P0 BRA `(.L_x_0) ;
        /*0050*/               @P2 BRA `(.L_x_1) ;
        /*0060*/                   STG.E desc[UR4][R2.64], R5 ;
        /*0070*/                   EXIT ;
.L_x_2:
        /*0080*/                   BRA `(.L_x_2);
        /*0090*/                   NOP;
"""


def test_instructions_are_counted_in_all_and_in_innermost_loops(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    from instructions import counts

    found = counts(SASS, 24)
    assert (found.registers, found.instructions, found.in_loops) == (24, 9, 3)
    assert found.memory == {"LDG": 1, "STG": 1}
