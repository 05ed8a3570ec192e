"""What callers have called around every launch, and after every compilation for one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tilewright.frozen import frozen

Hook = Callable[["LaunchMetadata"], Any]


class LaunchMetadata:
    """What a hook is told about a launch; `get` is Triton's way to ask for all of it."""

    def __init__(self, values: dict[str, Any]) -> None:
        """Values by name: "name", "grid", "stream", and what the kernel's `launch_metadata` adds."""
        self.data = values

    def get(self) -> dict[str, Any]:
        """The values by name."""
        return dict(self.data)


class LaunchHooks:
    """Functions to call before and after every launch, in the order in which they were added; false without any."""

    def __init__(self) -> None:
        """No hooks."""
        self.enter: list[Hook] = []
        self.exit: list[Hook] = []

    def __bool__(self) -> bool:
        return bool(self.enter or self.exit)


@frozen
class JitFunctionInfo:
    """The kernel that a compilation was for."""

    module: str
    name: str
    jit_function: Any


LAUNCH_HOOKS = LaunchHooks()
COMPILE_HOOKS: list[
    Callable[..., Any]
] = []  # called with names: fn, key, repr, compile, is_manual_warmup, already_compiled
