"""Environment variables that the translator reads."""

from __future__ import annotations

import os

from .diagnostics import TilewrightError

VERIFY = "TILEWRIGHT_VERIFY"


def is_verifying() -> bool:
    """Whether every translation is made anew and checked after each pass.

    Raises:
      TilewrightError: for a value of $TILEWRIGHT_VERIFY that is neither 0 nor 1.
    """
    wanted = os.environ.get(VERIFY) or "0"
    if wanted not in ("0", "1"):
        raise TilewrightError(f"{VERIFY} is {wanted!r}; it must be 0 or 1")
    return wanted == "1"
