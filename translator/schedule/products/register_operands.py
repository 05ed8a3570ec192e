"""Left operands of wgmma that stay in registers: tiles that are held as the instruction reads them.

In: the plans of a kernel's dots and the layouts of its tiles. Out: the same plans; those whose A is multiplied from
registers say so, and no copy in shared memory is made of it.

A lane of a wgmma with A in registers gives the elements of the rows and columns that it would hold of an accumulator
(PTX ISA, "Register fragments for wgmma.mma_async.m64nNk16"). So a product whose elements were computed further and rounded
to 16 bits, such as the probabilities of attention, is the A of the next product as it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ...ir.nodes import Variable
from ..tiles.layout import REGISTER, Layout
from .dot_plan import DotPlan, Dots
from .instructions import COLUMN_IN_PIECE

ITEMSIZE = 2  # bytes: of narrower elements a register holds more columns than a lane has side by side


def with_register_operands(dots: Dots, layouts: Mapping[Variable, Layout]) -> Dots:
    """The plans in which every A that can be multiplied from registers is."""
    plans = {key: replace(plan, rows_in_registers=_fits(plan, dots, layouts)) for key, plan in dots.plans.items()}
    return replace(dots, plans=plans)


def _fits(plan: DotPlan, dots: Dots, layouts: Mapping[Variable, Layout]) -> bool:
    """Whether each lane holds what the instruction wants of it: all of K, for the rows that its warp multiplies."""
    operand = plan.rows.variable
    if plan.instruction.kind != "wgmma" or operand in dots.staged or operand.type.dtype.itemsize != ITEMSIZE:
        return False
    held = layouts.get(operand)
    if held is None or held.rank != 2:
        return False
    axis = plan.rows.k_axis
    rows, columns = held.axes[1 - axis], held.axes[axis]
    piece, rest = columns[: len(COLUMN_IN_PIECE)], columns[len(COLUMN_IN_PIECE) :]
    return rows == plan.frame.axes[0] and piece == COLUMN_IN_PIECE and all(bit == REGISTER for bit in rest)
