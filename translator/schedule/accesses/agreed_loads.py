"""Loaded scalars on which the threads of a block must agree.

Every thread loads a scalar for itself. Where this program or another one writes to that memory meanwhile, threads may get
different values; of those that decide control flow they would part, and meet at different barriers. One thread loads such
a scalar for all. That another kernel writes there is what a volatile load says.

In: a kernel. Out: the variables.
"""

from __future__ import annotations

from ...ir.nodes import Assign, Call, For, If, Kernel, Variable, While
from ...ir.structured import assigned_call
from ...ir.walk import reachable, read_variables, statements
from .pointers import lasting_loads


def agreed_loads(kernel: Kernel) -> frozenset[Variable]:
    """Scalars that control flow follows from, loaded from where the kernel also writes, or by volatile loads."""
    loads: dict[Variable, list[Call]] = {}
    made_of: dict[Variable, set[Variable]] = {}
    deciding: set[Variable] = set()
    for statement in statements(kernel.body):
        read = set(read_variables(statement))
        if isinstance(statement, (If, While, For)):
            deciding |= read
        if not isinstance(statement, Assign):
            continue
        for target in statement.targets:
            made_of.setdefault(target, set()).update(read)
            if not target.type.is_tile and (load := assigned_call(statement, "load")):
                loads.setdefault(target, []).append(load)
    if not loads:
        return frozenset()
    lasts = lasting_loads(kernel)
    return frozenset(v for v in reachable(deciding, made_of) if not all(map(lasts, loads.get(v, ()))))
