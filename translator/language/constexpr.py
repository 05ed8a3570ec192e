"""`tl.constexpr`: a value that is known when a kernel is translated."""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable, Iterator
from typing import Any

from .values import constexpr_type, tensor


class constexpr:  # noqa: N801 (Triton's name)
    """Wraps a compile-time value; arithmetic on it is Python's, and gives another one.

    As an annotation, `BLOCK: tl.constexpr` declares a compile-time parameter or local.
    """

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        """Wraps `value`; a constexpr is unwrapped first."""
        self.value: Any = value.value if isinstance(value, constexpr) else value

    @property
    def type(self) -> constexpr_type:
        """That of a compile-time value."""
        return constexpr_type(self.value)

    def __repr__(self) -> str:
        return f"constexpr[{self.value!r}]"

    def __format__(self, specification: str) -> str:
        return format(self.value, specification) if specification else str(self)

    def __hash__(self) -> int:
        return hash((constexpr, self.value))

    def __index__(self) -> int:
        return operator.index(self.value)

    def __bool__(self) -> bool:
        return bool(self.value)

    def __int__(self) -> int:
        return int(self.value)

    def __float__(self) -> float:
        return float(self.value)

    def __len__(self) -> int:
        return len(self.value)

    def __getitem__(self, key: Any) -> Any:
        return self.value[unwrap(key)]

    def __contains__(self, item: Any) -> bool:
        return unwrap(item) in self.value

    def __iter__(self) -> Iterator[Any]:
        return iter(self.value)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Calls a wrapped function."""
        return self.value(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(object.__getattribute__(self, "value"), name)


def unwrap(value: Any) -> Any:
    """The plain value behind a constexpr, or the value itself."""
    return value.value if isinstance(value, constexpr) else value


def plain(value: Any) -> Any:
    """`unwrap`, and the number of Python's that a scalar of NumPy or ml_dtypes is."""
    value = unwrap(value)
    numpy = sys.modules.get("numpy")
    if numpy is None or not isinstance(value, numpy.generic):
        return value
    number = value.item()
    if isinstance(number, (bool, int, float)):
        return number
    return float(value) if value.dtype.kind == "f" else value  # a longdouble's item is a longdouble


def _forward(name: str) -> Callable[..., Any]:
    function = getattr(operator, name)

    def method(self: constexpr, *others: Any) -> Any:
        if any(isinstance(other, tensor) for other in others):
            return NotImplemented  # a run-time value: its own operator decides
        return constexpr(function(self.value, *(unwrap(other) for other in others)))

    return method


def _reflected(name: str) -> Callable[..., Any]:
    function = getattr(operator, name)
    return lambda self, other: constexpr(function(unwrap(other), self.value))


for _name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "and_", "or_", "xor", "lshift", "rshift"):
    _dunder = _name.rstrip("_")
    setattr(constexpr, f"__{_dunder}__", _forward(_name))
    setattr(constexpr, f"__r{_dunder}__", _reflected(_name))
for _name in ("eq", "ne", "lt", "le", "gt", "ge", "neg", "pos", "invert"):
    setattr(constexpr, f"__{_name}__", _forward(_name))
