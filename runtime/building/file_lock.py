"""A lock between processes, on a file. Where the system or the file system has none, everyone may pass."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

FIRST_WAIT, LONGEST_WAIT = 0.005, 0.1  # seconds between two attempts


@contextlib.contextmanager
def locked(path: Path, patience: float) -> Iterator[bool]:
    """Holds the lock of a file; gives whether it was got within `patience` seconds."""
    try:
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    except OSError:
        yield False
        return
    got = False
    try:
        got = _acquired(handle, patience)
        yield got
    finally:
        if got:
            _give_back(handle)
        os.close(handle)


def _acquired(handle: int, patience: float) -> bool:
    deadline, wait = time.monotonic() + patience, FIRST_WAIT
    while not _attempt(handle):
        if time.monotonic() > deadline:
            return False
        time.sleep(wait)
        wait = min(wait * 1.5, LONGEST_WAIT)
    return True


def _attempt(handle: int) -> bool:
    """Takes the lock if it is free; True as well where files cannot be locked."""
    try:
        if sys.platform == "win32":
            import msvcrt

            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        return False
    except (OSError, ImportError):
        return True
    return True


def _give_back(handle: int) -> None:
    """Unlocks; closing alone would leave the lock with a process that was forked meanwhile."""
    with contextlib.suppress(OSError, ImportError):
        if sys.platform == "win32":
            import msvcrt

            msvcrt.locking(handle, msvcrt.LK_UNLCK, 1)
        else:
            import fcntl

            fcntl.flock(handle, fcntl.LOCK_UN)
