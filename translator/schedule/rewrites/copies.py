"""Takes out names that only stand for what another name holds: `offs = tl.multiple_of(offs, 16)` is no computation.

In: a typed kernel. Out: the kernel in which whatever read such a tile reads the other one, promises included.
"""

from __future__ import annotations

from dataclasses import replace

from ...ir.nodes import Assign, Call, Expr, Kernel, Note, Statement, Use, Variable
from ...ir.rewrite import substituted_in, with_replaced
from ...ir.walk import assignment_counts, statements


def without_copies(kernel: Kernel) -> Kernel:
    """See the module docstring; names that are assigned more than once stay, but for those that get their own elements."""
    times = assignment_counts(kernel.body)
    values: dict[Variable, Expr] = {}
    notes: dict[Statement, Statement] = {}
    for statement in statements(kernel.body):
        if not isinstance(statement, Assign) or len(statement.targets) != 1 or not statement.target.type.is_tile:
            continue
        source = statement.value
        while isinstance(source, Call) and source.op == "hint":
            source = source.args[0]
        if isinstance(source, Use) and source.variable is statement.target and source is statement.value:
            notes[statement] = Note(statement.origin.noted("the same elements"))  # x = x.to(its type)
        elif isinstance(source, Use) and times[statement.target] == 1 and times[source.variable] <= 1:
            values[statement.target] = substituted_in(statement.value, values)
            hinted = source is not statement.value
            note = "a promise: no code" if hinted else "the same elements"
            notes[statement] = Note(statement.origin.noted(note))
    if not notes:
        return kernel
    return replace(kernel, body=substituted_in(with_replaced(kernel.body, notes), values))
