"""Loops that compute what the next iteration multiplies while the products of this one run.

In: the plans of dots and the rings of a kernel. Out: the rings; those whose loops do nothing but compute an operand that stays
in registers (`computed_operands.py`) and multiply say which dot it is for. Another set of registers holds the next operand, since
ptxas serialises products if registers that they read are written meanwhile.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

from ..analysis.facts import Facts
from ..analysis.structured import is_elementwise
from ..ir.nodes import Assign, Call, For, Kernel, Note, Statement, Use
from ..ir.walk import bodies, expressions, statements, used_variables
from .dot_plan import Dots
from .instructions import OTHER_REGISTERS, consumer_registers
from .ring_plan import Ring, Rings
from .rings import top_statements

WORD = 4  # bytes of a register
SETS, READ = 2, 0.5  # of the operand's registers; and what it is computed from, of 8 bits, beside them


def operands_ahead(kernel: Kernel, facts: Facts, dots: Dots, rings: Rings, num_warps: int, blocks: int) -> Rings:
    """See the module docstring; `blocks` share a multiprocessor."""
    loops = {s.variable: s for s in statements(kernel.body) if isinstance(s, For)}
    room = consumer_registers(num_warps, blocks) - OTHER_REGISTERS
    found = [replace(ring, ahead_of=_dot(kernel, facts, dots, ring, loops[ring.loop], room)) for ring in rings.rings]
    return replace(rings, rings=tuple(found))


def _dot(kernel: Kernel, facts: Facts, dots: Dots, ring: Ring, loop: For, room: int) -> Assign | None:
    """The dot whose operand an iteration of a loop can compute ahead, if its registers have room for two."""
    if ring.kind != "tma" or ring.overlapped or ring.stagger is not None:
        return None
    top = [s for s in top_statements(loop.body) if not isinstance(s, Note) and not _is_unused(s, facts)]
    dot = top[-1] if top else None
    if not isinstance(dot, Assign) or id(dot) not in dots.plans:
        return None
    plan, sums = dots.plans[id(dot)], dot.value.args[2:]  # type: ignore[attr-defined]
    if plan.fragment is None or not plan.rows_in_registers:
        return None
    if not sums or not isinstance(sums[0], Use) or sums[0].variable is not dot.target:
        return None
    read_elsewhere = {v for s in _outside(kernel.body, loop) for expr in expressions(s) for v in used_variables(expr)}
    if not all(_may_be_ahead(s, facts, ring, dot) and not read_elsewhere & set(s.targets) for s in top[:-1]):  # type: ignore[attr-defined]
        return None
    own, total = (math.prod(one.register_shape()) for one in (plan.fragment, plan.layout))
    words = own * plan.rows.variable.type.dtype.itemsize / WORD
    return dot if total + words * (SETS + READ) <= room else None


def _is_unused(statement: Statement, facts: Facts) -> bool:
    return isinstance(statement, Assign) and all(target in facts.unused for target in statement.targets)


def _may_be_ahead(statement: Statement, facts: Facts, ring: Ring, dot: Assign) -> bool:
    """Whether a statement does the same if it is executed an iteration earlier, but for the first."""
    if not isinstance(statement, Assign) or any(facts.assignments[target] != 1 for target in statement.targets):
        return False
    if dot.target in {v for expr in expressions(statement) for v in used_variables(expr)}:
        return False
    value = statement.value
    loads = isinstance(value, Call) and (
        value.op in ("box_load", "box_read") or (value.op == "load" and statement.targets[0] in ring.own)
    )
    return loads or is_elementwise(value)


def _outside(block: tuple[Statement, ...], loop: For) -> Iterator[Statement]:
    """All statements but those of a loop."""
    for statement in block:
        if statement is not loop:
            yield statement
            for body in bodies(statement):
                yield from _outside(body, loop)
