"""Whether a block may run one program after another, and programs of which axes of the grid."""

from __future__ import annotations

from ...ir.nodes import Call, Expr, For, If, Return
from ...ir.structured import is_atomic
from ...ir.walk import expressions, nested, statements, subexpressions, used_variables
from ..accesses.pointers import roots_of
from .ring_plan import RingFacts, RingPlan


def axes_of_programs(plan: RingPlan, loops: list[tuple[For, bool]]) -> int:
    """Along how many axes of the grid, from x on, lie the programs that a block runs one after another; 0 for a single one.

    It gains by several: the next one's loads start under this one's end. Programs must not talk to each other: no atomics, no
    loads of what is stored, no cooperative grid. Kernels that loop over programs themselves, or end early, stay as they are.
    So do those whose programs take longer than others: the hardware gives the next one to whoever is done first. Where warps
    do more in the loop than wait for products, programs are long, and a few of them along x do.
    """
    rings = [
        (loop, nested, ring)
        for loop, nested in loops
        for ring in plan.rings
        if ring.loop is loop.variable and ring.kind == "tma"
    ]
    if len(rings) != 1 or rings[0][1] or not programs_are_apart(plan.given):
        return 0
    loop, _, ring = rings[0]
    if not _is_as_long_in_all(plan.given, loop):
        return 0
    asked = {axis for s in statements(plan.given.kernel.body) for expr in expressions(s) for axis in _axes(expr)}
    return 1 + max(asked, default=0) if ring.overlapped else 1


def _axes(expr: Expr) -> set[int]:
    """The axes along which an expression asks for the program's number."""
    parts = (part for part in subexpressions(expr) if isinstance(part, Call))
    return {int(part.attribute("axis")) for part in parts if part.op == "program_id"}


def _is_as_long_in_all(given: RingFacts, loop: For) -> bool:
    """Whether every program passes a loop, as often as the others do, as far as parameters and the program's number tell.

    A loop whose two ends both follow from the program's number is taken to be a share of something.
    """
    choices = [s for s in statements(given.kernel.body) if isinstance(s, If)]
    if any(loop in nested(choice) for choice in choices):
        return False
    ends = [_axes_behind(given, end) for end in (loop.start, loop.stop, loop.step)]
    known = all(known for _, known in ends)
    return known and [bool(axes) for axes, _ in ends] in ([False, False, False], [True, True, False])


def _axes_behind(given: RingFacts, expr: Expr) -> tuple[set[int], bool]:
    """The axes whose program's number a number follows from, and whether it follows from these and parameters alone."""
    axes: set[int] = set()
    known, pending, seen = True, [expr], {parameter.variable for parameter in given.kernel.parameters}
    while pending:
        expr = pending.pop()
        axes |= _axes(expr)
        for variable in set(used_variables(expr)) - seen:
            seen.add(variable)
            known &= variable in given.facts.definitions
            pending += [given.facts.definitions[variable]] if variable in given.facts.definitions else []
    return axes, known


def programs_are_apart(given: RingFacts) -> bool:
    """Whether programs do not talk to each other, and all of them run to their end."""
    if given.options.launch_cooperative_grid:
        return False
    for statement in statements(given.kernel.body):
        if isinstance(statement, Return):
            return False
        for expr in expressions(statement):
            if isinstance(expr, Call) and (is_atomic(expr) or expr.op in ("device_assert", "device_print", "barrier")):
                return False
            if (
                isinstance(expr, Call)
                and expr.op == "load"
                and not roots_of(expr.args[0], given.sources) <= given.read_only
            ):
                return False
    return True
