"""Whether a block may run one program after another."""

from __future__ import annotations

from ..ir.nodes import Call, For, Kernel, Return
from ..ir.walk import expressions, statements
from .pointers import roots_of, roots_written
from .ring_plan import RingPlan


def can_persist(kernel: Kernel, loops: list[tuple[For, bool]], plan: RingPlan) -> bool:
    """Whether a block may run one program after another, and gains by it: the next one's loads start under this one's end.

    Programs must not talk to each other: no atomics, no loads of what is stored, no cooperative grid. Kernels that loop over
    programs themselves, or end early, stay as they are.
    """
    rings = [nested for loop, nested in loops if any(r.loop is loop.variable and r.kind == "tma" for r in plan.rings)]
    return len(rings) == 1 and not rings[0] and programs_are_apart(kernel, plan)


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
