"""Whether a kernel with a loading warpgroup should leave room for a second block on its multiprocessor.

In: the rings of a kernel and the registers of its tiles. Out: yes or no.

Where nothing but dots touches the sums of a loop, the tensor cores always have work, and one block with all of shared memory
is as good as two. Where a loop computes with the results of its dots, as attention does, the tensor cores wait meanwhile for
the warps that they wait for: then other warpgroups must have products to give them.
And where a block runs a single program, its first copies and its stores stand alone, unless another block multiplies meanwhile.
"""

from __future__ import annotations

import math
from dataclasses import replace

from ..artifact import Target
from .dots import Dots
from .instructions import OTHER_REGISTERS, consumer_registers, registers_at_start
from .ring_plan import Rings

RESERVED_BYTES = 1024  # of shared memory, that the hardware keeps for itself in every block


def wants_second_block(rings: Rings, dots: Dots, peak: int, num_warps: int) -> bool:
    """Whether tensor cores idle in a kernel with tensor copies, and the registers of two blocks fit.

    `peak` is what the tiles keep busy of a multiplying thread's registers.
    """
    waits = any(ring.kind == "tma" and not ring.overlapped for ring in rings.rings)
    alone = rings.has_producer and rings.once
    sums = max((math.prod(plan.layout.register_shape()) for plan in dots.plans.values()), default=0)
    # ptxas compiles for the registers that threads start with, and wants the sums of a product among them.
    compiles = sums + OTHER_REGISTERS <= registers_at_start(num_warps, 2)
    return (waits or alone) and compiles and peak + OTHER_REGISTERS <= consumer_registers(num_warps, 2)


def half_of(target: Target) -> Target:
    """The target with the shared memory that each of two blocks on a multiprocessor can have."""
    room = (target.max_dynamic_shared_bytes + RESERVED_BYTES) // 2 - RESERVED_BYTES
    return replace(target, max_dynamic_shared_bytes=room // 128 * 128)
