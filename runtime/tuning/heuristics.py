"""`@heuristics`: compile-time parameters that are computed from the other arguments of a launch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tilewright.diagnostics import about
from tilewright.runtime.kernel_interface import FoundByName, KernelInterface, parameters_below
from tilewright.runtime.keywords import with_known_options
from tilewright.runtime.tracebacks import outermost
from tilewright.runtime.tuning.callbacks import check_heuristics

Values = dict[str, Callable[[dict[str, Any]], Any]]


class Heuristics(FoundByName, KernelInterface):
    """A kernel, and functions from the dict of its arguments to the value of a parameter.

    They are evaluated in order; each sees the arguments that were passed and what the ones before it gave.
    """

    def __init__(self, fn: Any, arg_names: list[str], values: Values) -> None:
        """`fn` is a kernel, or what another decorator made of one."""
        self.fn, self.arg_names, self.values = fn, arg_names, values
        self.__qualname__, self.__module__ = getattr(fn, "__qualname__", type(fn).__qualname__), fn.__module__

    def run(self, /, *args: Any, **kwargs: Any) -> Any:
        """Computes the values, then runs."""
        return self.fn.run(*args, **self._completed(args, kwargs))

    def warmup(self, /, *args: Any, **kwargs: Any) -> Any:
        """Computes the values, then compiles without launching."""
        return self.fn.warmup(*args, **self._completed(args, kwargs))

    def _completed(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        for name, heuristic in self.values.items():
            kwargs[name] = heuristic({**dict(zip(self.arg_names, args, strict=False)), **kwargs})
        return kwargs


@with_known_options("@heuristics")
def heuristics(values: Values) -> Callable[[Any], Heuristics]:
    """Decorates a kernel with functions that compute its parameters; see `Heuristics`.

    Raises:
      TuningArgumentError: for what is no function.
      NoSourceError: above what is no kernel.
    """
    with about("values"):
        check_heuristics(values)
    return outermost(lambda fn: Heuristics(fn, parameters_below("heuristics", fn), values))
