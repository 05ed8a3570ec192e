"""Other systems and other packages in the process: Windows, macOS, Triton. Simulated where they are not at hand."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import types
from pathlib import Path

import numpy as np
import pytest
import tilewright as triton
import tilewright.language as tl
from tilewright.diagnostics import ToolchainError
from tilewright.runtime import cache
from tilewright.runtime.building import file_lock, folders, store
from tilewright.runtime.building.nvrtc import Cubin
from tilewright.runtime.cpu import build

from unit.test_launching import artifact

ROOT = Path(__file__).resolve().parent.parent.parent
PARTS = ("translator", "runtime", "templates", "tests", "samples", "benchmarks", "docs")
DEVICES = {"con", "prn", "aux", "nul", *(f"{kind}{number}" for kind in ("com", "lpt") for number in range(10))}
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
    monkeypatch.setattr(cache, "compile_text", lambda one, target: Cubin(b"code", 1, 0, 0, ""))
    cache.compiled(artifact(kernel_name="aux"))  # Windows has no file of that name, whatever it ends in
    (kernel,) = cache.listed()
    assert cache.location(kernel).read_text(encoding="utf-8") == artifact().source
    for path in tmp_path.rglob("*"):
        assert path.name.partition(".")[0].lower() not in DEVICES and ":" not in path.name


def test_a_user_without_a_home_has_a_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("TILEWRIGHT_CACHE_DIR", "TRITON_CACHE_DIR", "XDG_CACHE_HOME"):
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


def test_no_two_files_differ_in_case_alone() -> None:
    """Nor are there names that Windows keeps for devices, or paths that it finds too long."""
    listed = [path.relative_to(ROOT).as_posix() for part in PARTS for path in (ROOT / part).rglob("*.[a-z]*")]
    names = [name for name in listed if "__pycache__" not in name]
    assert len(names) > 300 and len({name.casefold() for name in names}) == len(names)
    for name in names:
        assert not {part.partition(".")[0].lower() for part in name.split("/")} & DEVICES, name
        assert len(name) < 120 and not set('<>:"|?*\\') & set(name) and not name.endswith((".", " ")), name


def test_names_in_the_cache_have_one_case(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What would be the same file on Windows and macOS is never two entries."""
    monkeypatch.setenv("TILEWRIGHT_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("TILEWRIGHT_MODE", "cpu")
    tuned = triton.autotune([triton.Config({}, num_warps=warps) for warps in (1, 2)], key=[])(doubled)
    tuned[(1,)](np.ones(8, np.float32), BLOCK=8)
    paths = [path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*")]
    assert any(path.startswith("tuned/") for path in paths)
    assert all(len(path) < 120 for path in paths) and len({path.casefold() for path in paths}) == len(paths)


def test_a_file_that_is_being_read_is_replaced_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Windows refuses it at first; one that stays open is given up, and nothing is left lying about."""
    refused, replace = [3], os.replace

    def windows(source: str, target: Path) -> None:
        if refused[0]:
            refused[0] -= 1
            raise PermissionError(13, "The process cannot access the file because it is being used by another process")
        replace(source, target)

    monkeypatch.setattr(store.os, "replace", windows)
    monkeypatch.setattr(store, "BRIEFLY", 0.0)
    store.write_file(tmp_path / "file", b"content")
    assert (tmp_path / "file").read_bytes() == b"content"
    refused[0] = 10**9
    with pytest.raises(PermissionError):
        store.write_file(tmp_path / "file", b"other")
    assert [path.name for path in tmp_path.iterdir()] == ["file"] and (tmp_path / "file").read_bytes() == b"content"


KERNEL = """
import numpy as np
import tilewright as triton
import tilewright.language as tl


@triton.jit
def grösse(x_ptr, n, BLOCK: tl.constexpr):
    # Maße in µm, größer als null: 你好
    i = tl.arange(0, BLOCK)
    tl.store(x_ptr + i, tl.load(x_ptr + i, mask=i < n) * 2, mask=i < n)


if __name__ == "__main__":
    x = np.ones(8, np.float32)
    grösse[(1,)](x, 5, BLOCK=8)
    print(x.tolist())
"""
# What a process on Windows does not have. (That it is Windows cannot be told to Python's own library.)
WITHOUT_UNIX = """
import os, subprocess, sys, tempfile
for name in ("fork", "register_at_fork", "getuid", "sched_getaffinity", "fchmod", "mkfifo", "O_CLOEXEC"):
    if hasattr(os, name):
        delattr(os, name)
for name in ("fcntl", "pwd", "grp", "resource", "termios"):
    sys.modules[name] = None
"""


@pytest.mark.parametrize("newline", ("\n", "\r\n"))
def test_paths_and_consoles_of_windows(newline: str, tmp_path: Path) -> None:
    """A folder with spaces and letters of its own, lines that end in CR LF, a console of one code page, no Unix calls."""
    folder = tmp_path / "Größe (neu) für A&B"
    folder.mkdir()
    file = folder / "kérnel.py"
    file.write_text(KERNEL, encoding="utf-8", newline=newline)
    environment = {
        **os.environ, "TILEWRIGHT_CACHE_DIR": str(folder / "Zwischen speicher"), "TILEWRIGHT_MODE": "interpret",
        "PYTHONIOENCODING": "cp1252", "PYTHONPATH": str(tmp_path), "PYTHONUTF8": "0",
    }  # fmt: skip
    (tmp_path / "sitecustomize.py").write_text(WITHOUT_UNIX, encoding="utf-8")
    spec, signature = f"{file}:grösse", "*fp32:16, i32, 64"
    command = [sys.executable, "-m", "tilewright"]

    def run(*arguments: str) -> str:
        done = subprocess.run(arguments, env=environment, capture_output=True, cwd=folder, check=False)
        assert done.returncode == 0, done.stderr.decode("cp1252")
        return done.stdout.decode("cp1252")

    run(sys.executable, "-c", "import os; assert not hasattr(os, 'fork') and not hasattr(os, 'getuid')")
    assert run(sys.executable, str(file)).strip() == "[2.0, 2.0, 2.0, 2.0, 2.0, 1.0, 1.0, 1.0]"
    printed = run(*command, "translate", spec, "--signature", signature)
    assert "Maße in µm" in printed and "\\u4f60" in printed  # what the code page lacks is escaped
    run(*command, "translate", spec, "--signature", signature, "-o", "aus gabe.cu")
    text = (folder / "aus gabe.cu").read_bytes()
    assert b"\r" not in text and "你好" in text.decode("utf-8") and "kérnel.py" in text.decode("utf-8")
    assert "L10:" in text.decode("utf-8")  # lines are counted once, whatever they end in
    run(*command, "explain", spec, "--signature", signature, "--after", "schedule")
    run(*command, "cache", "list")


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


@pytest.mark.parametrize("prefix", ["TRITON_", "TILEWRIGHT_"])
def test_variables_are_documented(prefix: str) -> None:
    """The tables of the README have every variable of the environment that we read, and no other."""
    words = {
        word
        for path in CODE
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
        for word in re.findall(rf"\b{prefix}[A-Z0-9_]*[A-Z0-9]\b", node.value)
    } - {"TRITON_MAX_TENSOR_NUMEL"}  # a constant of the language
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert words and words == set(re.findall(rf"^\| `({prefix}\w+)` \|", readme, re.M))
    assert words == {word for word in re.findall(r"\w+", readme) if word.startswith(prefix)}
