"""Scalars that one thread of a block finds out and the others read in shared memory."""

from __future__ import annotations

from ...ir.nodes import Assign, Effect, Variable
from ..context import Context, ctype
from ..text.unit import Assignment, Branch, Node, Shared


def told_by_one(
    context: Context,
    statement: Assign | Effect,
    target: Variable,
    condition: str,
    text: str,
    what: str,
    around: tuple[tuple[Node, ...], tuple[Node, ...]] = ((), ()),
) -> tuple[Node, ...]:
    """`target` becomes what `text` is to the thread for which `condition` holds.

    `what` describes it, and `around` are lines before and after it.
    """
    name = context.shared.scratch_name(statement, "result", f"{target.name}_shared")
    array = Shared(name, ctype(target.type), "[1]", target.type.dtype.itemsize, what)
    context.shared.scratch(statement, "result", array)
    before, after = around
    nodes = (
        *context.before_write(name),
        Branch(condition, (*before, Assignment(f"{name}[0]", text), *after)),
        *context.barrier("the result is there for everyone"),
        *context.bind_scalar(statement, target, f"{name}[0]"),
    )
    context.shared.being_read.add(name)
    return nodes
