"""With the option `debug`, sums, differences and products of integers are checked to fit in their type, as in Triton."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..diagnostics import KernelFaultError
from ..language.dtypes import DType, Element
from ..ops.overflow import is_checked, overflow_message
from ..ops.registry import OPS
from .places import user_line
from .program import running


def check_overflow(op: str, element: Element, operands: Sequence[Any], result: Any) -> None:
    """Compares an operator's result with that of 64 bits, where the options ask for it.

    Raises:
      KernelFaultError: when they differ; names the line and the program.
    """
    program = running.get(None)
    wanted = program is not None and program.options.debug and program.options.sanitize_overflow
    if program is None or not wanted or not is_checked(op, element):
        return
    wide = OPS[op].numpy(*(operand.astype(np.int64) for operand in operands))
    if isinstance(element, DType) and (wide != result.astype(np.int64)).any():
        what = overflow_message(op, element)
        raise KernelFaultError(f"assertion failed at {user_line()}, program {program.memory.program}: {what}")
