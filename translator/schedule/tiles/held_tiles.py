"""The tiles that a kernel's threads hold in registers, and the statements in which these threads wait for each other."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import field, replace

from ...analysis.facts import Facts
from ...frozen import frozen
from ...hardware import LANE_BITS
from ...ir.nodes import Assign, Kernel, Statement, Variable
from ...ir.structured import assigned_call
from ...ir.walk import statements
from .layout import REGISTER, Layout


@frozen
class HeldTiles:
    """See the module docstring.

    Attributes:
      kernel: the kernel.
      facts: as they are for who counts registers: what is computed where it is used has none.
      layouts: of the tiles.
      runs_in: the layouts of statements without such a tile of their own, such as stores and reductions.
      fixed: those of the tiles that are arrays whatever they are made of.
    """

    kernel: Kernel
    facts: Facts
    layouts: Mapping[Variable, Layout]
    runs_in: Mapping[Statement, Layout] = field(default_factory=dict)
    fixed: frozenset[Variable] = frozenset()

    def without(self, tiles: Set[Variable]) -> HeldTiles:
        """The others."""
        return replace(self, layouts={v: layout for v, layout in self.layouts.items() if v not in tiles})

    def computed_again(self, tiles: Set[Variable]) -> HeldTiles:
        """The others, where some are computed again from them wherever they are used."""
        facts = replace(self.facts, absorbed=self.facts.absorbed | tiles) if tiles else self.facts
        return replace(self.without(tiles), facts=facts)

    @property
    def exchanges(self) -> list[Assign]:
        """The reductions in which warps wait for each other."""
        found = (s for s in statements(self.kernel.body) if s in self.runs_in and _is_exchange(s, self.runs_in[s]))
        return [statement for statement in found if isinstance(statement, Assign)]


def _is_exchange(statement: Statement, layout: Layout) -> bool:
    """Whether a statement that runs in a layout is a reduction of elements that several warps hold."""
    call = assigned_call(statement, "reduce")
    axis = call.attribute("axis") if call is not None else None
    bits = (bit for number, bits in enumerate(layout.axes) if axis in (None, number) for bit in bits)
    return call is not None and any(bit != REGISTER and bit >= LANE_BITS for bit in bits)
