"""Loop objects of the language: `tl.range`, `tl.static_range`, `tl.condition`."""

from __future__ import annotations

import builtins
from collections.abc import Iterator
from typing import Any

from .constexpr import unwrap

# What `range` takes behind its step, in order.
RANGE_HINTS = (
    "num_stages", "loop_unroll_factor", "disallow_acc_multi_buffer", "flatten", "warp_specialize", "disable_licm",
)  # fmt: skip


class range:  # noqa: N801 (Triton's name)
    """A loop range with hints for its pipeline; iterates as Python's range does."""

    def __init__(
        self,
        arg1: Any,
        arg2: Any = None,
        step: Any = None,
        num_stages: Any = None,
        loop_unroll_factor: Any = None,
        disallow_acc_multi_buffer: bool = False,
        flatten: bool = False,
        warp_specialize: bool = False,
        disable_licm: bool = False,
    ) -> None:
        """`range(stop)` or `range(start, stop[, step])`; the other arguments are hints and do not change results.

        `num_stages` is how many iterations' loads may be under way; `loop_unroll_factor` becomes `#pragma unroll` of a
        loop that loads nothing ahead. The others change nothing here.
        """
        self.start: Any = 0 if arg2 is None else arg1
        self.stop: Any = arg1 if arg2 is None else arg2
        self.step = 1 if step is None else step

    def __iter__(self) -> Iterator[int]:
        return iter(builtins.range(*(int(unwrap(bound)) for bound in (self.start, self.stop, self.step))))


class static_range(range):  # noqa: N801 (Triton's name)
    """A loop that is written out when the kernel is translated; its index is a compile-time value."""

    def __init__(self, arg1: Any, arg2: Any = None, step: Any = None) -> None:
        """Bounds are compile-time values."""
        super().__init__(arg1, arg2, step)


class condition:  # noqa: N801 (Triton's name)
    """A `while` condition with hints."""

    def __init__(self, arg1: Any, disable_licm: bool = False) -> None:
        """`arg1` is the condition."""
        self.value = arg1

    def __bool__(self) -> bool:
        return bool(self.value)
