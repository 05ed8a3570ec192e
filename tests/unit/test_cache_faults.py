"""What happens to the disk cache around it: a full disk, wrong clocks, another version, a home that cannot be written."""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tilewright as triton
import tilewright.language as tl
from tilewright.artifact import Options
from tilewright.diagnostics import ToolchainError
from tilewright.runtime import cache
from tilewright.runtime.building import folders, store, translations
from tilewright.runtime.building.nvrtc import Cubin
from tilewright.runtime.cpu import build
from tilewright.schedule.targets import find_target

from unit.test_launching import artifact

KEY = "ab" * 20
RECIPE = build.Recipe("kernel.run", "first.h", ())
TARGET = find_target("sm_90a")
CONTENT = {"kernel.cu": b"text", "kernel.cubin": b"code" * 1000}


class FullDisk:
    """The calls through which the store writes; the one with number `at`, and all behind it, find no space."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, at: int) -> None:
        self.left, self.failed = at, 0
        for owner, name in ((os, "mkdir"), (tempfile, "mkdtemp"), (os, "rename"), (Path, "open"), (os, "open")):
            monkeypatch.setattr(owner, name, self.wrapped(getattr(owner, name)))

    def wrapped(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            writes = original.__name__ != "open" or any(mode in args for mode in ("xb", "wb", "w"))
            self.left -= writes
            if writes and self.left < 0:
                self.failed += 1
                if original.__name__ == "open":  # the file is there, without all that was to be in it
                    original(*args, **kwargs).close()
                raise OSError(errno.ENOSPC, "No space left on device")
            return original(*args, **kwargs)

        return call


@pytest.mark.parametrize("at", range(9))
def test_a_full_disk_leaves_no_half_entry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: int) -> None:
    root = tmp_path / "gpu"
    with monkeypatch.context() as patch:
        disk = FullDisk(patch, at)
        try:
            store.write(root, KEY, {"size": 1}, CONTENT)
        except OSError as error:
            assert error.errno == errno.ENOSPC and disk.failed
        else:
            assert not disk.failed
        whole = store.read(root, KEY)
    assert whole == (None if disk.failed else ({"size": 1}, CONTENT))
    store.write(root, KEY, {"size": 1}, CONTENT)  # there is space again
    assert store.read(root, KEY) == ({"size": 1}, CONTENT)
    assert not list(root.glob(f"{store.UNFINISHED}*"))


def test_some_of_these_calls_failed_and_some_did_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        disk = FullDisk(patch, 100)
        store.write(tmp_path / "gpu", KEY, {"size": 1}, CONTENT)
    assert 3 < 100 - disk.left < 9


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork and limits of processes")
def test_a_file_that_ends_in_the_middle_is_no_entry(tmp_path: Path) -> None:
    import resource

    child = os.fork()
    if child == 0:
        resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))
        try:
            store.write(tmp_path, KEY, {"size": 1}, CONTENT)
        except OSError as error:
            os._exit(0 if error.errno == errno.EFBIG else 1)
        os._exit(2)
    assert os.waitpid(child, 0)[1] == 0
    assert store.read(tmp_path, KEY) is None and not store.entries(tmp_path)


@triton.jit
def tripled(x_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(x_ptr + i, tl.load(x_ptr + i) * 3)


def test_kernels_are_translated_and_compiled_on_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(cache, "version", lambda: (13, 1))
    monkeypatch.setattr(cache, "compile_text", lambda one, target: Cubin(b"code", 10, 0, 0, ""))
    for at in range(1, 8):
        with monkeypatch.context() as patch, warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            FullDisk(patch, at)
            assert cache.compiled(artifact(source=f"text {at}")).code == b"code"
            kernel = triton.JITFunction(tripled.fn)
            call = kernel.call_of((np.ones(8, np.float32), 8), {})
            made, is_new = translations.translated(kernel, call.arguments, Options(), TARGET)
            assert "* 3.0f" in made.source and is_new
        assert any(
            "the cache cannot be written (" in str(one.message) and "No space left" in str(one.message) for one in said
        )


def as_nothing(file: Path) -> None:
    file.unlink()
    file.symlink_to(file.parent / "nothing")


def as_folder(file: Path) -> None:
    file.unlink()
    file.mkdir()


def as_file(folder: Path) -> None:
    shutil.rmtree(folder)
    folder.write_text("in the way")


DAMAGES: dict[str, Callable[[Path], Any]] = {
    "a part is left": lambda file: file.write_bytes(b"code"),
    "it is empty": lambda file: file.write_bytes(b""),
    "it is altered": lambda file: file.write_bytes(b"edoc" * 100),
    "a link to nothing": as_nothing,
    "a folder in its place": as_folder,
    "its folder is a file": lambda file: as_file(file.parent),
    "that one's folder, too": lambda file: as_file(file.parent.parent),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_what_the_cpu_run_has_built_is_built_anew_when_it_is_damaged(
    damage: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A library of which a part is missing would end the process when it is loaded, every time."""
    monkeypatch.setenv("TILEWRIGHT_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(build, "_compiled", lambda text, options, ahead: b"code" * 100)
    monkeypatch.setattr(build, "_precompiled", lambda recipe: tmp_path)
    built = build._build("text", RECIPE)
    DAMAGES[damage](built)
    assert build._build("text", RECIPE) == built
    assert built.read_bytes() == b"code" * 100 and os.access(built, os.X_OK)


def test_the_cpu_run_builds_elsewhere_on_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(build, "_compiled", lambda text, options, ahead: b"code")
    monkeypatch.setattr(build, "_precompiled", lambda recipe: tmp_path)
    writes, full = store.write, [tmp_path / "cache"]

    def write(root: Path, *args: Any, **kwargs: Any) -> None:
        if any(root.is_relative_to(folder) for folder in full):
            raise OSError(errno.ENOSPC, "No space left on device")
        writes(root, *args, **kwargs)

    monkeypatch.setattr(store, "write", write)
    with pytest.warns(UserWarning, match="cannot be used as a cache"):
        assert build._build("text", RECIPE).read_bytes() == b"code"
    full.append(tmp_path)
    with pytest.raises(ToolchainError, match="No space left"):
        build._build("text", RECIPE)


def test_a_precompiled_header_that_is_damaged_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ahead, compiler = tmp_path / "ahead", tmp_path / "compiler"
    ahead.mkdir()
    compiler.write_text(
        f'#!/bin/sh\ncase "$*" in *{ahead}*) echo "cannot read PCH file" >&2; exit 1;; esac\ncp kernel.cu built\n'
    )
    compiler.chmod(0o700)
    monkeypatch.setattr(build, "compiler", lambda: str(compiler))
    assert build._compiled("text", (), ahead) == b"text" and not ahead.exists()


def test_entries_of_a_wrong_clock_go_first(tmp_path: Path) -> None:
    """One that is dated in the future would otherwise stay for ever, and what was just written would go in its place."""
    keys = [f"{number:02x}" + "cd" * 19 for number in range(5)]
    for number, key in enumerate(keys):
        store.write(tmp_path, key, {}, CONTENT)
        when = time.time() + (number - 2) * 1e8  # two in the past, one now, two in the future
        os.utime(store.place(tmp_path, key) / store.FACTS, (when, when))
    (size, *_) = {entry.size for entry in store.entries(tmp_path)}
    assert store.shrink(tmp_path, size * 4) == 2
    assert {entry.key for entry in store.entries(tmp_path)} == {keys[0], keys[1], keys[2]}
    assert store.read(tmp_path, keys[0]) is not None and store.entries(tmp_path)[0].key == keys[0]  # used now
    unfinished = tmp_path / f"{store.UNFINISHED}killed"
    unfinished.mkdir()
    os.utime(unfinished, (time.time() + 1e8,) * 2)
    assert store.shrink(tmp_path, size * 4) == 0 and not unfinished.exists()


def test_two_versions_share_a_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(cache, "version", lambda: (13, 1))
    compiled: list[str] = []

    def compile_text(one: Any, target: str) -> Cubin:
        compiled.append(cache.VERSION)
        return Cubin(cache.VERSION.encode(), 10, 0, 0, "")

    monkeypatch.setattr(cache, "compile_text", compile_text)
    kernel = triton.JITFunction(tripled.fn)
    call = kernel.call_of((np.ones(8, np.float32), 8), {})
    new = []
    for version in ("1.0", "2.0", "1.0", "2.0"):
        monkeypatch.setattr(cache, "VERSION", version)
        monkeypatch.setattr(translations, "VERSION", version)
        assert cache.compiled(artifact(source="text")).code == version.encode()
        new.append(translations.translated(kernel, call.arguments, Options(), TARGET)[1])
    assert compiled == ["1.0", "2.0"] and new == [True, True, False, False]


def test_entries_of_another_form_are_misses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A version that keeps other facts under the same key, as a development checkout may."""
    monkeypatch.setenv("TILEWRIGHT_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(cache, "version", lambda: (13, 1))
    monkeypatch.setattr(cache, "compile_text", lambda one, target: Cubin(b"code", 10, 0, 0, ""))
    cache.compiled(artifact(source="text"))
    (entry,) = store.entries(cache.root())
    for facts in ({}, {"registers": 1, "unheard_of": 2}):
        store.remove(cache.root(), entry.folder)
        store.write(cache.root(), entry.key, facts, CONTENT)
        assert cache.compiled(artifact(source="text")).code == b"code"


@pytest.mark.parametrize("existing", (True, False))
def test_a_home_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, existing: bool) -> None:
    home, spare = tmp_path / "home", tmp_path / "tmp"
    (home / ".cache" / "tilewright" if existing else home).mkdir(parents=True)
    spare.mkdir()
    for name in ("TILEWRIGHT_CACHE_DIR", "TRITON_CACHE_DIR", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("USERPROFILE", str(home))
    monkeypatch.setattr(tempfile, "tempdir", str(spare))
    makes, may = os.mkdir, os.access

    def mkdir(path: Any, *args: Any, **kwargs: Any) -> None:
        if str(path).startswith(str(home)) and not Path(path).exists():
            raise OSError(errno.EROFS, "Read-only file system")
        makes(path, *args, **kwargs)

    monkeypatch.setattr(os, "mkdir", mkdir)
    monkeypatch.setattr(os, "access", lambda path, mode: not str(path).startswith(str(home)) and may(path, mode))
    folder = folders.cache_folder()
    assert spare in folder.parents and folders.is_private(folder)
    monkeypatch.setenv("TILEWRIGHT_MODE", "interpret")
    x = np.ones(8, np.float32)
    tripled[(1,)](x, BLOCK=8)
    assert (x == 3).all()


@triton.jit
def stores_value(x_ptr, VALUE: tl.constexpr):
    tl.store(x_ptr, VALUE)


def test_a_process_goes_on_when_the_cache_is_emptied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("TILEWRIGHT_MODE", "cpu")
    x = np.zeros(1, np.float32)
    for value, empty in enumerate((cache.clear, lambda: shutil.rmtree(tmp_path / "cache"), cache.clear)):
        stores_value[(1,)](x, value)
        assert x[0] == value
        empty()
        assert not any((tmp_path / "cache").rglob("*.so"))


def test_what_is_being_written_stays_when_the_cache_is_emptied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_CACHE_DIR", str(tmp_path))
    for name in (".new-now", ".new-killed", "done"):
        (tmp_path / "cpu" / name).mkdir(parents=True)
        (tmp_path / "cpu" / name / "kernel.cu").write_text("text")
    long_ago = time.time() - 2 * store.STALE_SECONDS
    os.utime(tmp_path / "cpu" / ".new-killed", (long_ago, long_ago))
    assert cache.clear() == (1, 4)
    assert [path.name for path in (tmp_path / "cpu").iterdir()] == [".new-now"]
    (tmp_path / "cpu" / ".new-now" / "kernel.cu").unlink()
    (tmp_path / "cpu" / ".new-now").rmdir()
    assert cache.clear() == (0, 0)
    assert not (tmp_path / "cpu").exists()
