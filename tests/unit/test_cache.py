"""The disk cache: whole entries whatever happens, one maker, a bound, private, and readable by people."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import signal
import stat
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import tilewright as triton
import tilewright.language as tl
from tilewright.cli import main
from tilewright.diagnostics import TilewrightError
from tilewright.runtime import cache
from tilewright.runtime.building import folders, store
from tilewright.runtime.building.nvrtc import Cubin
from tilewright.runtime.cpu import build
from tilewright.runtime.cpu.build import IN_USE_SECONDS, build_library
from tilewright.runtime.log import reason

from unit.test_launching import artifact

posix = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")


def started(work: Callable[[], None]) -> int:
    """A forked process that does some work."""
    child = os.fork()
    if child == 0:
        try:
            work()
            os._exit(0)
        except BaseException as error:
            os.write(2, f"{error!r}\n".encode())
            os._exit(1)
    return child


def keys() -> list[str]:
    return [f"{number:02x}" + "ab" * 20 for number in range(6)]


def content(key: str, size: int) -> dict[str, bytes]:
    return {"kernel.cubin": key.encode() * size, "kernel.cu": b"text of " + key.encode()}


def check_all(root: Path) -> int:
    """Every entry that can be read is a whole one; how many there are."""
    found = 0
    for key in keys():
        entry = store.read(root, key)
        if entry is not None:
            facts, files = entry
            assert files == content(key, facts["size"])
            found += 1
    return found


@posix
def test_nothing_is_lost_when_processes_are_killed(tmp_path: Path) -> None:
    root = tmp_path / "gpu"

    def work(seed: int) -> Callable[[], None]:
        def loop() -> None:
            rng = random.Random(seed)
            while True:
                key, size = rng.choice(keys()), rng.randint(1, 20_000)
                with store.sole_maker(root, key):
                    store.write(root, key, {"size": size}, content(key, size))
                check_all(root)
                if rng.random() < 0.2:
                    store.shrink(root, 800_000)
                if rng.random() < 0.1:
                    with contextlib.suppress(OSError):  # another process may have taken it away
                        (store.place(root, key) / "kernel.cubin").write_bytes(b"damaged")

        return loop

    rng = random.Random(1)
    for _ in range(3):
        children = [started(work(rng.randint(0, 1 << 30))) for _ in range(12)]
        for child in children:
            time.sleep(rng.random() * 0.1)
            os.kill(child, signal.SIGKILL)
        for child in children:
            _, status = os.waitpid(child, 0)
            assert os.WIFSIGNALED(status), "a process failed before it was killed"
        check_all(root)
    for key in keys():
        store.write(root, key, {"size": 3}, content(key, 3))
    assert check_all(root) == len(keys())
    for folder in root.glob(f"{store.UNFINISHED}*"):
        os.utime(folder, (0, 0))
    store.shrink(root, 1 << 30)
    assert not list(root.glob(f"{store.UNFINISHED}*")) and len(store.entries(root)) == len(keys())


@posix
def test_processes_do_not_compile_the_same_kernel_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(cache, "version", lambda: (13, 1))
    record = tmp_path / "compiled"

    def compile_text(one: object, target: str) -> Cubin:
        is_killed = not record.exists()  # the first one is still at it then, however long the others take to start
        with record.open("a") as file:
            file.write(f"{os.getpid()}\n")
        time.sleep(60 if is_killed else 0.3)
        return Cubin(b"code", 10, 0, 0, "")

    monkeypatch.setattr(cache, "compile_text", compile_text)

    def work() -> None:
        if cache.compiled(artifact()).code != b"code":
            raise ValueError("other code")

    first = started(work)
    until = time.monotonic() + 60
    while not record.exists() and time.monotonic() < until:
        time.sleep(0.01)
    children = [started(work) for _ in range(10)]
    os.kill(first, signal.SIGKILL)  # while it compiles and the others wait
    assert all(os.waitpid(child, 0)[1] == 0 for child in children)
    os.waitpid(first, 0)
    assert len(record.read_text().split()) == 2


def test_what_was_not_used_for_longest_goes(tmp_path: Path) -> None:
    for number, key in enumerate(keys()):
        store.write(tmp_path, key, {"size": 1000}, content(key, 1000))
        os.utime(store.place(tmp_path, key) / store.FACTS, (number, number))
    assert store.read(tmp_path, keys()[0]) is not None  # used now
    (one, *_) = store.entries(tmp_path)
    assert one.key == keys()[0] and one.size > 42_000
    assert store.shrink(tmp_path, one.size * 6) == 0 and store.shrink(tmp_path, one.size * 5) == 2
    assert [entry.key for entry in store.entries(tmp_path)] == [keys()[0], *reversed(keys()[3:])]


def test_folders_may_go_while_somebody_looks_at_them(tmp_path: Path) -> None:
    """As when another process clears the cache: what is left is found, and nothing is an error."""
    ended = threading.Event()

    def clear_and_fill() -> None:
        while not ended.is_set():
            for key in keys():
                (store.place(tmp_path, key)).mkdir(parents=True, exist_ok=True)
            for folder in tmp_path.iterdir():
                shutil.rmtree(folder)

    thread = threading.Thread(target=clear_and_fill)
    thread.start()
    try:
        for _ in range(1000):
            store.shrink(tmp_path, 0)
            assert store.kept(tmp_path) == (0, 0) and store.remove_all(tmp_path / "none") == (0, 0)
    finally:
        ended.set()
        thread.join()


def test_what_the_cpu_run_built_is_bounded_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("TILEWRIGHT_MODE", "cpu")
    folder = tmp_path / "cpu"
    for age, key in enumerate(keys()[:4], 1):  # a megabyte each; the last was used an hour before the first
        store.write(folder, key, {}, {"kernel.so": bytes(1 << 20)})
        os.utime(store.place(folder, key) / store.FACTS, (time.time() - age * 1000,) * 2)
    (folder / f"{store.UNFINISHED}killed").mkdir()
    os.utime(folder / f"{store.UNFINISHED}killed", (0, 0))
    monkeypatch.setenv("TILEWRIGHT_CACHE_MB", "3")
    monkeypatch.setattr(build, "_precompile", lambda recipe, header: None)
    x = np.ones(8, np.float32)
    doubled[(1,)](x, 8, BLOCK=8)
    assert (x == 2).all()
    own, *others = store.entries(folder)  # what was just built comes first
    assert [entry.key for entry in others] == keys()[:2] and not list(folder.glob(f"{store.UNFINISHED}*"))
    os.utime(own.folder / store.FACTS, (0, 0))
    built = build_library(doubled.warmup(x, 8, BLOCK=8).artifact)
    assert built.parent == own.folder and time.time() - store.entries(folder)[0].used < 100  # using it counts
    assert store.shrink(folder, 0, IN_USE_SECONDS) == 2 and [one.key for one in store.entries(folder)] == [own.key]


def test_changed_facts_are_no_entry(tmp_path: Path) -> None:
    key = keys()[0]
    store.write(tmp_path, key, {"size": 1}, content(key, 1))
    facts = store.place(tmp_path, key) / store.FACTS
    facts.write_text(facts.read_text().replace('"size": 1', '"size": 2'))
    assert store.read(tmp_path, key) is None
    store.write(tmp_path, key, {"size": 3}, content(key, 3))
    assert store.read(tmp_path, key) == ({"size": 3}, content(key, 3))


@posix
def test_the_cache_is_private(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o777)
    monkeypatch.setenv("TILEWRIGHT_CACHE_DIR", str(shared))
    folder = folders.cache_folder()
    assert folder == shared / f"tilewright-{os.getuid()}" and stat.S_IMODE(folder.stat().st_mode) == 0o700
    folder.chmod(0o770)
    assert shared not in folders.cache_folder().parents
    store.write(tmp_path / "new" / "gpu", keys()[0], {}, content(keys()[0], 1))
    below = [tmp_path / "new" / "gpu", *(path for path in (tmp_path / "new").rglob("*") if path.is_dir())]
    assert len(below) == 4 and all(stat.S_IMODE(path.stat().st_mode) == 0o700 for path in below)


def test_people_can_look_into_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TILEWRIGHT_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(cache, "version", lambda: (13, 1))
    monkeypatch.setattr(cache, "compile_text", lambda one, target: Cubin(b"code", 42, 0, 16, "the log"))
    monkeypatch.setenv("TILEWRIGHT_LOG", "compile")
    cache.compiled(artifact(source="one"))
    cache.compiled(artifact(source="one", compiler_flags=("--fmad=false",)))
    cache.compiled(artifact(source="one"))
    lines = capsys.readouterr().err.splitlines()
    assert "not in the cache: nothing like it is known" in lines[0] and "compiled in" in lines[0]
    assert lines[1].endswith("not in the cache: flags is --fmad=false, the nearest known has none")
    assert "machine code from the cache" in lines[2]
    assert main(["cache", "list"]) == 0
    listed = capsys.readouterr().out.splitlines()
    assert len(listed) == 3 and listed[0].endswith("sm_90a   fabricated") and listed[2].startswith("2 kernels")
    assert main(["cache", "show", listed[0].split()[0]]) == 0
    shown = dict(
        line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines() if not line.startswith(("s", "sp"))
    )
    assert shown["registers"] == "42" and Path(shown["file"]).read_text() == "one" and shown["NVRTC"] == "13.1"
    store.write(cache.root(), keys()[0], {"key": {"name": "of another version"}}, content(keys()[0], 1))
    cache.compiled(artifact(source="one", target="sm_80"))
    assert "the nearest known has sm_90a" in capsys.readouterr().err
    assert main(["cache", "show", ""]) == 1 and "3 kernels have a key" in capsys.readouterr().err
    assert main(["cache", "clear"]) == 0 and capsys.readouterr().out.startswith("12 files")
    assert main(["cache", "list"]) == 0 and capsys.readouterr().out.startswith("0 kernels")
    monkeypatch.setenv("TILEWRIGHT_CACHE_MB", "much")
    with pytest.raises(TilewrightError, match="TILEWRIGHT_CACHE_MB is 'much'"):
        folders.bound_bytes()


def test_all_that_is_kept_is_listed_and_cleared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TILEWRIGHT_CACHE_DIR", str(tmp_path))
    ahead = tmp_path / "headers-0123"
    for folder, size in ((tmp_path / "cpu" / "aa" / "bb", 20), (ahead, 300), (ahead / f"{store.UNFINISHED}killed", 4)):
        folder.mkdir(parents=True)
        (folder / "all_words.h.gch").write_bytes(bytes(size))
    assert main(["cache", "list"]) == 0
    listed = capsys.readouterr().out
    assert "1 file, 20 bytes: programs of the CPU run" in listed and "1 file, 300 bytes: precompiled headers" in listed
    with store.sole_maker(ahead, "header"):  # as the process that makes it does
        assert main(["cache", "clear"]) == 0 and f"320 bytes removed from {tmp_path}" in capsys.readouterr().out
        assert [file.name for file in ahead.iterdir()] == [f"{store.UNFINISHED}killed"]
    assert main(["cache", "clear"]) == 0 and not ahead.exists()


def test_precompiled_headers_are_bounded_with_what_they_built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("TILEWRIGHT_CACHE_MB", "1")
    monkeypatch.setattr(build, "_compiled", lambda text, options, ahead: b"built")
    monkeypatch.setattr(build, "_precompile", lambda recipe, header: header.write_bytes(bytes(600_000)))
    old, killed = tmp_path / "headers-old", tmp_path / "headers-killed" / f"{store.UNFINISHED}killed"
    old.mkdir()
    killed.mkdir(parents=True)
    (old / "all_words.h.gch").write_bytes(bytes(600_000))
    os.utime(old / "all_words.h.gch", (0, 0))
    build._build("text", build.Recipe("kernel.so", build.RUN_HEADER, build.FLAGS))
    assert not old.exists() and not killed.exists()
    (kept,) = [folder for folder in build.header_folders() if store.kept(folder)[0]]
    assert store.kept(kept) == (1, 600_000) and len(store.entries(tmp_path / "cpu")) == 1


def test_a_cache_that_nobody_named_is_not_emptied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    named, spare = tmp_path / "named", tmp_path / "spare"
    named.write_text("no folder")
    spare.mkdir(mode=0o700)
    monkeypatch.setenv("TILEWRIGHT_CACHE_DIR", str(named))
    monkeypatch.setattr(tempfile, "tempdir", str(spare))
    used = folders.cache_folder()
    store.write(used / "gpu", keys()[0], {}, content(keys()[0], 1))
    assert main(["cache", "list"]) == 0
    assert f"{named} cannot be used as a cache; all this lies in {used}" in capsys.readouterr().out
    assert main(["cache", "clear"]) == 1 and f"set TILEWRIGHT_CACHE_DIR={used}" in capsys.readouterr().err
    assert len(store.entries(used / "gpu")) == 1
    monkeypatch.setenv("TILEWRIGHT_CACHE_DIR", str(used))
    assert main(["cache", "clear"]) == 0 and not (used / "gpu").exists()


@triton.jit
def doubled(x_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(x_ptr + i, tl.load(x_ptr + i, mask=i < n) * 2, mask=i < n)


def test_a_translation_says_what_is_new(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("TILEWRIGHT_LOG", "other,compile")
    monkeypatch.setenv("TILEWRIGHT_MODE", "cpu")
    x = np.ones(64, np.float32)
    with pytest.warns(RuntimeWarning, match="TILEWRIGHT_LOG has the topic 'other', .* topics are compile, traceback"):
        for n, block, warps in ((8, 16, 4), (9, 16, 4), (16, 16, 4), (16, 32, 4), (16, 32, 8)):
            doubled.warmup(x, n, BLOCK=block, num_warps=warps)
    said = [line.partition("translated; ")[2] for line in capsys.readouterr().err.splitlines() if "translated" in line]
    assert said == [
        "the first of this kernel in the process",
        "n is i32:16, the nearest known has i32",
        "BLOCK is 32, the nearest known has 16",
        "num_warps is 8, the nearest known has 4",
    ]
    assert reason({"a": 1, "b": 2}, [{"a": 3, "b": 4}, {"a": 1, "b": 5}]) == "b is 2, the nearest known has 5"
