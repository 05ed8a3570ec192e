"""What everything has that can be launched: kernels, tuned kernels, kernels with computed arguments, and wrappers of users."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tilewright.diagnostics import NoSourceError


def parameters_below(decorator: str, fn: Any) -> list[str]:
    """The names of the parameters of what a decorator stands above.

    Raises:
      NoSourceError: when that is no kernel.
    """
    if not hasattr(fn, "arg_names"):
        raise NoSourceError(
            f"@{decorator} stands above {getattr(fn, '__name__', fn)}, which is no kernel",
            None,
            "write @triton.jit below it",
        )
    names: list[str] = fn.arg_names
    return names


class KernelInterface:
    """Index it with a grid and call it: `kernel[grid](*args)` is `kernel.run(*args, grid=grid, warmup=False)`."""

    def run(self, *args: Any, grid: Any, warmup: bool = False, **kwargs: Any) -> Any:
        """Launches, or with `warmup` only compiles; every subclass has its own."""
        raise NotImplementedError(f"{type(self).__name__} has no method run(*args, grid, warmup, **kwargs)")

    def warmup(self, *args: Any, grid: Any = (1,), **kwargs: Any) -> Any:
        """Compiles without launching."""
        return self.run(*args, grid=grid, warmup=True, **kwargs)

    def __getitem__(self, grid: Any) -> Callable[..., Any]:
        """`kernel[grid]`: a callable that launches `grid` programs."""
        return lambda *args, **kwargs: self.run(*args, grid=grid, warmup=False, **kwargs)
