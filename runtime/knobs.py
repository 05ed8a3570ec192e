"""`triton.knobs`: settings that programs read and change while they run.

Every setting is another name of something that exists without it: of an environment variable, which launches read, or of
the functions to call around launches. Settings of Triton's that nothing here answers to are errors, so that
`getattr(knobs.nvidia, ..., None)` finds none and a program that needs one says so.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from typing import Any

from tilewright.diagnostics import OptionError
from tilewright.language.hints import shown
from tilewright.runtime.building.folders import cache_folder
from tilewright.runtime.environment import is_on
from tilewright.runtime.hooks import COMPILE_HOOKS, LAUNCH_HOOKS, LOAD_HOOKS, TUNING_HOOKS
from tilewright.runtime.tracebacks import shortened


def _called(function: Any) -> Callable[..., Any]:
    """A function to call, as it was given.

    Raises:
      OptionError: for what cannot be called, now rather than at the launch that would call it.
    """
    if not callable(function):
        raise shortened(OptionError(f"a hook must be a function or None, not {shown(function)}"))
    return function  # type: ignore[no-any-return]


class HookChain:
    """Functions that are called in the order in which they were added; assigning a function leaves it alone in the chain."""

    def __init__(self, calls: list[Callable[..., Any]] | None = None) -> None:
        """`calls` is the list that is read where the functions are called."""
        self.calls = [] if calls is None else calls

    def add(self, function: Callable[..., Any]) -> None:
        """Appends a function that is not there yet."""
        if function not in self.calls:
            self.calls.append(_called(function))

    def remove(self, function: Callable[..., Any]) -> None:
        """Takes a function out, if it is there."""
        if function in self.calls:
            self.calls.remove(function)

    def __call__(self, *args: Any, **kwargs: Any) -> None:
        """Calls all."""
        for function in tuple(self.calls):
            function(*args, **kwargs)


class Word:
    """An environment variable that is a text, or None."""

    def __init__(self, variable: str) -> None:
        """`variable` is its name."""
        self.variable = variable

    def get(self) -> str | None:
        """The text."""
        return os.environ.get(self.variable)

    def put(self, value: Any) -> None:
        """Sets the variable, which programs that this one starts see as well, to a text or path; None removes it."""
        if value is None:
            os.environ.pop(self.variable, None)
        else:
            os.environ[self.variable] = os.fspath(value)


class Switch(Word):
    """An environment variable that is on or off."""

    def __init__(self, variable: str, default: bool = False) -> None:
        """`default` counts while the variable is not set."""
        super().__init__(variable)
        self.default = default

    def get(self) -> bool:  # type: ignore[override]
        """Whether it is on."""
        return is_on(self.variable, self.default)

    def put(self, value: Any) -> None:
        """Switches it; None removes the variable."""
        super().put(None if value is None else "1" if value else "0")


class Folder(Word):
    """An environment variable that names the folder of the caches."""

    def get(self) -> str:
        """The folder in use, whether the variable names it or not."""
        return os.environ.get(self.variable) or str(cache_folder())


class Chain:
    """A `HookChain`, to which a function, another chain or None can be assigned."""

    def __init__(self, calls: list[Callable[..., Any]]) -> None:
        """`calls` is the list that is read where the functions are called."""
        self.chain = HookChain(calls)

    def get(self) -> HookChain:
        """The chain."""
        return self.chain

    def put(self, value: Any) -> None:
        """Puts functions in the place of those that are there."""
        self.chain.calls[:] = value.calls if isinstance(value, HookChain) else [] if value is None else [_called(value)]


class Single(Chain):
    """A function, or None."""

    def get(self) -> Any:  # type: ignore[override]
        """The function."""
        return self.chain.calls[0] if self.chain.calls else None


class Group:
    """Settings by name."""

    def __init__(self, name: str, settings: dict[str, Any]) -> None:
        """`name` is what messages call the group."""
        vars(self).update(_name=name, _settings=settings)

    def __getattr__(self, name: str) -> Any:
        return self._setting(name).get()

    def __setattr__(self, name: str, value: Any) -> None:
        self._setting(name).put(value)

    def __delattr__(self, name: str) -> None:
        """Puts a setting back to what it is where nobody sets it, as Triton does."""
        self._setting(name).put(None)

    def __dir__(self) -> list[str]:
        return [*self._settings, "scope"]

    def _setting(self, name: str) -> Any:
        settings: dict[str, Any] = vars(self)["_settings"]
        if name not in settings:
            raise AttributeError(
                f"tilewright has no setting knobs.{vars(self)['_name']}.{name}; it has {', '.join(settings)}"
            )
        return settings[name]

    @contextlib.contextmanager
    def scope(self) -> Iterator[None]:
        """Puts everything back at its end."""
        settings: dict[str, Any] = vars(self)["_settings"]
        words = {s.variable: os.environ.get(s.variable) for s in settings.values() if isinstance(s, Word)}
        chains = [(s.chain.calls, list(s.chain.calls)) for s in settings.values() if isinstance(s, Chain)]
        try:
            yield
        finally:
            for variable, value in words.items():
                Word(variable).put(value)
            for calls, before in chains:
                calls[:] = before


runtime = Group(
    "runtime",
    {
        "debug": Switch("TRITON_DEBUG"),
        "interpret": Switch("TRITON_INTERPRET"),
        "launch_enter_hook": Chain(LAUNCH_HOOKS.enter),
        "launch_exit_hook": Chain(LAUNCH_HOOKS.exit),
        "kernel_load_start_hook": Chain(LOAD_HOOKS.enter),
        "kernel_load_end_hook": Chain(LOAD_HOOKS.exit),
        "jit_cache_hook": Single(COMPILE_HOOKS.enter),
        "jit_post_compile_hook": Single(COMPILE_HOOKS.exit),
    },
)
compilation = Group("compilation", {"always_compile": Switch("TRITON_ALWAYS_COMPILE")})
language = Group(
    "language",
    {"fp32_default": Word("TRITON_F32_DEFAULT"), "default_fp_fusion": Switch("TRITON_DEFAULT_FP_FUSION", default=True)},
)
autotuning = Group(
    "autotuning",
    {
        "print": Switch("TRITON_PRINT_AUTOTUNING"),
        "cache": Switch("TRITON_CACHE_AUTOTUNING", default=True),
        "listener": Single(TUNING_HOOKS),
    },
)
cache = Group("cache", {"dir": Folder("TILEWRIGHT_CACHE_DIR")})


def refresh_knobs() -> None:
    """Reads nothing anew: settings are read from the environment whenever they count."""
