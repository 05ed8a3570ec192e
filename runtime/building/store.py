"""Folders of files on disk, found by a key: the mechanism under the cache of compiled kernels.

An entry appears whole or not at all: it is written beside its place and renamed into it, so that a process may be killed at
any moment. What is read is checked against the digests that were written with it; anything else is no entry. Entries that
were not used for longest go when the store grows past its bound.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import re
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tilewright.frozen import frozen
from tilewright.runtime.building.file_lock import locked

FACTS = "facts.json"
UNFINISHED = ".new-"
LOCKS = ".locks"
FIRST = re.compile("[0-9a-f]{2}")  # the folders that entries lie in, by the first letters of their keys
STALE_SECONDS = 3600.0  # an unfinished entry of that age belongs to a process that was killed
PATIENCE_SECONDS = 120.0  # how long to wait for another process that makes the same entry
ATTEMPTS, BRIEFLY = 20, 0.005  # the latter in seconds
OCCUPIED = (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR, errno.EACCES)  # the last is Windows's
KEPT_SHARE = 0.8  # of the bound is left after entries have gone


@frozen
class Entry:
    """One entry: its key, its folder, the bytes it takes, when it was last used (seconds since 1970)."""

    key: str
    folder: Path
    size: int
    used: float


def place(root: Path, key: str) -> Path:
    """The folder of an entry."""
    return root / key[:2] / key[2:]


def read(root: Path, key: str) -> tuple[dict[str, Any], dict[str, bytes]] | None:
    """An entry's facts and files; None when there is none, or not a whole one."""
    folder = place(root, key)
    try:
        record = json.loads((folder / FACTS).read_text(encoding="utf-8"))
        facts, digests = record["facts"], record["digests"]
        if record["digest"] != _facts_digest(facts, digests):
            return None
        files = {name: (folder / name).read_bytes() for name in digests}
        if any(hashlib.sha256(files[name]).hexdigest() != digest for name, digest in digests.items()):
            return None
        with contextlib.suppress(OSError):
            os.utime(folder / FACTS)  # used now
        return facts, files
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def _facts_digest(facts: Any, digests: Any) -> str:
    return hashlib.sha256(json.dumps([facts, digests], sort_keys=True).encode()).hexdigest()


def write(root: Path, key: str, facts: Mapping[str, Any], files: Mapping[str, bytes], executable: bool = False) -> None:
    """Puts an entry into the place of whatever is there; `executable` makes programs of its files.

    Raises:
      OSError: when the disk does not take it.
    """
    digests = {name: hashlib.sha256(content).hexdigest() for name, content in files.items()}
    record = {"facts": dict(facts), "digests": digests, "digest": _facts_digest(dict(facts), digests)}
    folder = place(root, key)
    root.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        folder.parent.mkdir(mode=0o700, exist_ok=True)
    except FileExistsError:  # and is no folder
        remove(root, folder.parent)
        folder.parent.mkdir(mode=0o700, exist_ok=True)
    made = Path(tempfile.mkdtemp(prefix=UNFINISHED, dir=root))  # readable by its owner alone
    try:
        for name, content in {**files, FACTS: json.dumps(record, indent=1).encode()}.items():
            with (made / name).open("xb") as file:
                file.write(content)
        for name in files if executable else ():
            (made / name).chmod(0o700)
        _move_into_place(made, root, key)
    finally:
        shutil.rmtree(made, ignore_errors=True)


