"""Which copied tiles may be read by one program alone, so that L2 need not keep them for the others.

In: a load's box. Out: the dimensions in which a program's number decides where the box starts. If there are no more programs
than boxes across them, no two read the same, and what is read may leave L2 first, instead of what other kernels left there.
It is a hint: where it errs, results are the same.
"""

from __future__ import annotations

from ...analysis.boxes import Box
from ...ir.nodes import Call, Expr, Use, Variable
from ...ir.walk import subexpressions
from .ring_plan import RingFacts

Across = tuple[tuple[Expr, int | None], ...]  # (size of a dimension, axis of the tile that lies along it)


def boxes_across(given: RingFacts, box: Box, loop: Variable) -> Across:
    """(size, axis) per dimension that programs share out; () where that cannot be told, or an outer loop moves the box."""
    found: list[tuple[Expr, int | None]] = []
    for dim in box.dims:
        decided_by = _decided_by(given, dim.start, loop)
        if None in decided_by:
            return ()
        if decided_by == {"program"} and dim.size is not None:  # without a size the count is too low, which is safe
            found.append((dim.size, dim.axis))
    return tuple(found)


def _decided_by(given: RingFacts, expr: Expr, loop: Variable) -> set[str | None]:
    """What a start follows from: "program", "loop" for the ring's own, None for anything else that changes."""
    found: set[str | None] = set()
    parameters = {parameter.variable for parameter in given.kernel.parameters}
    pending, seen = [expr], {*parameters}
    while pending:
        for part in subexpressions(pending.pop()):
            if isinstance(part, Call) and part.op == "program_id":
                found.add("program")
            if not isinstance(part, Use) or part.variable in seen:
                continue
            seen.add(part.variable)
            if part.variable is loop:
                found.add("loop")
            elif part.variable in given.facts.definitions:
                pending.append(given.facts.definitions[part.variable])
            else:
                found.add(None)
    return found
