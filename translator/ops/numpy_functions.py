"""NumPy meanings for the op table, looked up when they are first called: importing the table does not import NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def library() -> Any:
    """The NumPy module."""
    import numpy

    return numpy


def named(name: str) -> Callable[..., Any]:
    """A NumPy function by its name."""
    return lambda *arrays: getattr(library(), name)(*arrays)


def vectorised(function: Callable[..., float]) -> Callable[..., Any]:
    """A function of Python floats, applied element by element in float64; out of its domain it gives NaN."""

    def guarded(*values: float) -> float:
        try:
            return function(*values)
        except OverflowError:
            return float("inf")
        except ValueError:
            return float("nan")

    return lambda *arrays: library().vectorize(guarded, otypes=["float64"])(*arrays)
