"""Reductions of the same block that can share one exchange between warps become one reduction with several results.

In: a typed kernel. Out: the same kernel, in which a later reduction stands beside an earlier one when all that it
reads is known there. Each exchange costs a barrier and two chains of shuffles, one after the other; together they cost one.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Mapping, Set
from dataclasses import replace

from ...hardware import WARP_SIZE
from ...ir.nodes import Assign, Call, Combine, Kernel, Note, Statement, Variable, While
from ...ir.rewrite import with_bodies, with_statements
from ...ir.structured import assigned_call
from ...ir.types import padded
from ...ir.walk import assigned_variables, assignment_counts, read_variables, statements

JOINED = ("sum", "max", "min")  # combinations that are spelled field by field
WIDEST_RUN = 16  # elements that one thread holds side by side, at most: 16 bytes of bytes


def join_reductions(kernel: Kernel, num_warps: int) -> Kernel:
    """See the module docstring; a block of one warp exchanges nothing and is returned as it is."""
    if num_warps == 1:
        return kernel
    times = assignment_counts(kernel.body)
    kinds = [_kind(s) for s in statements(kernel.body) if isinstance(s, Assign) and _can_join(s, times)]
    body = _joined(kernel.body, times) if len(set(kinds)) < len(kinds) else kernel.body
    return kernel if body is kernel.body else replace(kernel, body=body)


def _joined(block: tuple[Statement, ...], assignments: Counter[Variable]) -> tuple[Statement, ...]:
    """A block whose reductions stand as early as those that they can join: one scan, whatever the length."""
    statements_ = [_inside(statement, assignments) for statement in block]
    assigned: dict[Variable, int] = {}  # where in the block each variable was assigned last
    leaders: dict[tuple[int | None, ...], list[int]] = {}  # by kind: where reductions stand that others may join
    groups: dict[int, list[Assign]] = {}
    joined: set[int] = set()
    for here, statement in enumerate(statements_):
        if isinstance(statement, Assign) and _can_join(statement, assignments):
            known = max((assigned.get(v, -1) for v in read_variables(statement)), default=-1)
            same = leaders.setdefault(_kind(statement), [])
            earliest = bisect_right(same, known)
            if earliest < len(same):
                groups[same[earliest]].append(statement)
                joined.add(here)
            else:
                same.append(here)
                groups[here] = [statement]
        for inner in statements((statement,)):
            assigned |= dict.fromkeys(assigned_variables(inner), here)
    if not joined:
        return with_statements(block, statements_)
    kept = [_together(groups[k]) if len(groups.get(k, ())) > 1 else s for k, s in enumerate(statements_)]
    return tuple(_noted(kept, statements_, groups, joined))


def _inside(statement: Statement, assignments: Counter[Variable]) -> Statement:
    if isinstance(statement, While):  # what its condition reduces stays as it is
        body = _joined(statement.body, assignments)
        return statement if body is statement.body else replace(statement, body=body)
    return with_bodies(statement, lambda body: _joined(body, assignments))


def _noted(
    kept: list[Statement], before: list[Statement], groups: Mapping[int, list[Assign]], joined: Set[int]
) -> Iterator[Statement]:
    """The block without the reductions that are done elsewhere; their lines say where."""
    elsewhere = {
        other.origin: group[0].origin.place(group[0].origin.span.line)
        for group in groups.values()
        for other in group[1:]
        if other.origin != group[0].origin
    }
    left = Counter(s.origin for k, s in enumerate(before) if k not in joined)
    for here, statement in enumerate(kept):
        place = elsewhere.get(statement.origin)
        origin = statement.origin if place is None else statement.origin.noted(f"reduced at {place}")
        if here not in joined:
            yield statement if place is None else replace(statement, origin=origin)
        elif place is not None and not left[statement.origin]:
            yield Note(origin)


def _can_join(statement: Statement, assignments: Counter[Variable]) -> bool:
    """Whether a statement reduces one tile, in a way that can be spelled by fields, and several warps may have parts of it."""
    call = assigned_call(statement, "reduce")
    if call is None or not isinstance(statement, Assign):
        return False
    combine = call.attribute("combine")
    if len(call.args) != 1 or combine.op not in JOINED or assignments[statement.target] != 1:
        return False
    shape = call.args[0].type.shape
    is_large = math.prod(call.type.shape) > 1 or math.prod(shape) > WARP_SIZE * WIDEST_RUN
    return is_large and all(side == padded(side) for side in shape)


def _kind(statement: Assign) -> tuple[int | None, ...]:
    """What reductions have in common that can share an exchange: the axis, and the sides of their tiles."""
    call = _call(statement)
    return (call.attribute("axis"), *call.args[0].type.shape)


def _call(reduction: Assign) -> Call:
    if not isinstance(reduction.value, Call):
        raise TypeError("not a reduction")
    return reduction.value


def _together(reductions: list[Assign]) -> Assign:
    """One reduction with the results of several."""
    calls = [_call(reduction) for reduction in reductions]
    targets = tuple(reduction.target for reduction in reductions)
    ops = [call.attribute("combine").op for call in calls]
    word = (
        f"{ops[0]}s" if len(set(ops)) == 1 else "extrema" if {*ops} == {"max", "min"} else "_".join(dict.fromkeys(ops))
    )
    combine = Combine("together", word, parts=tuple(zip(ops, (target.name for target in targets), strict=True)))
    arguments = tuple(call.args[0] for call in calls)
    call = replace(calls[0], args=arguments, attributes=(("axis", calls[0].attribute("axis")), ("combine", combine)))
    return replace(reductions[0], targets=targets, value=call)
