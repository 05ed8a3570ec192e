"""Environment variables: those that are on or off, as Triton reads them, and what is said of values that mean nothing."""

from __future__ import annotations

import functools
import os

ALWAYS_COMPILE = "TRITON_ALWAYS_COMPILE"  # nothing is taken from the disk then
ON = ("1", "true", "yes", "on", "y")  # in any mixture of capitals; all else is off
OFF = ("", "0", "false", "no", "off", "n")
OURS = "TILEWRIGHT_"
KNOWN = tuple(f"{OURS}{name}" for name in ("MODE", "ARCH", "CACHE_DIR", "CACHE_MB", "TUNED", "LOG", "VERIFY"))


def is_on(variable: str, default: bool = False) -> bool:
    """Whether a variable is on; `default` counts while it is not set. Of a value that is neither a warning says so."""
    text = os.environ.get(variable)
    if text is None:
        return default
    word = text.strip().lower()
    if word not in ON and word not in OFF:
        _warn(f"{variable} is {text!r}, which counts as off; it must be one of {', '.join((*ON, *OFF[1:]))}")
    return word in ON


def check_settings() -> None:
    """Rejects a bound of the cache that is none, also where it is not reached; warns of variables that nothing reads.

    Raises:
      TilewrightError: when $TILEWRIGHT_CACHE_MB is no number.
    """
    from tilewright.runtime.building.folders import bound_bytes

    bound_bytes()
    for variable in os.environ:
        if variable.startswith(OURS) and variable not in KNOWN:
            from tilewright.absent import closest

            meant = closest(variable.removeprefix(OURS), (name.removeprefix(OURS) for name in KNOWN))
            hint = f"; did you mean {OURS}{meant}?" if meant else f"; there are {', '.join(KNOWN)}"
            _warn(f"{variable} is set, which nothing reads{hint}")


@functools.cache
def _warn(text: str) -> None:
    """Once in a process, however often a variable is read."""
    from tilewright.runtime.tracebacks import warn

    warn(text)
