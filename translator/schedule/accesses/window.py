"""Windows: elements of memory that several loads, or trips of one, take theirs from; each element is loaded once.

Who has one is decided for the trips of loops by `windows.py`, for the fields of records by `records.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from ...frozen import frozen
from ...ir.nodes import Assign, Expr, Statement, Variable
from ...ir.symbols import Symbol
from ..tiles.layout import Layout
from .access import Access

MOST_REGISTERS = 96  # of a thread for the windows of one loop: they are used up trip by trip
WORD_BITS = 32


@frozen
class Middle:
    """The elements of a window that an access brings all at once: as many as a run has.

    Attributes:
      start: the first of them.
      pointer: theirs.
      access: what decides about them.
    """

    start: int
    pointer: Expr
    access: Access


@frozen
class Window:
    """The elements that a load asks for in all trips of a loop, or several loads of a block, whose first one loads them.

    Attributes:
      load: that of the first trip, or the first of the block's.
      axis: the axis along which trips move.
      run: how many neighbours along it a thread holds side by side.
      span: how many elements more than these a window has.
      pointer: of an element, or a vector along another axis, where the indices that move are `places`; of the window's first
        element, where it is loaded whole.
      access: what decides about it.
      places: for each such index a scalar of its own, with what it is at the window's first element.
      middle: those of its elements that are loaded by a vector.
      named: what address and mask make of the places more than once: a scalar for each, with what it is.
      counter: the variable of the loop, whose trips are one statement; None for a static loop.
      stride: how many elements neighbours of a run are apart.
      vector: how many elements are loaded at once, where a window is loaded whole, by aligned vectors; otherwise 0.
      other: what it has outside of the mask then; a load with another such number chooses for itself.
    """

    load: Assign
    axis: int
    run: int
    span: int
    pointer: Expr
    access: Access
    places: tuple[tuple[Variable, Expr], ...]
    middle: Middle | None
    named: tuple[tuple[Variable, Expr], ...] = ()
    counter: Variable | None = None
    stride: int = 1
    vector: int = 0
    other: Expr | None = None

    @property
    def length(self) -> int:
        """How many elements it has: those of a run, of the gaps between them, and behind the last."""
        return (self.run - 1) * self.stride + 1 + self.span

    def registers(self, layout: Layout) -> int:
        """How many of a thread its windows take, in the layout of the tile."""
        words = max(self.load.target.type.dtype.bits, WORD_BITS) // WORD_BITS
        return layout.num_registers // self.run * self.length * words

    def accesses(self, layout: Layout) -> int:
        """How often a thread asks memory for all its windows, in the layout of the tile."""
        each = self.length // self.vector if self.vector else self.span + (1 if self.middle else self.run)
        return layout.num_registers // self.run // (1 if self.vector else self.access.width) * each


@frozen
class Neighbours:
    """The elements of a load that another tile has: of each run along an axis, those `by` further on that lie in it."""

    tile: Variable
    axis: int
    run: int
    by: int


@frozen
class Windows:
    """All windows of a kernel.

    Attributes:
      ahead: those that are loaded where a loop begins, by it, or by the note of a static loop's first trip; or in front of the
        first load of a block that takes from it.
      taken: of a load that takes its elements from a window: which, and from which element on.
      unread: variables that only the addresses and masks of such loads are made of.
      neighbours: of a load that asks memory for some elements only, which tile has the others.
    """

    ahead: Mapping[Statement, tuple[Window, ...]] = field(default_factory=dict)
    taken: Mapping[Statement, tuple[Window, Symbol]] = field(default_factory=dict)
    unread: frozenset[Variable] = frozenset()
    neighbours: Mapping[Statement, Neighbours] = field(default_factory=dict)

    @property
    def arrays(self) -> frozenset[Variable]:
        """The tiles that are taken from windows, or share elements with their neighbours: arrays, whatever they are made of."""
        shared = {s.target for s in (*self.taken, *self.neighbours) if isinstance(s, Assign)}
        return frozenset((*shared, *(own.tile for own in self.neighbours.values())))
