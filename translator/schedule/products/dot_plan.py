"""What is decided about a kernel's dots: the values that `dots.py` finds, others complete and the text is written from."""

from __future__ import annotations

from enum import Enum

from ...frozen import frozen
from ...ir.nodes import Statement, Variable
from ..tiles.layout import Layout
from .instructions import Instruction
from .shared_tiles import SharedTile


class Side(Enum):
    """Which operand of a dot it is: A `[.., M, K]` or B `[.., K, N]`; the value is what the text calls it."""

    A = "a"
    B = "b"


@frozen
class View:
    """A tile as it is, or `swapped`: with its last two axes the other way round."""

    variable: Variable
    swapped: bool


@frozen
class Operand(View):
    """A tile that a dot reads as its A or its B."""

    side: Side

    @property
    def k_axis(self) -> int:
        """The axis of its variable that is K."""
        rank = self.variable.type.rank
        return rank - 1 if (self.side is Side.A) != self.swapped else rank - 2


@frozen
class HeldOperand:
    """A B that stays in registers (`held_operands.py`).

    Attributes:
      layout: who holds what of it.
      k_axis: the axis of its variable that is K.
      run: consecutive elements of K in a lane.
      apart: from the first to the second element of a pair, in elements of K.
      columns: neighbouring columns in a lane.
      by_matrices: whether A lies in shared memory as ldmatrix reads it transposed, whatever the order of K: along its rows.
    """

    layout: Layout
    k_axis: int
    run: int
    apart: int
    columns: int
    by_matrices: bool


@frozen
class DotPlan:
    """One dot: its instruction, the layout of its accumulator, its operands and where they lie.

    The tiles are in shared memory: of a staged variable, or of a copy that the dot makes of a tile in registers; a `held`
    B is in registers, as is the operand of the instruction's rows where `rows_in_registers` (`register_operands.py`).

    Attributes:
      exchanged: whether the instruction computes the transpose: its rows are columns of B, its columns rows of A.
      fragment: the layout in which the operand of its rows is computed, so that it stays in registers; None for any.
    """

    instruction: Instruction
    layout: Layout
    a: Operand
    b: Operand
    held: HeldOperand | None = None
    rows_in_registers: bool = False
    exchanged: bool = False
    fragment: Layout | None = None

    @property
    def runs_by_itself(self) -> bool:
        """Whether products are on their way while their warps do something else."""
        return self.instruction.kind == "wgmma" and self.instruction.split is None

    @property
    def operands(self) -> tuple[Operand, Operand]:
        """A and B."""
        return self.a, self.b

    @property
    def rows(self) -> Operand:
        """The operand that the instruction has its rows from, the only one that it can take from registers."""
        return self.b if self.exchanged else self.a

    @property
    def columns(self) -> Operand:
        """The operand that it has its columns from."""
        return self.a if self.exchanged else self.b

    @property
    def frame(self) -> Layout:
        """The layout of the sum as the instruction sees it: its rows, then its columns."""
        return Layout(self.layout.axes[::-1], self.layout.thread_bits) if self.exchanged else self.layout


@frozen
class Dots:
    """The plans of all dots, and the loaded tiles that they multiply from shared memory.

    Attributes:
      plans: the plans.
      staged: the tiles that dots alone read, with their format.
      mixed: those that other statements read as well, and so are loaded into registers, unless a tensor copy brings them
        (`schedule/staging/box_reads.py`).
    """

    plans: dict[Statement, DotPlan]
    staged: dict[Variable, SharedTile]
    mixed: dict[Variable, SharedTile]
