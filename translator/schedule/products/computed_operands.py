"""Operands of wgmma that a loop computes from what it loads, such as weights of 8 bits: they are multiplied from registers.

In: a loop whose other operands tensor copies bring. Out: the loads that tensor copies bring as well, to be read by those who
compute with them (`box_read`), and the dots whose instruction takes its rows from what they compute.

The instruction takes its rows from registers, its columns from shared memory only. Where B is what is computed, the dot is
therefore exchanged: C^T = B^T A^T. No thread then writes an operand to shared memory, and none waits for another one: a warp
computes what it multiplies itself. Which columns of B are the rows of an instruction is free. A lane has rows `lane / 4` and 8
below: of a tile that is contiguous along N it has neighbouring columns there, so that it reads them at once; of one that is
contiguous along K it reads pairs of these, and lanes that do so at the same time meet different banks if their columns are
neighbours.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace

from ...analysis.facts import Facts
from ...hardware import WARPGROUP_BITS, WORD_BYTES
from ...ir.nodes import Assign, Call, Expr, For, Kernel, Statement, Variable
from ...ir.structured import assigns, is_elementwise
from ...ir.walk import REARRANGES, read_variables, statements, subexpressions, used_variables
from ..staging.box_reads import box_to_read, read_box
from ..staging.ring_plan import RingPlan
from ..tiles.layout import REGISTER, Layout, bits_of
from .dot_plan import DotPlan, Dots, Operand, Side
from .dots import dot_statements, is_box_read
from .instructions import BESIDE_PRODUCTS, COLUMN_IN_PIECE, consumer_registers, warpgroup_layout

ITEMSIZE = 2  # bytes of what an instruction takes from registers: of narrower elements a lane has more side by side
READ = 1  # of an element that it is computed from
FEW = 16  # a tile with so many times fewer elements than the operand may be loaded in any layout


def computed_operand(
    kernel: Kernel, facts: Facts, dots: Dots, plan: DotPlan
) -> tuple[Operand, frozenset[Variable]] | None:
    """The operand of a dot that is computed, and the tiles that it is computed from; None unless the other one is staged."""
    if plan.instruction.kind != "wgmma" or plan.instruction.split is not None:
        return None
    computed = [one for one in plan.operands if one.variable not in dots.staged]
    if len(computed) != 1 or computed[0].variable.type.dtype.itemsize != ITEMSIZE:
        return None
    sources = _sources(kernel, facts, computed[0].variable)
    return (computed[0], sources) if sources else None


def _sources(kernel: Kernel, facts: Facts, variable: Variable) -> frozenset[Variable] | None:
    """The large tiles that a tile is computed from, element by element; None where it follows from anything else."""
    made: dict[Variable, list[Assign]] = {}
    for statement in statements(kernel.body):
        if isinstance(statement, Assign) and len(statement.targets) == 1:
            made.setdefault(statement.target, []).append(statement)
    found: set[Variable] = set()
    pending, seen, size = [variable], {variable}, math.prod(variable.type.shape)
    while pending:
        one = pending.pop()
        if not one.type.is_tile or one in facts.index:
            continue
        ways = made.get(one, [])
        loads, large = [assigns(way, "load", "box_read") for way in ways], math.prod(one.type.shape) * FEW > size
        if len(ways) != facts.assignments[one] or not ways or (len(ways) > 1 and (large or not all(loads))):
            return None
        if all(loads) and large:
            found.add(one)
        elif is_elementwise(ways[0].value):
            new = set(used_variables(ways[0].value)) - seen
            pending += new
            seen |= new
        elif not all(loads):
            return None
    return frozenset(found)


# ----------------------------------------------------------------------------------------------- what copies bring


def read_boxes(plan: RingPlan, loop: For) -> bool:
    """Has tensor copies bring the tiles that a loop's dots have an operand computed from; whether there is such an operand.

    Tiles for one operand all come so, or none of them.
    """
    read, top = False, plan.given.top[loop]
    loads = {s.targets[0]: s for s in top if isinstance(s, Assign)}
    sums = Counter(dot.target for dot in plan.dots.plans if isinstance(dot, Assign))
    for dot in top:
        if not isinstance(dot, Assign) or dot not in plan.dots.plans:
            continue
        if sums[dot.target] > 1 or not _any_layout(loop, dot.target):
            continue
        found = computed_operand(plan.given.kernel, plan.given.facts, plan.dots, plan.dots.plans[dot])
        if found is None or not found[1] <= loads.keys():
            continue
        chosen = _rows_from_registers(plan.dots.plans[dot], found[0], plan.given.options.num_warps)
        new = [loads[variable] for variable in found[1] if loads[variable] not in plan.replaced]
        boxes = [box_to_read(plan, load, loop) for load in new]
        if chosen is None or any(box is None for box in boxes):
            continue
        for load, box in sorted(zip(new, boxes, strict=True), key=lambda pair: top.index(pair[0])):
            read_box(plan, load, box, loop)  # type: ignore[arg-type]
        read = True
    return read


def _any_layout(loop: For, total: Variable) -> bool:
    """Whether a loop does nothing with a sum, and what follows from it, that its layout matters to: element by element."""
    follows, size = {total}, 0
    while size < len(follows):
        size = len(follows)
        for statement in statements(loop.body):
            read = set(read_variables(statement))
            if not follows & read:
                continue
            if not isinstance(statement, Assign):
                return False
            value = statement.value
            if isinstance(value, Call) and value.op == "dot":
                if follows & {v for operand in value.args[:2] for v in used_variables(operand)}:
                    return False
            elif not is_elementwise(value) or any(_moves(part) for part in subexpressions(value)):
                return False
            follows |= {target for target in statement.targets if target.type.is_tile}
    return True


def _moves(expr: Expr) -> bool:
    return isinstance(expr, Call) and expr.op in REARRANGES


# ---------------------------------------------------------------------------------------------- what multiplies


def with_computed_operands(kernel: Kernel, facts: Facts, dots: Dots, num_warps: int) -> Dots:
    """The plans of which those with an operand computed from boxes take their rows from it; of a sum all do, or none."""
    boxes = {
        s.target: dots.staged[s.value.args[0].variable]  # type: ignore[attr-defined]
        for s in statements(kernel.body)
        if isinstance(s, Assign) and is_box_read(s)
    }
    if not boxes:
        return dots
    chosen: dict[Statement, DotPlan] = {}
    sums = Counter(statement.target for statement, _ in dot_statements(kernel))
    loops = [s for s in statements(kernel.body) if isinstance(s, For)]
    loop_of = {inner: loop for loop in loops for inner in statements(loop.body)}  # the innermost comes last
    for statement, _ in dot_statements(kernel):
        plan, loop = dots.plans[statement], loop_of.get(statement)
        found = computed_operand(kernel, facts, dots, plan)
        if found is not None and found[1] <= boxes.keys():
            operand, sources = found
            exchanged = operand.side is Side.B  # the sum is laid out the other way round
            if not exchanged or loop is None or _any_layout(loop, statement.target):
                along_k = all(boxes[one].fast == operand.k_axis for one in sources)
                plan = _rows_from_registers(plan, operand, num_warps, not along_k) or plan
        if plan.fragment is not None and sums[statement.target] == 1:
            chosen[statement] = plan
    return replace(dots, plans=dots.plans | chosen)


def _rows_from_registers(plan: DotPlan, computed: Operand, num_warps: int, side_by_side: bool = True) -> DotPlan | None:
    """The plan with its rows taken from a computed operand, of which a lane has neighbours if they should be `side_by_side`.

    None where warpgroups would have to compute the same rows, or a thread has no registers for what it multiplies.
    """
    exchanged, frame = computed.side is Side.B, plan.layout
    if exchanged:
        found = warpgroup_layout((1 << len(frame.axes[1]), 1 << len(frame.axes[0])), num_warps)
        if found is None:
            return None
        rows = _neighbouring(found.axes[0]) if side_by_side else found.axes[0]
        frame = Layout((rows, found.axes[1]), found.thread_bits)
    if any(bit >= WARPGROUP_BITS for bit in frame.axes[1]):
        return None
    axis = computed.k_axis
    depth = bits_of(computed.variable.type.shape[axis]) - len(COLUMN_IN_PIECE)
    along_k = (*COLUMN_IN_PIECE, *[REGISTER] * depth)
    axes = (along_k, frame.axes[0]) if axis == 0 else (frame.axes[0], along_k)
    layout = Layout(frame.axes[::-1], frame.thread_bits) if exchanged else frame
    fragment = Layout(axes, frame.thread_bits)
    sums, own = (one.num_registers for one in (frame, fragment))
    if sums + own * (ITEMSIZE + READ) // WORD_BYTES + BESIDE_PRODUCTS > consumer_registers(num_warps):
        return None
    return replace(plan, layout=layout, exchanged=exchanged, fragment=fragment)


def _neighbouring(rows: tuple[int, ...]) -> tuple[int, ...]:
    """The rows of a lane side by side, instead of 8 and 64 apart."""
    own = [bit for bit in rows if bit == REGISTER]
    return (*own, *(bit for bit in rows if bit != REGISTER))
