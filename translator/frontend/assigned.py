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


class AssignedByIfs:
    """The names that each `if` binds. Each `elif` of a long chain is asked for its own and all behind it, so they are kept."""

    def __init__(self) -> None:
        self._names: dict[cst.If, tuple[str, ...]] = {}

    def __getitem__(self, node: cst.If) -> tuple[str, ...]:
        """The names in order, each once."""
        chain = [node]
        while chain[-1] not in self._names and isinstance(chain[-1].orelse, cst.If):
            chain.append(chain[-1].orelse)
        for one in reversed(chain):
            if one not in self._names:
                own = assigned_names(one.test, one.body)
                rest = self._names[one.orelse] if isinstance(one.orelse, cst.If) else ()
                last = assigned_names(one.orelse) if isinstance(one.orelse, cst.Else) else ()
                self._names[one] = tuple(dict.fromkeys((*own, *rest, *last)))
        return self._names[node]


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
