"""Whether an atomic that releases has anything to release.

In: a kernel and one of its atomics. Out: whether a fence has to stand before it.

A fence orders what the program has written, and read, before the atomic. Nothing needs it if the program has written nothing
by then, and if all that it has read goes into the atomic itself: the sum of a block, or the bin of a histogram, cannot be
known before the loads that it is made of are complete.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...ir.nodes import Assign, Call, Effect, For, Kernel, Statement, While
from ...ir.structured import LOADS, assigns, is_atomic
from ...ir.walk import nested, statements, used_variables, where_from


def has_to_release(kernel: Kernel, atomic: Assign | Effect) -> bool:
    """See the module docstring."""
    loaded: list[Assign] = []
    for statement in _earlier(kernel, atomic):
        if isinstance(statement, Effect):
            return True
        if isinstance(statement, Assign) and isinstance(statement.value, Call) and is_atomic(statement.value):
            return True
        if assigns(statement, *LOADS):
            loaded.append(statement)
    if not loaded:
        return False
    made_of = where_from(kernel.body, used_variables(atomic.value if isinstance(atomic, Assign) else atomic.call))
    return any(made_of.isdisjoint(statement.targets) for statement in loaded)


def _earlier(kernel: Kernel, last: Statement) -> Iterator[Statement]:
    """The statements that a program may have passed when it comes to one: in earlier trips of loops, too."""
    for statement in statements(kernel.body):
        if isinstance(statement, (For, While)) and last in nested(statement):
            yield from nested(statement)  # itself among them
        if statement is last:
            return
        yield statement
