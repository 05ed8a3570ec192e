"""Whether few programs have a text of their own: those of a grid that gives each of them a multiprocessor to itself.

In: a plan for any grid. Out: yes or no. With `Options.few_programs` loops of products load further ahead (`rings.py`), no room
is left for further blocks, and no teams take turns; that is another text where threads copy pieces of 16 bytes, which more
stages bring sooner, and where there were teams. Smaller pieces take their threads' time, of which more stages have no more.
"""

from __future__ import annotations

from ...analysis.facts import Facts
from ...hardware import ACCESS_BYTES
from ...ir.nodes import Kernel
from ...ir.structured import assigns
from ...ir.walk import statements
from ..plan import Schedule
from .rings import MOST_STAGES
from .tile_copies import bytes_at_once


def is_for_many(kernel: Kernel, facts: Facts, schedule: Schedule) -> bool:
    """Whether the text of a plan is for more programs than there are multiprocessors."""
    rings, options = schedule.rings, schedule.options
    if options.few_programs or rings.teams > 1:
        return not options.few_programs
    copied = {tile for ring in rings.rings if ring.kind == "cp_async" and not ring.rows for tile in ring.tiles}
    loads = [s for s in statements(kernel.body) if assigns(s, "load") and s.target in copied]
    pieces = {bytes_at_once(load, schedule.layouts, schedule.staged, facts) for load in loads}
    return pieces == {ACCESS_BYTES} and options.num_stages < MOST_STAGES
