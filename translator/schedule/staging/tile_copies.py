"""In which pieces threads copy a tile for products to its place in shared memory, where they copy it for one another."""

from __future__ import annotations

from collections.abc import Mapping

from ...analysis.facts import Facts
from ...hardware import COPY_BYTES
from ...ir.nodes import Assign, Variable
from ..accesses.access import plan_copies
from ..products.shared_tiles import SharedTile
from ..tiles.layout import Layout


def bytes_at_once(
    load: Assign, layouts: Mapping[Variable, Layout], staged: Mapping[Variable, SharedTile], facts: Facts
) -> int:
    """Bytes of the pieces in which `cp.async` brings a staged tile, along the contiguous axis of its place; 0 if it cannot."""
    access = plan_copies(load, layouts[load.target], facts)
    size = access.width * load.target.type.dtype.itemsize
    return size if access.axis == staged[load.target].fast and size in COPY_BYTES else 0
