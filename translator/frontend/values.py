"""What an expression of a kernel can stand for while it is translated."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..diagnostics import Span
from ..ir.nodes import Expr


@dataclass(frozen=True, slots=True)
class Const:
    """A compile-time value; `symbol` is a C expression of constexpr names that has it, or None."""

    value: Any
    symbol: str | None = None

    @property
    def is_number(self) -> bool:
        """True for int, float and bool."""
        return isinstance(self.value, (int, float))


@dataclass(frozen=True, slots=True)
class Tuple:
    """A compile-time sequence of values; `maker` builds a namedtuple of the same fields."""

    items: tuple[Value, ...]
    fields: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Method:
    """A function of the language bound to its first argument."""

    builtin: Any
    self_value: Value


@dataclass(frozen=True, slots=True)
class Undefined:
    """A name that only some ways through the program define; `span` is one definition."""

    span: Span
    why: str


Value = Const | Tuple | Method | Expr


class NotElementwiseError(Exception):
    """The function being tried as a device function of scalars does something to whole tiles."""
