"""Atomics whose result nobody needs become statements of their own, whatever else is assigned to the same variable.

In: a typed kernel. Out: the same kernel, in which such an atomic is an `Effect`: nothing that is dropped because its value is not
used does anything but give a value.
"""

from __future__ import annotations

from dataclasses import replace

from ...analysis.facts import has_effect, needed_variables
from ...ir.nodes import Assign, Call, Effect, Kernel, Statement
from ...ir.rewrite import with_replaced
from ...ir.walk import statements


def without_unused_results(kernel: Kernel) -> Kernel:
    """See the module docstring."""
    found = [s for s in statements(kernel.body) if isinstance(s, Assign) and _is_atomic(s)]
    if not found:
        return kernel
    needed = needed_variables(kernel.body)
    replaced: dict[int, Statement] = {
        id(s): Effect(s.origin, s.value)
        for s in found
        if isinstance(s.value, Call) and not needed.intersection(s.targets)
    }
    return replace(kernel, body=with_replaced(kernel.body, replaced)) if replaced else kernel


def _is_atomic(statement: Assign) -> bool:
    value = statement.value
    return isinstance(value, Call) and value.op != "load" and has_effect(value)
