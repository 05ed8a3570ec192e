"""Versions of a variable that are one: `x = tl.reshape(...)` of an x that nobody reads any more, `x_ptr += row * stride`.

The frontend makes a version for each assignment that moves elements, since other threads may hold them then, and for the first
one to a parameter. Where the same threads hold the same elements of two versions, and the earlier one is read no more, both
have one array and one name.
"""

from __future__ import annotations

from collections.abc import Iterator, Set

from ..analysis.facts import Facts
from ..ir.nodes import Kernel, Variable
from ..schedule.plan import Schedule
from .text.scopes import Scopes, occurrences


def versions_of_one_array(
    kernel: Kernel, facts: Facts, schedule: Schedule, scopes: Scopes, named: Set[Variable]
) -> Iterator[tuple[Variable, Variable]]:
    """Each version with the first one of its name, in the order in which versions are assigned.

    Those that are `named` have a name already.
    """
    apart = {*facts.absorbed, *facts.index, *facts.unused, *scopes.hoisted, *schedule.in_shared, *schedule.staged}
    apart |= {*schedule.functions, *named}
    lazy = {*facts.absorbed, *facts.index, *schedule.functions} & facts.definitions.keys()
    order: dict[int, int] = {}  # of statements, by their `id`
    assigned = {parameter.variable: -1 for parameter in kernel.parameters}  # where each variable is first
    last_seen = dict(assigned)
    for _, statement, variable, assigns in occurrences(kernel.body, (), {v: facts.definitions[v] for v in lazy}):
        last_seen[variable] = order.setdefault(statement, len(order))
        if assigns:
            assigned.setdefault(variable, last_seen[variable])
    latest: dict[object, tuple[Variable, Variable]] = {}  # by what versions have in common: the last one, and its array
    for variable, place in assigned.items():
        key = _in_common(kernel, schedule, scopes, variable)
        if variable in apart or key is None:
            continue
        before, array = latest.get(key, (variable, variable))
        free = last_seen[before] < place or (last_seen[before] == place and not variable.type.is_tile)
        if before is not variable and free:
            yield variable, array
            latest[key] = variable, array
        else:
            latest[key] = variable, variable


def _in_common(kernel: Kernel, schedule: Schedule, scopes: Scopes, variable: Variable) -> object:
    """What two versions have in common that can be one array; None for a variable that never shares one."""
    if variable.type.is_tile:
        known = variable in schedule.layouts and variable in scopes.blocks and not schedule.rings.rings
        return (variable.name, variable.type, schedule.layouts[variable], scopes.blocks[variable]) if known else None
    whole = scopes.blocks.get(variable, ()) == () and not schedule.rings.program_axes  # else later programs need it
    return (variable.name, variable.type) if whole else None
