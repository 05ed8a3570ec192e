"""Tracebacks of errors that users caused: where these leave the package, its own frames are left out of them.

What the error says is enough to mend a kernel or a launch; the frames say where in tilewright it was noticed, and stand
between the user's line and the message. `TILEWRIGHT_LOG=traceback` keeps them.
"""

from __future__ import annotations

from types import TracebackType
from typing import TypeVar

from tilewright.runtime.log import is_wanted

Error = TypeVar("Error", bound=BaseException)

# Modules of others that our own calls go through; torch's wraps launches that torch.compile is not to look into.
PASSING = ("contextlib", "concurrent", "functools", "importlib", "runpy", "threading", "torch._dynamo")


def shortened(error: Error) -> Error:
    """The error, to be raised again; of its traceback, and of those of its causes, what is the user's own."""
    if is_wanted("traceback"):
        return error
    seen: set[int] = set()
    one: BaseException | None = error
    while one is not None and id(one) not in seen:
        seen.add(id(one))
        one.__traceback__ = _of_others(one.__traceback__)
        one = one.__cause__ or one.__context__
    return error


def _of_others(traceback: TracebackType | None) -> TracebackType | None:
    kept: list[TracebackType] = []
    while traceback is not None:
        names = traceback.tb_frame.f_globals
        modules = [f"{names.get(name)}." for name in ("__name__", "__package__")]  # the second under `python -m`
        if not any(module.startswith(f"{package}.") for package in ("tilewright", *PASSING) for module in modules):
            kept.append(traceback)
        traceback = traceback.tb_next
    after: TracebackType | None = None
    for one in reversed(kept):
        one.tb_next = after
        after = one
    return after