def write_file(path: Path, content: bytes) -> None:
    """Writes a single file that others see whole or not at all.

    Raises:
      OSError: when the disk does not take it.
    """
    handle, made = tempfile.mkstemp(prefix=UNFINISHED, dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        for attempt in range(ATTEMPTS):
            try:
                os.replace(made, path)
                return
            except PermissionError:  # on Windows, while somebody reads it
                if attempt == ATTEMPTS - 1:
                    raise
                time.sleep(BRIEFLY)
    finally:
        with contextlib.suppress(OSError):  # unless it is in its place
            os.unlink(made)


def _move_into_place(made: Path, root: Path, key: str) -> None:
    """Renames; another process may put the same entry there, or take it away, at the same moment."""
    folder = place(root, key)
    for attempt in range(ATTEMPTS):
        try:
            os.rename(made, folder)
            return
        except OSError as error:
            if error.errno not in OCCUPIED or attempt == ATTEMPTS - 1:
                raise
        if read(root, key) is not None:  # as good as ours
            return
        remove(root, folder)


def remove(root: Path, folder: Path) -> None:
    """Takes an entry away, at once for every reader."""
    gone = Path(tempfile.mkdtemp(prefix=UNFINISHED, dir=root))
    with contextlib.suppress(OSError):
        os.rename(folder, gone / "entry")
    shutil.rmtree(gone, ignore_errors=True)


def remove_all(root: Path) -> tuple[int, int]:
    """Takes everything away but what is being written; how many files went, and their bytes."""
    remove_unfinished(root)
    files, size = kept(root)
    for path in _children(root):
        if path.name.startswith(UNFINISHED):
            continue
        with contextlib.suppress(OSError):
            shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
    with contextlib.suppress(OSError):  # something is left
        root.rmdir()
    return files, size


def kept(root: Path) -> tuple[int, int]:
    """How many files lie below a folder, and their bytes, but for locks and what is being written."""
    files = size = 0
    for path in _children(root):
        if path.name == LOCKS or path.name.startswith(UNFINISHED) or path.is_symlink():
            continue
        below = [Path(folder, name) for folder, _, names in os.walk(path) for name in names]
        for file in below or [path]:
            with contextlib.suppress(OSError):
                if file.is_file():
                    files, size = files + 1, size + file.stat().st_size
    return files, size


def _children(folder: Path) -> list[Path]:
    """What lies in a folder; nothing where there is none, also where another process takes it away at this moment."""
    try:
        return list(folder.iterdir())
    except OSError:
        return []


def entries(root: Path) -> list[Entry]:
    """All entries, the one used last first."""
    found = []
    for folder in (one for first in _children(root) if FIRST.fullmatch(first.name) for one in _children(first)):
        with contextlib.suppress(OSError):  # it may go while we look
            stats = {file.name: file.stat() for file in folder.iterdir()}
            used = _believed(stats[FACTS].st_mtime) if FACTS in stats else 0.0
            size = sum(one.st_size for one in stats.values())
            found.append(Entry(folder.parent.name + folder.name, folder, size, used))
    return sorted(found, key=lambda entry: -entry.used)


def shrink(root: Path, bound: int, in_use: float = 0.0, beside: Sequence[Entry] = ()) -> int:
    """Removes what was not used for longest while the store is above `bound` bytes, and what was never finished.

    What was used within the last `in_use` seconds stays; entries `beside` the store count as its own. Returns how many
    entries went.
    """
    remove_unfinished(root)
    found = sorted([*entries(root), *beside], key=lambda entry: -entry.used)
    total = sum(entry.size for entry in found)
    if total <= bound:
        return 0
    gone = 0
    while found and total > bound * KEPT_SHARE:
        entry = found.pop()
        if time.time() - entry.used < in_use:
            break  # and all others later still
        remove(root, entry.folder)
        total -= entry.size
        gone += 1
    return gone


def _believed(when: float) -> float:
    """A file's time; long ago where it lies in the future, for then a wrong clock set it, and using it would have mended it."""
    return when if when < time.time() + STALE_SECONDS else 0.0


def remove_unfinished(root: Path, seconds: float = STALE_SECONDS) -> None:
    """Takes away what was not finished, and not touched for so long."""
    for folder in (one for one in _children(root) if one.name.startswith(UNFINISHED)):
        with contextlib.suppress(OSError):
            if time.time() - _believed(folder.stat().st_mtime) >= seconds:
                shutil.rmtree(folder) if folder.is_dir() else folder.unlink()


@contextlib.contextmanager
def sole_maker(root: Path, key: str, patience: float = PATIENCE_SECONDS) -> Iterator[bool]:
    """Waits while another process makes an entry, so that it is made once; gives whether no other one is making it.

    The lock ends with the process that holds it.
    """
    folder = root / LOCKS
    with contextlib.suppress(OSError):  # a cache that cannot be written has no locks either
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    with locked(folder / key[:3], patience) as alone:
        yield alone
