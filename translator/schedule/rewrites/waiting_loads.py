"""Loads of a `while` that only another program can end, such as `while tl.load(flag) == 0`, become volatile.

In: a typed kernel. Out: the same kernel, in which these loads are made in every trip. Triton makes every load where it stands.
C++ takes plain memory to be nobody else's, and a loop without effects to end: it may load once, or leave the loop out.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ...analysis.masks import CONJUNCTIONS
from ...ir.nodes import Assign, Call, Expr, If, Kernel, Statement, Use, Variable, While
from ...ir.rewrite import with_replaced
from ...ir.structured import assigned_call
from ...ir.walk import assigned_variables, only_values, statements, used_variables
from ..accesses.pointers import pointer_sources, roots_of, written_in


def with_waiting_loads(kernel: Kernel) -> Kernel:
    """See the module docstring."""
    loops = [statement for statement in statements(kernel.body) if isinstance(statement, While)]
    if not loops:
        return kernel
    sources = pointer_sources(kernel)
    replaced: dict[Statement, Statement] = {}
    for loop in loops:
        written = written_in((loop,), sources)
        for statement, load in _awaited(loop):
            if not roots_of(load.args[0], sources) & written:
                replaced[statement] = replace(statement, value=_volatile(load))
    return replace(kernel, body=with_replaced(kernel.body, replaced)) if replaced else kernel


def _awaited(loop: While) -> Iterator[tuple[Assign, Call]]:
    """The loads on which a part of the loop's condition waits: nothing else of that part changes from trip to trip."""
    inside = list(statements((*loop.prelude, *loop.body)))
    assigned = {variable for statement in inside for variable in assigned_variables(statement)}
    renewed = _renewed(inside, assigned)
    for part in _parts(loop.condition, only_values(loop.prelude)):
        deciding = _deciding(inside, set(used_variables(part)) & assigned) & assigned
        if deciding <= renewed:
            for statement in inside:
                load = assigned_call(statement, "load")
                if load is not None and isinstance(statement, Assign) and statement.target in deciding:
                    yield statement, load


def _parts(condition: Expr, definitions: dict[Variable, Expr]) -> list[Expr]:
    """The conditions that must all hold for another trip."""
    if isinstance(condition, Use) and condition.variable in definitions:
        return _parts(definitions[condition.variable], definitions)
    if isinstance(condition, Call) and condition.op in CONJUNCTIONS:
        return [part for arg in condition.args for part in _parts(arg, definitions)]
    return [condition]


def _renewed(inside: list[Statement], assigned: set[Variable]) -> set[Variable]:
    """The variables that every trip computes anew, from memory and from what the loop does not change: no counters."""
    found: set[Variable] = set()
    while True:
        made = {v: True for v in assigned - found}
        for statement in inside:
            for variable in set(assigned_variables(statement)) & made.keys():
                uses = set(used_variables(statement.value)) if isinstance(statement, Assign) else {variable}
                made[variable] &= (uses & assigned) <= found
        more = {variable for variable, anew in made.items() if anew}
        if not more:
            return found
        found |= more


def _deciding(inside: list[Statement], start: set[Variable]) -> set[Variable]:
    """Variables, what they are computed from, and the conditions under which they are assigned."""
    found, size = set(start), -1
    while size != len(found):
        size = len(found)
        for statement in inside:
            if isinstance(statement, Assign) and not found.isdisjoint(statement.targets):
                found.update(used_variables(statement.value))
            if isinstance(statement, If) and any(
                not found.isdisjoint(assigned_variables(inner)) for inner in statements((statement,))
            ):
                found.update(used_variables(statement.condition))
    return found


def _volatile(load: Call) -> Call:
    others = tuple((name, value) for name, value in load.attributes if name != "volatile")
    return replace(load, attributes=(*others, ("volatile", True)))
