"""Compiles all candidates of a tuning, several at a time, and sorts out those that cannot run."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from tilewright.diagnostics import (
    CompilationError,
    CompileTimeAssertionFailure,
    NoConfigLeftError,
    OutOfResources,
    ToolchainError,
)
from tilewright.runtime.tracebacks import warn
from tilewright.runtime.tuning.config import Config

# What a config may raise without being anybody's mistake, and what else takes it out of the tuning.
EXPECTED = (OutOfResources, CompileTimeAssertionFailure)
ILLEGAL = (*EXPECTED, CompilationError, ToolchainError)
MOST_AT_ONCE = 16


def prepare(
    compile_one: Callable[[Config], Any], configs: Sequence[Config]
) -> tuple[dict[Config, Any], dict[Config, Exception]]:
    """(what compiled, why the others did not), both in the order of `configs`.

    The compiler of a GPU's text and the one of the host work without Python's lock, so threads are enough.
    """
    compiled: dict[Config, Any] = {}
    dropped: dict[Config, Exception] = {}
    pool = ThreadPoolExecutor(min(len(configs), os.cpu_count() or 1, MOST_AT_ONCE))
    try:
        pending = {config: pool.submit(compile_one, config) for config in configs}
        for config, future in pending.items():
            try:
                compiled[config] = future.result()
            except ILLEGAL as error:
                dropped[config] = error
    finally:
        pool.shutdown(cancel_futures=True)  # after an error, or Ctrl-C, no other is begun
    return compiled, dropped


def reason(error: Exception) -> str:
    """Why a config was dropped, in one line."""
    lines = str(getattr(error, "cause", None) or error).strip().splitlines() or [""]
    text = " ".join(lines[:2]) if lines[0].endswith(":") else lines[0]  # a compiler's words begin on the second
    return f"{type(error).__name__}: {text}"


def check_dropped(name: str, compiled: dict[Config, Any], dropped: dict[Config, Exception]) -> None:
    """Reports what was dropped: all of it when nothing is left, else what is a surprise.

    Raises:
      NoConfigLeftError: when no config can run, with the reason of each.
      CompilationError: instead, when the kernel's text is at fault with every config.
    """
    errors = list(dropped.values())
    if not compiled and errors:
        if not any(isinstance(error, (*EXPECTED, ToolchainError)) for error in errors):
            raise errors[0]
        listed = "\n".join(f"  {config}\n    {reason(error)}" for config, error in dropped.items())
        raise NoConfigLeftError(
            f"{name}: none of the {len(errors)} configs can run here:\n{listed}\n  help: add a config with smaller blocks or "
            "fewer stages"
        ) from errors[0]
    for config, error in dropped.items():
        if not isinstance(error, EXPECTED):
            warn(f"{name}: config {config} is left out: {reason(error)}")
