"""What is decided about a kernel's rings: the values that the other stages read, and what planning works with."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from ...analysis.facts import Facts
from ...analysis.induction import Induction
from ...artifact import Options, Target, TensorMap
from ...frozen import frozen
from ...ir.nodes import Assign, For, Kernel, Statement, Variable
from ...ir.types import ValueType
from ..products.dot_plan import Dots
from .lone_thread import LoneThread
from .useful_programs import UsefulPrograms

if TYPE_CHECKING:
    from .running_totals import RunningTotal

RingKind = Literal["tma", "cp_async", "own"]

ALIGNED_STAGES = 2  # of a tile that unaligned rows are shifted into: one is read, the next is written


@frozen
class Stagger:
    """How the products of a loop overlap what it computes (`schedule/products/stagger.py`).

    Attributes:
      ahead: the dots that an iteration starts first, ahead of the late one of the iteration before.
      late: the dot that is started in the next iteration.
      settled: the statement of an iteration before which the late products of the last one must be complete: the first that
        touches their sum, or registers that they read.
      early: the tiles of the ring that no dots but those ahead read, and those that threads alone read (`box_reads.py`): they
        are free earlier than the others, and have barriers of their own; none where these would be all tiles.
    """

    ahead: tuple[Assign, ...]
    late: Assign
    settled: Statement
    early: tuple[Variable, ...]


@frozen
class ReadAhead:
    """A `variable` that the copies of `tile` find their addresses by, read so many iterations before they are started."""

    variable: Variable
    distance: int
    tile: Variable


@frozen
class Ring:
    """The tiles that a loop loads ahead.

    Attributes:
      loop: the loop's variable.
      kind: who copies: one thread by tensor copies, all threads by `cp.async`, or each for itself alone.
      tiles: the staged variables, in the order of their loads.
      rows: those of them whose rows are not aligned: copied as they lie, and shifted into a tile behind that.
      stages: tiles of each that are in shared memory at once; of `rows`, the tile that is read and rows that wait.
      counted: whether the stage follows from a running count, because the loop runs more than once or not from 0 by 1;
        otherwise from the loop's variable.
      overlapped: whether a dot may run on while the loop does other things: nothing but dots touches its sum.
      own: tiles that threads hold in registers; each thread copies and reads its own elements.
      ahead: the numbers that copies find their addresses by, in an order in which they can be read (`read_ahead.py`).
      running: what is assigned behind the copies of an iteration for those of the next (`running_totals.py`).
      like: the loop of an earlier ring whose stages and barriers this one goes on with (`shared_rings.py`).
      stagger: how its products are started ahead, where they are.
      trips: how many trips of the program's loop one of this loop is, and a stage has the tiles of (`joined_trips.py`).
      refilled: whether a stage is filled again in the iteration that has read it (`refilled.py`).
    """

    loop: Variable
    kind: RingKind
    tiles: tuple[Variable, ...]
    stages: int
    counted: bool
    overlapped: bool
    rows: tuple[Variable, ...] = ()
    own: tuple[Variable, ...] = ()
    ahead: tuple[ReadAhead, ...] = ()
    running: tuple[Variable, ...] = ()
    like: Variable | None = None
    stagger: Stagger | None = None
    trips: int = 1
    refilled: bool = False


@frozen
class Rings:
    """All rings of a kernel, the tensor maps that its copies use, and the conditions under which they are right."""

    rings: tuple[Ring, ...] = ()
    maps: tuple[TensorMap, ...] = ()
    guards: tuple[str, ...] = ()
    reasons: tuple[str, ...] = ()  # why loads are not tensor copies, for the header
    program_axes: int = 0  # along how many axes of the grid lie the programs of a block; 0 where it runs a single one
    useful: UsefulPrograms | None = None  # those that blocks take turns at, where others have nothing to do
    once: bool = False  # whether a block with tensor copies runs one program, without a loop around the one that copies
    folded: frozenset[Variable] = frozenset()  # what the places of loads and stores were computed from
    teams: int = 1  # warpgroups, or as many warps as multiply a program, that take turns at programs (`teams.py`)
    for_next: frozenset[Variable] = frozenset()  # what loads of the next iteration bring (`next_loads.py`)

    def of(self, loop: Variable) -> Ring | None:
        """The ring of the loop with this variable."""
        return next((ring for ring in self.rings if ring.loop is loop), None)

    @property
    def persistent(self) -> bool:
        """Whether a block runs one program after another."""
        return self.program_axes > 0

    @property
    def encoded(self) -> tuple[TensorMap, ...]:
        """The maps that the launcher encodes and passes."""
        return tuple(one for one in self.maps if not one.made)

    @property
    def made(self) -> tuple[TensorMap, ...]:
        """The maps that the kernel makes itself."""
        return tuple(one for one in self.maps if one.made)

    @property
    def twins(self) -> dict[Variable, Variable]:
        """Of the tiles of rings that go on with an earlier one, those whose memory they take."""
        pairs = [(ring, self.of(ring.like)) for ring in self.rings if ring.like is not None]
        return {tile: first for ring, like in pairs if like for tile, first in zip(ring.tiles, like.tiles, strict=True)}

    @property
    def joined(self) -> dict[Variable, int]:
        """How many trips the tiles are of that several bring at once."""
        return {tile: ring.trips for ring in self.rings if ring.trips > 1 for tile in ring.tiles}

    @property
    def ahead(self) -> tuple[ReadAhead, ...]:
        """What the copies of all rings find their addresses by."""
        return tuple(one for ring in self.rings for one in ring.ahead)

    @property
    def started_ahead(self) -> frozenset[Statement]:
        """The dots that loops start before the statements of an iteration."""
        return frozenset(dot for ring in self.rings if ring.stagger for dot in ring.stagger.ahead)

    @property
    def postponed(self) -> frozenset[Statement]:
        """The dots that loops start in the next iteration."""
        return frozenset(ring.stagger.late for ring in self.rings if ring.stagger)

    @property
    def has_producer(self) -> bool:
        """Whether a warpgroup of its own loads."""
        return any(ring.kind == "tma" for ring in self.rings)


@frozen
class RingWishes:
    """What rings are to be like.

    Attributes:
      most_stages: bounds every ring.
      small_loads: whether loads of small tiles go with those of several products, too.
      not_ahead: tiles whose loads stay where they are: see `loads_not_ahead`.
      teams: how many take turns at the programs of a block.
      refilled: whether rings of copies by threads have a stage less, and are filled again where they have been read.
    """

    most_stages: int
    small_loads: bool = False
    not_ahead: frozenset[Variable] = frozenset()
    teams: int = 1
    refilled: bool = False


@frozen
class RingFacts:
    """What rings are planned from: nothing of it changes while they are.

    Attributes:
      kernel, facts, induction: what is planned for, and what is known of it.
      options, target: what it is compiled with, and for.
      sources, read_only: where pointers come from, and those that nothing is written through.
      thread: what the thread that starts tensor copies comes to.
      settled: scalars from memory, of which the kernel may make tensor maps.
      top: by loop, the statements that every iteration passes once.
      blocks: how many fit on a multiprocessor, which takes a while to find out (`own_stages.py`).
      wishes: what the rings are to be like.
    """

    kernel: Kernel
    facts: Facts
    induction: Induction
    options: Options
    target: Target
    sources: dict[Variable, set[Variable]]
    read_only: frozenset[Variable]
    thread: LoneThread
    settled: frozenset[Variable]
    top: Mapping[For, tuple[Statement, ...]]
    blocks: Callable[[], int]
    wishes: RingWishes


@dataclass(slots=True)
class RingPlan:
    """What has been decided so far from what is given: each loop adds to it."""

    given: RingFacts
    dots: Dots  # whose tiles change with what brings them
    next_key: int  # of the next variable
    replaced: dict[Statement, Statement] = field(default_factory=dict)
    added: dict[tuple[Statement, bool], list[Statement]] = field(default_factory=dict)  # see `with_replaced`
    rings: list[Ring] = field(default_factory=list)
    for_next: list[Variable] = field(default_factory=list)
    maps: dict[tuple[object, ...], TensorMap] = field(default_factory=dict)
    guards: dict[str, None] = field(default_factory=dict)
    reasons: dict[str, None] = field(default_factory=dict)
    totals: dict[Statement, tuple[RunningTotal, ...]] = field(default_factory=dict)  # of irregular steps, by loop

    def variable(self, name: str, type_: ValueType) -> Variable:
        """A new variable of the kernel."""
        self.next_key += 1
        return Variable(name, type_, self.next_key - 1)

    def add_before(self, place: Statement, *added: Statement) -> None:
        """Has statements stand in front of one of the kernel's, behind those that do so already."""
        self.added.setdefault((place, False), []).extend(added)

    def add_behind(self, place: Statement, *added: Statement) -> None:
        """Has statements stand behind one of the kernel's, and behind those that do so already."""
        self.added.setdefault((place, True), []).extend(added)
