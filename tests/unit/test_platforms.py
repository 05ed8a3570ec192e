"""Other systems and other packages in the process: Windows, macOS, Triton. Simulated where they are not at hand."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
import types
from pathlib import Path

import numpy as np
import pytest
import tilewright as triton
import tilewright.language as tl
from tilewright.diagnostics import ToolchainError
from tilewright.runtime import cache, file_lock, folders, store
from tilewright.runtime.cpu import build
from tilewright.runtime.nvrtc import Cubin

from unit.test_launching import artifact

ROOT = Path(__file__).resolve().parent.parent.parent
CODE = sorted(path for part in ("translator", "runtime") for path in (ROOT / part).rglob("*.py"))


class Msvcrt(types.ModuleType):
    """Windows's locks on parts of files, as far as one process sees them: a second handle is refused."""

    LK_NBLCK, LK_UNLCK = 2, 0

    def __init__(self) -> None:
        super().__init__("msvcrt")
        self.held: set[int] = set()

    def locking(self, handle: int, how: int, size: int) -> None:
        inode = os.fstat(handle).st_ino
        if how == self.LK_UNLCK:
            self.held.remove(inode)
        elif inode in self.held:
            raise PermissionError(13, "Permission denied")
        else:
            self.held.add(inode)


def test_locks_of_windows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    windows = Msvcrt()
    monkeypatch.setattr(file_lock.sys, "platform", "win32")
    monkeypatch.setitem(sys.modules, "msvcrt", windows)
    with file_lock.locked(tmp_path / "lock", 1.0) as got:
        assert got and len(windows.held) == 1
        with file_lock.locked(tmp_path / "lock", 0.01) as second:
            assert not second
        assert len(windows.held) == 1  # who did not get it does not give it back
    assert not windows.held
    with store.sole_maker(tmp_path, "abcdef"):
        assert len(windows.held) == 1


def test_systems_without_locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fcntl", None)
    with file_lock.locked(tmp_path / "lock", 1.0) as first, file_lock.locked(tmp_path / "lock", 1.0) as second:
        assert first and second


@pytest.mark.parametrize("platform", ("win32", "darwin"))
def test_only_the_interpreter_launches_there(platform: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build.sys, "platform", platform)
    monkeypatch.delenv("TILEWRIGHT_MODE", raising=False)
    build.compiler.cache_clear()
    try:
        with pytest.raises(ToolchainError, match=f"needs Linux, and this is {platform}; set TILEWRIGHT_MODE=interpret"):
            build.compiler()
        x = np.ones(8, np.float32)
        assert doubled[(1,)](x, BLOCK=8) is None and (x == 2).all()  # the interpreter compiles nothing
    finally:
        build.compiler.cache_clear()


@triton.jit
def doubled(x_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(x_ptr + i, tl.load(x_ptr + i) * 2)


def test_names_in_the_cache_suit_every_system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(cache, "version", lambda: (13, 1))
    monkeypatch.setattr(cache, "compile_text", lambda one, target, maxnreg: Cubin(b"code", 1, 0, 0, ""))
    cache.compiled(artifact(kernel_name="aux"))  # Windows has no file of that name, whatever it ends in
    (kernel,) = cache.listed()
    assert cache.location(kernel).read_text(encoding="utf-8") == artifact().source
    for path in tmp_path.rglob("*"):
        assert path.name.partition(".")[0].lower() not in ("con", "aux", "prn", "nul") and ":" not in path.name


def test_a_user_without_a_home_has_a_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("TILEWRIGHT_CACHE_DIR", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(folders.os.path, "expanduser", lambda path: path)
    assert folders.cache_folder().is_absolute()


@pytest.mark.parametrize("path", CODE, ids=lambda path: str(path.relative_to(ROOT)))
def test_the_code_is_for_every_system(path: Path) -> None:
    """Text has its encoding named; modules that only some systems have are imported where they are used."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, (ast.Attribute, ast.Name)):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else node.func.id
            given = {keyword.arg for keyword in node.keywords}
            values = [argument.value for argument in node.args if isinstance(argument, ast.Constant)]
            text = [value for value in values if isinstance(value, str)]
            binary = any("b" in value for value in text)
            if name in ("read_text", "write_text") or (name in ("open", "fdopen") and text and not binary):
                assert "encoding" in given, f"{path}:{node.lineno}: {name} without an encoding"
            assert name not in ("fork", "sched_getaffinity", "mkfifo"), f"{path}:{node.lineno}: {name} is Unix's"
            if name == "run" and "capture_output" in given:
                assert "text" not in given, f"{path}:{node.lineno}: the encoding of a program's words is not named"
    for node in tree.body:
        modules = [alias.name for alias in node.names] if isinstance(node, (ast.Import, ast.ImportFrom)) else []
        assert not {"fcntl", "msvcrt", "resource", "pwd", "grp", "termios"} & set(modules), f"{path}:{node.lineno}"


def test_triton_is_neither_imported_nor_touched() -> None:
    code = """
import sys, types
fake = sys.modules["triton"] = types.ModuleType("triton")
fake.language = sys.modules["triton.language"] = types.ModuleType("triton.language")
before = dict(vars(fake)), dict(vars(fake.language))
import numpy as np, tilewright, tilewright.testing
from tilewright.runtime.demo import softmax_kernel
x = np.ones((2, 5), np.float32)
softmax_kernel[(2,)](x, x, 5, 5, BLOCK_SIZE=8)
softmax_kernel.translate("*fp32, *fp32, i32, i32, 8")
assert abs(x - 0.2).max() < 1e-6 and sys.modules["triton"] is fake
assert (dict(vars(fake)), dict(vars(fake.language))) == before
del sys.modules["triton"], sys.modules["triton.language"]
sys.modules["triton"] = None  # importing it fails from now on
softmax_kernel[(2,)](x, x, 5, 5, BLOCK_SIZE=16)
"""
    environment = {**os.environ, "TILEWRIGHT_MODE": "interpret"}
    subprocess.run([sys.executable, "-c", code], check=True, env=environment)


def test_triton_s_variables_are_documented() -> None:
    """The README names every variable of Triton's that we read, and no other."""
    words = {
        node.value
        for path in CODE
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.startswith("TRITON_")
    } - {"TRITON_MAX_TENSOR_NUMEL"}  # a constant of the language
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert words and words == {
        word for word in readme.replace("`", " ").replace("=", " ").split() if word.startswith("TRITON_")
    }
