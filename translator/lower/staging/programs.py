"""The programs that a block runs one after another: a loop around a role's statements for each axis of the grid they lie along.

Where the user keeps a program's number along an axis, the loop counts it under the user's name. Of programs of which some have
nothing to do, all blocks count the others, line by line, and each runs every n-th of them.
"""

from __future__ import annotations

from ...ir.nodes import Assign, Call, Expr, Kernel, Statement, Variable
from ...ir.types import ValueType
from ...language.dtypes import int32
from ...schedule.staging.useful_programs import UsefulPrograms
from ..blocks import lower_program
from ..context import Context
from ..control_flow import repeated
from ..text.constants import grid_word
from ..text.unit import Assignment, Declaration, Loop, Node, const
from .teams import pass_over


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
    body = (*pass_over(context), *body)
    if context.schedule.rings.useful is not None:
        return _taking_turns(context, context.schedule.rings.useful, body)
    for axis in range(axes):
        program, count = (context.launch_word(op, axis) for op in ("program_id", "num_programs"))
        first, step = (grid_word(op, axis) for op in ("program_id", "num_programs"))
        body = (Loop(f"for (int {program} = {first}; {program} < {count}; {program} += {step})", body),)
    return body


def _taking_turns(context: Context, useful: UsefulPrograms, body: tuple[Node, ...]) -> tuple[Node, ...]:
    """The loops over the programs that do something: in each line a block passes over those that are others' turn."""
    turn, count = (context.names.shared_index(word) for word in ("turn", "useful"))
    program = context.launch_word("program_id", useful.axis)
    end = context.speller.spell(_extreme("minimum", (_programs(useful.axis), *useful.ends)))
    nodes: tuple[Node, ...] = ()
    number, programs = turn, end.text
    if useful.firsts:
        first = context.speller.text(_extreme("maximum", useful.firsts))
        if not first.isidentifier():
            nodes = (const("int", word := context.names.shared_index("first"), first, "the line's first one"),)
            first = word
        number, programs = f"{first} + {turn}", f"max({end.within(12)} - {first}, 0)"
    nodes = (
        *nodes,
        const("int", count, programs, "programs of the line that do something"),
        Loop(
            f"for (; {turn} < {count}; {turn} += {grid_word('num_programs', 0)})",
            (const("int", program, number), *body),
        ),
    )
    others = [axis for axis in range(context.schedule.rings.program_axes) if axis != useful.axis]
    nodes = (*nodes, Assignment(turn, count, "-")) if others else nodes
    for axis in others:
        word, programs = (context.launch_word(op, axis) for op in ("program_id", "num_programs"))
        nodes = (Loop(f"for (int {word} = 0; {word} < {programs}; ++{word})", nodes),)
    comment = "this block's next one of the line's programs that do something"
    return (Declaration("int", turn, grid_word("program_id", 0), comment=comment), *nodes)


def _programs(axis: int) -> Expr:
    return Call(ValueType(int32), "num_programs", (), (("axis", axis),))


def _extreme(op: str, numbers: tuple[Expr, ...]) -> Expr:
    """The largest or the smallest of some numbers."""
    found, *others = numbers
    for other in others:
        found = Call(found.type, op, (found, other))
    return found
