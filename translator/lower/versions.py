"""Versions of a variable that are one: `x = tl.reshape(...)` of an x that nobody reads any more, `x_ptr += row * stride`.

The frontend makes a version for each assignment that moves elements, since other threads may hold them then, and for the first
one to a parameter. Where the same threads hold the same elements of two versions, and the earlier one is read no more, both
have one array and one name.
"""

from __future__ import annotations

from collections.abc import Iterator, Set

from ..analysis.facts import Facts
from ..ir.nodes import Assign, Call, Combine, Kernel, Statement, Variable
from ..ir.structured import is_elementwise
from ..ir.walk import MOVES, REARRANGES, assigned_variables, only_values, statements
from ..schedule.accesses.pointers import read_only_pointers
from ..schedule.plan import Schedule
from ..schedule.staging.producer import consumer_block, producer_block
from ..schedule.tiles.layout_problem import tile_uses
from .text.scopes import Scopes, occurrences

MOVED = MOVES | REARRANGES  # operations whose results have elements in other places


def versions_of_one_array(
    kernel: Kernel, facts: Facts, schedule: Schedule, scopes: Scopes, named: Set[Variable]
) -> Iterator[tuple[Variable, Variable]]:
    """Each version with the first one of its name, in the order in which versions are assigned.

    Those that are `named` have a name already.
    """
    alike = _alike(kernel, facts, schedule, scopes, named)
    if not alike:
        return
    values = only_values(kernel.body)  # loads too: some are made where they are used, and read their masks there
    lazy = {*facts.absorbed, *facts.index, *schedule.functions} & values.keys()
    order: dict[Statement, int] = {}
    assigned = {parameter.variable: -1 for parameter in kernel.parameters}  # where each variable is first
    assignments: dict[Variable, Statement] = {}
    last_seen = dict(assigned)
    for _, statement, variable, is_target in occurrences(kernel.body, {v: values[v] for v in lazy}):
        last_seen[variable] = order.setdefault(statement, len(order))
        if is_target:
            assigned.setdefault(variable, last_seen[variable])
            assignments.setdefault(variable, statement)
    for versions in alike:
        array = before = versions[0]
        for variable in versions[1:]:
            place = assigned[variable]
            in_place = last_seen[before] == place and _element_by_element(assignments[variable], before, facts)
            free = last_seen[before] < place or in_place
            array, before = (array if free else variable), variable
            if free:
                yield variable, array


def _element_by_element(statement: Statement, before: Variable, facts: Facts) -> bool:
    """Whether each element of what a statement assigns is computed from the same one of `before`, if from any.

    It may be computed from the first of several equal ones.
    """
    if not before.type.is_tile:
        return True
    known = facts.known.get(before)
    if not isinstance(statement, Assign) or not is_elementwise(statement.value) or known is None:
        return False
    paths = [path for variable, path in tile_uses(statement.value, facts) if variable is before]
    calls = (call for path in paths for call, _ in path)
    return max(known.constancy) == 1 and not any(isinstance(call, Call) and call.op in MOVED for call in calls)


def _alike(
    kernel: Kernel, facts: Facts, schedule: Schedule, scopes: Scopes, named: Set[Variable]
) -> list[list[Variable]]:
    """Variables that could be one array if the earlier ones were not needed any more, in the order of their assignments."""
    apart = {*facts.absorbed, *facts.index, *facts.unused, *scopes.hoisted, *schedule.in_shared, *schedule.staged}
    apart |= {
        *schedule.functions,
        *named,
        *_reduced_together(kernel),
        *(one.variable for one in schedule.rings.ahead),
    }  # the last: see read_ahead.py
    parameters = (parameter.variable for parameter in kernel.parameters)
    variables = (*parameters, *(v for statement in statements(kernel.body) for v in assigned_variables(statement)))
    groups: dict[object, list[Variable]] = {}
    read_only = read_only_pointers(kernel)  # these are to const, which what is written through is not
    roles = _assigned_by_roles(kernel) if schedule.rings.has_producer else ()
    for variable in dict.fromkeys(variables):
        if variable not in apart and (key := _in_common(schedule, scopes, variable)) is not None:
            in_roles = tuple(variable in assigned for assigned in roles)
            groups.setdefault((key, variable in read_only, in_roles), []).append(variable)
    return [group for group in groups.values() if len(group) > 1]


def _assigned_by_roles(kernel: Kernel) -> tuple[set[Variable], ...]:
    """What the loading warpgroup assigns, and the others: a role that leaves out a variable does not declare it either."""
    loading = producer_block(kernel.body)
    parts = loading, consumer_block(kernel.body, loading)
    return tuple({v for statement in statements(part) for v in assigned_variables(statement)} for part in parts)


def _reduced_together(kernel: Kernel) -> Iterator[Variable]:
    """What is read as a field of the state that it was reduced in, and so has no array that another could have."""
    for statement in statements(kernel.body):
        if isinstance(statement, Assign) and isinstance(statement.value, Call):
            combine: Combine | None = statement.value.attribute("combine")
            if combine is not None and combine.parts:
                yield from statement.targets


def _in_common(schedule: Schedule, scopes: Scopes, variable: Variable) -> object:
    """What two versions have in common that can be one array; None for a variable that never shares one."""
    if variable.type.is_tile:
        known = variable in schedule.layouts and variable in scopes.blocks and not schedule.rings.rings
        return (variable.name, variable.type, schedule.layouts[variable], scopes.blocks[variable]) if known else None
    whole = scopes.blocks.get(variable, ()) == () and not schedule.rings.program_axes  # else later programs need it
    return (variable.name, variable.type) if whole else None
