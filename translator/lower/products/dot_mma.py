"""Dots with `mma.sync`: fragments from swizzled shared memory, 16 x 8 pieces of the accumulator."""

from __future__ import annotations

from ...ir.nodes import Assign
from ...ir.types import padded
from ...schedule.products.dot_plan import DotPlan, Side
from ...schedule.products.instructions import Instruction
from ...schedule.tiles.layout import Layout
from ..context import Context, ctype
from ..text.operators import sum_text
from ..text.unit import Assignment, Comment, Declaration, Line, Loop, Node, unrolled
from .formats import k_per_instruction, pieces_per_warp
from .fragments import Step, fragment, read_a, read_b
from .operand import OperandPlace


def lower_mma(context: Context, statement: Assign, plan: DotPlan, a: OperandPlace, b: OperandPlace) -> tuple[Node, ...]:
    """Steps through K; every step loads the fragments of a warp's rows and columns and multiplies all pairs."""
    layout, instruction = plan.layout, plan.instruction
    rank = layout.rank
    target = context.names.variable(statement.target)
    row = context.axis_names.warp_place("warp_row", layout.axes[-2], "row", target)
    column = context.axis_names.warp_place("warp_col", layout.axes[-1], "column", target)
    rows = instruction.rows
    m_pieces, n_pieces = max(layout.registers(rank - 2) * 8 // rows, 1), max(layout.registers(rank - 1) // 2, 1)
    step = k_per_instruction(context, statement, plan)
    m_count = pieces_per_warp(context, statement, "MMA_ROWS", m_pieces, f"pieces of {rows} rows per warp")
    n_count = pieces_per_warp(context, statement, "MMA_COLS", n_pieces, "pieces of 8 columns per warp")
    planes = layout.registers(0) if rank == 3 else 1
    batch, p = "0", context.names.shared_index("p")
    if rank == 3 and layout.axes[0]:
        place = context.axis_names.warp_place("warp_plane", layout.axes[0], "plane", target)
        batch = sum_text(p if planes > 1 else "", place)
    mi, ni = context.names.shared_index("mi"), context.names.shared_index("ni")
    kk, s = context.names.shared_index("kk"), context.names.shared_index("s")
    steps = instruction.steps(a.variable.type.shape[a.k_axis])
    at = Step(instruction, f"{kk} + {s} * {step}" if steps > 1 else kk, context.axis_names.lane(), batch)
    single_row = m_pieces == 1 and not instruction.split  # the splits have arrays of their own in each loop
    pair, several = n_pieces > 1 and b.by_matrices, n_pieces > 1
    here = f"[{s}]" if steps > 1 else ""
    a_frag, b_frag = context.names.shared_index("a_frag"), context.names.shared_index("b_frag")
    b_names = [f"{b_frag}[{ni if several else 0}]{here}", *([f"{b_frag}[{ni} + 1]{here}"] * pair)]
    a_name, a_piece = (f"{a_frag}{here}", "") if single_row else (f"{a_frag}[{mi}]{here}", f"{mi} * {rows}")
    read_rows = read_a(context, a, at, a_name, row, a_piece)
    read_columns = read_b(context, b, at, b_names, column, f"{ni} * 8" if several else "")
    if steps > 1:
        each_step = f"for (int {s} = 0; {s} < {steps}; ++{s})"
        read_rows, read_columns = ((Loop(each_step, read, unroll=True),) for read in (read_rows, read_columns))
    each_row = f"for (int {mi} = 0; {mi} < {m_count}; ++{mi})"
    next_piece = f"{ni} += 2" if pair else f"++{ni}"
    body: list[Node] = [
        fragment(instruction, a_frag, "" if single_row else m_count, steps, Side.A),
        *(read_rows if single_row else (Loop(each_row, read_rows, unroll=True),)),
        fragment(instruction, b_frag, n_count, steps, Side.B),
        *((Loop(f"for (int {ni} = 0; {ni} < {n_count}; {next_piece})", read_columns, unroll=True),) if several
          else read_columns),
    ]  # fmt: skip
    products = _multiply(context, statement, plan, "" if single_row else mi, ni)
    inner = unrolled(ni, n_count, products)
    body.append(inner if single_row else Loop(each_row, (inner,), unroll=True))
    side, stride = a.depth(context, instruction), f"{steps} * {step}" if steps > 1 else step
    nodes: tuple[Node, ...] = (unrolled(kk, side, tuple(body), step=stride),)
    if planes > 1:
        nodes = (unrolled(p, context.count(layout.axes[0]), nodes),)
    return nodes


def mma_helper(context: Context, instruction: Instruction, steps: int = 1) -> str:
    """The helper that adds the product of two fragments, of so many steps along K, to a piece of the accumulator."""
    split, k = instruction.split, instruction.k
    values: dict[str, object] = {"k": k, "a_type": instruction.a_type, "b_type": instruction.b_type}
    values["acc"] = instruction.accumulator
    if instruction.a_type == "f64":
        return context.use_helper("mma_double", f"mma_m{instruction.rows}n8k{k}", rows=instruction.rows, k=k)
    mma = context.needs.distinct_helper("mma", f"mma_m16n8k{k}", values)
    if split is None:
        return mma
    parts: dict[str, object] = {"mma": mma, "steps": steps, "parts": split.parts, "products": split.products}
    return context.needs.distinct_helper("mma_split", f"mma_{split.word}", parts)


def _multiply(context: Context, statement: Assign, plan: DotPlan, mi: str, ni: str) -> tuple[Node, ...]:
    """One product, of the only row of pieces where `mi` is "".

    What the tile lacks of the instruction's rows and columns goes to registers that nobody reads.
    """
    layout, instruction = plan.layout, plan.instruction
    mma = mma_helper(context, instruction, instruction.steps(plan.a.variable.type.shape[plan.a.k_axis]))
    name = context.names.variable(statement.target)
    element = ctype(statement.target.type)
    short = instruction.rows == 16 and padded(statement.target.type.shape[-2]) < 16
    each = instruction.rows // 8
    rows = [f"{each} * {mi}", f"{each} * {mi} + 1"] if each > 1 else [mi]
    if not mi:
        rows = ["0", "1"][:each]
    index = context.names.shared_index
    pieces = [f"{name}{_subscripts(layout, index('p'), row, f'2 * {ni}')}" for row in rows]
    operands = f"{index('a_frag')}{f'[{mi}]' if mi else ''}, {index('b_frag')}[{ni}]"
    if layout.registers(layout.rank - 1) > 1:
        if not short:
            return (Line(f"{mma}({', '.join(f'&{piece}' for piece in pieces)}, {operands});"),)
        return (
            Declaration(element, index("repeated"), "{}", "[2]", comment="rows that the tile does not have"),
            Line(f"{mma}(&{pieces[0]}, {index('repeated')}, {operands});"),
        )
    kept = pieces[:1] if short else pieces
    columns = [index("upper"), index("lower")][: len(pieces)]
    return (
        Comment("The instruction has more columns than the tile, whose column it repeats."),
        *(
            Declaration(element, column, f"{{{piece if piece in kept else ''}}}", "[2]")
            for column, piece in zip(columns, pieces, strict=True)
        ),
        Line(f"{mma}({', '.join(columns)}, {operands});"),
        *(Assignment(piece, f"{column}[0]") for column, piece in zip(columns, kept, strict=False)),
    )


def _subscripts(layout: Layout, plane: str, row: str, column: str) -> str:
    """The place of an element in a thread's array: axes with one register have no subscript."""
    texts = {layout.rank - 2: row, layout.rank - 1: column, layout.rank - 3: plane}
    return "".join(f"[{texts[axis]}]" for axis in layout.array_axes())
