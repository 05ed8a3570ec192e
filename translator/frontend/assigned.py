"""Which names a piece of source assigns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import libcst as cst

from .tree import below, children

ASSIGNMENTS: frozenset[Any] = frozenset((cst.AssignTarget, cst.AugAssign, cst.AnnAssign, cst.NamedExpr))
BINDING = ASSIGNMENTS | {cst.For}


def assigned_names(*nodes: cst.CSTNode) -> list[str]:
    """Names that assignments and loops inside `nodes` bind, in order, each once."""
    found = (one for node in nodes for one in below(node))
    return list(dict.fromkeys(name for one in found if type(one) in BINDING for name in _names(one.target)))


def names_assigned_once(node: cst.CSTNode) -> frozenset[str]:
    """Names that a single assignment inside `node` binds."""
    return frozenset(name for name, count in _counts(node).items() if count == 1)


def names_read_outside_their_loops(node: cst.CSTNode) -> frozenset[str]:
    """Names that are read somewhere inside `node` where no `for` loop over the same name stands around."""
    found: set[str] = set()
    waiting: list[tuple[Any, frozenset[str]]] = [(node, frozenset())]  # with the names of the loops around
    while waiting:
        one, loops = waiting.pop()
        if type(one) is cst.Name:
            if one.value not in loops:
                found.add(one.value)
        elif type(one) is cst.For and type(one.target) is cst.Name:
            waiting += [(child, loops | {one.target.value}) for child in children(one)]
        elif type(one) is not cst.AssignTarget or type(one.target) is not cst.Name:
            waiting += [(child, loops) for child in children(one)]
    return frozenset(found)


def _counts(node: cst.CSTNode) -> Counter[str]:
    return Counter(name for one in below(node) if type(one) in ASSIGNMENTS for name in _names(one.target))


def _names(target: Any) -> Iterator[str]:
    if isinstance(target, cst.Name):
        yield target.value
    elif isinstance(target, (cst.Tuple, cst.List)):
        for element in target.elements:
            yield from _names(element.value)
