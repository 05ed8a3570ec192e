"""Which names a piece of source assigns."""

from __future__ import annotations

from typing import Any

import libcst as cst


def assigned_names(node: cst.CSTNode) -> list[str]:
    """Names that assignments inside `node` bind, in order, each once."""
    names: dict[str, None] = {}

    def targets(target: Any) -> None:
        if isinstance(target, cst.Name):
            names.setdefault(target.value)
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
    return list(names)
