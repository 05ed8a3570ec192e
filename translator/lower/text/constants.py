"""The constants that a file's text asks for, and the variables of its prologue: each made once, under a name that is free."""

from __future__ import annotations

import copy
from collections.abc import Iterable

from .literals import infinity_bits
from .names import Names
from .unit import Constant, Place

MOST_BARE = 32  # larger numbers have names
GRID = {  # by operation: CUDA's word, ours for it as an int, and what that is
    "program_id": ("blockIdx", "program", "the program's place"),
    "num_programs": ("gridDim", "num_programs", "how many there are"),
}
WIDTHS = {2: "PAIR", 4: "QUAD", 8: "OCT", 16: "HEX"}  # words for how many elements an access has


class Constants:
    """See the module docstring. The kernel and its device functions share one.

    Attributes:
      all: the constants, in the order in which they were asked for.
      places: where a thread stands, each behind those that it is computed from.
      of_grid: where its program does, by CUDA's word and axis.
      infinities: what CUDA spells by its bits, by its name.
    """

    def __init__(self, names: Names) -> None:
        """None yet; `names` gives them theirs."""
        self.all: list[Constant] = []
        self.places: list[Place] = []
        self.of_grid: dict[tuple[str, int], Place] = {}
        self.infinities: dict[str, str] = {}
        self._in_function = False
        self._names = names
        self._constants: dict[tuple[str, int], str] = {}
        self._places: dict[tuple[str, str], str] = {}

    def named(
        self,
        name: str,
        value: int,
        comment: str,
        text: str = "",
        topic: str = "tiles",
        others: Iterable[str] = (),
        further: str = "",
    ) -> str:
        """The name of a constant; one of the `others` where the name already stands for another value.

        `text` says how the value follows from other constants; `topic` where in the file it stands; `further` is the comment
        of one with another name, if it has its own.
        """
        key = name, value
        if key not in self._constants:
            own = self._constants[key] = self._names.fresh(name, *others)
            said = comment if own == name else further or comment
            self.all.append(Constant(own, text or str(value), said, topic=topic))
        return self._constants[key]

    def large(self, name: str, number: int, comment: str) -> str:
        """A number, by a constant of that name where it is a large one."""
        return str(number) if number <= MOST_BARE else self.named(name, number, comment)

    def width(self, width: int) -> str:
        """The constant for vectors of another width than their axis's run."""
        return self.named(f"{WIDTHS[width]}_VEC", width, "elements of one access")

    def place(self, name: str, text: str, comment: str = "", subject: str = "", others: Iterable[str] = ()) -> str:
        """A variable of the prologue that says where this thread stands, by a name or one of `others`; see `Place`."""
        key = name, text
        if key not in self._places:
            own = self._places[key] = self._names.fresh(name, *others)
            self.places.append(Place(own, text, comment, subject))
        return self._places[key]

    def grid_place(self, op: str, axis: int) -> str:
        """A program's number along an axis of the grid, or the number of them, as an int: a variable of the prologue."""
        if self._in_function:
            return f"static_cast<int>({grid_word(op, axis)})"
        word, name, subject = GRID[op]
        if (word, axis) not in self.of_grid:
            own = self._names.fresh(f"{name}_{'xyz'[axis]}")
            self.of_grid[word, axis] = Place(own, grid_word(op, axis), "", subject)
        return self.of_grid[word, axis].name

    def infinity(self, negative: bool) -> str:
        """An infinity of fp32: a variable of the kernel."""
        bits, word = infinity_bits(negative), "neg_inf" if negative else "inf"
        if self._in_function:
            return bits
        own = next((name for name, known in self.infinities.items() if known == bits), "")
        if not own:
            own = self._names.fresh(word, f"the_{word}")
            self.infinities[own] = bits
        return own

    def in_function(self) -> Constants:
        """The same for a function of its own, which sees no variables of the kernel."""
        inside = copy.copy(self)
        inside._in_function = True
        return inside

    @property
    def prologue(self) -> list[Place]:
        """All places of a thread, and of its program."""
        return [*self.places, *(place for _, place in sorted(self.of_grid.items(), key=lambda one: one[0]))]


def grid_word(op: str, axis: int) -> str:
    """CUDA's word for a program's number along an axis of the grid, or for the number of them: it is unsigned."""
    return f"{GRID[op][0]}.{'xyz'[axis]}"
