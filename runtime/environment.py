"""Environment variables that are on or off, as Triton reads them."""

from __future__ import annotations

import os

ALWAYS_COMPILE = "TRITON_ALWAYS_COMPILE"  # nothing is taken from the disk then
ON = ("1", "true", "yes", "on", "y")  # in any mixture of capitals; all else is off


def is_on(variable: str, default: bool = False) -> bool:
    """Whether a variable is on; `default` counts while it is not set."""
    text = os.environ.get(variable)
    return default if text is None else text.lower() in ON
