"""Called jit functions that keep their identity: device functions of scalars, with the user's name and comments."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..analysis.facts import body_facts
from ..ir.c_names import MATH_NAMES
from ..ir.nodes import DeviceFunction, Statement, Variable
from .static_loops import rolled
from .text.names import Names
from .text.scopes import find_scopes
from .text.unit import Function, Node

if TYPE_CHECKING:
    from .context import Context


def lower_function(context: Context, function: DeviceFunction) -> Function:
    """The text of one device function; what it calls is asked for from `context`."""
    from .context import ctype

    names = Names([variable.name for variable in function.parameters], MATH_NAMES | context.names.avoided)
    parameters = ", ".join(f"{ctype(variable.type)} {names.variable(variable)}" for variable in function.parameters)
    body = lower_scalar_body(context, function.body, names)
    comments = tuple(filter(None, (*function.origin.comments, function.docstring)))
    signature = f"__device__ __forceinline__ {ctype(function.result)} {context.function_name(function)}({parameters})"
    return Function(signature, comments, body)


def lower_scalar_body(
    context: Context, body: tuple[Statement, ...], names: Names, results: tuple[Variable, ...] = ()
) -> tuple[Node, ...]:
    """Statements of scalars, in a scope of their own; `results` are read after them."""
    from .statements import lower_block

    facts = body_facts(body, results=results)
    inner = context.nested(facts, find_scopes(body, {}), names)
    found = rolled(lower_block(inner, body), names)
    context.needs.unequal |= found.unequal
    return found.body
