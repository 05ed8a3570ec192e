"""Work that nests more deeply than Python's stack allows: expressions of thousands of terms, chains of thousands of lines."""

from __future__ import annotations

import contextvars
import sys
import threading
from collections.abc import Callable
from typing import Any, TypeVar

from .diagnostics import CompilationError

Result = TypeVar("Result")

DEEP_STACK_BYTES = 512 << 20  # of address space; only what is used becomes memory
DEEPEST = 100_000  # calls: at 5 KB each they fit on that stack, with what C functions between them need
_lock = threading.Lock()


def with_room(work: Callable[[], Result]) -> Result:
    """The result of `work`, which is done again from the start on a large stack where the usual one does not suffice.

    Raises:
      CompilationError: when it nests even more deeply.
    """
    try:
        return work()
    except Exception as error:
        if not _ran_out(error):
            raise
    return _on_large_stack(work)


def _ran_out(error: BaseException | None) -> bool:
    """Whether the stack did not suffice; LibCST's clean-up can hide that behind an error of its own."""
    while error is not None and not isinstance(error, RecursionError):
        error = error.__context__
    return error is not None


def _on_large_stack(work: Callable[[], Result]) -> Result:
    results: list[Any] = []

    def run() -> None:
        try:
            results.append((context.run(work), None))
        except BaseException as error:  # told to the thread that waits
            results.append((None, error))

    context = contextvars.copy_context()
    with _lock:  # both settings belong to the process
        limit, size = sys.getrecursionlimit(), threading.stack_size(DEEP_STACK_BYTES)
        sys.setrecursionlimit(max(limit, DEEPEST))
        try:
            thread = threading.Thread(target=run, name="tilewright-deep")
            thread.start()
            thread.join()
        finally:
            threading.stack_size(size)
            sys.setrecursionlimit(limit)
    result, error = results[0]
    if _ran_out(error):
        raise CompilationError(
            "the kernel nests too deeply to be translated", None, "assign parts of long expressions to names"
        ) from None
    if error is not None:
        raise error
    return result  # type: ignore[no-any-return]
