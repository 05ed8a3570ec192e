"""Small arithmetic for grids and block sizes, on the host and on compile-time values in kernels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])


def cdiv(x: int, y: int) -> int:
    """X / y, rounded up."""
    return -(-x // y)


def next_power_of_2(n: int) -> int:
    """The smallest power of two not below n; 1 for n <= 1."""
    return 1 << max(n - 1, 0).bit_length()


def constexpr_function(fn: Function) -> Function:
    """Marks a Python function that kernels call with compile-time values; any Python function may be called so."""
    return fn


def must_use_result(message: str | Function = "") -> Any:
    """Marks a function whose call as a statement of its own is an error: `@must_use_result` or `@must_use_result("why")`."""
    if callable(message):
        return must_use_result()(message)

    def mark(function: Function) -> Function:
        function.must_use_result = message  # type: ignore[attr-defined]
        return function

    return mark


def set_allocator(allocator: Callable[[int, int, Any], Any] | None) -> None:
    """Accepted as Triton's: it allocates what descriptors made in a kernel need there; here the module has it."""
