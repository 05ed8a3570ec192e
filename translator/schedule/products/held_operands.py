"""Operands of `mma.sync` that stay in registers: a computed B that no two warps share.

In: the plans of a kernel's dots and what is known of the accesses that its operands come from. Out: the same plans, in
which such dots have a `HeldOperand`: the layout in which B is computed, so that each lane has what the instruction takes
from it and nothing goes through shared memory.

The instruction wants of lane `l` two pairs of elements of K, at column `l / 4` of each piece of 8 columns, and of A the same
elements of row `l / 4`. Which elements, columns and rows of the tiles these are is free, as long as A, B and the sum agree: a
lane takes runs of K (`l % 4` says which), as many neighbouring columns as an access of 16 bytes brings (further ones lie
behind those of the other lanes, so that lanes side by side read whole lines), and a row that suits the banks of shared
memory. Worked example, B [128, 128] over 4 warps, 4 columns and 8 elements of K per lane:

  axis K (7 bits): REGISTER REGISTER REGISTER 0 1 REGISTER REGISTER      K = l % 4 * 8 + register % 8 + register / 8 * 32
  axis N (7 bits): REGISTER REGISTER 2 3 4 5 6                           column = warp * 32 + l / 4 * 4 + register
  the sum's axis N: REGISTER REGISTER REGISTER 0 1 5 6                   the bits of lane / 4 turn to those of a sum
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from ...analysis.facts import Facts
from ...frozen import frozen
from ...hardware import LANE_BITS
from ...ir.nodes import Kernel, Use, Variable
from ...ir.types import padded
from ...ir.walk import read_inside
from ..tiles.layout import REGISTER, Layout, bits_of
from .dot_plan import DotPlan, Dots, HeldOperand
from .dots import dot_statements

LONGEST_RUN = 3  # log2 of the elements of K that a lane reads of A at once: 16 bytes
# Which bits of a lane choose a row of A, lowest bit of the row first, by the run that a lane reads: the lanes that read at
# the same time find their chunks in different banks.
ROWS_OF_LANES = {4: (4, 2, 3), 8: (3, 4, 2)}
ROWS_OF_MATRIX = (2, 3, 4)  # the same for rows that ldmatrix brings
SUM_OF_LANE = {2: REGISTER, 3: 0, 4: 1}  # what chooses a column of the sum, by the lane's bit that chooses it of B


@frozen
class Words:
    """How the elements that a B is computed from lie in memory.

    Attributes:
      repeat: how many elements along K come from one word.
      columns: of how many neighbouring columns one access brings the words; all, where columns are not neighbours there.
    """

    repeat: int = 1
    columns: int = 1


def held_operands(kernel: Kernel, facts: Facts, dots: Dots, words: dict[Variable, Words]) -> Dots:
    """The dots with operands in registers where that is possible; `words` says of every B where its elements come from."""
    uses = Counter(read_inside(kernel.body))
    sums = Counter(statement.target for statement, _ in dot_statements(kernel))
    plans = dict(dots.plans)
    for statement, call in dot_statements(kernel):
        plan = plans[statement]
        b = plan.b.variable
        alone = sums[statement.target] == 1 and uses[b] == 1 and b not in dots.staged and b not in facts.index
        kept = len(call.args) < 3 or not isinstance(call.args[2], Use) or call.args[2].variable is statement.target
        along_rows = _is_along_rows(plan, dots)
        if alone and kept and facts.assignments[b] == 1 and (held := _held(plan, words.get(b, Words()), along_rows)):
            rows = (*(ROWS_OF_MATRIX if along_rows else ROWS_OF_LANES[held.run]), *plan.layout.axes[0][3:])
            layout = Layout((rows, _axis_of_sum(held)), plan.layout.thread_bits)
            plans[statement] = replace(plan, layout=layout, held=held)
    return replace(dots, plans=plans)


def _is_along_rows(plan: DotPlan, dots: Dots) -> bool:
    """Whether A is a loaded tile whose lines in shared memory run along its rows, that is along M."""
    tile = dots.staged.get(plan.a.variable)
    return tile is not None and tile.fast != plan.a.k_axis


def _axis_of_sum(held: HeldOperand) -> tuple[int, ...]:
    return tuple(SUM_OF_LANE.get(bit, bit) for bit in held.layout.axes[1 - held.k_axis])


def _held(plan: DotPlan, words: Words, along_rows: bool) -> HeldOperand | None:
    """The layout of B in registers; None where warps share its columns, or it has no pairs of 16-bit elements."""
    shape, layout = plan.b.variable.type.shape, plan.layout
    if plan.instruction.kind != "mma" or layout.rank != 2 or plan.b.variable.type.dtype.itemsize != 2:
        return None
    if plan.instruction.split or padded(plan.a.variable.type.shape[int(plan.a.swapped)]) < plan.instruction.rows:
        return None
    if any(bit >= LANE_BITS for bit in layout.axes[0]) or layout.free_thread_bits():
        return None
    axis = plan.b.k_axis
    if any(padded(side) != side for side in shape) or shape[axis] < 16:
        return None
    warps = [bit for bit in layout.axes[1] if bit >= LANE_BITS]
    pieces = bits_of(shape[1 - axis]) - 3 - len(warps)
    together = min(pieces, bits_of(words.columns))
    run = min(max(bits_of(words.repeat), 2), LONGEST_RUN, bits_of(shape[axis]) - 2)
    rest = [REGISTER] * (bits_of(shape[axis]) - 2 - run)
    along_k, along_n = (
        (*[REGISTER] * run, 0, 1, *rest),
        (*[REGISTER] * together, 2, 3, 4, *[REGISTER] * (pieces - together), *warps),
    )
    axes = (along_n, along_k) if axis else (along_k, along_n)
    # Elements of one word lie in its two halves when they are half a run apart: one shift and one mask serve both.
    apart = 1 << run - 1 if words.repeat == 1 << run else 1
    return HeldOperand(Layout(axes, layout.thread_bits), axis, 1 << run, apart, 1 << together, along_rows)
