"""Which integers had better be multiples of something: rows of 1000 halves are aligned, though 16 does not divide 1000.

In: a kernel as it was written, with what is known of its parameters. Out: by parameter the divisors that make accesses wider. A
launch that has one gets a text of its own (`LaunchParameter.finer`). Integers that no access depends on are left out, for
which there would be texts that do the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import replace

from ...analysis.facts import find_facts
from ...hardware import ACCESS_BYTES
from ...ir.nodes import Assign, Call, Effect, Expr, Kernel, Parameter, Statement, Variable
from ...ir.walk import statements, used_variables, where_from
from ...language.dtypes import DType
from .access import widest_access

DIVISORS = (
    1,
    2,
    4,
    8,
)  # of 16 specialisation knows; 8 of the smallest elements that tensor cores round to are 16 bytes


def finer_divisors(kernel: Kernel, some: Set[Variable]) -> dict[Variable, tuple[int, ...]]:
    """Of `some` parameters the divisors with each of which accesses are wider than with any below, the greatest first.

    The other parameters are multiples of 8 then.
    """
    candidates = [parameter for parameter in kernel.parameters if parameter.variable in some and _is_open(parameter)]
    best = {parameter.variable: DIVISORS[-1] for parameter in candidates}
    now, wanted = _widths(kernel, {}), _widths(kernel, best)
    places = [place for place, width in wanted.items() if width > now[place]]
    decisive = where_from(kernel.body, (v for place in places for expr in place for v in used_variables(expr)))
    found = {}
    for parameter in candidates:
        if parameter.variable in decisive:
            known = [parameter.divisibility, *(d for d in DIVISORS if d > parameter.divisibility)]
            widths = [_widths(kernel, {**best, parameter.variable: divisor}) for divisor in known]
            wider = [d for d, own, below in zip(known[1:], widths[1:], widths, strict=False) if own != below]
            if wider:
                found[parameter.variable] = tuple(reversed(wider))
    return found


def _is_open(parameter: Parameter) -> bool:
    """Whether a parameter is an integer that might be a multiple of more."""
    element = parameter.variable.type.element
    is_integer = isinstance(element, DType) and element.is_int() and not element.is_bool()
    return is_integer and parameter.divisibility < DIVISORS[-1]


def _widths(kernel: Kernel, divisors: Mapping[Variable, int]) -> dict[tuple[Expr, ...], int]:
    """The elements of the widest accesses by what decides about them, pointer and mask, if parameters had these divisors."""
    parameters = (Parameter(p.variable, divisors.get(p.variable, p.divisibility)) for p in kernel.parameters)
    facts = find_facts(replace(kernel, parameters=tuple(parameters)))
    found = {}
    for statement in statements(kernel.body):
        call = _access(statement)
        if call is not None:
            pointer, mask = _pointer_and_mask(call)
            shape = pointer.type.shape
            width = widest_access(pointer, mask, len(shape), lambda axis: ACCESS_BYTES, facts.at(statement)).width
            found[(pointer,) if mask is None else (pointer, mask)] = width
    return found


def _access(statement: Statement) -> Call | None:
    """What loads or stores a tile, of a statement that does."""
    match statement:
        case Assign(value=Call(op="load") as call) | Effect(call=Call(op="store") as call) if call.args[0].type.is_tile:
            return call
    return None


def _pointer_and_mask(call: Call) -> tuple[Expr, Expr | None]:
    if call.op == "load":
        pointer, mask, *_ = (*call.args, None)
    else:
        pointer, _, mask, *_ = (*call.args, None)
    return pointer, mask  # type: ignore[return-value]
