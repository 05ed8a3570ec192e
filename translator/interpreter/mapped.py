"""Which addresses no memory lies at, asked of the operating system: to try would end Python."""

from __future__ import annotations

import ctypes
import os
from typing import Any

import numpy as np

PAGE = 4096  # bytes that are memory all or none


def first_without_memory(addresses: Any, size: int) -> int | None:
    """The first of some addresses whose `size` bytes cannot be read, None where all can."""
    found, where = np.unique((addresses + size - 1) // PAGE, return_index=True)
    reader, writer = os.pipe()
    try:
        for page, place in zip(found, where, strict=True):
            try:
                os.write(writer, (ctypes.c_ubyte * 1).from_address(int(page) * PAGE))
            except OSError:  # EFAULT: the system reads the byte, and says so where it cannot
                return int(addresses[place])
            os.read(reader, 1)  # a pipe holds few
        return None
    finally:
        os.close(reader)
        os.close(writer)
