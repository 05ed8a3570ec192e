"""`TILEWRIGHT_LOG=compile`: what is translated and compiled, and why, on the standard error stream."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Any

VARIABLE = "TILEWRIGHT_LOG"
TOPICS = ("compile", "traceback")


def is_wanted(topic: str) -> bool:
    """Whether a topic is among those of $TILEWRIGHT_LOG (names with commas between)."""
    wanted = os.environ.get(VARIABLE, "")
    return bool(wanted) and topic in _topics(wanted)


@functools.cache
def _topics(wanted: str) -> list[str]:
    """The topics of a text, with a warning, once, of those that there are not."""
    topics = wanted.replace(" ", "").split(",")
    unknown = [topic for topic in topics if topic not in ("", *TOPICS)]
    if unknown:
        text = f"{VARIABLE} has the topic {unknown[0]!r}, which there is not; its topics are {', '.join(TOPICS)}"
        from tilewright.runtime.tracebacks import warn

        warn(text)
    return topics


def log(message: Callable[[], str]) -> None:
    """Prints what is said of a compilation, where that is wanted."""
    if is_wanted("compile"):
        print(f"tilewright: compile: {message()}", file=sys.stderr, flush=True)


def reason(parts: Mapping[str, Any], known: Iterable[Mapping[str, Any]]) -> str:
    """Why nothing known serves: the parts in which the nearest known key differs."""
    nearest: list[tuple[str, Any, Any]] | None = None
    for other in known:
        differing = [(n, parts.get(n), other.get(n)) for n in {**parts, **other} if parts.get(n) != other.get(n)]
        if differing and (nearest is None or len(differing) < len(nearest)):
            nearest = differing
    if nearest is None:
        return "nothing like it is known"
    return "; ".join(f"{name} is {_short(own)}, the nearest known has {_short(other)}" for name, own, other in nearest)


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
