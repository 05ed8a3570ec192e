"""Keywords of `jit`, `autotune`, `heuristics` and `Config`: one that there is not is an error that says which there are."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from tilewright.absent import closest
from tilewright.diagnostics import UnknownOptionError
from tilewright.runtime.tracebacks import outermost

Function = TypeVar("Function", bound=Callable[..., Any])


def check_options(what: str, given: Iterable[str], known: Sequence[str]) -> None:
    """Rejects options that `what` does not have.

    Raises:
      UnknownOptionError: says which it has.
    """
    unknown = [name for name in given if name not in known]
    if unknown:
        meant = closest(unknown[0], known)
        hint = f"did you mean {meant}? " if meant else ""
        raise UnknownOptionError(f"{what} has no option {unknown[0]}; {hint}it has {', '.join(known)}").of(unknown[0])


def with_known_options(what: str) -> Callable[[Function], Function]:
    """Decorates a function of users' with that check of its keywords; `what` is what messages call it."""

    def decorate(function: Function) -> Function:
        known = [name for name in inspect.signature(function).parameters if name != "self"]

        @outermost
        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            check_options(what, kwargs, known)
            return function(*args, **kwargs)

        return call  # type: ignore[return-value]

    return decorate
