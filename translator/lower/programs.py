"""The programs that a block runs one after another: how they are counted, and where in the grid each of them lies.

Along one axis the block counts the program's number there, under the user's name for it if there is one. Programs of several
axes have one number over all of them, in an order that the schedule chooses; quotients and remainders of it are the program's
numbers along the axes, computed where the kernel asks for one and keeps it, or else in front of all its statements.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from ..ir.nodes import Assign, Call, Kernel, Statement, Variable
from .context import Context
from .statements import lower_program, repeated
from .unit import Branch, Line, Loop, Node, Place, words


def program_variable(context: Context, kernel: Kernel) -> Variable | None:
    """The variable that is the program's index and nothing else, always: it can count the programs, if they lie along x."""
    if context.schedule.rings.program_axes != 1:
        return None
    for statement in kernel.body:
        if not isinstance(statement, Assign) or not isinstance(statement.value, Call):
            continue
        target, value = statement.target, statement.value
        always = context.facts.assignments[target] == 1 and target not in context.facts.unused
        if always and value.op == "program_id" and value.attribute("axis") == 0:
            return target
    return None


def number_of_programs(context: Context) -> tuple[Node, ...]:
    """How many there are, where that is no parameter."""
    axes = range(context.schedule.rings.program_axes)
    if len(axes) < 2:
        return ()
    product = " * ".join(context.launch_word("num_programs", axis) for axis in axes)
    return (Line(f"const int {context.num_programs()} = {product};"),)


def each_program(context: Context, block: tuple[Statement, ...]) -> tuple[Node, ...]:
    """A role's statements, in a loop over the programs of a block where it runs several."""
    axes = context.schedule.rings.program_axes
    if not axes:
        return lower_program(context, block)
    program, count = context.program(), context.num_programs()
    header = f"for (int {program} = blockIdx.x; {program} < {count}; {program} += gridDim.x)"
    body = repeated(
        context, None, lambda: lower_program(context, block), ordered=True
    )  # programs do not wait for others
    places = (
        Place(context.launch_word("program_id", axis), context.program_place(axis))
        for axis in range(axes if axes > 1 else 0)
    )
    return (Loop(header, (*places, *body)),)


def without_idle_places(nodes: Iterable[Node]) -> tuple[Node, ...]:
    """The same without the numbers that no text behind them mentions."""
    nodes, found = tuple(nodes), list[Node]()
    for number, node in enumerate(nodes):
        match node:
            case Place(name=name):
                found += [node] if name in words(nodes[number + 1 :]) else []
            case Loop():
                found.append(replace(node, body=without_idle_places(node.body)))
            case Branch():
                then, otherwise = (without_idle_places(block) for block in (node.then, node.otherwise))
                found.append(replace(node, then=then, otherwise=otherwise))
            case _:
                found.append(node)
    return tuple(found)
