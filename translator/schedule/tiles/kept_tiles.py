"""Which tiles are kept as arrays in registers, and which are functions of the register's index.

In: the layouts of all tiles that could be arrays. Out: `Kept`. Tiles that are computed again (`recomputed.py`) or loaded where
they are used (`late_loads.py`) have no registers of their own.
"""

from __future__ import annotations

from ...artifact import Target
from ...frozen import frozen
from ...ir.nodes import Variable
from ...ir.structured import assigns
from ...ir.walk import statements
from ..accesses.access import plan_load
from ..accesses.predicated import tests_elements
from ..staging.ring_plan import Rings
from .held_tiles import HeldTiles
from .late_loads import choose_late_loads
from .recomputed import ENOUGH_BLOCKS, Recomputed, choose_recomputed


@frozen
class Kept:
    """See the module docstring.

    Attributes:
      arrays: the tiles that are.
      recomputed: those that are computed again.
      late_loads: those that are loaded where they are used.
    """

    arrays: HeldTiles
    recomputed: Recomputed
    late_loads: frozenset[Variable]


def choose_kept(held: HeldTiles, rings: Rings, has_dots: bool, target: Target) -> Kept:
    """Decides for the tiles in registers; beside dots all are arrays."""
    if has_dots:
        return Kept(held, Recomputed(), frozenset())
    enough = (
        1 if any(ring.own for ring in rings.rings) else ENOUGH_BLOCKS
    )  # threads that load ahead need no other block
    recomputed = choose_recomputed(held, target, enough, _loaded_at_once(held))
    kept = held.computed_again(recomputed.variables)
    late_loads = choose_late_loads(kept, rings)
    return Kept(kept.without(late_loads), recomputed, late_loads)


def _loaded_at_once(held: HeldTiles) -> frozenset[Variable]:
    """The tiles of which each access has a branch around it, which keeps the compiler from moving it to where it is used."""
    found = set()
    for load in statements(held.kernel.body):
        if assigns(load, "load") and load.target in held.layouts:
            access = plan_load(load, held.layouts[load.target], held.facts)
            tests = access.width == 1 and tests_elements(access, held.facts.at(load))
            if access.bounds or tests:
                found.add(load.target)
    return frozenset(found)
