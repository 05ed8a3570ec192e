"""Atomics whose result nobody needs become statements of their own, whatever else is assigned to the same variable.

In: a typed kernel. Out: the same kernel, in which such an atomic is an `Effect`: nothing that is dropped because its value is not
used does anything but give a value. What is computed from such a result, which nobody needs either, leaves a note.
"""

from __future__ import annotations

from dataclasses import replace

from ...analysis.facts import has_effect, needed_variables
from ...ir.nodes import Assign, Call, Effect, Kernel, Note, Statement, Variable
from ...ir.rewrite import with_replaced
from ...ir.walk import read_variables, statements


def without_unused_results(kernel: Kernel) -> Kernel:
    """See the module docstring."""
    found = [s for s in statements(kernel.body) if isinstance(s, Assign) and _is_atomic(s)]
    if not found:
        return kernel
    needed = needed_variables(kernel.body)
    unused = [s for s in found if not needed.intersection(s.targets)]
    if not unused:
        return kernel
    replaced: dict[int, Statement] = {id(s): Effect(s.origin, s.value) for s in unused if isinstance(s.value, Call)}
    readers = _readers(kernel, {target for s in unused for target in s.targets})
    code = {s.origin for s in statements(kernel.body) if id(s) not in readers}
    for key, reader in readers.items():
        explains = reader.origin not in code  # a line with code has nothing to explain
        replaced[key] = Note(reader.origin.noted("its value is not used") if explains else reader.origin)
    return replace(kernel, body=with_replaced(kernel.body, replaced))


def _readers(kernel: Kernel, lost: set[Variable]) -> dict[int, Assign]:
    """What reads variables of which no value is left, directly or through others, by `id`: nobody needs any of it."""
    computed = [s for s in statements(kernel.body) if isinstance(s, Assign) and not has_effect(s.value)]
    found: dict[int, Assign] = {}
    while new := [s for s in computed if id(s) not in found and not lost.isdisjoint(read_variables(s))]:
        found.update({id(s): s for s in new})
        lost = lost.union(*(s.targets for s in new))
    return found


def _is_atomic(statement: Assign) -> bool:
    value = statement.value
    return isinstance(value, Call) and value.op != "load" and has_effect(value)
