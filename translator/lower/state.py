"""What one statement's lowering leaves for those of others, a class for each lifetime.

What holds inside of a loop or a branch is `Around`, and goes with it; what a block's statements have made or started is
`Progress`; notes on statements and variables stay as long as the kernel is lowered.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from ..analysis.meeting import Places, Trips
from ..frozen import frozen
from ..ir.nodes import Assign, Expr, For, Statement, Variable, While
from ..schedule.products.shared_tiles import SharedTile
from ..schedule.staging.producer import SharedLines
from ..schedule.tiles.layout import Layout
from .text.operators import Text
from .text.unit import Node

if TYPE_CHECKING:
    from .products.dot_parts import PartsAhead

# A pointer; how often its variables had been assigned, or the loop if that was in an earlier iteration; the layout, None for
# scalars.
Accessed = tuple[Expr, tuple[int, ...] | Trips, Layout | None]
ANOTHER: tuple[int, ...] = (-1,)  # of an atomic's places, instead: several threads may touch one of them
# From where to where a loop runs, and how often the variables in that had been assigned.
LoopBounds = tuple[tuple[Expr, ...], tuple[int, ...]]
Data = tuple[Variable, frozenset[Variable]]  # an argument, and the data that addresses in it are computed from


@frozen
class Accesses:
    """Loads by argument, and stores by argument and by the data that their addresses are computed from."""

    loads: dict[Variable, set[Accessed]] = field(default_factory=dict)
    stores: dict[Data, set[Accessed]] = field(default_factory=dict)

    def within(self, others: Accesses) -> bool:
        """Whether all of these are among others."""
        return all(some <= others.loads.get(root, set()) for root, some in self.loads.items()) and all(
            some <= others.stores.get(data, set()) for data, some in self.stores.items()
        )

    def without(self, others: Accesses) -> Accesses:
        """These less others."""
        return Accesses(
            {root: some - others.loads.get(root, set()) for root, some in self.loads.items()},
            {data: some - others.stores.get(data, set()) for data, some in self.stores.items()},
        )

    def together(self, others: Accesses) -> Accesses:
        """These and others."""
        loads, stores = {**self.loads, **others.loads}, {**self.stores, **others.stores}
        return Accesses(
            {root: self.loads.get(root, set()) | others.loads.get(root, set()) for root in loads},
            {data: self.stores.get(data, set()) | others.stores.get(data, set()) for data in stores},
        )


@dataclass
class AccessOrder:
    """Which arrays of the user's have been read and written, and in which layouts, since the last barrier."""

    places: Places  # what addresses are
    loaded_from: dict[Variable, set[Accessed]] = field(default_factory=dict)  # by argument
    stored_to: dict[Data, set[Accessed]] = field(default_factory=dict)
    ever_loaded: set[Variable] = field(default_factory=set)  # arguments, whatever barriers there were
    ever_stored: dict[Variable, set[tuple[Expr, Layout | None]]] = field(
        default_factory=dict
    )  # and through which pointers
    left_by: dict[For | While | None, Accesses] = field(
        default_factory=dict
    )  # what a trip leaves, by the loop; None is that over a block's programs
    # The last loop's bounds, and what is open only if it has had no trip: so in no trip of one with the same bounds.
    skipped: tuple[LoopBounds, Accesses] | None = None
    assigned: Counter[Variable] = field(default_factory=Counter)  # how often, in the order of the text

    def merge(self, other: Accesses) -> None:
        """Adds the accesses of another way through the kernel."""
        for root, some in other.loads.items():
            self.loaded_from.setdefault(root, set()).update(some)
        for data, others in other.stores.items():
            self.stored_to.setdefault(data, set()).update(others)

    def note(self, access: Accessed) -> None:
        """Records that an access has been made behind the last loop, whether that had a trip or not."""
        if self.skipped is not None:
            bounds, accesses = self.skipped
            everywhere = Accesses(
                {root: {access} for root in accesses.loads}, {data: {access} for data in accesses.stores}
            )
            self.skipped = bounds, accesses.without(everywhere)

    def in_a_trip(self, bounds: LoopBounds | None, before: Accesses) -> Accesses:
        """What is open in front of the first trip of a loop with these bounds, if it has any."""
        if self.skipped is None or self.skipped[0] != bounds:
            return before
        return before.without(self.skipped[1])

    def snapshot(self) -> Accesses:
        """The accesses so far."""
        loads = {root: set(some) for root, some in self.loaded_from.items()}
        return Accesses(loads, {data: set(some) for data, some in self.stored_to.items()})

    def restore(self, before: Accesses) -> None:
        """Goes back to a snapshot, for another way through the kernel."""
        self.loaded_from = {root: set(some) for root, some in before.loads.items()}
        self.stored_to = {data: set(some) for data, some in before.stores.items()}

    def carried(self, trips: Trips) -> Accesses:
        """What a trip of a loop leaves for the next: accesses to arguments that it may have to wait for.

        Where the next one has the same expression, it is taken to go on where this one stopped, unless its address says
        otherwise: loops in place.
        """
        loads: dict[Variable, set[Accessed]] = {}
        stores: dict[Data, set[Accessed]] = {}
        for root, some in self.loaded_from.items():
            if root in self.ever_stored:
                loads[root] = {(pointer, trips, layout) for pointer, _, layout in some}
        for (root, data), some in self.stored_to.items():
            left = {(pointer, when if when == ANOTHER else trips, layout) for pointer, when, layout in some}
            several = root in self.ever_loaded or len(self.ever_stored[root]) > 1
            if several or any(self.goes_back(one) for one in left):
                stores[root, data] = left
        return Accesses(loads, stores)

    def goes_back(self, access: Accessed) -> bool:
        """Whether an access of an earlier trip touches what the same one touches in a later trip, from another thread."""
        pointer, trips, _ = access
        place = self.places.of(pointer)
        return place is not None and isinstance(trips, Trips) and self.places.goes_back(place, trips)


