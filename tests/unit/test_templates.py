"""Templates: compiled once per installation, under Python's rules for bytecode."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

PROGRAM = """
import jinja2
compiled = []
compile = jinja2.Environment.compile
def counted(self, source, name=None, *others, **named):
    compiled.append(name)
    return compile(self, source, name, *others, **named)
jinja2.Environment.compile = counted
from tilewright.emit.templates import environment
template = environment().get_template("helpers/align_rows.cu.j2")
print(len(compiled), template.name)
"""


def compilations(folder: Path, **environment: str) -> int:
    """How many templates a new process compiles, with Python's bytecode in `folder`."""
    keeping = {"PYTHONPYCACHEPREFIX": str(folder), "PYTHONDONTWRITEBYTECODE": "", **environment}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], env={**os.environ, **keeping}, capture_output=True, text=True, check=True
    )
    return int(done.stdout.split()[0])


def kept(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.jinja"))


def test_the_second_process_compiles_nothing(tmp_path: Path) -> None:
    assert compilations(tmp_path) == 1
    assert len(kept(tmp_path)) == 1
    assert compilations(tmp_path) == 0


def test_what_is_damaged_is_compiled_again(tmp_path: Path) -> None:
    compilations(tmp_path)
    (file,) = kept(tmp_path)
    for damage in (b"", file.read_bytes()[:100]):
        file.write_bytes(damage)
        assert compilations(tmp_path) == 1
    assert compilations(tmp_path) == 0


def test_nothing_is_written_where_python_writes_nothing(tmp_path: Path) -> None:
    for _ in range(2):
        assert compilations(tmp_path, PYTHONDONTWRITEBYTECODE="1") == 1
    assert not kept(tmp_path)
