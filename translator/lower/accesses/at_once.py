"""Scalars that are loaded for the rest of their statement alone: the load stands where its value is used.

In: a statement and the one behind it. Out: whether the second takes what the first one loads, so that it needs no name:
`const float target = __bfloat162float(logits_ptr[label]);`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...ir.nodes import Assign, Statement, Variable
from ...ir.structured import assigns, is_elementwise

if TYPE_CHECKING:
    from ..context import Context


def taken_at_once(context: Context, statement: Statement, following: Statement | None) -> Variable | None:
    """The scalar that a statement loads, if the one behind it of the same line computes with it and nothing else reads it."""
    if not isinstance(statement, Assign) or not assigns(statement, "load") or statement.target.type.is_tile:
        return None
    if statement in context.notes.after:  # what follows may overwrite the place that a scalar loaded ahead is read from
        return None
    if not isinstance(following, Assign) or len(following.targets) != 1 or not is_elementwise(following.value):
        return None
    made, ahead = following.target, context.ahead
    nameless = {*context.facts.absorbed, *context.facts.unused, *context.given, *ahead.values, *ahead.read_ahead}
    if made.type.is_tile or made in nameless or not context.assigned_once(statement.target):
        return None
    return statement.target if context.readers[statement.target] == [following] else None
