"""What callers have called around every launch, every loading and every compilation, and after every tuning."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tilewright.frozen import frozen

Hook = Callable[..., Any]


class LaunchMetadata:
    """What a hook is told about a launch; `get` is Triton's way to ask for all of it."""

    def __init__(self, values: dict[str, Any]) -> None:
        """Values by name: "name", "grid", "stream", and what the kernel's `launch_metadata` adds."""
        self.data = values

    def get(self) -> dict[str, Any]:
        """The values by name."""
        return dict(self.data)


class Hooks:
    """Functions to call before something, in the order in which they were added, and after it; false without any.

    Those after it are called in the opposite order, so that what one began it ends inside of what others began before.
    """

    def __init__(self) -> None:
        """No hooks."""
        self.enter: list[Hook] = []
        self.exit: list[Hook] = []

    def __bool__(self) -> bool:
        return bool(self.enter or self.exit)

    def begin(self, *told: Any) -> None:
        """Calls those before."""
        for hook in tuple(self.enter):  # one may take itself out
            hook(*told)

    def end(self, *told: Any) -> None:
        """Calls those after."""
        for hook in tuple(reversed(self.exit)):
            hook(*told)


@frozen
class JitFunctionInfo:
    """The kernel that a compilation was for."""

    module: str
    name: str
    jit_function: Any


LAUNCH_HOOKS = Hooks()  # called with a LaunchMetadata
LOAD_HOOKS = Hooks()  # called with module, function, name, files by name, hash; the first two are None before
# Called with names: fn, key, repr, compile, is_manual_warmup, already_compiled. A true answer before leaves the launch out.
COMPILE_HOOKS = Hooks()
TUNING_HOOKS: list[Hook] = []  # called with names: fn, key, best_config, configs_timings, duration, cache_hit
