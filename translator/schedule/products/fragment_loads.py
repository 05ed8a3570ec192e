"""What products need where threads read shared memory for them: registers, so that what is needed next is read ahead.

In: the plans of a kernel's dots, and what a block takes. Out: for how many blocks registers have room; None leaves it to ptxas.
Products by `mma.sync` are often few to a fragment. ptxas keeps to few registers where nothing is said: it reads one fragment,
waits, multiplies, and reads the next into the same registers. A warp or two on each scheduler, as shared memory often leaves,
do not hide those waits; the blocks that find room there can have all registers. Nor do such products hide the copies of a later
iteration, which therefore start ahead of them (`lower/staging/ring_copies.py`). Rows that are shifted in shared memory want
registers for the same reason.
"""

from __future__ import annotations

from ...artifact import Target
from ...hardware import MOST_OF_THREAD, REGISTER_FILE, WARP_SIZE, WORD_BYTES
from ..staging.ring_plan import Rings
from ..tiles.registers import OTHER_REGISTERS
from .dot_plan import DotPlan, Dots

MOST_WARPS = 16  # on a multiprocessor, four for each scheduler: more of them hide what one waits for
FEW_SUMS = 32  # of a thread: with more, the products of a fragment last as long as it takes to read the next
LEAST_BLOCKS = 3  # that are named beside rows
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
    return blocks if _have_room(blocks, peak, num_threads) else None


def blocks_beside_rows(rings: Rings, dots: Dots, peak: int, num_threads: int, target: Target) -> int | None:
    """The blocks that fit where rows are shifted in shared memory, with registers for what is on its way.

    In few registers a thread would wait for each piece of a row that it shifts before it reads the next one. Where no more than
    two blocks would be named, ptxas takes as many as it can get, and loses a block that it finds room for by itself.
    """
    rows = [(ring.stages - 1) * dots.staged[tile].rows_bytes for ring in rings.rings for tile in ring.rows]
    if not rows:
        return None
    tiles = [tile.stage_bytes * tile.stages for tile in dots.staged.values()]
    most = target.blocks_by_shared(sum(rows) + sum(tiles))
    return next((n for n in range(most, LEAST_BLOCKS - 1, -1) if _have_room(n, peak, num_threads)), None)


def _have_room(blocks: int, peak: int, num_threads: int) -> bool:
    """Whether threads of so many blocks have registers for tiles, and for what they read ahead."""
    registers = min(REGISTER_FILE // (blocks * num_threads), MOST_OF_THREAD)
    return registers >= peak + OTHER_REGISTERS + AHEAD


def waits_for_matrices(plan: DotPlan) -> bool:
    """Whether ldmatrix reads fragments of which each is multiplied a few times.

    Words come one by one, and naming blocks had ptxas spill them.
    """
    of_matrices = all(side.variable.type.dtype.itemsize < WORD_BYTES for side in plan.operands)
    return plan.instruction.kind == "mma" and of_matrices and plan.layout.num_registers <= FEW_SUMS
