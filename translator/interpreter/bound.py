"""Names that end with a loop or a branch: what is first bound there is not defined behind it, as in the translator.

Python would go on with the last value. The rewritten kernel notes which names are bound in front of such a statement and
deletes the others behind it, where the statement was one of run time and the name is read elsewhere.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from .places import user_variables
from .tile import Tile

LOOP = "is defined only inside the loop"
LOOPED_OVER = "is changed inside the loop over it"
BRANCH = "is defined in only one branch of the if"
EARLIER = "is not defined"  # at the beginning of a trip: an earlier one bound it


class Bound:
    """What is bound in front of a loop or an `if` on line `line`; `gone` says why names are not any more."""

    def __init__(self, line: int) -> None:
        """The names that are bound now."""
        self.line, self.before, self.at_run_time = line, frozenset(user_variables()), False
        self.gone: dict[str, str] = {}


def branch(bound: Bound, condition: Any) -> Any:
    """The condition of an `if`, of which it is noted whether it is known at run time only."""
    bound.at_run_time = isinstance(condition, Tile)
    return condition


def ends(bound: Bound, name: str, why: str) -> bool:
    """Whether a name is to be deleted behind the statement."""
    has_ended = bound.at_run_time and name not in bound.before and name in user_variables()
    if has_ended:
        bound.gone[name] = why
    return has_ended


def why_gone(name: str, variables: dict[str, Any]) -> tuple[str, str] | None:
    """Why a variable is not defined any more, and what to do about it; None where it never was."""
    for one in variables.values():
        if isinstance(one, Bound) and name in one.gone:
            if one.gone[name] == EARLIER:
                return f"{name} {EARLIER}", "define it before this line"
            is_index = one.gone[name] == LOOPED_OVER
            remedy = f"in the loop, give what is computed from {name} another name" if is_index else ""
            return f"{name} {one.gone[name]} (line {one.line})", remedy or f"assign {name} before the branch or loop"
    return None


def reads(nodes: Iterable[ast.AST]) -> Counter[str]:
    """How often names are read."""
    return Counter(
        one.id
        for node in nodes
        for one in ast.walk(node)
        if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Load)
    ) + Counter(
        one.target.id
        for node in nodes
        for one in ast.walk(node)
        if isinstance(one, ast.AugAssign) and isinstance(one.target, ast.Name)
    )


def binds(nodes: Iterable[ast.AST]) -> set[str]:
    """The names that statements or expressions bind; those of comprehensions are their own."""
    return {
        one.id for node in nodes for one in _own(node) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)
    }


def ending_with_trip(node: ast.For | ast.While) -> dict[str, str]:
    """The names whose values of earlier trips would be seen: a loop's body reads them above where it first binds them.

    So would an inner loop see what it binds itself: it may give that another type than the trip before has left.
    """
    first: dict[type, dict[str, tuple[int, int]]] = {ast.Load: {}, ast.Store: {}}
    for one in (part for statement in node.body for part in _own(statement)):
        if isinstance(one, ast.Name) and type(one.ctx) in first:
            place, found = (one.lineno, one.col_offset), first[type(one.ctx)]
            found[one.id] = min(place, found.get(one.id, place))
    own = node.target.id if isinstance(node, ast.For) and isinstance(node.target, ast.Name) else ""
    bound, read = first[ast.Store], first[ast.Load]
    loops = [one for one in ast.walk(node) if isinstance(one, (ast.For, ast.While)) and one is not node]
    early = {name for name in bound if name in read and read[name] < bound[name]} | (binds(loops) & bound.keys())
    return dict.fromkeys(sorted(early - {own}), EARLIER)


def _own(node: ast.AST) -> Iterator[ast.AST]:
    yield node
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, ast.comprehension):
            yield from _own(child)


def ending_with(node: ast.For | ast.While | ast.If) -> dict[str, str]:
    """The names that may end with a statement, and why."""
    if isinstance(node, ast.If):
        if any(isinstance(one, ast.Return) for one in ast.walk(node)):
            return {}  # what follows is part of a branch then
        return dict.fromkeys(sorted(binds(node.body) ^ binds(node.orelse)), BRANCH)
    inside = binds(node.body if isinstance(node, ast.For) else [node.test, *node.body])
    own = node.target.id if isinstance(node, ast.For) and isinstance(node.target, ast.Name) else ""
    return {name: LOOPED_OVER if name == own else LOOP for name in sorted(inside)}
