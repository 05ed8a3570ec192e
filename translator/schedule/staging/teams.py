"""Whether two warpgroups of a block multiply a program each, in turns: one's products run while the other stores.

In: a plan in which a warpgroup loads and another one multiplies program after program. Out: yes or no.

A block that has the multiprocessor to itself, for its stages or its sums, leaves the tensor cores idle from the end of a
program's products to the start of the next one's. A second warpgroup has a program of its own, of which the tiles lie in the
ring behind those of the first: while one computes with its sums and stores them, the other multiplies, and the ring never waits.
CUTLASS calls this the ping-pong schedule.

Each counts the stages of the other's programs, so all programs have as many. What a program needs of shared memory besides the
ring, to move tiles between threads or to reduce and store them, each has of its own, and so it has its barriers.
"""

from __future__ import annotations

from ...analysis.facts import Facts
from ...hardware import RESERVED_BYTES, WARPS_OF_WARPGROUP
from ...ir.nodes import Assign, Call, Effect, Expr, For, If, Inlined, Kernel, Note, Variable
from ...ir.rewrite import substituted
from ...ir.structured import is_elementwise
from ...ir.walk import statements, subexpressions, used_variables
from ...language.dtypes import int32
from ..plan import Schedule
from ..products.instructions import spare_registers
from .ring_plan import Ring

TEAMS = 2
LEAST_STAGES = 3  # of the ring that both share
OF_PROGRAM = ("load", "box_load", "dot", "reduce")  # what a program may do, besides arithmetic and stores


def may_take_turns(kernel: Kernel, facts: Facts, schedule: Schedule) -> bool:
    """Whether two warpgroups can take turns at the programs of a plan."""
    rings = schedule.rings
    if not rings.program_axes or rings.useful is not None or rings.made or len(rings.rings) != 1:
        return False
    (ring,), options = rings.rings, schedule.options
    one_warpgroup = options.num_warps == WARPS_OF_WARPGROUP and options.maxnreg is None
    if not one_warpgroup or not ring.overlapped or ring.own or ring.ahead or ring.stagger:
        return False
    if schedule.in_shared:
        return False
    return _are_by_themselves(kernel) and bounds_of_program(kernel, facts, ring) is not None


def serves_teams(schedule: Schedule, shared_bytes: int) -> bool:
    """Whether a plan of two teams has a ring that is deep enough, registers for their sums, and no room for another block."""
    stages = min((ring.stages for ring in schedule.rings.rings), default=0)
    of_one = schedule.options.num_warps
    peak = spare_registers(0, of_one, 1, True) - schedule.spare_registers
    fits = stages >= LEAST_STAGES and spare_registers(peak, TEAMS * of_one, 1, True) >= 0
    return fits and 2 * (shared_bytes + RESERVED_BYTES) > schedule.target.shared_of_multiprocessor


def _are_by_themselves(kernel: Kernel) -> bool:
    """Whether a program does nothing that those of other blocks could not do beside it."""
    for statement in statements(kernel.body):
        match statement:
            case Note() | Inlined() | If() | For():
                continue
            case Assign(value=value):
                if not is_elementwise(value) and not (isinstance(value, Call) and value.op in OF_PROGRAM):
                    return False
            case Effect(call=call):
                if call.op not in ("store", "box_store"):
                    return False
            case _:
                return False
    return True


def bounds_of_program(kernel: Kernel, facts: Facts, ring: Ring) -> tuple[Expr, Expr, Expr] | None:
    """Start, stop and step of a ring's loop in every program, of parameters alone; None where they cannot be told before."""
    loop = next((s for s in kernel.body if isinstance(s, For) and s.variable is ring.loop), None)
    if loop is None or loop.descending or loop.variable.type.element != int32:
        return None
    parameters = {parameter.variable for parameter in kernel.parameters}
    start, stop, step = (_of_parameters(bound, parameters, facts) for bound in (loop.start, loop.stop, loop.step))
    return None if start is None or stop is None or step is None else (start, stop, step)


def _of_parameters(expr: Expr, parameters: set[Variable], facts: Facts) -> Expr | None:
    """A scalar in terms of parameters and numbers."""
    while others := set(used_variables(expr)) - parameters:
        values = {variable: facts.definitions.get(variable) for variable in others}
        if any(value is None for value in values.values()):
            return None
        expr = substituted(expr, {variable: value for variable, value in values.items() if value is not None})
    calls = (part for part in subexpressions(expr) if isinstance(part, Call))
    whole = all(is_elementwise(call) and call.op not in ("program_id", "num_programs") for call in calls)
    return expr if whole and not expr.type.is_tile and expr.type.element == int32 else None
