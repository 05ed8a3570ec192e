"""Statements behind which memory may hold something else than before, or nothing that the kernel may read.

What a kernel loads behind them is not loaded ahead of them: they wait for other programs or grids, or end the program.
"""

from __future__ import annotations

from ...analysis.facts import has_effect
from ...ir.nodes import Assign, Effect, Return, Statement, While
from ...ir.walk import statements

PASSED = ("store", "box_store", "make_map", "device_print", "assume", "gdc_launch_dependents")  # what nothing waits in


def waits_for_grids(statement: Statement) -> bool:
    """Whether a statement waits for the grids that this one depends on."""
    return isinstance(statement, Effect) and statement.call.op == "gdc_wait"


def polls(statement: Statement) -> bool:
    """Whether a statement is a loop that asks memory whether it may end: a lock, or a flag that another program sets."""
    return isinstance(statement, While) and any(
        isinstance(inner, Assign) and has_effect(inner.value) for inner in statements((statement,))
    )


def holds_loads_back(statement: Statement) -> bool:
    """Whether a load that stands behind a statement must not be made in front of it."""
    return any(
        isinstance(inner, Return)
        or (isinstance(inner, Assign) and has_effect(inner.value))
        or (isinstance(inner, Effect) and inner.call.op not in PASSED)
        for inner in statements((statement,))
    )
