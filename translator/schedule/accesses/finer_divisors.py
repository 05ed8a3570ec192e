"""Which integers had better be multiples of something: rows of 1000 halves are aligned, though 16 does not divide 1000.

In: a kernel as it was written, with what is known of its parameters. Out: by parameter the divisors that make accesses wider. A
launch that has one gets a text of its own (`LaunchParameter.finer`). Integers that no access depends on are left out, for
which there would be texts that do the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import replace

from ...analysis.axis_info import known_divisor
from ...analysis.facts import Facts, find_facts
from ...analysis.flow import follow
from ...hardware import ACCESS_BYTES
from ...ir.nodes import Assign, Call, Effect, Expr, Kernel, Parameter, Statement, Variable
from ...ir.walk import read_variables, statements, where_from
from ...language.dtypes import DType
from .access import widest_access

DIVISORS = (2, 4, 8)  # of 16 specialisation knows; 8 halves are 16 bytes

Place = tuple[Expr, Expr | None]  # the pointers and the mask of an access
Widths = dict[Statement, tuple[int, bool]]  # by access: the most elements at once, and whether always all of them


def finer_divisors(kernel: Kernel, some: Set[Variable]) -> dict[Variable, tuple[int, ...]]:
    """Of `some` parameters the divisors with each of which accesses are wider than with any below, the greatest first.

    An access is looked at as it is when all parameters are multiples of as much, and belongs to those without which it is not
    as wide as it can be, or has to count how many of its elements are inside of a bound. What is as wide in any case may count.
    """
    open_ones = {p.variable: p.divisibility for p in kernel.parameters if p.variable in some and _is_open(p)}
    every = {statement: place for statement in statements(kernel.body) if (place := _place(statement))}
    if not open_ones or not every:
        return {}
    facts, all_known = find_facts(kernel), {p.variable: p.divisibility for p in kernel.parameters}

    def widths(places: Mapping[Statement, Place], divisor: int, but: Variable | None = None) -> Widths:
        own = {one: max(divisor, known) for one, known in open_ones.items() if one is not but}
        return _widths(kernel, places, facts, {**all_known, **own})

    least, most = widths(every, 1), widths(every, DIVISORS[-1])
    wider = {access: place for access, place in every.items() if most[access][0] > least[access][0]}
    if not wider:
        return {}
    levels = [least, *(widths(wider, divisor) for divisor in DIVISORS[:-1]), most]
    decisive = where_from(kernel.body, (v for access in wider for v in read_variables(access)))
    found = {}
    for one, known in open_ones.items():
        without = widths(wider, DIVISORS[-1], but=one) if one in decisive else most
        own = [access for access in wider if without[access] < most[access]]
        steps = zip(DIVISORS, levels, levels[1:], strict=False)
        useful = (d for d, below, here in steps if d > known and any(here[access] > below[access] for access in own))
        if divisors := tuple(useful)[::-1]:
            found[one] = divisors
    return found


def _is_open(parameter: Parameter) -> bool:
    """Whether a parameter is an integer that might be a multiple of more."""
    element = parameter.variable.type.element
    is_integer = isinstance(element, DType) and element.is_int() and not element.is_bool()
    return is_integer and parameter.divisibility < DIVISORS[-1]


def _widths(
    kernel: Kernel, places: Mapping[Statement, Place], facts: Facts, divisors: Mapping[Variable, int]
) -> Widths:
    """How wide accesses are at the most if parameters have these divisors; all other facts are what they were."""
    known, environments = follow(kernel.body, {one: known_divisor(divisor) for one, divisor in divisors.items()})
    facts = replace(facts, known=known, environments=environments)
    found = (
        widest_access(*place, place[0].type.rank, lambda axis: ACCESS_BYTES, facts.at(access))
        for access, place in places.items()
    )
    return {access: (widest.width, not widest.bounds) for access, widest in zip(places, found, strict=True)}


def _place(statement: Statement) -> Place | None:
    """The pointers and the mask of a statement that loads or stores a tile."""
    match statement:
        case Assign(value=Call(op="load", args=(pointer, *rest))) if pointer.type.is_tile:
            return pointer, rest[0] if rest else None
        case Effect(call=Call(op="store", args=(pointer, _, *rest))) if pointer.type.is_tile:
            return pointer, rest[0] if rest else None
    return None
