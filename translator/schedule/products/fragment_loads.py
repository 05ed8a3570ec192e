"""What products by `mma.sync` need where they are few to a fragment: registers, so that fragments are read ahead of them.

In: the plans of a kernel's dots, and what a block takes. Out: for how many blocks registers have room; None leaves it to ptxas.
That keeps to few registers where nothing is said: it reads one fragment, waits, multiplies, and reads the next into the same
registers. A warp or two on each scheduler, as shared memory often leaves, do not hide those waits; the blocks that find room
there can have all registers. Nor do such products hide the copies of a later iteration, which therefore start ahead of them
(`lower/staging/ring_copies.py`).
"""

from __future__ import annotations

from ...artifact import Target
from ...hardware import MOST_OF_THREAD, REGISTER_FILE, WARP_SIZE, WORD_BYTES
from ..tiles.registers import OTHER_REGISTERS
from .dot_plan import DotPlan, Dots

MOST_WARPS = 16  # on a multiprocessor, four for each scheduler: more of them hide what one waits for
FEW_SUMS = 32  # of a thread: with more, the products of a fragment last as long as it takes to read the next
AHEAD = 48  # registers for fragments and the addresses of copies, beside tiles and what all kernels take


def blocks_for_fragments(dots: Dots, peak: int, num_threads: int, target: Target) -> int | None:
    """The blocks that shared memory has room for, if registers leave room for fragments beside tiles.

    Only the operands count: what else moves through shared memory often takes turns with them. Where it does not, there are fewer
    blocks than named, which costs registers but no block.

    Args:
      dots: the plans of the kernel's products.
      peak: registers of a thread that hold tiles where these are most.
      num_threads: threads of a block.
      target: the architecture.
    """
    if not dots.plans or not all(waits_for_matrices(plan) for plan in dots.plans.values()):
        return None
    blocks = target.blocks_by_shared(sum(tile.stage_bytes * tile.stages for tile in dots.staged.values()))
    if not 0 < blocks * num_threads <= MOST_WARPS * WARP_SIZE:
        return None
    registers = min(REGISTER_FILE // (blocks * num_threads), MOST_OF_THREAD)
    return blocks if registers >= peak + OTHER_REGISTERS + AHEAD else None


def waits_for_matrices(plan: DotPlan) -> bool:
    """Whether ldmatrix reads fragments of which each is multiplied a few times.

    Words come one by one, and naming blocks had ptxas spill them.
    """
    of_matrices = all(side.variable.type.dtype.itemsize < WORD_BYTES for side in plan.operands)
    return plan.instruction.kind == "mma" and of_matrices and plan.layout.num_registers <= FEW_SUMS
