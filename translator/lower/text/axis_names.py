"""How the axes of layouts are spelled: loop index, place of a thread, and the constants behind them.

Every distinct axis pattern of the schedule gets one `NamedAxis`. For a [16, 128] tile over 128 threads:

  rows     `r < ROWS`, `row = tid / COL_THREADS`, coordinate `r * ROW_THREADS + row`
  columns  `c < COLS`, `col = tid % COL_THREADS`, coordinate `(c / VEC * COL_THREADS + col) * VEC + c % VEC`
"""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

from ...frozen import frozen
from ...hardware import LANE_BITS, WARP_SIZE, WARPGROUP_BITS
from ...ir.symbols import Name
from ...ir.types import padded, symbol_of
from ...schedule.tiles.layout import REGISTER, Layout
from .constants import Constants
from .names import Names
from .operators import Text, infix, summed
from .unit import COMMENT_ROOM, Constant, Place

# Per rank, per axis: loop index, registers, thread's place, the word for one and for several coordinates.
WORDS = {
    1: (("e", "ELEMS", "slot", "element"),),
    2: (("r", "ROWS", "row", "row"), ("c", "COLS", "col", "column")),
    3: (("p", "PLANES", "plane", "plane"), ("r", "ROWS", "row", "row"), ("c", "COLS", "col", "column")),
}
COUNTS = {noun: count for words in WORDS.values() for _, count, _, noun in words}
PLACES = {noun: place for words in WORDS.values() for _, _, place, noun in words}
# What a stride of coordinates, in capitals, leads from.
PARTS = {
    "LANE": "a lane's part",
    "WARP": "a warp's part",
    "THREAD": "a thread's part",
    "STEP": "one of a thread's parts",
}
UNNAMED_TILE = "tile"  # of a statement that computes in a layout of its own


@frozen
class NamedAxis:
    """Names for one axis pattern.

    Attributes:
      bits: the pattern, as in `Layout.axes`.
      side: coordinates along the axis, padding not counted.
      index, vector_index: loop variables over registers and over vectors of registers.
      count, vector, vectors: constants: registers along the axis, consecutive ones, vectors of those.
      threads: constant: threads along the axis, or "" when there is one.
      place: variable: which of these threads this one is.
      noun: the word for one coordinate.
      tile: the user's name of the first tile that has the pattern.
      plain: whether that name is left out of the others.
    """

    bits: tuple[int, ...]
    side: int
    index: str
    count: str
    vector: str
    vectors: str
    threads: str
    place: str
    noun: str
    tile: str
    plain: bool

    @property
    def num_registers(self) -> int:
        """Registers along the axis."""
        return 1 << self.bits.count(REGISTER)

    @property
    def run(self) -> int:
        """Consecutive coordinates in consecutive registers."""
        return 1 << _run_bits(self.bits)

    @property
    def thread_range(self) -> range | None:
        """The thread bits of a blocked axis as a range (possibly empty); None when the axis is not blocked."""
        return _thread_range(self.bits)


def _run_bits(bits: tuple[int, ...]) -> int:
    return next((k for k, bit in enumerate(bits) if bit != REGISTER), len(bits))


def _thread_range(bits: tuple[int, ...]) -> range | None:
    used, low = [bit for bit in bits if bit != REGISTER], _run_bits(bits)
    consecutive = used == list(range(used[0], used[0] + len(used))) if used else True
    together = list(bits[low : low + len(used)]) == used
    return range(used[0], used[-1] + 1) if used and consecutive and together else None if used else range(0)


