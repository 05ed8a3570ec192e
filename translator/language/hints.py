"""What to write in a kernel instead of a call of Python's, NumPy's or torch's functions."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

from ..diagnostics import ArgumentError, ShapeError
from .dtypes import DType
from .limits import MOST_ELEMENTS

_CONVERSIONS = {"int": "int32", "float": "float32", "bool": "int1"}
_LIBRARIES = frozenset(("builtins", "math", "cmath", "numpy", "torch", "tilewright"))


def uncallable(function: Any) -> tuple[str, str]:
    """What is wrong with calling a Python function on values of run time, and what to do about it."""
    if isinstance(function, DType):
        return f"tl.{function.word} is a type and takes no values of run time", f"convert with x.to(tl.{function.word})"
    if not callable(function):
        return f"{function!r} is called, but it is no function", "look at what gives it its value, such as an import"
    name = getattr(function, "__name__", repr(function))
    cause = f"{name} is a Python function and its arguments are known at run time only"
    library = (getattr(function, "__module__", None) or type(function).__module__).partition(".")[0]
    if library not in _LIBRARIES:
        return cause, f"Did you forget to add @triton.jit to {name}?"
    if name in _CONVERSIONS:
        return cause, f"convert with x.to(tl.{_CONVERSIONS[name]})"
    from .. import language

    if name in language.__all__:
        return cause, f"write tl.{name}"
    return cause, f"use functions of tl, which has no {name}, or pass the result of {name} as an argument"


def check_ordered(values: Iterable[Any]) -> None:
    """Rejects compile-time values whose `min` and `max` in Python depend on the order of the arguments.

    Raises:
      ArgumentError: for NaN and -0.0, as in Triton.
    """
    for value in values:
        if isinstance(value, float) and (math.isnan(value) or (value == 0 and math.copysign(1, value) < 0)):
            raise ArgumentError(
                f"min and max of compile-time values take no {value}", None, "compare it before, or use tl.minimum"
            )


def check_size(shape: Sequence[int]) -> None:
    """Rejects a tile of more elements than tiles have.

    Raises:
      ShapeError: says how many there would be.
    """
    if math.prod(shape) > MOST_ELEMENTS:
        shown = [int(side) for side in shape]
        raise ShapeError(
            f"a tile of the shape {shown} has {math.prod(shape)} elements, but a tile has at most {MOST_ELEMENTS}",
            None,
            "use smaller blocks, and a loop or more programs",
        )
