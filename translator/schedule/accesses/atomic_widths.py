"""How many neighbours one atomic instruction changes, each atomically.

In: a call. Out: elements. Sums of floats go by packets of 16 bytes from sm_90 on, before that by pairs of 16 bits (PTX ISA,
`red`); all other atomics are of one element.
"""

from __future__ import annotations

from ...artifact import Target
from ...hardware import ACCESS_BYTES
from ...ir.nodes import Call
from ...language.dtypes import PointerType

PAIR_BYTES = 4  # of two elements of 16 bits


def elements_at_once(call: Call, target: Target) -> int:
    """See the module docstring; `call` is an atomic."""
    pointer = call.args[0].type.element
    if call.op != "atomic_add" or not isinstance(pointer, PointerType):
        return 1
    element = pointer.element_ty
    if element.name not in ("fp16", "bf16", "fp32"):
        return 1
    return (ACCESS_BYTES if target.has_vector_atomics else PAIR_BYTES) // element.itemsize
