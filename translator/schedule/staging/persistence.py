"""Whether a block may run one program after another, and programs of which axes of the grid."""

from __future__ import annotations

from ...ir.nodes import Call, Expr, For, If, Return
from ...ir.structured import is_atomic
from ...ir.walk import expressions, nested, statements, subexpressions, used_variables
from ..accesses.pointers import roots_of
from .ring_plan import RingFacts, RingPlan
from .useful_programs import UsefulPrograms, returns_at_once, useful_programs


def axes_of_programs(plan: RingPlan, loops: list[tuple[For, bool]]) -> tuple[int, UsefulPrograms | None]:
    """Along how many axes of the grid, from x on, lie the programs that a block runs one after another; 0 for a single one.

    It gains by several: the next one's loads start under this one's end. Programs must not talk to each other: no atomics, no
    loads of what is stored, no cooperative grid. Kernels that loop over programs themselves, or end early, stay as they are.
    So do those whose programs take longer than others: the hardware gives the next one to whoever is done first. Where warps
    do more in the loop than wait for products, programs are long, and a few of them along x do.

    Where conditions at the top say that some programs do nothing, blocks take turns at the others, which are found as well: a
    block for each of the former comes and goes between the latter, and nothing runs under a program's start and end.
    """
    rings = [
        (loop, nested, ring)
        for loop, nested in loops
        for ring in plan.rings
        if ring.loop is loop.variable and ring.kind == "tma"
    ]
    useful = useful_programs(plan.given.kernel, plan.given.facts)
    conditions = useful.conditions if useful else ()
    if len(rings) != 1 or rings[0][1] or not programs_are_apart(plan.given, conditions):
        return 0, None
    loop, _, ring = rings[0]
    if not _is_as_long_in_all(plan.given, loop, conditions) or (useful and not ring.overlapped):
        return 0, None
    asked = {axis for s in statements(plan.given.kernel.body) for expr in expressions(s) for axis in _axes(expr)}
    return 1 + max(asked, default=0) if ring.overlapped else 1, useful


def _axes(expr: Expr) -> set[int]:
    """The axes along which an expression asks for the program's number."""
    parts = (part for part in subexpressions(expr) if isinstance(part, Call))
    return {int(part.attribute("axis")) for part in parts if part.op == "program_id"}


def _is_as_long_in_all(given: RingFacts, loop: For, conditions: tuple[If, ...]) -> bool:
    """Whether every program passes a loop, as often as the others do, as far as parameters and the program's number tell.

    So it must be where some `conditions` hold. A loop whose two ends both follow from the program's number is taken to be a
    share of something.
    """
    choices = [s for s in statements(given.kernel.body) if isinstance(s, If) and s not in conditions]
    if any(loop in nested(choice) for choice in choices):
        return False
    ends = [_axes_behind(given, end) for end in (loop.start, loop.stop, loop.step)]
    known = all(known for _, known in ends)
    return known and [bool(axes) for axes, _ in ends] in ([False, False, False], [True, True, False])


def is_for_one_tile(given: RingFacts, loop: For) -> bool:
    """Whether a loop stands in one over tiles, which begins at the program's number: a persistent loop of the user's."""
    around = (outer for outer in given.top if outer is not loop and loop in nested(outer))
    return any(_axes_behind(given, outer.start)[0] for outer in around)


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


def programs_are_apart(given: RingFacts, conditions: tuple[If, ...] = ()) -> bool:
    """Whether programs do not talk to each other, and all of them that fulfil some `conditions` run to their end."""
    if given.options.launch_cooperative_grid:
        return False
    left_out = {inner for condition in conditions if returns_at_once(condition) for inner in condition.then}
    for statement in statements(given.kernel.body):
        if isinstance(statement, Return) and statement not in left_out:
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
