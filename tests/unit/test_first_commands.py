"""What the command line says to who has just installed it, and that it overwrites nothing of theirs."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from tilewright import outputs
from tilewright.cli import load_kernel, main
from tilewright.diagnostics import TilewrightError

KERNEL = """
import tilewright as triton
import tilewright.language as tl


@triton.jit
def scale(x_ptr, out_ptr, n: tl.int64, m, by=2.0, BLOCK: tl.constexpr = 64, KIND: tl.constexpr = "a", N: tl.constexpr = None):
    i = tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < n) * by, mask=i < n)
"""
EXAMPLE = "*fp32:16, *fp32:16, i64, i32, fp32, 64, 'a', 1024"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    found = tmp_path / "scales.py"
    found.write_text(KERNEL)
    return found


def test_a_signature_that_is_missing_is_shown(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["translate", f"{file}:scale"]) == 1
    said = capsys.readouterr().err
    assert "--signature is missing: scale takes x_ptr, out_ptr, n, m, by, BLOCK, KIND, N; for example" in said
    assert f'    --signature "{EXAMPLE}"' in said
    assert main(["translate", f"{file}:scale", "--signature", EXAMPLE]) == 0


def test_a_kernel_that_is_not_named(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["translate", str(file), "--signature", EXAMPLE]) == 1
    assert f"{file}: expected FILE.py:KERNEL, as {file}:scale; it has scale" in capsys.readouterr().err


@pytest.mark.parametrize("force", ("--force", "--update"))
def test_a_program_is_never_overwritten(file: Path, force: str, capsys: pytest.CaptureFixture[str]) -> None:
    commands = [["tune", str(file), "--save", str(file), force]]
    if force == "--force":
        commands.append(["translate", f"{file}:scale", "--signature", EXAMPLE, "-o", str(file), force])
    for command in commands:
        assert main(command) == 1
        assert "is the program's own file, which is never overwritten" in capsys.readouterr().err
    assert file.read_text() == KERNEL


def test_nor_by_an_export(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_MODE", "cpu")
    compiled = load_kernel(f"{file}:scale").compile(EXAMPLE)
    with pytest.raises(TilewrightError, match="own file, which is never overwritten"):
        compiled.export(file, force=True)
    assert file.read_text() == KERNEL


def test_what_was_there_stays_where_the_disk_is_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    saved = tmp_path / "saved.json"
    saved.write_text("before")
    saved.chmod(0o640)

    def full(*args: Any, **kwargs: Any) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", full)
        with pytest.raises(TilewrightError, match="cannot be written: No space left on device"):
            outputs.write_output(saved, "after")
    assert saved.read_text() == "before" and os.listdir(tmp_path) == ["saved.json"]
    outputs.write_output(saved, "after")
    assert saved.read_text() == "after" and saved.stat().st_mode & 0o777 == 0o640
    link = tmp_path / "link.json"
    link.symlink_to(saved)
    outputs.write_output(link, "by the link")
    assert link.is_symlink() and saved.read_text() == "by the link"
    outputs.write_output(Path(os.devnull), "nothing")
    assert Path(os.devnull).is_char_device() and sorted(os.listdir(tmp_path)) == ["link.json", "saved.json"]
