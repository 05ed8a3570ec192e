"""The running program: what functions of the language need to know about the launch."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import field
from typing import TYPE_CHECKING, Any

from ..frozen import frozen

if TYPE_CHECKING:
    from ..artifact import Options
    from ..kernel_function import KernelFunction
    from .memory import Memory


@frozen
class Program:
    """A launch that is running.

    Attributes:
      memory: the arrays; it also knows which program is running.
      grid: the numbers of programs along the axes.
      options: those of the launch.
      functions: the kernel and the jit functions that it calls, rewritten, while the launch lasts.
      returned: what calls of functions with several returns give: see `returned.py`.
    """

    memory: Memory
    grid: tuple[int, int, int]
    options: Options
    functions: dict[KernelFunction, Callable[..., Any]] = field(default_factory=dict)
    returned: dict[Any, Any] = field(default_factory=dict)


running: ContextVar[Program] = ContextVar("running")