@frozen
class Around:
    """What the loops and branches around a statement say of it: replaced as a whole for what one of them holds.

    Attributes:
      rings: how many loops with stages there are.
      in_flight: the dots that a loop waits for.
      trip_count: what counts the iterations of a loop whose products run on into the next one; "" in others.
      next_dots: by a dot of a loop's body, the dots right behind it.
      parts_ahead: how a loop writes the parts of its tiles ahead.
      lasting: the arrays of operands that were copied before a loop, by operand and format.
      may_arrive_later: whether a load leaves the wait for its copies to what reads its tile.
      may_run_on: whether a dot leaves the wait for its products to what needs them.
      copies_under_way: whether a block around this one has started `cp.async` copies that it waits for behind it.
    """

    rings: int = 0
    in_flight: frozenset[Statement] = frozenset()
    trip_count: str = ""
    next_dots: dict[Statement, tuple[Assign, ...]] = field(default_factory=dict)
    parts_ahead: PartsAhead | None = None
    lasting: dict[tuple[Variable, SharedTile], str] = field(default_factory=dict)
    may_arrive_later: bool = False
    may_run_on: bool = False
    copies_under_way: bool = False


@dataclass
class Progress:
    """What statements have made or started for those behind them in their block."""

    # Copies of operands that dots have made, by their format; descriptors and fragments of operands, by their text.
    copied: dict[tuple[Variable, SharedTile | str], str] = field(default_factory=dict)
    running: tuple[Assign, ...] = ()  # dots that nothing has waited for, in the order of their products
    arriving: dict[Variable, bool] = field(default_factory=dict)  # tiles likewise; whether they come by cp.async


@dataclass
class StatementNotes:
    """What a loop wants of the statements in its body."""

    before: dict[Statement, tuple[Node, ...]] = field(default_factory=dict)  # the text that precedes one
    after: dict[Statement, tuple[Node, ...]] = field(default_factory=dict)  # the text that follows one
    stored: set[str] = field(default_factory=set)  # the arrays of what stores have computed
    behind_copies: set[Statement] = field(default_factory=set)  # those that stand behind copies, and not in their place


@dataclass
class Remarks:
    """What comments are to say, and have said."""

    quoting: bool = True  # whether statements stand under tags
    explained: dict[str, Statement] = field(
        default_factory=dict
    )  # where the tests of a limit for whole vectors are, by it
    transposed: dict[Variable, str] = field(default_factory=dict)  # what the header says of tiles that dots transpose


@dataclass
class Instead:
    """Where variables are found that a statement does not read from an array or a scalar of their name."""

    converted: dict[tuple[Variable, Layout], str] = field(default_factory=dict)  # for the statement being lowered
    moved: dict[tuple[Variable, Layout], str] = field(
        default_factory=dict
    )  # so far, by the source statement it is from
    at_once: Variable | None = None  # what it loads for the next one, without a name
    in_place: dict[Variable, Text] = field(default_factory=dict)  # the loads of such
    fields: dict[Variable, tuple[str, str]] = field(default_factory=dict)  # (state, name) of what is read as a field

    @contextmanager
    def conversions(self, entries: dict[tuple[Variable, Layout], str]) -> Iterator[None]:
        """Makes converted tiles visible to one statement."""
        before = dict(self.converted)
        self.converted.update(entries)
        try:
            yield
        finally:
            self.converted = before


@dataclass
class LoadedAhead:
    """Where what was loaded in an earlier iteration is found, by its variable."""

    stage_of: dict[Variable, str] = field(default_factory=dict)  # which stage of its ring a staged tile is read from
    own: dict[Variable, str] = field(default_factory=dict)  # where each thread finds what it has copied for itself
    values: dict[Variable, str] = field(default_factory=dict)  # registers that scalars were read into
    read_ahead: set[Variable] = field(default_factory=set)  # what copies find their addresses by
    stage_words: dict[tuple[str, Variable], str] = field(default_factory=dict)  # the stage's name, by role and loop


@dataclass
class BoxCopies:
    """What is known before a loop of the tensor copies in it, by the tile that they bring."""

    fixed_starts: dict[tuple[Variable, int], str] = field(default_factory=dict)  # names of coordinates that stay
    opening: dict[Variable, tuple[Node, ...]] = field(default_factory=dict)  # what precedes the first copies to a stage
    policies: dict[Variable, str] = field(default_factory=dict)  # how long L2 keeps a tile: the variable that says so


@dataclass
class WarpRole:
    """The warps whose part of the kernel is being written, where the block's warpgroups do different things."""

    name: Literal["", "producer", "consumer"] = ""  # "" where all do the same
    program_variables: dict[int, Variable] = field(default_factory=dict)  # the user's names for where its program lies
    known_scalars: dict[str, str] = field(default_factory=dict)  # names of what precedes the roles, by its text
    loop_stops: dict[Variable, str] = field(default_factory=dict)  # where loops end, as far as it is known before
    set_up: list[Node] = field(default_factory=list)  # what the block does before the first statement
    at_end: list[Node] = field(default_factory=list)  # what the role owes before the block ends
    before_return: tuple[Node, ...] = ()  # and what it owes wherever it ends
    shared_lines: SharedLines = field(default_factory=SharedLines)  # source lines that both roles execute
