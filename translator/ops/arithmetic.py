"""Operators of the language: arithmetic, bits, shifts, and the logic of booleans.

Integers wrap, quotients and remainders of integers truncate as in C, 16-bit floats round after every operation. `int1` is
one bit: its sum is an exclusive or, its product an and.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..language.dtypes import float32, float64, int1
from . import promotion as rules
from .numpy_functions import library as _np
from .numpy_functions import named
from .registry import OpDef, register

BINARY = ("x", "y")


def _on_integers(function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """`function` of arrays, booleans as 0 and 1."""

    def compute(x: Any, y: Any) -> Any:
        if x.dtype == bool:
            return function(x.view("uint8"), y.view("uint8")).astype(bool)
        return function(x, y)

    return compute


def _quotient(x: Any, y: Any) -> Any:
    """Towards zero; a division by zero, which is undefined, does not warn."""
    np = _np()
    safe = np.where(y == 0, np.ones_like(y), y)
    return ((x - np.fmod(x, safe)) // safe).astype(x.dtype)


def _remainder(x: Any, y: Any) -> Any:
    np = _np()
    if x.dtype.kind == "f":
        return np.fmod(x, y)
    return np.fmod(x, np.where(y == 0, np.ones_like(y), y))


def _shift(name: str) -> Callable[[Any, Any], Any]:
    """A shift by at most the width less one; more is undefined."""

    def compute(x: Any, y: Any) -> Any:
        np = _np()
        return getattr(np, name)(x, np.clip(y, 0, x.dtype.itemsize * 8 - 1))

    return _on_integers(compute)


for _op in (
    OpDef("add", BINARY, rules.arithmetic, lambda x, y: x ^ y if x.dtype == bool else x + y,
          {"*": "{x} + {y}", int1: "{x} != {y}"}, doc="Sum."),
    OpDef("sub", BINARY, rules.arithmetic, lambda x, y: x ^ y if x.dtype == bool else x - y,
          {"*": "{x} - {y}", int1: "{x} != {y}"}, doc="Difference."),
    OpDef("mul", BINARY, rules.arithmetic, lambda x, y: x & y if x.dtype == bool else x * y,
          {"*": "{x} * {y}", int1: "{x} && {y}"}, doc="Product."),
    OpDef("div", BINARY, rules.true_division, named("divide"), {"*": "{x} / {y}", float32: "divide({x}, {y})"},
          accuracy="/: div.full, 2 ulp, over the full range", doc="Quotient, always a float.", helper="divide",
          long=True),
    OpDef("floordiv", BINARY, rules.integer_division, _on_integers(_quotient), {"*": "{x} / {y}"},
          doc="Quotient of integers, rounded towards zero."),
    OpDef("mod", BINARY, rules.modulo, _on_integers(_remainder),
          {"*": "{x} % {y}", float32: "fmodf({x}, {y})", float64: "fmod({x}, {y})"},
          doc="Remainder with the sign of the dividend."),
    OpDef("and", BINARY, rules.bitwise, named("bitwise_and"), {"*": "{x} & {y}"},
          doc="Bitwise and."),
    OpDef("or", BINARY, rules.bitwise, named("bitwise_or"), {"*": "{x} | {y}"},
          doc="Bitwise or."),
    OpDef("xor", BINARY, rules.bitwise, named("bitwise_xor"), {"*": "{x} ^ {y}", int1: "{x} != {y}"},
          doc="Bitwise exclusive or."),
    OpDef("shl", BINARY, rules.left_shift, _shift("left_shift"), {"*": "{x} << {y}", int1: "{x} > {y}"}, doc="Left shift."),
    OpDef("shr", BINARY, rules.right_shift, _shift("right_shift"), {"*": "{x} >> {y}", int1: "{x} > {y}"},
          doc="Right shift: arithmetic for signed types."),
    OpDef("neg", ("x",), rules.negation, lambda x: x if x.dtype == bool else -x, {"*": "-{x}", int1: "({x})"},
          doc="Negation."),
    OpDef("invert", ("x",), rules.integer_only, lambda x: ~x, {"*": "~{x}", int1: "!{x}"}, doc="Complement of all bits."),
    OpDef("logical_and", BINARY, rules.logical, named("logical_and"), {"*": "{x} && {y}"}, doc="Both."),
    OpDef("logical_or", BINARY, rules.logical, named("logical_or"), {"*": "{x} || {y}"}, doc="Either."),
    OpDef("logical_not", ("x",), rules.logical, named("logical_not"), {"*": "!{x}"}, doc="Not."),
):  # fmt: skip
    register(_op)
