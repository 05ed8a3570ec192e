"""Errors and warnings that users caused show the users' lines: where errors leave the package, its own frames are left out.

What the error says is enough to mend a kernel or a launch; the frames say where in tilewright it was noticed, and stand
between the user's line and the message. `TILEWRIGHT_LOG=traceback` keeps them.
"""

from __future__ import annotations

import functools
import inspect
import sys
import traceback
import warnings
from collections.abc import Callable, Sequence
from types import FrameType, TracebackType
from typing import Any, TypeVar

from tilewright.diagnostics import Span, TilewrightError
from tilewright.runtime.call_places import place_of_call
from tilewright.runtime.log import is_wanted

Error = TypeVar("Error", bound=BaseException)
Function = TypeVar("Function", bound=Callable[..., Any])

# Modules of others that our own calls go through; torch's wraps launches that torch.compile is not to look into.
PASSING = ("contextlib", "concurrent", "functools", "importlib", "runpy", "threading", "torch._dynamo")


def shortened(error: Error, names: Callable[[], Sequence[str]] = tuple) -> Error:
    """The error, to be raised again; of its traceback, and of those of its causes, what is the user's own.

    An error about the user's call, without a place in a kernel, gets that of the call; `names` are the parameters there.
    """
    if isinstance(error, TilewrightError) and error.about is not None and error.place is None and not _span(error):
        error.place = place_of_call(_is_of_others, error.about, names())
    if is_wanted("traceback"):
        return error
    seen: set[int] = set()
    one: BaseException | None = error
    while one is not None and id(one) not in seen:
        seen.add(id(one))
        one.__traceback__ = _of_others(one.__traceback__)
        one = one.__cause__ or one.__context__
    return error


def shortened_if_users(error: Error) -> Error:
    """An error of any kind, short where code of the user's raised it, which a launch has called: a grid's, or a hook.

    What was raised by us or by a library keeps all frames: somebody will have to find out why.
    """
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    is_users = _is_of_others(frames[-1]) and "site-packages" not in frames[-1].f_code.co_filename
    return shortened(error) if is_users else error


def outermost(function: Function, like: Callable[..., Any] | None = None) -> Function:
    """A function that users call: the errors that leave it are short.

    They may be about its arguments, or those of `like`, which made the function.
    """

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except TilewrightError as error:
            raise shortened(error, lambda: _parameters(like or function))

    return call  # type: ignore[return-value]


def _parameters(function: Callable[..., Any]) -> list[str]:
    return [name for name in inspect.signature(function).parameters if name != "self"]


def _span(error: TilewrightError) -> Span | None:
    return getattr(error, "span", None)


def warn(text: str, kind: type[Warning] = RuntimeWarning) -> None:
    """Warns at the user's line, however many of our own calls lie between."""
    frame = sys._getframe(1)
    while not _is_of_others(frame) and frame.f_back is not None:
        frame = frame.f_back
    names = frame.f_globals
    seen = names.setdefault("__warningregistry__", {})
    warnings.warn_explicit(text, kind, frame.f_code.co_filename, frame.f_lineno, names.get("__name__"), seen)


def _of_others(one: TracebackType | None) -> TracebackType | None:
    kept: list[TracebackType] = []
    while one is not None:
        if _is_of_others(one.tb_frame):
            kept.append(one)
        one = one.tb_next
    after: TracebackType | None = None
    for frame in reversed(kept):
        frame.tb_next = after
        after = frame
    return after


def _is_of_others(frame: FrameType) -> bool:
    names = frame.f_globals
    modules = [f"{names.get(name)}." for name in ("__name__", "__package__")]  # the second under `python -m`
    return not any(module.startswith(f"{package}.") for package in ("tilewright", *PASSING) for module in modules)
