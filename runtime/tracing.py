"""Runs of a program that compute no numbers, as tracers of torch and JAX make them.

Launches do nothing where only shapes are wanted (torch), and are written down where they are to become part of a traced
program (JAX).
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from dataclasses import field
from typing import TYPE_CHECKING, Any

from tilewright.frozen import frozen

if TYPE_CHECKING:
    from tilewright.runtime.compiled import CompiledKernel

_without_launches: ContextVar[bool] = ContextVar("without_launches", default=False)


@frozen
class RecordedLaunch:
    """A launch that was written down instead of started; `values` are those of the kernel's run-time parameters."""

    compiled: CompiledKernel
    grid: tuple[int, int, int]
    values: tuple[Any, ...]


@frozen
class Recording:
    """What a run launched, in order.

    Attributes:
      with_memory: gives an argument for which an argument without memory stands, for tunings, which launch in earnest.
    """

    with_memory: Callable[[Any], Any]
    launches: list[RecordedLaunch] = field(default_factory=list)


_recording: ContextVar[Recording | None] = ContextVar("recording", default=None)


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


@contextlib.contextmanager
def recorded(with_memory: Callable[[Any], Any]) -> Iterator[Recording]:
    """Launches of this thread (or task) are compiled and written down inside, not started."""
    made = Recording(with_memory)
    token = _recording.set(made)
    try:
        yield made
    finally:
        _recording.reset(token)


def recording() -> Recording | None:
    """Where launches are to be written down; None where they are to start."""
    return _recording.get()


@contextlib.contextmanager
def in_earnest(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
    """The arguments with memory behind all of them; inside, launches start even where others are written down."""
    outer = _recording.get()
    if outer is None:
        yield args, kwargs
        return
    token = _recording.set(None)
    try:
        yield tuple(map(outer.with_memory, args)), {name: outer.with_memory(value) for name, value in kwargs.items()}
    finally:
        _recording.reset(token)
