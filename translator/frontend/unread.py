"""Atomics whose old elements nobody reads become effects."""

from __future__ import annotations

from ..ir.nodes import Assign, Call, Effect, Statement
from ..ir.rewrite import with_replaced
from ..ir.structured import is_atomic
from ..ir.walk import read_inside, statements


def without_unread_results(body: tuple[Statement, ...]) -> tuple[Statement, ...]:
    """The block in which an atomic gives no result where no statement reads it."""
    atomics = [
        (statement, statement.value)
        for statement in statements(body)
        if isinstance(statement, Assign) and isinstance(statement.value, Call) and is_atomic(statement.value)
    ]
    if not atomics:
        return body
    read = set(read_inside(body))
    unread: dict[Statement, Statement | None] = {
        s: Effect(s.origin, call) for s, call in atomics if not read & set(s.targets)
    }
    return with_replaced(body, unread)
