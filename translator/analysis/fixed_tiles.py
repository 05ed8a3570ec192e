"""Tiles of integers whose every element is known: made of `arange` and numbers.

In: an expression, the definitions of variables that are assigned once, and what is known of the others. Out: the elements as
nested in NumPy, or None. What remains of a division by m is known where the unknown part is a multiple of m.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..ir.nodes import Call, Expr, Literal, Use, Variable
from ..language.dtypes import DType
from ..ops.numpy_functions import library
from ..ops.registry import OPS
from .axis_info import AxisInfo, axis_info

Definitions = Mapping[Variable, Expr]
Environment = Mapping[Variable, AxisInfo]
LARGEST = 1 << 31  # what is larger may have wrapped
SMALL = 1 << 7  # what is smaller fits every type
INTEGERS = frozenset(("add", "sub", "mul", "floordiv", "mod", "and", "or", "xor", "shl", "shr", "minimum", "maximum"))


def fixed_tile(expr: Expr, definitions: Definitions, environment: Environment, modulus: int = 0) -> Any | None:
    """The elements of an expression, in the shape of its tile; with a `modulus`, what they leave when divided by it."""
    np = library()
    found = _moved(expr, definitions, environment, modulus)
    if found is None and modulus and _is_multiple(expr, environment, modulus):
        found = np.zeros(expr.type.shape, np.int64)
    return found % modulus if found is not None and modulus else found


def _is_multiple(expr: Expr, environment: Environment, modulus: int) -> bool:
    info = axis_info(expr, environment)
    return all(info.everywhere(axis) % modulus == 0 for axis in range(len(info.constancy)))


def _moved(expr: Expr, definitions: Definitions, environment: Environment, modulus: int) -> Any | None:
    np = library()
    shape = tuple(int(side) for side in expr.type.shape)
    match expr:
        case Literal(value=int() as value):
            return np.full(shape, value, np.int64)
        case Use(variable=variable) if variable in definitions:
            return fixed_tile(definitions[variable], definitions, environment, modulus)
        case Call(op="arange"):
            return np.arange(expr.attribute("start"), expr.attribute("end"), dtype=np.int64)
        case Call(op="mod", args=(left, Literal(value=int() as value))) if value > 0 and not modulus:
            if not axis_info(left, environment).nonnegative:
                return None
            return fixed_tile(left, definitions, environment, int(value))
        case Call(op=op, args=args) if args and isinstance(args[0].type.element, DType):
            exact = op in ("add", "sub", "mul") if modulus else op in INTEGERS
            if not exact and op not in ("broadcast", "expand_dims", "reshape", "permute", "hint", "cast"):
                return None
            parts: list[Any] = [fixed_tile(arg, definitions, environment, modulus) for arg in args]
            if any(part is None for part in parts) or not args[0].type.dtype.is_int():
                return None
            if exact:
                result = OPS[op].numpy(*parts)
                return result if modulus or (abs(result) < LARGEST).all() else None
            if op == "cast" and not modulus and ((parts[0] < 0) | (parts[0] >= SMALL)).any():
                return None
            if op == "permute":
                return parts[0].transpose(expr.attribute("order"))
            return np.broadcast_to(parts[0], shape) if op == "broadcast" else parts[0].reshape(shape)
    return None
