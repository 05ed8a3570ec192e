"""The text of a random kernel as it is written: its lines, what can be read at the present place, its arguments."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from random_lines import Lines
from random_tile_values import Value, wrapped

SIDES = (1, 2, 3, 4, 5, 8, 8, 16, 16, 24, 32, 32, 50, 64)


@dataclass
class Array:
    """An argument that is an array.

    `skip` elements lie in front of the first, so that it is not aligned; numbers are multiples of 2 ** -unit from low to
    high, or `special`: infinities and the like among them, or `empty`: numbers that no kernel stores. `tolerance` is how
    far results may be apart, absolutely.
    """

    dtype: str
    low: float = 0
    high: float = 0
    unit: int = 0
    length: int = 1
    skip: int = 0
    tolerance: float = 0.0
    empty: bool = False
    written: bool = False
    special: bool = False


@dataclass(frozen=True)
class Trip:
    """A loop around the present place: the text that counts its trips from 0, and their largest number."""

    text: str
    most: int


@dataclass
class Writer(Lines):
    """See the module docstring; a seed decides everything."""

    seed: int
    lines: list[str] = field(default_factory=list)
    indent: int = 1
    values: list[Value] = field(default_factory=list)
    arrays: dict[str, Array] = field(default_factory=dict)
    integers: dict[str, int] = field(default_factory=dict)
    constants: set[str] = field(default_factory=set)  # of the integers, those that are compile-time values
    helpers: dict[str, str] = field(default_factory=dict)
    trips: list[Trip] = field(default_factory=list)
    starts: list[int] = field(default_factory=lambda: [0])  # of what the loops around have made, in `values`
    rows_of: list[str] = field(
        default_factory=list
    )  # matrices of which every row is read once, where it can be replaced
    stored: set[str] = field(default_factory=set)
    count: int = 0
    programs: int = 1
    largest: int = 0  # elements of a tile

    def __post_init__(self) -> None:
        """Chooses what holds for all of the kernel: the grid, and the shapes that most of its tiles have."""
        self.random = random.Random(self.seed)
        self.grid = self.pick((1,), (2,), (3,), (5,), (2, 2), (1, 3), (2, 1, 2))
        self.programs = math.prod(self.grid)
        self.wide = self.chance(0.2)
        if self.wide:
            self.shapes = [
                self.pick((1024,), (2048,), (4096,), (3000,), (1, 2048), (2, 1000), (4, 512), (16, 128), (8192,))
            ]
        else:
            rank = self.pick(1, 1, 2, 2, 2, 3)
            most = {1: 64, 2: 64, 3: 8}[rank]
            sides = [side for side in SIDES if side <= most]
            self.shapes = [tuple(self.pick(*sides) for _ in range(rank))]
            if rank == 1 and self.chance(0.5):
                self.shapes = [(self.pick(100, 128, 256, 512, 777),)]
        self.shapes += [(side,) for side in dict.fromkeys(self.shapes[0])] if len(self.shapes[0]) > 1 else []
        self.largest = max(math.prod(shape) for shape in self.shapes)
        self.ranges: dict[int, str] = {}

    def number(self, low: int, high: int) -> int:
        """A whole number; both ends can come."""
        return self.random.randint(low, high)

    def name(self, letter: str = "v") -> str:
        """A name that nothing has."""
        self.count += 1
        return f"{letter}{self.count}"

    def let(self, text: str, value: Value) -> Value:
        """A new variable: `value` says what it holds, and gets its name."""
        made = wrapped(replace(value, name=self.name()))
        self.put(f"{made.name} = {text}")
        if self.chance(0.25):
            self.put(f"tl.static_assert({made.name}.dtype == tl.{made.dtype})")
        self.values.append(made)
        return made

    def some(self, fits: Callable[[Value], bool]) -> Value | None:
        """A variable that fits, one of the last more often than an old one."""
        found = [value for value in self.values if fits(value)]
        if not found:
            return None
        return self.pick(*(found[-4:] if self.chance(0.6) else found))

    def integer(self, value: int) -> str:
        """The name of an argument of this value."""
        known = [name for name, other in self.integers.items() if other == value]
        if known and self.chance(0.7):
            return str(self.pick(*known))
        name = self.name("n")
        self.integers[name] = value
        if self.chance(0.2):
            self.constants.add(name)
        return name

    def shape(self) -> tuple[int, ...]:
        """A shape for a tile, mostly that of the kernel."""
        if self.chance(0.07):
            return ()
        return self.shapes[0] if self.chance(0.75) else self.pick(*self.shapes)

    def along(self, shape: tuple[int, ...], axis: int) -> str:
        """The indices along an axis of a tile, with axes of side 1 for the others."""
        side = shape[axis]
        text = self.ranges.get(side, f"tl.arange(0, {side})")
        if len(shape) == 1:
            return text
        return text + "[" + ", ".join(":" if k == axis else "None" for k in range(len(shape))) + "]"

    @property
    def most_trips(self) -> int:
        """How often the present place is reached by a program, at most."""
        return math.prod(trip.most for trip in self.trips)

    def turn(self) -> str:
        """A number for every time that any program reaches the present place, from 0 on."""
        text = "pid"
        for trip in self.trips:
            text = f"({text} * {trip.most} + {trip.text})"
        return text
