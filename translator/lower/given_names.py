"""Sums and loads that get their name at once: of `y = tl.sum(x, 1)[:, None]` the sum itself is y, and no array is a copy of it.

A reduction or a load has a variable of its own, so that a statement may compute further with the result. Where that only turns
the axes into others, with every element in the register that it is in, both are one array.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from ..analysis.facts import Facts
from ..ir.nodes import Assign, Call, Expr, Kernel, Use, Variable
from ..ir.structured import assigns
from ..ir.walk import blocks, expressions, statements, subexpressions
from ..schedule.plan import Schedule
from .text.point import Point, point_of, register
from .text.scopes import Scopes

SAME_ELEMENTS = ("expand_dims", "hint")


def given_names(kernel: Kernel, facts: Facts, schedule: Schedule, scopes: Scopes) -> dict[Variable, Variable]:
    """The results of reductions and loads that are one array with the variable to which they are given, each with that."""
    parts = (p for s in statements(kernel.body) for expr in expressions(s) for p in subexpressions(expr))
    reads = Counter(part.variable for part in parts if isinstance(part, Use))
    apart = {*facts.absorbed, *facts.index, *facts.unused, *scopes.hoisted, *schedule.staged}
    apart |= schedule.in_shared | schedule.functions
    found: dict[Variable, Variable] = {}
    for first, second in _of_one_line(kernel):
        target, result = second.targets[0], _shown(second.value)
        if result not in first.targets or reads[result] > 1 or schedule.conversions.get(second):
            continue
        once = facts.assignments[target] == facts.assignments[result] == 1
        if (
            once
            and apart.isdisjoint((target, result))
            and _in_the_same_registers(result, target, second.value, schedule)
        ):
            found[result] = target
    return found


def _of_one_line(kernel: Kernel) -> Iterator[tuple[Assign, Assign]]:
    """A reduction or load, and an assignment of the same line that follows it, with nothing but others of that line between."""
    for block in blocks(kernel.body):
        for number, first in enumerate(block):
            if assigns(first, "reduce", "load"):
                for second in block[number + 1 :]:
                    if not isinstance(second, Assign) or second.origin.span is not first.origin.span:
                        break
                    yield first, second


def _shown(value: Expr) -> Variable | None:
    """The variable whose elements an expression has, in their order."""
    while isinstance(value, Call) and value.op in SAME_ELEMENTS:
        value = value.args[0]
    return value.variable if isinstance(value, Use) else None


def _in_the_same_registers(result: Variable, target: Variable, value: Expr, schedule: Schedule) -> bool:
    """Whether a thread's elements of a result that is seen so are those that the layout of the target has."""
    if not result.type.is_tile or not target.type.is_tile:
        return not target.type.is_tile
    layout = schedule.layouts[target]
    point: Point | None = point_of(layout, tuple(register("") for _ in layout.axes))
    while isinstance(value, Call) and point is not None:
        point, value = point.operand(value, value.args[0]), value.args[0]
    return point is not None and point.pattern() == schedule.layouts[result]
