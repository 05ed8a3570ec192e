"""Whether a block may run one program after another, and programs of which axes of the grid."""

from __future__ import annotations

from ..ir.nodes import Call, Expr, For, If, Kernel, Return, Use
from ..ir.walk import bodies, expressions, statements, subexpressions
from .pointers import roots_of, roots_written
from .ring_plan import RingPlan


def axes_of_programs(kernel: Kernel, loops: list[tuple[For, bool]], plan: RingPlan) -> int:
    """Along how many axes of the grid, from x on, lie the programs that a block runs one after another; 0 for a single one.

    It gains by several: the next one's loads start under this one's end. Programs must not talk to each other: no atomics, no
    loads of what is stored, no cooperative grid. Kernels that loop over programs themselves, or end early, stay as they are.
    So do those whose programs take longer than others: the hardware gives the next one to whoever is done first.
    """
    rings = [
        (loop, nested) for loop, nested in loops if any(r.loop is loop.variable and r.kind == "tma" for r in plan.rings)
    ]
    if len(rings) != 1 or rings[0][1] or not programs_are_apart(kernel, plan):
        return 0
    return 1 + max(_axes(kernel), default=0) if _is_as_long_in_all(kernel, rings[0][0], plan) else 0


def _axes(kernel: Kernel) -> set[int]:
    """The axes along which a kernel asks for the program's number."""
    parts = (part for s in statements(kernel.body) for expr in expressions(s) for part in subexpressions(expr))
    return {int(part.attribute("axis")) for part in parts if isinstance(part, Call) and part.op == "program_id"}


def _is_as_long_in_all(kernel: Kernel, loop: For, plan: RingPlan) -> bool:
    """Whether every program passes a loop, as often as the others do, as far as parameters and the program's number tell.

    A loop whose two ends both follow from the program's number is taken to be a share of something.
    """
    choices = [s for s in statements(kernel.body) if isinstance(s, If)]
    if any(inner is loop for choice in choices for block in bodies(choice) for inner in statements(block)):
        return False
    follows = [_follows_from_program(kernel, end, plan) for end in (loop.start, loop.stop, loop.step)]
    return follows in ([False, False, False], [True, True, False])


def _follows_from_program(kernel: Kernel, expr: Expr, plan: RingPlan) -> bool | None:
    """Whether a number follows from the program's number and parameters, or from parameters alone; None for anything else."""
    parameters = {parameter.variable for parameter in kernel.parameters}
    found, pending, seen = False, [expr], set(parameters)
    while pending:
        for part in subexpressions(pending.pop()):
            found |= isinstance(part, Call) and part.op == "program_id"
            if isinstance(part, Use) and part.variable not in seen:
                if part.variable not in plan.facts.definitions:
                    return None
                seen.add(part.variable)
                pending.append(plan.facts.definitions[part.variable])
    return found


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
