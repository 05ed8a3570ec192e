"""Where tilewright keeps what it has built."""

from __future__ import annotations

import functools
import os
import stat
import tempfile
from pathlib import Path

from tilewright.diagnostics import TilewrightError
from tilewright.runtime.tracebacks import warn

BOUND = "TILEWRIGHT_CACHE_MB"
DEFAULT_BOUND_MB = 1024


def wanted_folder() -> Path:
    """$TILEWRIGHT_CACHE_DIR, or `tilewright` in $TRITON_CACHE_DIR or the user's cache folder."""
    wanted = os.environ.get("TILEWRIGHT_CACHE_DIR")
    home = os.path.expanduser("~")  # stays "~" for a user without one
    own_cache = os.path.join(tempfile.gettempdir() if home == "~" else home, ".cache")
    shared = os.environ.get("TRITON_CACHE_DIR") or os.environ.get("XDG_CACHE_HOME") or own_cache
    return (Path(wanted) if wanted else Path(shared) / "tilewright").absolute()


def cache_folder() -> Path:
    """The folder that is wanted; where that cannot be written, a temporary one.

    What lies there is executed: a folder that others may write to is not used itself, but a private one in it.
    """
    folder = wanted_folder()
    own = f"tilewright-{os.getuid()}" if hasattr(os, "getuid") else "tilewright"
    for choice in (folder, folder / own, Path(tempfile.gettempdir()) / own):
        try:
            choice.mkdir(mode=0o700, parents=True, exist_ok=True)
            if os.access(choice, os.W_OK) and is_private(choice):
                return choice
        except OSError:
            continue
    return temporary_folder(str(folder))


def replaced_folder() -> Path | None:
    """The folder that is wanted, where one that nobody named is used instead of it."""
    wanted, used = wanted_folder(), cache_folder()
    return None if wanted in (used, *used.parents) else wanted


def bound_bytes() -> int:
    """How large each cache, of the GPU's kernels and of the CPU run's, may grow.

    Raises:
      TilewrightError: when $TILEWRIGHT_CACHE_MB is no number.
    """
    wanted = os.environ.get(BOUND) or str(DEFAULT_BOUND_MB)
    if not wanted.isdecimal() or not wanted.isascii():
        raise TilewrightError(f"{BOUND} is {wanted!r}; it must be a number of megabytes, such as {DEFAULT_BOUND_MB}")
    return int(wanted) << 20


@functools.cache
def temporary_folder(instead_of: str) -> Path:
    """A folder for this process alone."""
    folder = Path(tempfile.mkdtemp(prefix="tilewright-"))
    warn(f"{instead_of} cannot be used as a cache; this process uses {folder}", UserWarning)
    return folder


def is_private(folder: Path) -> bool:
    """Whether only we, or the system's administrator, can write to a folder, or lead a link of its name elsewhere."""
    if not hasattr(os, "getuid"):
        return True
    found = folder.stat()
    owners = {found.st_uid, folder.lstat().st_uid}
    return owners <= {os.getuid(), 0} and not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
