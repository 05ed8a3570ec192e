"""Which variables of a loop's body are read outside of it: one table for all loops of a kernel."""

from __future__ import annotations

from collections import Counter

from ..frozen import frozen
from ..ir.nodes import For, Kernel, Variable
from ..ir.walk import reachable, read_inside, used_variables
from .facts import Facts


@frozen
class Reads:
    """How often each variable is read, and the tiles that are spelled where they are used and are made of it."""

    everywhere: Counter[Variable]
    parts_of: dict[Variable, tuple[Variable, ...]]

    def outside(self, loop: For) -> Outside:
        """The question for one loop."""
        return Outside(self, Counter(read_inside(loop.body)))


@frozen
class Outside:
    """The reads of one loop's body, to be compared with all."""

    reads: Reads
    inside: Counter[Variable]

    def __contains__(self, variable: Variable) -> bool:
        """Whether a variable, or what is made of it, is read outside of the loop."""
        made_of_it = reachable([variable], self.reads.parts_of)
        return any(self.reads.everywhere[one] > self.inside[one] for one in made_of_it)


def find_reads(kernel: Kernel, facts: Facts) -> Reads:
    """The table of a kernel. The definition of a tile that is spelled where it is used is not a read of its own."""
    everywhere = Counter(read_inside(kernel.body))
    parts: dict[Variable, list[Variable]] = {}
    for variable in facts.absorbed:
        for part in used_variables(facts.definitions[variable]):
            parts.setdefault(part, []).append(variable)
    return Reads(everywhere, {part: tuple(of) for part, of in parts.items()})
