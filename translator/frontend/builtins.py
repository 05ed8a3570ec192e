"""The structured functions of the language: one handler each, in one table.

A handler gets the builder, the bound arguments by name and the call's place; it writes what the call does and returns
its value.
"""

from __future__ import annotations

from collections.abc import Callable

from ..diagnostics import Span
from . import (
    builtins_blocks,
    builtins_debug,
    builtins_dot,
    builtins_join,
    builtins_memory,
    builtins_reduce,
    builtins_scaled,
    builtins_shape,
)
from .builder import Builder
from .values import Value

Handler = Callable[[Builder, dict[str, Value], Span], Value]

HANDLERS: dict[str, Handler] = {
    **builtins_shape.HANDLERS,
    **builtins_memory.HANDLERS,
    **builtins_blocks.HANDLERS,  # after memory: load and store take block pointers too
    **builtins_reduce.HANDLERS,
    **builtins_join.HANDLERS,
    **builtins_dot.HANDLERS,
    **builtins_scaled.HANDLERS,
    **builtins_debug.HANDLERS,
}
