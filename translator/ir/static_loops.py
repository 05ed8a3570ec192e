"""Loops of `tl.static_range`, from the source to the text.

The frontend writes out their trips, since types, shapes and branches may depend on the number of the trip. What a trip computes
with that number is spelled by a word of its own, such as `trip2_of_loop0λ`, and a note stands where each trip begins. Trips whose
texts are the same but for that word become one loop again (`lower/static_loops.py`); where they are not, the kernel is translated
once more, with that loop's numbers in place of the words.
"""

from __future__ import annotations

import re
from math import gcd

from ..frozen import frozen
from .c_tokens import code_of
from .symbols import Name, Number, OfTrips, Operation, Symbol, spelled

MARK = "λ"  # ends the words: identifiers in the text are ASCII, so that none of the user's is such a word
LoopPlace = tuple[str, int, int]  # the file, the line and the column
ZERO, ONE = Number(0), Number(1)


@frozen
class StaticLoop:
    """One loop of the source.

    Attributes:
      name: its variable's, as in the source.
      serial: tells the kernel's loops apart.
      place: where its range stands.
      start, stop, step: its bounds.
      numbers: what the variable goes through.
    """

    name: str
    serial: int
    place: LoopPlace
    start: Symbol
    stop: Symbol
    step: Symbol
    numbers: range

    @property
    def trips(self) -> int:
        """How many there are."""
        return len(self.numbers)

    @property
    def word(self) -> str:
        """What the variable is called while its trips are compared."""
        return f"trip_of_loop{self.serial}{MARK}"

    def word_of(self, number: int) -> str:
        """What a trip calls its own number."""
        return f"trip{number}_of_loop{self.serial}{MARK}"

    def number_of(self, number: int) -> Name:
        """A trip's own number, with what holds of it in all trips."""
        first, last = self.numbers[0], self.numbers[-1]
        reach = (min(first, last), max(first, last))
        return Name(self.word_of(number), trips=OfTrips(reach, gcd(first, self.numbers.step)))

    @property
    def index(self) -> str:
        """The number of a trip in C, counted from 0."""
        distance: Symbol = Name(self.word)
        if self.numbers.step < 0:
            distance = Operation("-", self.start, distance)
        elif self.start != ZERO:
            distance = Operation("-", distance, self.start)
        step = abs(self.numbers.step)
        return spelled(distance if step == 1 else Operation("/", distance, Number(step)))

    @property
    def count(self) -> str:
        """How many trips there are, in C."""
        named = self.start == ZERO and self.step == ONE and isinstance(self.stop, Name) and self.stop.trips is None
        return spelled(self.stop) if named else str(self.trips)

    @property
    def header(self) -> str:
        """Of the loop in C."""
        start, stop, step = spelled(self.start), spelled(self.stop), spelled(self.step)
        sign = {"1": "++", "-1": "--"}.get(step, "")
        advance = f"{sign}{self.word}" if sign else f"{self.word} += {step}"
        return f"for (int {self.word} = {start}; {self.word} {'<' if self.numbers.step > 0 else '>'} {stop}; {advance})"


@frozen
class Trip:
    """Where trip `number` of a loop begins, counted from 0; behind the last one, that is how many there were."""

    loop: StaticLoop
    number: int


def loops_in(text: str) -> set[int]:
    """The serial numbers of the loops of whose trips the code of a text speaks."""
    return {int(serial) for serial in re.findall(rf"\btrip\d*_of_loop(\d+){MARK}", code_of(text))}
