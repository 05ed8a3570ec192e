"""What everything has that can be launched: kernels, tuned kernels, kernels with computed arguments, and wrappers of users."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


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
