"""What every dot of a kernel multiplies with, and where its operands lie.

In: a kernel whose dots have named operands (`schedule/rewrites/operands.py`) and its facts. Out: per dot statement an
instruction and the layout of the accumulator; the loaded tiles that go to shared memory without passing through anybody's
registers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from ...analysis.facts import Facts
from ...analysis.induction import Induction, closed_forms
from ...analysis.unit_stride import unit_axes
from ...artifact import Options, Target
from ...hardware import CHUNK_BYTES, SWIZZLED_LINE_BYTES, WARPS_OF_WARPGROUP, WORD_BYTES
from ...ir.nodes import Assign, Call, Expr, Kernel, Literal, Statement, Use, Variable
from ...ir.structured import LOADS, assigned_call, assigns
from ...ir.walk import computed_from, reachable, read_inside, statements
from ..tiles.layout import Layout
from .dot_plan import DotPlan, Dots, Operand, Side, View
from .instructions import (
    BESIDE_PRODUCTS,
    DotKind,
    Instruction,
    consumer_registers,
    fma_layout,
    tensor_core,
    warp_layout,
    warpgroup_layout,
    whole_pieces,
)
from .shared_tiles import SharedTile, has_chunks

KINDS: tuple[DotKind, ...] = ("wgmma", "mma", "fma")  # the fastest first
SUMS_APART = 2  # of a tile's products, where wgmma multiplies parts: of the highest ones, and of the others
TRANSPOSED_LINES = 32  # of K, that a warp transposes at a time
ROWS_OF_WARPGROUP = 64


def dot_statements(kernel: Kernel) -> Iterator[tuple[Assign, Call]]:
    """Every dot of a kernel, in source order."""
    for statement in statements(kernel.body):
        if isinstance(statement, Assign) and (dot := assigned_call(statement, "dot")):
            yield statement, dot


def is_box_read(statement: Statement) -> bool:
    """Whether a statement takes a tile to registers from where a tensor copy has brought it (`computed_operands.py`)."""
    return assigns(statement, "box_read")


def viewed(expr: Expr) -> View | None:
    """The tile that an expression is, through transposes of its last two axes; None for any other expression."""
    swapped = False
    while isinstance(expr, Call) and expr.op == "permute":
        order = expr.attribute("order")
        rank = len(order)
        if tuple(order) == (*range(rank - 2), rank - 1, rank - 2):
            swapped = not swapped
        elif tuple(order) != tuple(range(rank)):
            return None
        expr = expr.args[0]
    return View(expr.variable, swapped) if isinstance(expr, Use) else None


def plan_dots(kernel: Kernel, facts: Facts, options: Options, target: Target) -> Dots:
    """Chooses instructions and staged tiles."""
    kinds: dict[Variable, DotKind] = {}
    for statement, call in dot_statements(kernel):
        best = next(kind for kind in KINDS if _instruction(kind, call, options, target))
        kinds[statement.target] = max(kinds.get(statement.target, best), best, key=KINDS.index)
    dots = _planned(kernel, facts, kinds, options, target)
    in_parts = {s.target for s, _ in dot_statements(kernel) if _wants_parts_elsewhere(dots, s)}
    if in_parts:
        kinds |= dict.fromkeys(in_parts, "mma")
        dots = _planned(kernel, facts, kinds, options, target)
    computed = _computed_axes(kernel, facts, dots)
    transposing = {
        statement.target
        for statement, _ in dot_statements(kernel)
        if kinds[statement.target] == "wgmma" and _operands_to_transpose(dots, statement, computed)
    }
    if not transposing:
        return dots
    by_warps = _planned(kernel, facts, {**kinds, **dict.fromkeys(transposing, "mma")}, options, target)
    before, after = (
        sum(_operands_to_transpose(plan, s, computed) for s, _ in dot_statements(kernel) if s.target in transposing)
        for plan in (dots, by_warps)
    )
    # Faster than wgmma: loads run ahead, and nothing is transposed by a copy.
    return by_warps if after < before else dots


def _wants_parts_elsewhere(dots: Dots, statement: Assign) -> bool:
    """Whether a dot of parts has an operand that does not lie in shared memory, where threads find it and write its parts."""
    plan = dots.plans[statement]
    if plan.instruction.kind != "wgmma" or plan.instruction.split is None:
        return False
    return any(operand.variable not in dots.staged for operand in plan.operands)


def _operands_to_transpose(dots: Dots, statement: Assign, computed: Mapping[Variable, int]) -> int:
    """How many operands of 32 bits do not come to shared memory as the dot's instruction needs them.

    `computed` ones are written there by threads, which hold consecutive elements along the axis that it says.
    """
    plan, count = dots.plans[statement], 0
    for operand in plan.operands:
        itemsize, tile = operand.variable.type.dtype.itemsize, dots.staged.get(operand.variable)
        fast = tile.fast if tile is not None else computed.get(operand.variable)
        ready = fast is not None and (fast == operand.k_axis or reads_columns(plan.instruction, itemsize))
        count += itemsize == 4 and not ready and plan.instruction.split is None
    return count


def _computed_axes(kernel: Kernel, facts: Facts, dots: Dots) -> dict[Variable, int]:
    """The axes along which operands of 32 bits that are computed from loaded tiles are contiguous, where these agree."""
    every = {operand.variable for plan in dots.plans.values() for operand in plan.operands} - dots.staged.keys()
    operands = [variable for variable in every if variable.type.dtype.itemsize == WORD_BYTES]
    if not operands:
        return {}
    induction, loaded = closed_forms(kernel, facts), dict[Variable, int]()
    for statement in statements(kernel.body):
        if assigns(statement, "load") and statement.target.type.rank > 1 and isinstance(statement.value, Call):
            loaded[statement.target] = _contiguous_axis(statement, statement.value, facts, induction)
    found, steps = dict[Variable, int](), computed_from(kernel.body)
    for variable in operands:
        made_of = reachable([variable], steps)
        whole = {loaded[one] for one in made_of & loaded.keys() if one.type.shape == variable.type.shape}
        if len(whole) == 1:
            (found[variable],) = whole
    return found


def _planned(kernel: Kernel, facts: Facts, kinds: Mapping[Variable, DotKind], options: Options, target: Target) -> Dots:
    """The plans for given kinds of instructions."""
    uses = Counter(read_inside(kernel.body))
    plans: dict[Statement, DotPlan] = {}
    for statement, call in dot_statements(kernel):
        kind = kinds[statement.target]
        layout = _layout(kind, statement.target.type.shape, options.num_warps)
        instruction = _instruction(kind, call, options, target)
        a, b = map(viewed, call.args[:2])
        if layout is None or instruction is None or a is None or b is None:
            raise TypeError("a dot whose operands have no name")
        operands = Operand(a.variable, a.swapped, Side.A), Operand(b.variable, b.swapped, Side.B)
        plans[statement] = DotPlan(instruction, layout, *operands)
    return Dots(plans, *(_loaded_tiles(kernel, facts, plans, uses) if kinds else ({}, {})))


def _layout(kind: DotKind, shape: tuple[int, ...], num_warps: int) -> Layout | None:
    if kind == "fma":
        return fma_layout(shape, num_warps)
    return warpgroup_layout(shape, num_warps) if kind == "wgmma" else warp_layout(shape, num_warps)


def _instruction(kind: DotKind, call: Call, options: Options, target: Target) -> Instruction | None:
    """The instruction of a kind for a dot; None where the target has none for its types and sides."""
    if kind == "fma":
        return Instruction(kind)
    if kind == "mma":
        return _tensor_core(kind, call, target)
    found = wgmma_of(call, options, target)
    return found if isinstance(found, Instruction) else None


def _tensor_core(kind: DotKind, call: Call, target: Target) -> Instruction | None:
    a, b = call.args[:2]
    types = a.type.dtype, b.type.dtype
    return tensor_core(kind, types, call.type.dtype, call.attribute("input_precision"), target)


def wgmma_of(call: Call, options: Options, target: Target) -> Instruction | str:
    """The wgmma that multiplies a dot, or why there is none, in words for the header."""
    a, b = call.args[:2]
    k, shape, found = a.type.shape[-1], call.type.shape, _tensor_core("wgmma", call, target)
    if found is None:
        full = a.type.dtype.name == "fp32" and call.attribute("input_precision") == "ieee"
        return f"there is none for {'full precision of ' if full else ''}{a.type.dtype.name}"
    if len(shape) != 2:
        return "it has no batches"
    if not all(whole_pieces(operand.type.shape) for operand in (a, b)):
        return "it has no sides like these"
    if k % found.k:
        return f"K is {k}, of which it takes {found.k} at a time"
    if options.num_warps % WARPS_OF_WARPGROUP:
        return f"num_warps is {options.num_warps}, and {WARPS_OF_WARPGROUP} warps make a warpgroup"
    if shape[0] < ROWS_OF_WARPGROUP:
        return f"a warpgroup multiplies {ROWS_OF_WARPGROUP} rows, and these are {shape[0]}"
    layout = _layout("wgmma", shape, options.num_warps)
    if layout is None:
        return f"{options.num_warps} warps cannot divide it so that its sums fit in registers"
    per_warpgroup = 4 * layout.registers(1)
    line_bytes = per_warpgroup * b.type.dtype.itemsize
    if found.split is not None:
        line_bytes = per_warpgroup * found.split.itemsize
        sums = (1 + SUMS_APART) * layout.registers(0) * layout.registers(1)
        if sums + BESIDE_PRODUCTS > consumer_registers(options.num_warps):
            return "the sums of its parts do not fit in registers"
    # A warpgroup's columns begin at a box of their own.
    fits = line_bytes >= CHUNK_BYTES and (per_warpgroup == b.type.shape[1] or line_bytes >= SWIZZLED_LINE_BYTES)
    return found if fits else f"a warpgroup would have {per_warpgroup} columns of {b.type.shape[1]}"


def _loaded_tiles(
    kernel: Kernel, facts: Facts, plans: Mapping[Statement, DotPlan], uses: Mapping[Variable, int]
) -> tuple[dict[Variable, SharedTile], dict[Variable, SharedTile]]:
    """The loaded tiles that tensor-core dots alone read, and those that others read too, contiguous as memory is."""
    reads: dict[Variable, list[tuple[int, Instruction]]] = {}  # the axis of K, for every use
    for plan in plans.values():
        for operand in plan.operands:
            axis = operand.k_axis
            shape = operand.variable.type.shape
            whole = whole_pieces(shape) and shape[axis] % plan.instruction.k == 0
            if plan.instruction.kind != "fma" and whole:
                reads.setdefault(operand.variable, []).append((axis, plan.instruction))
    staged: dict[Variable, SharedTile] = {}
    mixed: dict[Variable, SharedTile] = {}
    read = {s.value.args[0].variable for s in statements(kernel.body) if is_box_read(s)}  # type: ignore[attr-defined]
    induction = closed_forms(kernel, facts)
    for candidate in statements(kernel.body):
        load = assigned_call(candidate, *LOADS)
        if load is None or not isinstance(candidate, Assign):
            continue
        variable = candidate.target
        if variable not in read and not reads.get(variable):
            continue
        found = staged if variable in read or uses[variable] == len(reads[variable]) else mixed
        if load.op == "box_load":
            axes = [axis for axis in load.attribute("axes") if axis is not None]
            found[variable] = SharedTile(variable.type.shape, axes[-1], variable.type.dtype.itemsize)
        elif load.op == "row_load":
            found[variable] = SharedTile(variable.type.shape, load.attribute("fast"), variable.type.dtype.itemsize)
        elif facts.assignments[variable] == 1 and not load.attribute("volatile") and _fills_with_zeros(load):
            fast = _contiguous_axis(candidate, load, facts, induction)
            itemsize = variable.type.dtype.itemsize
            readable = all(
                axis == fast or reads_columns(how, itemsize) or can_transpose(variable.type.shape, axis, itemsize)
                for axis, how in reads[variable]
            )
            if readable and has_chunks(variable.type.shape, fast, itemsize):
                found[variable] = SharedTile(variable.type.shape, fast, itemsize)
    return staged, mixed


def _fills_with_zeros(load: Call) -> bool:
    """Whether masked elements may be zeros: asynchronous copies fill with nothing else."""
    return len(load.args) < 3 or (isinstance(load.args[2], Literal) and load.args[2].value == 0)


def _contiguous_axis(statement: Statement, load: Call, facts: Facts, induction: Induction) -> int:
    pointer = induction.value_at(load.args[0], statement) or load.args[0]  # what loops add does not hide the axes
    info = facts.at(statement).info(pointer)
    rank = load.type.rank
    runs = info.contiguity
    if runs[rank - 2] == runs[rank - 1]:
        side_by_side = unit_axes(pointer, facts.definitions)
        return rank - 2 if rank - 2 in side_by_side and rank - 1 not in side_by_side else rank - 1
    return rank - 2 if runs[rank - 2] > runs[rank - 1] else rank - 1


def reads_columns(instruction: Instruction, itemsize: int) -> bool:
    """Whether an operand of elements of so many bytes may be contiguous along M or N instead of K.

    Elements of 16 bits are transposed by ldmatrix and wgmma, larger ones are read one by one; of smaller ones a register
    holds several along K. What wgmma reads in parts is written for it, along K where it must be.
    """
    if instruction.kind == "wgmma" and instruction.split is not None:
        return True
    return itemsize == 2 or (itemsize > 2 and instruction.kind == "mma")


def sums_apart(dots: Dots) -> int:
    """Registers for the sums of one tile's products, of dots whose parts wgmma multiplies: the most that one has."""
    plans = (plan for plan in dots.plans.values() if plan.instruction.kind == "wgmma" and plan.instruction.split)
    return SUMS_APART * max((plan.layout.registers(0) * plan.layout.registers(1) for plan in plans), default=0)


def can_transpose(shape: tuple[int, ...], axis: int, itemsize: int) -> bool:
    """Whether a tile of bytes in shared memory can be transposed there, so that it is contiguous along `axis` (of K)."""
    return (
        itemsize == 1 and len(shape) == 2 and shape[axis] % TRANSPOSED_LINES == 0 and shape[1 - axis] % CHUNK_BYTES == 0
    )
