"""What the heads of loops say of their variables: inside `for start in range(first, stop, step)`, `start` is below `stop`.

In: a typed kernel. Out: per loop variable, what it stays below and by how much. Where a power of two divides `first`, `step`
and `stop`, the variable is at least that much below `stop`: a block of so many rows lies inside as a whole.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from math import gcd

from ..frozen import frozen
from ..ir.nodes import Expr, For, Kernel, Statement, Use, Variable
from ..ir.walk import read_inside, statements
from .axis_info import AxisInfo, axis_info, known_divisor


@frozen
class LoopLimit:
    """A loop's variable is at most `stop - distance`, wherever it is used."""

    stop: Variable
    distance: int


def loop_limits(
    kernel: Kernel, definitions: Mapping[Variable, Expr], fixed: frozenset[Variable]
) -> dict[Variable, LoopLimit]:
    """The limits of all loops that count up to a variable.

    Args:
      kernel: the kernel.
      definitions: the values of variables that are assigned once.
      fixed: variables that never change.
    """
    known = _Scalars({p.variable: known_divisor(p.divisibility) for p in kernel.parameters}, definitions)
    uses = _uses(kernel.body)
    found = {}
    for loop in statements(kernel.body):
        if not isinstance(loop, For) or loop.descending or not isinstance(loop.stop, Use):
            continue
        if loop.stop.variable not in fixed or uses[loop.variable] != _uses(loop.body)[loop.variable]:
            continue  # after the loop, the variable may hold what it held before
        divisors = [axis_info(expr, known).everywhere(0) for expr in (loop.start, loop.step, loop.stop)]
        found[loop.variable] = LoopLimit(loop.stop.variable, gcd(*divisors))
    return found


def _uses(body: tuple[Statement, ...]) -> Counter[Variable]:
    return Counter(read_inside(body))


class _Scalars(dict[Variable, AxisInfo]):
    """What is known of scalars, found out from their definitions when it is asked for."""

    def __init__(self, known: Mapping[Variable, AxisInfo], definitions: Mapping[Variable, Expr]) -> None:
        super().__init__(known)
        self.definitions = definitions

    def get(self, variable: Variable, default: AxisInfo | None = None) -> AxisInfo | None:  # type: ignore[override]
        """As that of a dict."""
        if variable not in self and variable in self.definitions and not variable.type.is_tile:
            self[variable] = axis_info(self.definitions[variable], self)
        return super().get(variable, default)
