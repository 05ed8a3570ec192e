"""The programs that a block runs one after another: a loop around a role's statements for each axis of the grid they lie along.

Where the user keeps a program's number along an axis, the loop counts it under the user's name.
"""

from __future__ import annotations

from ...ir.nodes import Assign, Call, Kernel, Statement, Variable
from ..blocks import lower_program
from ..context import Context
from ..control_flow import repeated
from ..text.constants import grid_word
from ..text.unit import Loop, Node


def program_variables(context: Context, kernel: Kernel) -> dict[int, Variable]:
    """By axis, the variable that is the program's number along it and nothing else, always: it can count the programs."""
    found: dict[int, Variable] = {}
    for statement in kernel.body:
        value = statement.value if isinstance(statement, Assign) else None
        if not isinstance(statement, Assign) or not isinstance(value, Call) or value.op != "program_id":
            continue
        target, axis = statement.target, value.attribute("axis")
        always = context.facts.assignments[target] == 1 and target not in context.facts.unused
        if always and axis < context.schedule.rings.program_axes:
            found.setdefault(axis, target)
    return found


def each_program(context: Context, block: tuple[Statement, ...]) -> tuple[Node, ...]:
    """A role's statements, in loops over the programs of a block where it runs several, those along x in the innermost."""
    axes = context.schedule.rings.program_axes
    if not axes:
        return lower_program(context, block)
    body = repeated(
        context, None, lambda: lower_program(context, block), ordered=True
    )  # programs do not wait for others
    for axis in range(axes):
        program, count = (context.launch_word(op, axis) for op in ("program_id", "num_programs"))
        first, step = (grid_word(op, axis) for op in ("program_id", "num_programs"))
        body = (Loop(f"for (int {program} = {first}; {program} < {count}; {program} += {step})", body),)
    return body
