"""The functions of the language on tiles of NumPy: elementwise ones by the op table, the others by one table of handlers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..diagnostics import UnknownNameError
from ..language.builtin import Builtin
from ..language.constexpr import unwrap
from ..language.hints import propagates_nan
from . import accesses, blocks, debugging, dots, reductions, scaled, shapes
from .arguments import Arguments, constant
from .tile import Tile, apply, binary


def _propagating(op: str, names: tuple[str, ...]) -> Callable[[Arguments], Tile]:
    """An operation that has a variant in which NaN wins."""

    def handler(a: Arguments) -> Tile:
        to_nan = propagates_nan(constant(a["propagate_nan"], "propagate_nan"))
        return apply(f"{op}_nan" if to_nan else op, [a[name] for name in names])

    return handler


def _operator(op: str) -> Callable[[Arguments], Tile]:
    return lambda a: binary(op, a["x"], a["y"], wraps=not constant(a["sanitize_overflow"], "sanitize_overflow"))


def _cdiv(a: Arguments) -> Any:
    x, div = unwrap(a["x"]), unwrap(a["div"])
    return (x + (div - 1)) // div


HANDLERS: dict[str, Callable[[Arguments], Any]] = {
    **shapes.HANDLERS,
    **accesses.HANDLERS,
    **blocks.HANDLERS,  # after accesses: load and store take block pointers too
    **reductions.HANDLERS,
    **dots.HANDLERS,
    **scaled.HANDLERS,
    **debugging.HANDLERS,
    "minimum": _propagating("minimum", ("x", "y")),
    "maximum": _propagating("maximum", ("x", "y")),
    "clamp": _propagating("clamp", ("x", "min", "max")),
    "add": _operator("add"),
    "sub": _operator("sub"),
    "mul": _operator("mul"),
    "fdiv": lambda a: apply("fdiv", [a["x"], a["y"]]),
    "cdiv": _cdiv,
}


def call_builtin(builtin: Builtin, arguments: Arguments) -> Any:
    """Runs a function of the language on its bound arguments.

    Raises:
      UnknownNameError: for one that the interpreter does not have.
    """
    if builtin.op:
        return apply(builtin.op, list(arguments.values()))
    if builtin.name not in HANDLERS:
        raise UnknownNameError(f"tl.{builtin.name} cannot run in the interpreter", None, "set TILEWRIGHT_MODE=cpu")
    return HANDLERS[builtin.name](arguments)
