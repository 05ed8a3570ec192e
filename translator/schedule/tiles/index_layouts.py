"""In which layouts index tiles are needed: they are computed wherever they are used, not held."""

from __future__ import annotations

from ...analysis.facts import Facts
from ...ir.nodes import Call, Expr, Kernel, Statement, Use, Variable
from ...ir.structured import is_atomic
from ...ir.walk import children, expressions, statements
from .layout import Layout
from .layout_problem import Problem, statement_node
from .paths import operand_axes


def index_layouts(
    kernel: Kernel, facts: Facts, problem: Problem, copied: dict[Variable, Layout]
) -> dict[Variable, tuple[Layout, ...]]:
    """The layouts in which statements need each index tile, in order of first need.

    `copied` has the layouts of loads that other lanes make than those that hold the tile.
    """
    needed: dict[Variable, list[Layout]] = {}

    def visit(expr: Expr, layout: Layout) -> None:
        if isinstance(expr, Use) and expr.type.is_tile:
            if expr.variable in facts.index:
                known = needed.setdefault(expr.variable, [])
                if layout in known:
                    return
                known.append(layout)
            if expr.variable in facts.index or expr.variable in facts.absorbed:
                visit(facts.definitions[expr.variable], layout)
            return
        for child in children(expr):
            if child.type.is_tile:
                axes = operand_axes(expr, child, layout.axes)
                if axes is not None:
                    visit(child, Layout(axes, layout.thread_bits))

    for statement in statements(kernel.body):
        node = statement_node(statement, facts)
        if node is None or node not in problem.answers:
            continue
        for expr in expressions(statement):
            by_target = isinstance(expr, Call) and (expr.op in ("load", "dot") or is_atomic(expr))
            structured = isinstance(expr, Call) and (isinstance(node, Statement) or by_target)
            first = 2 if isinstance(expr, Call) and expr.op == "dot" else 0
            for root in children(expr)[first:] if structured else (expr,):
                if root.type.is_tile:
                    visit(root, problem.answers[node])
                if root.type.is_tile and node in copied:
                    visit(root, copied[node])
    return {variable: tuple(layouts) for variable, layouts in needed.items()}
