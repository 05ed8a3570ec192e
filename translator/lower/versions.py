"""Versions of a variable that are one array: `x = tl.reshape(...)` of an x that nobody reads any more.

The frontend makes a version for each assignment that moves elements, since other threads may hold them then. Where the same
threads hold the same elements of two versions, and the earlier one is read no more, both have one array and one name.
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
    """Each version with the first one of its array, in the order in which versions are assigned.

    Those that are `named` have a name already.
    """
    ahead = {variable for ring in schedule.rings.rings for variable in (*ring.tiles, *ring.own)}
    apart = {*facts.absorbed, *facts.index, *facts.unused, *scopes.hoisted, *schedule.in_shared, *schedule.staged}
    apart |= {*schedule.functions, *ahead, *named}
    definitions = {variable: facts.definitions[variable] for variable in facts.absorbed}
    order: dict[int, int] = {}  # of statements, by their `id`
    assigned: dict[Variable, int] = {}  # where each is first
    last_seen: dict[Variable, int] = {}
    for _, statement, variable, assigns in occurrences(kernel.body, (), definitions):
        last_seen[variable] = order.setdefault(statement, len(order))
        if assigns:
            assigned.setdefault(variable, last_seen[variable])
    latest: dict[object, tuple[Variable, Variable]] = {}  # by what versions have in common: the last one, and its array
    for variable, place in assigned.items():
        if variable in apart or variable not in schedule.layouts or variable not in scopes.blocks:
            continue
        key = variable.name, variable.type, schedule.layouts[variable], scopes.blocks[variable]
        before, array = latest.get(key, (variable, variable))
        if before is not variable and last_seen[before] < place:
            yield variable, array
            latest[key] = variable, array
        else:
            latest[key] = variable, variable
