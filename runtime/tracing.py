"""Runs of a program that compute no numbers: tracers of torch and JAX want to know shapes only, and launches do nothing."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextvars import ContextVar

_without_launches: ContextVar[bool] = ContextVar("without_launches", default=False)


@contextlib.contextmanager
def without_launches() -> Iterator[None]:
    """Launches of this thread (or task) do nothing inside."""
    token = _without_launches.set(True)
    try:
        yield
    finally:
        _without_launches.reset(token)


def launches_nothing() -> bool:
    """Whether a launch is to do nothing."""
    return _without_launches.get()
