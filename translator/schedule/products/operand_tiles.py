"""The formats of operands that do not lie in shared memory as an instruction reads them: transposed or copied there."""

from __future__ import annotations

from ...ir.types import padded
from ..tiles.layout import Layout
from .dot_plan import Operand
from .dots import reads_columns
from .instructions import Instruction
from .shared_tiles import SharedTile, has_chunks


def transposed_tile(operand: Operand, staged: SharedTile, instruction: Instruction) -> SharedTile | None:
    """The format of the transposed copy of a staged tile that an instruction cannot read as it lies; None where it can."""
    axis = operand.k_axis
    if staged.fast == axis or reads_columns(instruction, staged.itemsize):
        return None
    return SharedTile(staged.shape, axis, staged.itemsize)


def copied_tile(operand: Operand, layout: Layout | None, instruction: Instruction) -> SharedTile:
    """The format of the copy that a dot makes of a tile in registers, with what the instructions need along K.

    It is contiguous along K, or along the axis of which a thread holds consecutive elements where they can be read so.
    """
    variable, fast = operand.variable, operand.k_axis
    other = 2 * variable.type.rank - 3 - fast
    shape = [side if padded(side) == side else padded(side) for side in variable.type.shape]
    if shape[fast] < instruction.k:
        shape[fast] = instruction.k
    itemsize = variable.type.dtype.itemsize
    if layout is not None and layout.vector(other) > layout.vector(fast) and reads_columns(instruction, itemsize):
        fast = other if has_chunks(tuple(shape), other, itemsize) else fast
    return SharedTile(tuple(shape), fast, itemsize)
