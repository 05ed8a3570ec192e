"""Which variables of a loop's body are read outside of it: one table for all loops of a kernel."""

from __future__ import annotations

from collections import Counter

from ...analysis.facts import Facts
from ...frozen import frozen
from ...ir.nodes import For, Kernel, Statement, Variable
from ...ir.walk import read_variables, statements, used_variables


@frozen
class Reads:
    """How often each variable is read, and the tiles that are spelled where they are used and are made of it."""

    everywhere: Counter[Variable]
    parts_of: dict[Variable, tuple[Variable, ...]]

    def outside(self, loop: For) -> Outside:
        """The question for one loop."""
        return Outside(self, _count(tuple(statements(loop.body))))


@frozen
class Outside:
    """The reads of one loop's body, to be compared with all."""

    reads: Reads
    inside: Counter[Variable]

    def __contains__(self, variable: Variable) -> bool:
        """Whether a variable, or what is made of it, is read outside of the loop."""
        pending, seen = [variable], {variable}
        while pending:
            current = pending.pop()
            if self.reads.everywhere[current] > self.inside[current]:
                return True
            new = [v for v in self.reads.parts_of.get(current, ()) if v not in seen]
            seen.update(new)
            pending += new
        return False


def find_reads(kernel: Kernel, facts: Facts) -> Reads:
    """The table of a kernel. The definition of a tile that is spelled where it is used is not a read of its own."""
    everywhere = _count(tuple(statements(kernel.body)))
    parts: dict[Variable, list[Variable]] = {}
    for variable in facts.absorbed:
        for part in used_variables(facts.definitions[variable]):
            parts.setdefault(part, []).append(variable)
    return Reads(everywhere, {part: tuple(of) for part, of in parts.items()})


def _count(block: tuple[Statement, ...]) -> Counter[Variable]:
    return Counter(v for s in block for v in read_variables(s))
