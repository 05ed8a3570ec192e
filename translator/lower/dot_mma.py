"""Dots with `mma.sync`: fragments from swizzled shared memory by ldmatrix, 16 x 8 pieces of the accumulator."""

from __future__ import annotations

from ..ir.nodes import Assign
from ..schedule.dots import DotPlan
from ..schedule.instructions import Instruction
from .context import Context
from .operand import OperandPlace, place_line
from .shared import side_text
from .unit import Line, Loop, Node


def lower_mma(context: Context, statement: Assign, plan: DotPlan, a: OperandPlace, b: OperandPlace) -> tuple[Node, ...]:
    """Steps through K; every step loads the fragments of a warp's rows and columns and multiplies all pairs."""
    layout, instruction = plan.layout, plan.instruction
    name = context.names.variable(statement.target)
    rank = layout.rank
    lane = context.lane()
    row = context.warp_place("warp_row", layout.axes[-2], "first row of the warp's part")
    column = context.warp_place("warp_col", layout.axes[-1], "first column of the warp's part")
    m_pieces, n_pieces = layout.registers(rank - 2) // 2, layout.registers(rank - 1) // 2
    step = context.constant("MMA_K", instruction.k, "elements of K per instruction", topic="operands")
    m_count = context.constant("MMA_ROWS", m_pieces, "pieces of 16 rows per warp")
    n_count = context.constant("MMA_COLS", n_pieces, "pieces of 8 columns per warp")
    planes = layout.registers(0) if rank == 3 else 1
    batch, prefix = "0", ""
    if rank == 3 and layout.axes[0]:
        place = context.warp_place("warp_plane", layout.axes[0], "first plane of the warp's part")
        batch = " + ".join(filter(None, ("p" if planes > 1 else "", place if place != "0" else ""))) or "0"
        prefix = "[p]" if planes > 1 else ""
    mma = mma_helper(context, instruction)
    mi, ni = context.names.shared_index("mi"), context.names.shared_index("ni")
    kk = context.names.shared_index("kk")
    body: list[Node] = [
        Line(f"unsigned a_frag[{m_count}][4];"),
        Loop(f"for (int {mi} = 0; {mi} < {m_count}; ++{mi})",
             _load_a(context, a, f"a_frag[{mi}]", f"{row} + {mi} * 16", kk, lane, batch), unroll=True),
        Line(f"unsigned b_frag[{n_count}][2];"),
        *_load_b(context, b, n_pieces, n_count, ni, column, kk, lane, batch),
    ]  # fmt: skip
    upper, lower = (f"&{name}{prefix}[2 * {mi}{half}][2 * {ni}]" for half in ("", " + 1"))
    multiply = Line(f"{mma}({upper}, {lower}, a_frag[{mi}], b_frag[{ni}]);")
    inner = Loop(f"for (int {ni} = 0; {ni} < {n_count}; ++{ni})", (multiply,), unroll=True)
    body.append(Loop(f"for (int {mi} = 0; {mi} < {m_count}; ++{mi})", (inner,), unroll=True))
    side = side_text(context, a.side_of_k())
    nodes: tuple[Node, ...] = (Loop(f"for (int {kk} = 0; {kk} < {side}; {kk} += {step})", tuple(body), unroll=True),)
    if planes > 1:
        nodes = (Loop(f"for (int p = 0; p < {context.count(layout.axes[0])}; ++p)", nodes, unroll=True),)
    return nodes


def mma_helper(context: Context, instruction: Instruction) -> str:
    """The helper that adds the product of two fragments to a piece of the accumulator."""
    values: dict[str, object] = {"k": instruction.k, "a_type": instruction.a_type, "b_type": instruction.b_type}
    values["acc"] = instruction.accumulator
    return context.distinct_helper("mma", f"mma_m16n8k{instruction.k}", values)


def _load_a(
    context: Context, a: OperandPlace, fragment: str, row: str, kk: str, lane: str, batch: str
) -> tuple[Node, ...]:
    """16 rows by one step of K: four matrices of 8 x 16 bytes."""
    if a.k_fast:
        helper = context.use_helper("ldmatrix", "ldmatrix_x4", count=4, trans=False)
        place = a.place(context, f"{row} + {lane} % 16", f"{kk} + {lane} / 16 * {a.tile.chunk}", batch)
    else:
        helper = context.use_helper("ldmatrix", "ldmatrix_x4_trans", count=4, trans=True)
        place = a.place(context, f"{row} + {lane} / 8 % 2 * 8", f"{kk} + {lane} / 16 * 8 + {lane} % 8", batch)
    registers = ", ".join(f"{fragment}[{i}]" for i in range(4))
    naming, offset = place_line(context, place, a.variable.name, True)
    return (*naming, Line(f"{helper}({registers}, &{a.base}[{offset}]);"))


def _load_b(
    context: Context, b: OperandPlace, pieces: int, count: str, ni: str, column: str, kk: str, lane: str, batch: str
) -> tuple[Node, ...]:
    """8 columns by one step of K, two pieces at a time where there are two."""
    both = pieces > 1
    width = 4 if both else 2
    if b.k_fast:
        helper = context.use_helper("ldmatrix", f"ldmatrix_x{width}", count=width, trans=False)
        across = f"{column} + {ni} * 8 + {lane} / 16 * 8 + {lane} % 8" if both else f"{column} + {lane} % 8"
        place = b.place(context, across, f"{kk} + {lane} / 8 % 2 * {b.tile.chunk}", batch)
    else:
        helper = context.use_helper("ldmatrix", f"ldmatrix_x{width}_trans", count=width, trans=True)
        across = f"{column} + {ni} * 8 + {lane} / 16 * 8" if both else column
        place = b.place(context, across, f"{kk} + {lane} % 16", batch)
    naming, offset = place_line(context, place, b.variable.name, both)
    if not both:
        return (*naming, Line(f"{helper}(b_frag[0][0], b_frag[0][1], &{b.base}[{offset}]);"))
    registers = ", ".join(f"b_frag[{ni}{piece}][{i}]" for piece in ("", " + 1") for i in range(2))
    load = Line(f"{helper}({registers}, &{b.base}[{offset}]);")
    return (Loop(f"for (int {ni} = 0; {ni} < {count}; {ni} += 2)", (*naming, load), unroll=True),)
