"""What everything has that can be launched: kernels, tuned kernels, kernels with computed arguments, and wrappers of users."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tilewright.diagnostics import NoSourceError, TilewrightError
from tilewright.runtime.tracebacks import shortened, shortened_if_users


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

    def run(self, /, *args: Any, grid: Any, warmup: bool = False, **kwargs: Any) -> Any:
        """Launches, or with `warmup` only compiles; every subclass has its own."""
        raise NotImplementedError(f"{type(self).__name__} has no method run(*args, grid, warmup, **kwargs)")

    def warmup(self, /, *args: Any, grid: Any = (1,), **kwargs: Any) -> Any:
        """Compiles without launching."""
        return self.run(*args, grid=grid, warmup=True, **kwargs)

    def __getitem__(self, grid: Any) -> Callable[..., Any]:
        """`kernel[grid]`: a callable that launches `grid` programs."""

        def launch(*args: Any, **kwargs: Any) -> Any:
            try:
                return self.run(*args, grid=grid, warmup=False, **kwargs)
            except TilewrightError as error:
                raise shortened(error, lambda: getattr(self, "arg_names", ()))
            except Exception as error:
                raise shortened_if_users(error)

        return launch


class FoundByName:
    """What stands in a module under a name of its own: it is its own copy, and other processes find it there."""

    __qualname__: str  # and `__module__`, of the Python function

    def __reduce__(self) -> str:
        """Where it stands."""
        return self.__qualname__


class QuickLaunches(type):
    """A class whose `kernel[grid]` has a quick way of its own, until another `run` is put in the place of its own.

    Tools that watch launches do that, and so do subclasses; both are to see every launch.
    """

    def __init__(cls, name: str, bases: tuple[type, ...], own: dict[str, Any], **options: Any) -> None:
        """A subclass with a `run` of its own launches by it."""
        super().__init__(name, bases, own, **options)
        cls._own_run, cls._quick = own.get("run"), own.get("__getitem__")
        if "run" in own and "__getitem__" not in own:
            cls._quick = KernelInterface.__getitem__
            super().__setattr__("__getitem__", cls._quick)

    def __setattr__(cls, name: str, value: Any) -> None:
        super().__setattr__(name, value)
        if name == "run":
            is_own = value is cls._own_run and cls._quick is not None
            super().__setattr__("__getitem__", cls._quick if is_own else KernelInterface.__getitem__)
