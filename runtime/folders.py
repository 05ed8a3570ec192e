"""Where tilewright keeps what it has built."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path


def cache_folder() -> Path:
    """$TILEWRIGHT_CACHE_DIR, or `tilewright` in the user's cache folder; a temporary one where that cannot be written."""
    wanted = os.environ.get("TILEWRIGHT_CACHE_DIR")
    folder = Path(wanted) if wanted else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tilewright"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if os.access(folder, os.W_OK):
            return folder
    except OSError:
        pass
    name = f"tilewright-{os.getuid()}" if hasattr(os, "getuid") else "tilewright"
    fallback = Path(tempfile.gettempdir()) / name
    fallback.mkdir(mode=0o700, exist_ok=True)
    return fallback
