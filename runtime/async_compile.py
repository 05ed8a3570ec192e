"""`triton.AsyncCompileMode`: warmups that compile on the threads of an executor while the program goes on."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from concurrent.futures import Executor, Future, wait
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from tilewright.diagnostics import LaunchError

if TYPE_CHECKING:
    from tilewright.runtime.compiled import CompiledKernel

active_mode: ContextVar[AsyncCompileMode | None] = ContextVar("tilewright_async_compile", default=None)


class FutureKernel:
    """A kernel that is being compiled. A launch of the same specialisation waits for it, or compiles it itself."""

    def __init__(self, future: Future[CompiledKernel]) -> None:
        """`future` is that of the executor."""
        self.future = future

    def result(self, ignore_errors: bool = False) -> CompiledKernel | None:
        """The compiled kernel, or its error; with `ignore_errors` None in place of an error."""
        if ignore_errors and self.future.exception() is not None:
            return None
        return self.future.result()


class AsyncCompileMode:
    """Within it `kernel.warmup(...)` returns a `FutureKernel` at once, one for every specialisation; its end waits for all.

    Errors of the compiler are raised at the end. If the block raises one, nothing more is begun, and nothing waited for.
    """

    def __init__(self, executor: Executor, *, ignore_errors: bool = False) -> None:
        """Compiles on `executor`; with `ignore_errors` the end raises none."""
        self.executor, self.ignore_errors = executor, ignore_errors
        self._submitted: dict[Hashable, FutureKernel] = {}

    def submit(self, key: Hashable, compile_it: Callable[[], CompiledKernel]) -> FutureKernel:
        """Has a specialisation compiled, once."""
        if key not in self._submitted:
            self._submitted[key] = FutureKernel(self.executor.submit(compile_it))
        return self._submitted[key]

    def __enter__(self) -> AsyncCompileMode:
        if active_mode.get() is not None:
            raise LaunchError("an AsyncCompileMode is active already: one inside of another has no meaning")
        active_mode.set(self)
        return self

    def __exit__(self, kind: Any, *error: object) -> None:
        active_mode.set(None)
        kernels = self._submitted.values()
        if kind is not None:
            for kernel in kernels:
                kernel.future.cancel()
            return
        wait([kernel.future for kernel in kernels])  # all of them before the first error
        for kernel in kernels:
            kernel.result(self.ignore_errors)
