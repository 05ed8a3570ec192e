"""Which masked accesses of single elements are predicated instructions, spelled as PTX.

In: an access and the layout that it runs in. The compiler branches around each of many such accesses, keeps an address for
each of them, and spills; a predicated instruction has no branch, and what its address has in common with others is computed
once, outside. Where masks are settled at compile time, or the same for all elements, it does as well by itself.
"""

from __future__ import annotations

from ...analysis.facts import FactsAt
from ...analysis.long_computations import is_found_slowly
from ...analysis.masks import compares_with_number
from ...hardware import MOST_OF_THREAD, REGISTER_FILE
from ...ir.nodes import Expr
from ...ir.types import ValueType
from ..staging.warp_copies import is_computed_anywhere
from ..tiles.layout import Layout
from ..tiles.registers import OTHER_REGISTERS
from .access import Access

FEWEST = 16  # elements of a thread
# The same where each has an address of its own, computed from what registers hold, or slowly: in a branch, nothing of it is
# shared, and no other's computation overlaps with it.
FEWEST_FOUND = 4


def is_predicated(
    access: Access,
    pointer: Expr,
    type_: ValueType,
    layout: Layout,
    here: FactsAt,
) -> bool:
    """Whether the elements of a tile of this type, at these places, are accessed so.

    Where a thread has registers to spare, the compiler predicates plain accesses to neighbours, which share an address.
    """
    if not may_be_predicated(type_):
        return False
    if access.width > 1 or len(layout.array_axes()) > 1:
        return False  # along several axes, the compiler shares addresses better where it sees plain accesses
    if is_computed_anywhere(pointer, here.facts, {}) and not is_found_slowly(pointer, here):
        registers = min(REGISTER_FILE >> layout.thread_bits, MOST_OF_THREAD) - OTHER_REGISTERS
        fewest = max(FEWEST, registers // 2)
    else:
        fewest = FEWEST_FOUND
    return layout.num_registers >= fewest and tests_elements(access, here)


def may_be_predicated(type_: ValueType) -> bool:
    """Whether there is such an instruction for elements of a type: PTX has no registers of a byte."""
    return not (type_.is_pointer or type_.dtype.itemsize == 1 or type_.dtype.is_bool())


def tests_elements(access: Access, here: FactsAt) -> bool:
    """Whether tests that only the launch decides differ from element to element, so that accesses have branches around them."""
    return any(not (compares_with_number(part, here.facts) or _is_uniform(part, here)) for part in access.tests)


def _is_uniform(part: Expr, here: FactsAt) -> bool:
    constancy = here.info(part).constancy
    return all(same >= side for same, side in zip(constancy, part.type.shape, strict=True))
