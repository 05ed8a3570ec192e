"""Takes out what a function that is inlined copies of a variable which its result is given to: `acc = inner(acc, x)`.

In: a typed kernel. Out: the kernel in which the function works on the caller's variable. Inlined, it starts from a copy, as it
may change what it was given, and the caller takes the result over from that; nobody sees the caller's own in between. Sums of
products keep their copies: without them ptxas was seen to spill registers in the second of two loops over one sum.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from ...ir.nodes import Assign, For, Inlined, Kernel, Statement, Use, Variable
from ...ir.rewrite import renamed, with_replaced
from ...ir.structured import assigns
from ...ir.walk import assigned_variables, bodies, read_variables, statements, top_statements


def without_inlined_copies(kernel: Kernel) -> Kernel:
    """See the module docstring; only copies of the same name, as the lines that are quoted have it."""
    while found := _there_and_back(kernel):
        body = with_replaced(kernel.body, {copy: None for pair in found for copy in pair})
        kernel = replace(kernel, body=renamed(body, {there.target: back.target for there, back in found}))
    return kernel


def _there_and_back(kernel: Kernel) -> list[tuple[Assign, Assign]]:
    """Copies with the ones back from them, in the statements of a block, with nothing between that sees where they came from.

    No variable is a copy in one pair and copied in another: what is a copy of a copy is found when the first is gone.
    """
    pairs = {(s.target, source) for s in statements(kernel.body) if (source := _copied(s)) and isinstance(s, Assign)}
    pairs = {(copy, source) for copy, source in pairs if (source, copy) in pairs}
    if not pairs:
        return []
    everywhere = _occurrences(kernel.body)
    apart = {
        v for s in statements(kernel.body) if isinstance(s, For) or assigns(s, "dot") for v in assigned_variables(s)
    }
    found: list[tuple[Assign, Assign]] = []
    copies: set[Variable] = set()
    sources: set[Variable] = set()
    for block in (kernel.body, *(b for s in statements(kernel.body) if not isinstance(s, Inlined) for b in bodies(s))):
        line = list(top_statements(block))
        if not any((s.target, source) in pairs for s in line if isinstance(s, Assign) and (source := _copied(s))):
            continue
        seen = [_occurrences((statement,)) for statement in line]
        quoted = {s.origin.span for s in line if _copied(s) is None}
        quoted_around = quoted | {s.origin.span for s in block if _copied(s) is None}
        for start, there in enumerate(line):
            source = _copied(there)
            if not isinstance(there, Assign) or source is None or (there.target, source) not in pairs:
                continue
            end = next((n for n in range(start + 1, len(line)) if source in seen[n]), start)
            back, copy = line[end], there.target
            if not isinstance(back, Assign) or _copied(back) != copy or back.target != source or copy in apart:
                continue
            inside = sum(some[copy] for some in seen[start : end + 1]) == everywhere[copy]
            shown = there.origin.span in quoted and back.origin.span in quoted_around
            if inside and shown and copy not in sources and source not in copies:
                found.append((there, back))
                copies.add(copy)
                sources.add(source)
    return found


def _copied(statement: Statement) -> Variable | None:
    """The variable that a statement gives to another one of the same name and type."""
    if not isinstance(statement, Assign) or len(statement.targets) != 1 or not isinstance(statement.value, Use):
        return None
    source, target = statement.value.variable, statement.target
    return source if source != target and (source.name, source.type) == (target.name, target.type) else None


def _occurrences(block: Sequence[Statement]) -> Counter[Variable]:
    """How often statements, and those inside of them, read or assign each variable."""
    return Counter(v for s in statements(tuple(block)) for v in (*read_variables(s), *assigned_variables(s)))
