"""Whether a kernel whose loops load ahead for tensor cores should leave room for a second block on its multiprocessor.

In: the rings of a kernel and the registers of its tiles. Out: yes or no.

Where nothing but dots touches the sums of a loop, the tensor cores always have work, and one block with all of shared memory
is as good as two. Where a loop computes with the results of its dots, as attention does, the tensor cores wait meanwhile for
the warps that they wait for: then other warpgroups must have products to give them. So it is where the threads that start
products copy tiles themselves, and wait for each other in every iteration. A product that is computed further and multiplied
again behind the loop has nothing to overlap with either.
And where a block runs a single program, its first copies and its stores stand alone, unless another block multiplies meanwhile.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ...artifact import Target
from ...hardware import BOX_ALIGNMENT, REGISTER_FILE, RESERVED_BYTES, WARP_SIZE, WARPGROUP, WORD_BYTES
from ...ir.nodes import Assign, Kernel
from ...ir.walk import computed_with, reachable, statements
from ..staging.ring_plan import Rings
from .dot_plan import DotPlan, Dots
from .instructions import BESIDE_PRODUCTS, consumer_registers, registers_at_start

if TYPE_CHECKING:
    from ..plan import Schedule

LEAST_STAGES = 2
ROWS_OF_LANE = 2  # of the 64 of an instruction's sums


def wants_second_block(kernel: Kernel, rings: Rings, dots: Dots, peak: int, num_warps: int) -> bool:
    """Whether tensor cores idle in a loop that loads ahead, or in front of it, and the registers of two blocks fit.

    `peak` is what the tiles keep busy of a multiplying thread's registers.
    """
    if not rings.has_producer:
        copied = any(ring.kind == "cp_async" and not ring.rows for ring in rings.rings)
        waits = copied and all(plan.instruction.kind == "wgmma" for plan in dots.plans.values())
        return waits and (peak + BESIDE_PRODUCTS) * num_warps * WARP_SIZE * 2 <= REGISTER_FILE
    waits = any(ring.kind == "tma" and not ring.overlapped for ring in rings.rings) or multiplies_again(kernel, dots)
    sums = max((ROWS_OF_LANE * plan.frame.registers(1) for plan in dots.plans.values()), default=0)
    # ptxas compiles for the registers that threads start with, and wants the sums of an instruction among them, and what
    # instructions read.
    sums += sum(_words(plan) for plan in dots.plans.values())
    compiles = sums + BESIDE_PRODUCTS <= registers_at_start(num_warps, 2)
    return (waits or rings.once) and compiles and peak + BESIDE_PRODUCTS <= consumer_registers(num_warps, 2)


def multiplies_again(kernel: Kernel, dots: Dots) -> bool:
    """Whether a dot's operand follows from what another dot has summed up."""
    sums = {s.targets[0] for s in statements(kernel.body) if isinstance(s, Assign) and s in dots.plans}
    found = reachable(sums, computed_with(s for s in statements(kernel.body) if s not in dots.plans))
    return any(operand.variable in found for plan in dots.plans.values() for operand in plan.operands)


def _words(plan: DotPlan) -> int:
    """Registers of an operand that is computed to be multiplied from them."""
    if plan.fragment is None:
        return 0
    return plan.fragment.num_registers * plan.rows.variable.type.dtype.itemsize // WORD_BYTES


def serves_two(half: Schedule, whole: Schedule) -> bool:
    """Whether the plan for half of a multiprocessor is worth it, and says more than that for the whole.

    Copies by threads need two iterations to arrive in, unless the loop computes with its products meanwhile. Of a single
    warpgroup two blocks fit whatever its registers.
    """
    if half.rings.has_producer:
        return True
    if any(ring.kind == "cp_async" and ring.overlapped and ring.stages <= LEAST_STAGES for ring in half.rings.rings):
        return False
    return half.rings != whole.rings or whole.num_threads > WARPGROUP


def half_of(target: Target) -> Target:
    """The target with the shared memory that each of two blocks on a multiprocessor can have."""
    room = target.shared_of_multiprocessor // 2 - RESERVED_BYTES
    return replace(target, max_dynamic_shared_bytes=room // BOX_ALIGNMENT * BOX_ALIGNMENT)
