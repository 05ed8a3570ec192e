"""Called jit functions that keep their identity: device functions of scalars, with the user's name and comments."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..analysis.facts import body_facts
from ..ir.c_names import MATH_NAMES
from ..ir.nodes import Assign, DeviceFunction, Statement, Variable
from .static_loops import rolled
from .text.names import Names
from .text.operators import Text
from .text.scopes import find_scopes
from .text.unit import Function, Line, Node, words

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


def lower_scalar_body(context: Context, body: tuple[Statement, ...], names: Names) -> tuple[Node, ...]:
    """Statements of scalars, in a scope of their own."""
    return _lowered(_inside(context, body, names, ()), body)


def lower_combination(
    context: Context, body: tuple[Statement, ...], names: Names, results: tuple[Variable, ...]
) -> tuple[tuple[Node, ...], list[Text]]:
    """Statements of scalars, and the `results` that are read after them.

    Where the last lines do nothing but name the results, these are their values, and the lines are left out.
    """
    inner = _inside(context, body, names, results)
    nodes, named = _lowered(inner, body), [names.variable(result) for result in results]
    last = body[len(body) - len(results) :]
    values = [inner.speller.spell(one.value) for one in last if isinstance(one, Assign)]
    lines = tuple(inner.defined(result, None, value.assigned) for result, value in zip(results, values, strict=False))
    are_named = lines == nodes[len(nodes) - len(results) :] and all(map(inner.assigned_once, results))
    if not are_named or set(named) & words([Line(value.text) for value in values]):
        return nodes, [*map(Text, named)]
    return nodes[: -len(results)], values


def _inside(context: Context, body: tuple[Statement, ...], names: Names, results: tuple[Variable, ...]) -> Context:
    return context.nested(body_facts(body, results=results), find_scopes(body, {}), names)


def _lowered(inner: Context, body: tuple[Statement, ...]) -> tuple[Node, ...]:
    from .blocks import lower_block

    found = rolled(lower_block(inner, body), inner.names)
    inner.needs.unequal |= found.unequal
    return found.body
