"""What a thread that does nothing but load comes by on its own: the loops of a kernel, and the scalars that copies begin at.

In: a kernel. Out: its `LoneThread`. Such a thread runs ahead of the others, and takes no part in what they compute together.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...frozen import frozen
from ...ir.nodes import Assign, Call, Expr, For, Kernel, Return, Statement, Variable, While
from ...ir.structured import is_elementwise
from ...ir.walk import bodies, follows_from, nested, reachable, read_variables, statements, used_variables
from ..accesses.pointers import lasting_loads
from ..accesses.waiting import polls, waits_for_grids


@frozen
class LoneThread:
    """What a thread that does nothing but load can find out of a kernel, without the others.

    Attributes:
      ways: by loop, the variables that decide whether a program comes to it; without loops behind something that polls memory,
        be it in the last trip of a loop around them.
      sources: what the value of each variable follows from, by data and by control.
      refused: variables that it cannot have, or not ahead of what is written to memory.
    """

    ways: dict[For, frozenset[Variable]]
    sources: dict[Variable, set[Variable]]
    refused: frozenset[Variable]

    def comes_to(self, loop: For, starts: tuple[Expr, ...]) -> bool:
        """Whether it can follow the control flow down to a loop, and compute the scalars `starts`."""
        if loop not in self.ways:
            return False
        needed = self.ways[loop].union(v for expr in starts for v in used_variables(expr))
        return self.refused.isdisjoint(reachable(needed, self.sources))


def find_lone_thread(kernel: Kernel) -> LoneThread:
    """One walk for all loads of a kernel: each of them asks."""
    lasts = lasting_loads(kernel)
    refused: set[Variable] = set()
    for statement in statements(kernel.body):
        if isinstance(statement, Assign):
            load = scalar_load(statement.value)
            alone = lasts(load) if load is not None else is_elementwise(statement.value)
            refused.update(v for v in statement.targets if v.type.is_tile or not alone)
    ends = {
        v for s in statements(kernel.body)
        if any(isinstance(o, Return) or waits_for_grids(o) for o in nested(s)) for v in read_variables(s)
    }  # fmt: skip
    return LoneThread(dict(_ways(kernel.body, frozenset(ends))), follows_from(kernel.body), frozenset(refused))


def _ways(block: tuple[Statement, ...], around: frozenset[Variable]) -> Iterator[tuple[For, frozenset[Variable]]]:
    """The loops of a block in front of which nothing polls memory, with what decides of each; of the block `around` does."""
    for statement in block:
        waits = any(map(polls, statements((statement,))))
        if waits and isinstance(statement, (For, While)):
            return
        inside = around.union(read_variables(statement)) if bodies(statement) else around
        if isinstance(statement, For):
            yield statement, inside
        for body in bodies(statement):
            yield from _ways(body, inside)
        if waits:
            return


def scalar_load(value: Expr) -> Call | None:
    """A value as a load of a scalar, which any thread can make."""
    return value if isinstance(value, Call) and value.op == "load" and not value.type.is_tile else None
