"""What nobody needs becomes no code: notes stand for statements that only give a value, statements for atomics without result.

In: a typed kernel. Out: the same kernel, in which every assignment but those of volatile loads gives what some effect, condition
or bound depends on. So no plan makes room, copies or barriers for what is not computed. An atomic whose result nobody needs is an
`Effect`.
"""

from __future__ import annotations

from dataclasses import replace

from ...analysis.facts import has_effect, needed_variables
from ...ir.nodes import Assign, Call, Effect, Kernel, Note, Origin, Statement
from ...ir.rewrite import with_replaced
from ...ir.structured import assigns, is_atomic
from ...ir.walk import statements


def without_unused_results(kernel: Kernel) -> Kernel:
    """See the module docstring."""
    needed = needed_variables(kernel.body)
    unused = [s for s in statements(kernel.body) if isinstance(s, Assign) and needed.isdisjoint(s.targets)]
    dropped = {s for s in unused if not has_effect(s.value)}
    code = {s.origin for s in statements(kernel.body) if s not in dropped}
    said = {replace(origin, note="") for origin in code if origin.note}  # the lines of which something is said already
    replaced: dict[Statement, Statement | None] = {}
    for statement in unused:
        if statement in dropped:
            if statement.origin.note or statement.origin in code:  # it is explained by what it says, or by its code
                replaced[statement] = Note(statement.origin)
            else:
                replaced[statement] = None if statement.origin in said else Note(_explained(statement))
        elif isinstance(statement.value, Call) and is_atomic(statement.value):
            replaced[statement] = Effect(statement.origin, statement.value)
    return replace(kernel, body=with_replaced(kernel.body, replaced)) if replaced else kernel


def _explained(statement: Assign) -> Origin:
    """The origin of a statement that becomes no code, with the reason."""
    same = assigns(statement, "permute")
    return statement.origin.noted("the same tile seen from another side" if same else "its value is not used")
