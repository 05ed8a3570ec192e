"""Runs of a program that compute no numbers: tracers of torch and JAX want to know shapes only, and launches do nothing."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import Any

_without_launches: ContextVar[bool] = ContextVar("without_launches", default=False)


@contextlib.contextmanager
def without_launches() -> Iterator[None]:
    """Launches of this thread (or task) do nothing inside."""
    token = _without_launches.set(True)
    try:
        yield
    finally:
        _without_launches.reset(token)


def opaque(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function for a call that torch.compile, between two of its graphs, would otherwise look into frame by frame."""
    dynamo: Any = sys.modules.get("torch._dynamo")
    disable = getattr(dynamo, "disable", None)  # missing while the module is being imported
    return disable(function) if disable is not None else function


def launches_nothing() -> bool:
    """Whether a launch is to do nothing."""
    return _without_launches.get()
