"""The arrays in shared memory that a lowering has asked for, and which of them may still be read.

Arrays that only one statement or one loop needs may share their memory with those of others (`turns.py`).
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import replace

from ...ir.nodes import Statement, Variable
from ...ir.types import ValueType
from ..text.names import Names
from ..text.unit import Shared
from .turns import STATEMENTS, Turn, Turns

Owner = Statement | Variable | None  # whose an array is: a statement's, a tile's, or the whole kernel's
LARGE_EXCHANGE = 8192  # bytes of an array from which on its memory is worth more than a barrier


class SharedMemory:
    """See the module docstring. One per kernel."""

    def __init__(self, names: Names, turns: Turns | None = None) -> None:
        """No arrays yet; `names` gives them theirs. With `turns`, those that have one share their memory."""
        self.arrays: dict[tuple[Owner, str], Shared] = {}  # by owner and purpose
        self.being_read: set[str] = set()  # arrays that some thread may still be reading
        self.left_by: dict[tuple[str, Hashable], set[str]] = {}  # what a trip leaves to be read, by role and loop
        self.barriers = 0  # that have been written so far
        self.of_all_trips: set[str] = set()  # arrays that all trips of a static loop have
        self.in_functions = False  # whether functions within the kernel use arrays
        self.turns = turns
        self.turn_of: dict[str, Turn] = {}  # of the arrays that have one, by name
        self._exchanges: dict[
            tuple[str, ValueType], list[Shared]
        ] = {}  # arrays through which tiles move to other threads
        self._kinds: dict[tuple[Statement, str], Hashable] = {}  # of the arrays of first trips
        self._names = names

    @property
    def in_turns(self) -> bool:
        """Whether arrays share their memory."""
        return self.turns is not None

    def scratch(self, owner: Owner, purpose: str, shared: Shared) -> Shared:
        """A shared array for one purpose of its owner, however often that is lowered."""
        if shared.name in self.turn_of and (owner, purpose) not in self.arrays:
            own = self.turn_of[shared.name]
            mates = [one.turn for one in self.arrays.values() if self.turn_of.get(one.name) == own]
            turn = mates[0] if mates else (self._names.fresh(f"for_{shared.name.removesuffix('_shared')}"),)
            shared = replace(shared, turn=turn, area=own.area)
        return self.arrays.setdefault((owner, purpose), shared)

    def keep(self, arrays: Mapping[str, Shared]) -> None:
        """Replaces the arrays by others of the same names; those of other names go."""
        self.arrays = {key: arrays[one.name] for key, one in self.arrays.items() if one.name in arrays}

    def scratch_name(
        self, statement: Statement, purpose: str, *choices: str, lasting: bool = False, area: str = STATEMENTS
    ) -> str:
        """The name of an array of a statement; one that is `lasting` is still in use when its statement is over.

        Of an `area` that is not that of all statements, what writes the arrays knows when their memory is free.
        """
        if (statement, purpose) in self.arrays:
            return self.arrays[statement, purpose].name
        name = self._names.fresh(*choices)
        self._takes(name, self.turns.of_statement(statement, area) if self.turns and not lasting else None)
        return name

    def owner_of_all_trips(self, statement: Statement, purpose: str, kind: Hashable) -> Statement:
        """Whose array a statement uses: where arrays take turns, all trips of a static loop use that of the first one.

        They do where theirs are of one `kind`; each would wait until everyone has read the memory of the one before anyway.
        """
        first = self.turns.in_first_trip.get(statement, statement) if self.turns else statement
        if self._kinds.setdefault((first, purpose), kind) != kind:
            return statement
        if first is not statement:
            self.of_all_trips.add(self.arrays[first, purpose].name)
        return first

    def _takes(self, name: str, turn: Turn | None) -> None:
        if turn is not None:
            self.turn_of[name] = turn

    def exchange_name(self, statement: Statement, purpose: str, variable: Variable, align: int) -> str:
        """The name of the array through which a tile moves to other threads: that of an earlier move, if there is one.

        Nobody needs such an array when the statement is over; of a small one that may still be read, another costs less than
        the barrier. Where arrays take turns, each belongs to one statement. Accesses rely on an alignment of `align` bytes.
        """
        if (statement, purpose) not in self.arrays and not self.in_turns:
            taken = {array.name for (owner, _), array in self.arrays.items() if owner == statement}
            earlier = [one for one in self._exchanges.get((variable.name, variable.type), ()) if one.name not in taken]
            earlier = [one for one in earlier if (one.align or 0) >= align]
            free = [one for one in earlier if one.name not in self.being_read or one.size >= LARGE_EXCHANGE]
            if free:
                self.arrays[statement, purpose] = min(free, key=lambda one: one.name in self.being_read)
        return self.scratch_name(statement, purpose, f"{variable.name}_shared")

    def exchange(self, statement: Statement, purpose: str, variable: Variable, shared: Shared) -> None:
        """Makes the array of that name, unless it is there."""
        array = self.scratch(statement, purpose, shared)
        if array not in self._exchanges.setdefault((variable.name, variable.type), []):
            self._exchanges[variable.name, variable.type].append(array)

    def tile_name(self, variable: Variable) -> str:
        """The name of the shared array of a staged tile."""
        return self.of_tile(self._names.variable(variable), variable)

    def of_tile(self, name: str, variable: Variable) -> str:
        """The name of an array, once it is known to have the turn of that tile."""
        self._takes(name, self.turns.tiles.get(variable) if self.turns else None)
        return name

    def takes_turns(self, name: str) -> bool:
        """Whether an array may share its memory with others."""
        return name in self.turn_of

    def why_not_yet(self, name: str) -> str:
        """Why writing an array must wait until everyone has read what its memory holds; "" where nobody reads that."""
        if name in self.being_read:
            return f"everyone has read {name} before it is written again"
        own = self.turn_of.get(name)
        turns = {read: self.turn_of[read] for read in self.being_read if read in self.turn_of}
        others = [read for read, turn in turns.items() if own is not None and own.takes_from(turn)]
        return f"everyone has read {min(others)}, whose memory {name} takes" if others else ""
