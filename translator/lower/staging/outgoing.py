"""A tile that is stored by tensor copies, on its way through shared memory."""

from __future__ import annotations

from ...frozen import frozen
from ...ir.nodes import Variable
from ...schedule.products.shared_tiles import SharedTile
from ...schedule.tiles.layout import Layout


@frozen
class Pieces:
    """How a tile is cut for its store: the number of the piece at hand, as text, how many there are, and their constant."""

    number: str
    count: int
    name: str


@frozen
class Outgoing:
    """A tile that is stored.

    Attributes:
      variable: the registers that hold it.
      layout: how they do.
      tile: the part of it that lies in shared memory at once.
      array: where that begins, as text.
      pieces: which of how many parts that is.
      parts: how many warpgroups copy out the rows that are theirs, each for itself; 1 where one thread copies all.
    """

    variable: Variable
    layout: Layout
    tile: SharedTile
    array: str
    pieces: Pieces
    parts: int
