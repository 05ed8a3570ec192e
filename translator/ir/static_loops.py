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

MARK = "λ"  # ends the words: identifiers in the text are ASCII, so that none of the user's is such a word
TRIP = re.compile(rf"\btrip\d+_of_loop\d+{MARK}")
LoopPlace = tuple[str, int, int]  # the file, the line and the column


class OfTrips(str):
    """The C expression of a number that other trips have another value of: what is known of it holds in all of them.

    `reach` are the least and the greatest value, and `divisor` divides all.
    """

    reach: tuple[int, int]
    divisor: int

    def __new__(cls, text: str, reach: tuple[int, int], divisor: int) -> OfTrips:
        """The same text, with what it may come to."""
        made = super().__new__(cls, text)
        made.reach, made.divisor = reach, divisor
        return made


@frozen
class StaticLoop:
    """One loop of the source.

    Attributes:
      name: its variable's, as in the source.
      serial: tells the kernel's loops apart.
      place: where its range stands.
      start, stop, step: its bounds as C expressions.
      numbers: what the variable goes through.
    """

    name: str
    serial: int
    place: LoopPlace
    start: str
    stop: str
    step: str
    numbers: range

    @property
    def trips(self) -> int:
        """How many there are."""
        return len(self.numbers)

    @property
    def word(self) -> str:
        """What the variable is called while its trips are compared."""
        return f"trip_of_loop{self.serial}{MARK}"

    def word_of(self, number: int) -> OfTrips:
        """What a trip calls its own number."""
        first, last = self.numbers[0], self.numbers[-1]
        reach = (min(first, last), max(first, last))
        return OfTrips(f"trip{number}_of_loop{self.serial}{MARK}", reach, gcd(first, self.numbers.step))

    @property
    def index(self) -> str:
        """The number of a trip in C, counted from 0."""
        start = f"({self.start})" if re.search(r"^-| ", self.start) else self.start
        if self.numbers.step < 0:
            distance = f"{start} - {self.word}"
        else:
            distance = self.word if start == "0" else f"{self.word} - {start}"
        step = abs(self.numbers.step)
        return distance if step == 1 else f"({distance}) / {step}" if " " in distance else f"{distance} / {step}"

    @property
    def count(self) -> str:
        """How many trips there are, in C."""
        named = self.start == "0" and self.step == "1" and self.stop.isidentifier() and not is_of_trip(self.stop)
        return self.stop if named else str(self.trips)

    @property
    def header(self) -> str:
        """Of the loop in C."""
        step = {"1": "++", "-1": "--"}.get(self.step, "")
        advance = f"{step}{self.word}" if step else f"{self.word} += {self.step}"
        return f"for (int {self.word} = {self.start}; {self.word} {'<' if self.numbers.step > 0 else '>'} {self.stop}; {advance})"


@frozen
class Trip:
    """Where trip `number` of a loop begins, counted from 0; behind the last one, that is how many there were."""

    loop: StaticLoop
    number: int


def is_of_trip(symbol: str | None) -> bool:
    """Whether the C expression of a compile-time value speaks of the number of a trip, and so has another value in another."""
    return symbol is not None and TRIP.search(symbol) is not None


def loops_in(text: str) -> set[int]:
    """The serial numbers of the loops of whose trips the code of a text speaks."""
    return {int(serial) for serial in re.findall(rf"\btrip\d*_of_loop(\d+){MARK}", code_of(text))}
