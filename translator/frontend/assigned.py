"""Which names a piece of source assigns."""

from __future__ import annotations

from collections import Counter
from typing import Any

import libcst as cst


def assigned_names(node: cst.CSTNode) -> list[str]:
    """Names that assignments inside `node` bind, in order, each once."""
    return list(_counts(node))


def names_assigned_once(node: cst.CSTNode) -> frozenset[str]:
    """Names that a single assignment inside `node` binds."""
    return frozenset(name for name, count in _counts(node).items() if count == 1)


def names_read_outside_their_loops(node: cst.CSTNode) -> frozenset[str]:
    """Names that are read somewhere inside `node` where no `for` loop over the same name stands around."""
    found: set[str] = set()

    class Reader(cst.CSTVisitor):
        loops: list[str]

        def __init__(self) -> None:
            self.loops = []

        def visit_For(self, node: cst.For) -> None:
            self.loops.append(node.target.value if isinstance(node.target, cst.Name) else "")

        def leave_For(self, original_node: cst.For) -> None:
            self.loops.pop()

        def visit_AssignTarget(self, node: cst.AssignTarget) -> bool:
            return not isinstance(node.target, cst.Name)

        def visit_Name(self, node: cst.Name) -> None:
            if node.value not in self.loops:
                found.add(node.value)

    node.visit(Reader())
    return frozenset(found)


def _counts(node: cst.CSTNode) -> Counter[str]:
    names: Counter[str] = Counter()

    def targets(target: Any) -> None:
        if isinstance(target, cst.Name):
            names[target.value] += 1
        elif isinstance(target, (cst.Tuple, cst.List)):
            for element in target.elements:
                targets(element.value)

    class Finder(cst.CSTVisitor):
        def visit_AssignTarget(self, node: cst.AssignTarget) -> None:
            targets(node.target)

        def visit_AugAssign(self, node: cst.AugAssign) -> None:
            targets(node.target)

        def visit_AnnAssign(self, node: cst.AnnAssign) -> None:
            targets(node.target)

        def visit_NamedExpr(self, node: cst.NamedExpr) -> None:
            targets(node.target)

    node.visit(Finder())
    return names
