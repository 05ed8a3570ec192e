"""Loads in a branch of a recurrence stand in front of it, under its condition: `if i > 0: last = tl.load(p)`.

In: a typed kernel. Out: the same kernel, in which such a load is one of those that every trip of its loop passes, so that it can
be made an iteration ahead as they are (`schedule/staging/next_loads.py`). What the condition rules out is masked, and touches no
memory. Only small tiles move, from memory that the kernel does not write, with addresses that are known in front of the branch.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from ...ir.nodes import Assign, Call, Expr, For, If, Kernel, Literal, Note, Statement, Variable
from ...ir.rewrite import substituted, with_replaced
from ...ir.structured import assigns, is_elementwise
from ...ir.types import ValueType
from ...ir.walk import assigned_inside, assignment_counts, statements, subexpressions, top_statements, used_variables
from ..accesses.pointers import lasting_loads
from ..accesses.waiting import holds_loads_back
from ..staging.next_loads import is_small, may_be_recurrence

MOVED = "moved in front of its branch"


def with_branch_loads(kernel: Kernel, num_warps: int) -> Kernel:
    """See the module docstring."""
    loops = [s for s in statements(kernel.body) if isinstance(s, For) and may_be_recurrence(s)]
    branches = [s for loop in loops for s in top_statements(loop.body) if isinstance(s, If)]
    if not branches or any(assigns(s, "dot") for s in statements(kernel.body)):
        return kernel
    counts, lasts = assignment_counts(kernel.body), lasting_loads(kernel)
    replaced: dict[Statement, Statement | None] = {}
    added: dict[tuple[Statement, bool], list[Statement]] = {}
    for branch in branches:
        for load, call in _early(branch, counts):
            if counts[load.target] == 1 and is_small(load.target, num_warps) and lasts(call) and not _may_fail(call):
                replaced[load] = None if _is_quoted(branch, load) else Note(load.origin.noted(MOVED))
                masked = replace(load, value=_masked(call, branch.condition))
                added.setdefault((branch, False), []).append(masked)
    return replace(kernel, body=with_replaced(kernel.body, replaced, added)) if replaced else kernel


def _early(branch: If, counts: Counter[Variable]) -> Iterator[tuple[Assign, Call]]:
    """The loads that a branch could make first of all, and what they are in terms of what is known in front of it.

    Those behind a wait for others, or behind an end of the program, stay there.
    """
    unknown = {variable for statement in branch.then for variable in assigned_inside(statement)}
    definitions: dict[Variable, Expr] = {}
    for statement in branch.then:
        if holds_loads_back(statement):
            return
        if not isinstance(statement, Assign) or len(statement.targets) != 1:
            continue
        value = substituted(statement.value, definitions)
        if not unknown.isdisjoint(used_variables(value)):
            continue
        if is_elementwise(value) and counts[statement.target] == 1:
            definitions[statement.target] = value
        elif isinstance(value, Call) and value.op == "load":
            yield statement, value


def _is_quoted(branch: If, load: Assign) -> bool:
    """Whether some of the load's line stays in the branch, so that nobody misses the line there."""
    return any(s is not load and s.origin.span is load.origin.span for s in branch.then)


def _may_fail(load: Call) -> bool:
    """Whether the address is a quotient, which a condition may keep from a divisor of zero."""
    parts = (part for arg in load.args for part in subexpressions(arg) if isinstance(part, Call))
    return any(part.op in ("floordiv", "mod") and not isinstance(part.args[1], Literal) for part in parts)


def _masked(load: Call, holds: Expr) -> Call:
    """The load where a condition holds."""
    pointer, *rest = load.args
    if pointer.type.is_tile:
        holds = Call(ValueType(holds.type.element, pointer.type.shape), "broadcast", (holds,))
    mask = Call(holds.type, "and", (holds, rest[0])) if rest else holds
    return replace(load, args=(pointer, mask, *rest[1:]))
