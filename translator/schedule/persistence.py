"""Whether a block may run one program after another, and programs of which axes of the grid."""

from __future__ import annotations

from ..ir.nodes import Call, For, If, Kernel, Return, Use
from ..ir.walk import bodies, expressions, statements, subexpressions
from .pointers import roots_of, roots_written
from .ring_plan import RingPlan


def axes_of_programs(kernel: Kernel, loops: list[tuple[For, bool]], plan: RingPlan) -> int:
    """Along how many axes of the grid, from x on, lie the programs that a block runs one after another; 0 for a single one.

    It gains by several: the next one's loads start under this one's end. Programs must not talk to each other: no atomics, no
    loads of what is stored, no cooperative grid. Kernels that loop over programs themselves, or end early, stay as they are.
    All axes that the kernel asks for are gone through, as long as programs do as much as each other. Others are left to the
    hardware but for those along x: it gives the next one to whoever is done first.
    """
    rings = [
        (loop, nested) for loop, nested in loops if any(r.loop is loop.variable and r.kind == "tma" for r in plan.rings)
    ]
    if len(rings) != 1 or rings[0][1] or not programs_are_apart(kernel, plan):
        return 0
    return 1 + max(_axes(kernel), default=0) if _is_as_long_in_all(kernel, rings[0][0], plan) else 1


def _axes(kernel: Kernel) -> set[int]:
    """The axes along which a kernel asks for the program's number."""
    parts = (part for s in statements(kernel.body) for expr in expressions(s) for part in subexpressions(expr))
    return {int(part.attribute("axis")) for part in parts if isinstance(part, Call) and part.op == "program_id"}


def _is_as_long_in_all(kernel: Kernel, loop: For, plan: RingPlan) -> bool:
    """Whether every program passes a loop, and as often as all others: its ends follow from parameters alone."""
    choices = [s for s in statements(kernel.body) if isinstance(s, If)]
    if any(inner is loop for choice in choices for block in bodies(choice) for inner in statements(block)):
        return False
    parameters = {parameter.variable for parameter in kernel.parameters}
    pending, seen = [loop.start, loop.stop, loop.step], set(parameters)
    while pending:
        for part in subexpressions(pending.pop()):
            if isinstance(part, Call) and part.op == "program_id":
                return False
            if isinstance(part, Use) and part.variable not in seen:
                if part.variable not in plan.facts.definitions:
                    return False
                seen.add(part.variable)
                pending.append(plan.facts.definitions[part.variable])
    return True


def programs_are_apart(kernel: Kernel, plan: RingPlan) -> bool:
    """Whether programs do not talk to each other, and all of them run to their end."""
    if plan.options.launch_cooperative_grid:
        return False
    stored = {v for v in roots_written(kernel)}
    for statement in statements(kernel.body):
        if isinstance(statement, Return):
            return False
        for expr in expressions(statement):
            if isinstance(expr, Call) and (
                expr.op.startswith("atomic_") or expr.op in ("device_assert", "device_print", "barrier")
            ):
                return False
            if isinstance(expr, Call) and expr.op == "load" and stored & roots_of(expr.args[0], plan.sources):
                return False
    return True
