"""Which tiles are kept as arrays in registers, and which are functions of the register's index.

In: the layouts of all tiles that could be arrays. Out: `Kept`. Tiles that are computed again (`recomputed.py`) or loaded where
they are used (`late_loads.py`) have no registers of their own.
"""

from __future__ import annotations

from collections.abc import Mapping, Set

from ...analysis.facts import Facts
from ...artifact import Target
from ...frozen import frozen
from ...ir.nodes import Assign, Kernel, Statement, Variable
from ...ir.structured import assigns
from ...ir.walk import statements
from ..accesses.access import plan_load
from ..accesses.predicated import tests_elements
from ..staging.ring_plan import Rings
from .late_loads import choose_late_loads
from .layout import Layout
from .recomputed import ENOUGH_BLOCKS, Recomputed, choose_recomputed, is_exchange


@frozen
class Kept:
    """See the module docstring.

    Attributes:
      layouts: of the tiles that are arrays.
      facts: as they are for who counts registers: what is computed again has none.
    """

    layouts: dict[Variable, Layout]
    facts: Facts
    recomputed: Recomputed
    late_loads: frozenset[Variable]


def choose_kept(
    kernel: Kernel,
    facts: Facts,
    layouts: Mapping[Variable, Layout],
    answers: Mapping[Variable | Statement, Layout],
    fixed: Set[Variable],
    rings: Rings,
    has_dots: bool,
    target: Target,
) -> Kept:
    """Decides for `layouts`; `answers` has those of statements as well. `fixed` tiles are arrays, and all are beside dots."""
    # Threads that load ahead need no other block.
    enough = 1 if any(ring.own for ring in rings.rings) else ENOUGH_BLOCKS
    recomputed = Recomputed()
    if not has_dots:
        at_once = _loaded_at_once(kernel, facts, layouts)
        exchanges = exchanges_of(kernel, answers)
        recomputed = choose_recomputed(kernel, facts, layouts, exchanges, fixed, target, enough, at_once)
    counted = recomputed.seen_by(facts)
    kept = {variable: layout for variable, layout in layouts.items() if variable not in recomputed.variables}
    late_loads = frozenset() if has_dots else choose_late_loads(kernel, counted, kept, answers, fixed, rings)
    kept = {variable: layout for variable, layout in kept.items() if variable not in late_loads}
    return Kept(kept, counted, recomputed, late_loads)


def exchanges_of(kernel: Kernel, answers: Mapping[Variable | Statement, Layout]) -> list[Assign]:
    """The reductions in which warps wait for each other."""
    return [
        statement
        for statement in statements(kernel.body)
        if isinstance(statement, Assign) and is_exchange(statement, answers.get(statement))
    ]


def _loaded_at_once(kernel: Kernel, facts: Facts, layouts: Mapping[Variable, Layout]) -> frozenset[Variable]:
    """The tiles of which each access has a branch around it, which keeps the compiler from moving it to where it is used."""
    found = set()
    for statement in statements(kernel.body):
        if assigns(statement, "load") and statement.targets[0] in layouts:
            (target, *_), (pointer, *rest) = statement.targets, statement.value.args  # type: ignore[attr-defined]
            environment = facts.environments[statement]
            access = plan_load(pointer, rest[0] if rest else None, layouts[target], facts, environment)
            if access.bounds or (access.width == 1 and tests_elements(access, facts, environment)):
                found.add(target)
    return frozenset(found)
