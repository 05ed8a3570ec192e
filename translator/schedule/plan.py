"""What was decided: the tables that the text is written from. See `decide.py` for how they come about."""

from __future__ import annotations

from collections.abc import Mapping

from ..analysis.parameter_text import parameter_text
from ..artifact import Options, Target
from ..frozen import frozen
from ..hardware import MOST_OF_THREAD, REGISTER_FILE, WARP_SIZE, WARPGROUP
from ..ir.nodes import Statement, Variable
from .accesses.first_loads import FirstLoads
from .accesses.small_offsets import SmallOffsets
from .accesses.window import Windows
from .products.dot_plan import DotPlan
from .products.shared_tiles import SharedTile
from .staging.block_copies import BlockCopy
from .staging.ring_plan import Rings
from .staging.warp_copies import WarpCopy
from .tiles.layout import Layout
from .tiles.recomputed import Recomputed


@frozen
class Conversion:
    """A tile that a statement needs in another layout than the one it is held in; it goes through shared memory."""

    variable: Variable
    layout: Layout


@frozen
class Schedule:
    """The decisions for one kernel.

    Attributes:
      layouts: who holds what of every tile in registers (except index tiles).
      statement_layouts: the layout in which a statement without such a tile of its own (a store, an atomic whose old elements
        nobody reads, the operand of a reduction) runs.
      index_layouts: the layouts in which each index tile is computed.
      conversions: of a statement, the tiles that it needs in another layout.
      in_shared: tiles that live in shared memory instead of registers, each thread's elements in a column of its own.
      recomputed: tiles that are functions of the register's index instead of arrays.
      held_starts: pointers from which elements are found that lie anywhere: the text hides how they came about.
      late_loads: tiles that are functions of the register's index too, which load the element.
      windows: what the trips of loops load together, ahead of them.
      first_loads: loops whose loads of all trips come first.
      small_offsets: offsets that the sizes of a launch keep within 32 bits.
      dots: instruction, layout and operands of every dot.
      staged: loaded tiles that go to shared memory for dots alone, with their format there; `layouts` has the layout in
        which threads copy them.
      store_parts: of a store by tensor copies, how many warpgroups copy out their own rows; absent where one thread
        copies for all.
      rings: loops that load ahead, and the tensor maps that they use.
      warp_copies: tiles that threads load ahead for themselves, but other lanes of the warp copy than those that hold them.
      block_copies: those that all threads copy for one another.
      blocks_per_multiprocessor: how many the register allocation must leave room for; None leaves it to ptxas. 1 keeps
        ptxas from spilling in pursuit of an occupancy that the tiles rule out.
      wants_second_block: whether a schedule for two of them should be tried (`schedule/products/second_block.py`).
      blocks_by_registers: for how many blocks the registers of their tiles leave room.
      spare_registers: of a multiplying thread, beside those of tiles where these are most; negative where tiles want more.
    """

    layouts: dict[Variable, Layout]
    statement_layouts: Mapping[Statement, Layout]
    index_layouts: dict[Variable, tuple[Layout, ...]]
    conversions: Mapping[Statement, tuple[Conversion, ...]]
    in_shared: frozenset[Variable]
    recomputed: Recomputed
    held_starts: frozenset[Variable]
    late_loads: frozenset[Variable]
    windows: Windows
    first_loads: FirstLoads
    small_offsets: SmallOffsets
    dots: Mapping[Statement, DotPlan]
    staged: dict[Variable, SharedTile]
    store_parts: Mapping[Statement, int]
    rings: Rings
    warp_copies: dict[Variable, WarpCopy]
    block_copies: dict[Variable, BlockCopy]
    blocks_per_multiprocessor: int | None
    wants_second_block: bool
    blocks_by_registers: int
    spare_registers: int
    options: Options
    target: Target

    @property
    def guards(self) -> tuple[str, ...]:
        """What must hold at a launch for all that was decided (see `Artifact`)."""
        return tuple(dict.fromkeys((*self.rings.guards, *map(parameter_text, self.small_offsets.conditions))))

    @property
    def reaches(self) -> tuple[str, ...]:
        """What the small offsets do not exceed (see `Artifact`)."""
        return tuple(map(parameter_text, self.small_offsets.reaches))

    @property
    def functions(self) -> frozenset[Variable]:
        """Tiles that are functions of the register's index instead of arrays."""
        return self.recomputed.variables | self.late_loads

    @property
    def wants_more_warps(self) -> bool:
        """Whether threads cannot hold their tiles for products, and twice as many would find registers for them."""
        alone = self.options.maxnreg is None and 2 * self.num_threads * MOST_OF_THREAD <= REGISTER_FILE
        return bool(self.dots) and self.spare_registers < 0 and alone

    @property
    def num_threads(self) -> int:
        """Threads that share the tiles."""
        return self.options.num_warps * WARP_SIZE

    @property
    def launch_threads(self) -> int:
        """Threads per block: of all teams, with a warpgroup that loads, where there is one."""
        return self.num_threads * self.rings.teams + (WARPGROUP if self.rings.has_producer else 0)
