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
from ...ir.walk import read_variables, statements, where_from
from ...language.dtypes import DType
from .access import widest_access

DIVISORS = (1, 2, 4, 8)  # of 16 specialisation knows; 8 halves are 16 bytes


def finer_divisors(kernel: Kernel, some: Set[Variable]) -> dict[Variable, tuple[int, ...]]:
    """Of `some` parameters the divisors with each of which accesses are wider than with any below, the greatest first.

    The other parameters are multiples of 8 then.
    """
    candidates = [parameter for parameter in kernel.parameters if parameter.variable in some and _is_open(parameter)]
    if not candidates:
        return {}
    best = {parameter.variable: DIVISORS[-1] for parameter in candidates}
    now, widest = _widths(kernel, {}), _widths(kernel, best)
    read = (v for access, width in widest.items() if width > now[access] for v in read_variables(access))
    decisive = where_from(kernel.body, read)
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


def _widths(kernel: Kernel, divisors: Mapping[Variable, int]) -> dict[Statement, int]:
    """The elements that loads and stores of tiles have at once, at the most, if parameters had these divisors."""
    parameters = (Parameter(p.variable, divisors.get(p.variable, p.divisibility)) for p in kernel.parameters)
    facts = find_facts(replace(kernel, parameters=tuple(parameters)))
    found = {}
    for statement in statements(kernel.body):
        place = _place(statement)
        if place is not None:
            pointer, mask = place
            rank, here = len(pointer.type.shape), facts.at(statement)
            found[statement] = widest_access(pointer, mask, rank, lambda axis: ACCESS_BYTES, here).width
    return found


def _place(statement: Statement) -> tuple[Expr, Expr | None] | None:
    """The pointers and the mask of a statement that loads or stores a tile."""
    match statement:
        case Assign(value=Call(op="load", args=(pointer, *rest))) if pointer.type.is_tile:
            return pointer, rest[0] if rest else None
        case Effect(call=Call(op="store", args=(pointer, _, *rest))) if pointer.type.is_tile:
            return pointer, rest[0] if rest else None
    return None
