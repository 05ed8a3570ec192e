"""What a kernel read outside of itself when it was compiled, compared with what stands there at a launch."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from types import FunctionType
from typing import Any

from tilewright.diagnostics import GlobalChangedError
from tilewright.kernel_function import KernelFunction
from tilewright.language.constexpr import plain, unwrap
from tilewright.outside import outer_value


def check_unchanged(read: Iterable[tuple[Any, str, Any]], kernel: str) -> None:
    """Rejects a launch of a kernel that read a global, or a variable around it, which has changed since.

    `read` has the owner, the name and the value of each: `Artifact.globals`.

    Raises:
      GlobalChangedError: a RuntimeError, as in Triton.
    """
    for owner, name, value in read:
        try:
            now = unwrap(outer_value(owner, name))
        except LookupError:
            now = None
        if now is not value and _differ(plain(now), plain(value)):
            is_reader = isinstance(owner, (KernelFunction, FunctionType))
            home = getattr(owner, "__name__", type(owner).__name__)
            whole = name if is_reader else f"{home}.{name}" if isinstance(name, str) else f"of type {home}"
            raise _changed(whole, value, now, kernel)


def _differ(now: Any, before: Any) -> bool:
    numpy = sys.modules.get("numpy")
    if (
        numpy is not None and isinstance(now, numpy.ndarray) and isinstance(before, numpy.ndarray)
    ):  # bit by bit, so that NaN is itself
        return (now.dtype, now.shape, now.tobytes()) != (before.dtype, before.shape, before.tobytes())
    try:
        return type(now) is not type(before) or bool(now != before)
    except Exception:  # of the user's own comparison, or of arrays, which have one truth for each element
        return True


def _changed(whole: str, before: Any, now: Any, kernel: str) -> GlobalChangedError:
    """The error for a name that stood for something else when a kernel was compiled."""
    functions = (KernelFunction, FunctionType)
    if isinstance(before, functions) and isinstance(now, functions):
        return GlobalChangedError(
            f"Function {whole} has changed since we compiled this kernel: it stood at {_place(before)}, and another one of "
            f"that name stands at {_place(now)}; define {kernel} again behind it, or pass the function as a tl.constexpr"
        )
    return GlobalChangedError(
        f"Global variable {whole} has changed since we compiled this kernel, from {before!r} to {now!r}; pass it as an "
        f"argument, or define {kernel} again"
    )


def _place(function: Any) -> str:
    code = getattr(function, "fn", function).__code__
    return f"{code.co_filename}:{code.co_firstlineno}"