class AxisNames:
    """The names of all axes of a kernel, and the constants and coordinate variables that they need."""

    def __init__(
        self,
        layouts: Iterable[tuple[Layout, tuple[int, ...], str]],
        names: Names,
        num_warps: int,
        producer: bool = False,
        teams: int = 1,
    ) -> None:
        """`layouts` are (layout, shape, name of a tile that has it), the ones that give names first.

        `producer` is whether further threads load; so many `teams` of threads multiply, each by itself.
        """
        self._names = names
        self._axes: dict[tuple[int, ...], NamedAxis] = {}
        self.num_threads = num_warps * WARP_SIZE
        self.tid = names.fresh("tid", "thread")
        self.team = names.fresh("team", "warp_team") if teams > 1 else ""
        self.constants = Constants(names)
        multiply = "of a team: those that multiply a program" if teams > 1 else "those that multiply"
        self.constants.all += [
            Constant("NUM_WARPS", str(num_warps), multiply if producer else "", topic="threads"),
            Constant("WARP_SIZE", "32", topic="threads"),
            Constant("ALL_LANES", "0xffffffff", "shuffle mask", "unsigned", "threads"),
            Constant("NUM_THREADS", "NUM_WARPS * WARP_SIZE", f"{self.num_threads}", topic="threads"),
        ]
        self._words: dict[str, str] = {}
        ordered = sorted(layouts, key=lambda entry: -entry[0].rank)
        patterns = {(WORDS[min(layout.rank, 3)][min(axis, 2)][3], bits) for layout, _, _ in ordered
                    for axis, bits in enumerate(layout.axes) if bits}  # fmt: skip
        self._patterns = Counter(noun for noun, _ in patterns)  # ways in which an axis is shared out
        self._sharing = Counter((noun, _thread_range(bits)) for noun, bits in patterns)  # those with the same threads
        self._plain_nouns: set[str] = (
            set()
        )  # those of which a pattern has the plain names; others have their tile's in front
        for layout, shape, name in ordered:
            for axis, bits in reversed(list(enumerate(layout.axes))):
                if bits and bits not in self._axes:
                    self._add(bits, shape[axis], min(layout.rank, 3), min(axis, 2), name, layout.thread_bits)
        places = {named.place: named for named in self._axes.values() if named.threads}
        self.constants.places[:] = [
            replace(place, value=self._place_text(places[place.name])) if place.name in places else place
            for place in self.constants.places
        ]  # now that all counts of threads have names

    def in_function(self) -> AxisNames:
        """The same for a function of its own, where no variable has the thread's number."""
        inside = copy.copy(self)
        inside.tid, inside.constants = "threadIdx.x", self.constants.in_function()
        return inside

    def find(self, bits: tuple[int, ...]) -> NamedAxis | None:
        """What an axis pattern is called."""
        return self._axes.get(bits)

    def first_of(self, span: range, thread_bits: int) -> str:
        """The condition that picks one thread along a range of thread bits."""
        for named in self._axes.values():
            if named.thread_range == span and named.place and named.place != self.tid:
                return f"{named.place} == 0"
        if span == range(thread_bits):
            return f"{self.tid} == 0"
        if span.stop == thread_bits:
            return f"{self.tid} < {self.threads_below(span.start).text}"
        number = Text(self.tid)
        number = infix(number, "/", self.threads_below(span.start)) if span.start else number
        return f"{infix(number, '%', self.power(1 << len(span))).text} == 0"

    @staticmethod
    def power(number: int) -> Text:
        """A power of two among thread numbers: in warps where it is as many as one."""
        if number < WARP_SIZE:
            return Text(str(number))
        warp = Text("WARP_SIZE")
        return warp if number == WARP_SIZE else infix(Text(str(number // WARP_SIZE)), "*", warp)

    def stride(self, number: int, part: str, noun: str) -> str:
        """How many coordinates of an axis, "" for another, lie from one part to the next, by name where they are many."""
        if not noun:
            return str(number)
        return self.constants.large(f"{part}_{COUNTS[noun]}", number, f"{noun}s from {PARTS[part]} to the next")

    def _add(self, bits: tuple[int, ...], side: int, rank: int, axis: int, name: str, thread_bits: int) -> None:
        index, count, place, noun = WORDS[rank][axis]
        called = symbol_of(side)
        symbol = called.word if isinstance(called, Name) else None
        prefix = f"{name}_" if noun in self._plain_nouns else ""
        self._plain_nouns.add(noun)
        as_many = [r for r in self._axes.values() if (r.tile, r.noun, r.side) == (name, noun, side)]
        as_many = [r for r in as_many if r.num_registers == 1 << bits.count(REGISTER)]
        if symbol and padded(side) == side and set(bits) == {REGISTER}:
            count = symbol  # a thread has the whole axis
        elif as_many:  # another version of the tile
            count = as_many[0].count
        else:
            count = self._fresh(count, prefix, name, f"{name}_{count}_PER_THREAD")
        index = self._names.shared_index(index)
        named = NamedAxis(
            bits,
            side,
            index,
            count,
            vector="",
            vectors="",
            threads="",
            place="",
            noun=noun,
            tile=name,
            plain=not prefix,
        )
        if named.run > 1:
            long = f"{place.upper()}_VEC"
            vector = self._names.fresh(f"{prefix.upper()}VEC", f"{prefix.upper()}{long}", f"{name.upper()}_{long}")
            named = replace(named, vector=vector, vectors=self._names.fresh(f"{vector}S"))
        threads, place = self._threads(named, place, noun, prefix, thread_bits)
        named = self._axes[bits] = replace(named, threads=threads, place=place)
        self._add_constants(named, symbol, noun)

    def _fresh(self, word: str, prefix: str, name: str, *others: str) -> str:
        """An identifier for one of a pattern's words, in capitals where the word is; `others` if those are taken."""
        choices = (f"{prefix}{word}", f"{name}_{word}", *others)
        return self._names.fresh(*(choice.upper() if word.isupper() else choice for choice in choices))

    def _threads(self, named: NamedAxis, word: str, noun: str, prefix: str, thread_bits: int) -> tuple[str, str]:
        """The constant that counts the threads along an axis, and the variable that says which of them this one is."""
        span, tile = named.thread_range, self._tile(named, noun)
        subject = f"this thread's place in {tile}"
        if span is not None and self._sharing[noun, span] > 1 and tile != "a tile":
            ways = [shared for (other, shared) in self._sharing if other == noun and shared]
            tile = "a tile" if len(ways) == 1 else f"{tile} and others"
            subject = f"this thread's place in {tile}" if tile == "a tile" else subject
        if span is None:
            place = self._fresh(word, prefix, named.tile)
            text, begins = self.thread_text(named.bits, noun).text, "where this thread's part begins"
            of_tile = "" if tile == "a tile" else f" of {tile}"
            self.constants.places.append(Place(place, text, f"this thread's first {noun}{of_tile}", begins))
            return "", place
        if not span:
            return "", ""
        if len(span) == thread_bits:
            return "NUM_THREADS", self.tid
        for known in self._axes.values():
            if known.thread_range == span and known.noun == noun and known.threads:
                return known.threads, known.place  # the same threads, who hold other numbers of elements
        threads = self._fresh(f"{word.upper()}_THREADS", prefix, named.tile)
        place = self._fresh(word, prefix, named.tile)
        comment = f"threads along the {noun}s of {tile}"
        comment = comment if len(comment) <= COMMENT_ROOM else comment.removesuffix(" and others")
        self.constants.all.append(Constant(threads, str(1 << len(span)), comment))
        comment = f"this thread's place along the {noun}s of {tile}"
        self.constants.places.append(Place(place, "", comment, subject))
        return threads, place

    def _place_text(self, named: NamedAxis) -> str:
        """Which of the threads along an axis this one is."""
        span, number = named.thread_range or range(0), Text(self.tid)
        if span.start:
            number = infix(number, "/", self.threads_below(span.start, named.tile))
        return (number if self.num_threads == 1 << span.stop else infix(number, "%", Text(named.threads))).text

    def thread_text(self, bits: tuple[int, ...], noun: str = "") -> Text:
        """What the thread bits of a scattered axis of some coordinates add up to, highest first; "0" without any."""
        thread_bits = self.num_threads.bit_length() - 1
        runs: list[tuple[int, int, int]] = []  # (position, first thread bit, how many)
        for position, bit in enumerate(bits):
            if bit == REGISTER:
                continue
            start, first, count = runs[-1] if runs else (0, 0, 0)
            if runs and (position, bit) == (start + count, first + count):
                runs[-1] = (start, first, count + 1)
            else:
                runs.append((position, bit, 1))
        terms = []
        for position, first, count in reversed(runs):
            source, part, low, high = self._source(first, count, thread_bits)
            number = infix(Text(source), "/", self.power(1 << low)) if low else Text(source)
            number = infix(number, "%", self.power(1 << count)) if low + count < high else number
            terms.append(infix(number, "*", Text(self.stride(1 << position, part, noun))) if position else number)
        return summed(terms)

    def _source(self, first: int, count: int, thread_bits: int) -> tuple[str, str, int, int]:
        """What some bits of a thread's number are taken from, whose part that is, the first bit there, and how many it has."""
        if first + count <= LANE_BITS:
            return self.place_of("lane"), "LANE", first, LANE_BITS
        if first >= LANE_BITS:
            return self.place_of("warp"), "WARP", first - LANE_BITS, thread_bits - LANE_BITS
        return self.tid, "THREAD", first, thread_bits

    def place_of(self, word: str) -> str:
        """The variable that holds the thread's number within its warp ("lane"), or the warp's ("warp")."""
        if word not in self._words:
            self._words[word] = self._names.fresh(word, f"{word}_of_block")
            place = Place(self._words[word], f"{self.tid} {'%' if word == 'lane' else '/'} WARP_SIZE")
            self.constants.places.insert(len(self._words) - 1, place)
        return self._words[word]

    def lane(self) -> str:
        """The thread's number within its warp."""
        return self.place_of("lane")

    def warp_place(self, name: str, axis: tuple[int, ...], noun: str, tile: str) -> str:
        """The first coordinate of this warp along an axis of an accumulator."""
        text = self.thread_text(tuple(bit if bit >= LANE_BITS else REGISTER for bit in axis), noun).text
        if text == "0":
            return text
        subject = "where the warp's part begins"
        return self.constants.place(name, text, f"the first {noun} of the warp's part", subject, (f"{tile}_{name}",))

    def warpgroup(self, bits: list[int]) -> str:
        """The warpgroup's number, counted by the given thread bits."""
        size = self.warpgroup_size()
        low = bits[0] - WARPGROUP_BITS
        text = f"{self.tid} / {size}" + (f" / {1 << low}" if low else "")
        if bits[-1] + 1 < self.num_threads.bit_length() - 1:
            text += f" % {1 << len(bits)}"
        return self.constants.place("warpgroup", text)

    def warpgroup_size(self) -> str:
        """The constant that counts the threads of a warpgroup."""
        return self.constants.named("WARPGROUP_SIZE", 1 << WARPGROUP_BITS, "threads", topic="threads")

    def threads_below(self, bits: int, tile: str = "") -> Text:
        """How many threads so many low bits of a thread's number count, by name where axes, first of a `tile`, are shared so."""
        shared = sorted((named for named in self._axes.values() if named.threads), key=lambda named: named.tile != tile)
        spans = [(named.thread_range, named.threads) for named in shared]
        for span, threads in spans:
            if span == range(bits):
                return Text(threads)
            beside = next((more for other, more in spans if span and other == range(span.stop, bits)), "")
            if span and span.start == 0 and beside and 1 << bits > 32:
                return infix(Text(threads), "*", Text(beside))
        return self.power(1 << bits)

    def _tile(self, named: NamedAxis, noun: str) -> str:
        """What comments call a tile that has the pattern: by its name where there are others with another pattern."""
        return named.tile if self._patterns[noun] > 1 and named.tile != UNNAMED_TILE else "a tile"

    def _add_constants(self, named: NamedAxis, symbol: str | None, noun: str) -> None:
        count, span, tile = named.num_registers, named.thread_range, self._tile(named, noun)
        value, said = str(count), ""
        if span is not None and symbol and padded(named.side) == named.side:
            value, said = (f"{symbol} / {named.threads}", f"{count} ") if named.threads else (symbol, "")
        of_tile = "" if tile == "a tile" else f" of {tile}"
        comment = f"{said}{noun}s of {tile} per thread"
        if padded(named.side) != named.side:
            comment = f"{noun}s{of_tile} per thread: {named.side} padded to {padded(named.side)}"
        if count > 1 and named.count != symbol and all(known.name != named.count for known in self.constants.all):
            self.constants.all.append(Constant(named.count, value, comment))
        if named.run > 1:
            comment = f"consecutive {noun}s{of_tile} per thread"
            comment = comment if len(comment) <= COMMENT_ROOM else f"consecutive {noun}s{of_tile}"
            self.constants.all.append(Constant(named.vector, str(named.run), comment))
            self.constants.all.append(
                Constant(named.vectors, f"{named.count} / {named.vector}", str(count // named.run))
            )
