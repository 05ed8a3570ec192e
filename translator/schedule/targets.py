"""The architectures that text is written for: one row each.

The numbers are those of the CUDA C++ Programming Guide, tables "Technical Specifications per Compute Capability" (in later
editions "Device and Streaming Multiprocessor (SM) Information" and "Memory Information per Compute Capability"). What the tables
say alike of all of them, as the registers of a multiprocessor and of a thread, stands in `hardware.py`.
"""

from __future__ import annotations

import re

from ..artifact import Target
from ..diagnostics import SignatureError

KIB = 1024

TARGETS = {
    target.name: target
    for target in (
        # A block's shared memory: what it can declare, and ask for. A multiprocessor's shared memory, threads and blocks.
        Target("sm_80", 80, 48 * KIB, 163 * KIB, 164 * KIB, 2048, 32),
        Target("sm_86", 86, 48 * KIB, 99 * KIB, 100 * KIB, 1536, 16),
        Target("sm_89", 89, 48 * KIB, 99 * KIB, 100 * KIB, 1536, 24),
        Target("sm_90a", 90, 48 * KIB, 227 * KIB, 228 * KIB, 2048, 32),
        Target("sm_100a", 100, 48 * KIB, 227 * KIB, 228 * KIB, 2048, 32),
        Target("sm_120a", 120, 48 * KIB, 99 * KIB, 100 * KIB, 1536, 24),
    )
}


def find_target(name: str) -> Target:
    """The row of an architecture; "sm_90" and "sm_90a" are the same row.

    Raises:
      SignatureError: for an architecture that no row describes.
    """
    wanted = re.sub(r"[af]$", "", str(name))
    for target in TARGETS.values():
        if target.name.rstrip("a") == wanted:
            return target
    raise SignatureError(f"unknown architecture {name!r}; tilewright writes for {', '.join(TARGETS)}")
