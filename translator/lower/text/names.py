"""Final identifiers: the user's first, then derived words; C++ and CUDA words avoided; never a serial number."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Iterator

from ...ir.c_names import MATH_NAMES, can_be_global, can_be_local
from ...ir.nodes import Variable
from ...ir.types import ORDINALS, ValueType

AGAIN = (
    *(*ORDINALS[1:], "ninth", "tenth", "eleventh", "twelfth", "thirteenth", "fourteenth"),
    *("fifteenth", "sixteenth", "seventeenth", "eighteenth", "nineteenth", "twentieth"),
)
UNNAMED = "iteration"  # what Python calls `_`: the variable of a loop that says nothing with it
# Of loops over columns, rows, vectors and so on, where the user has a variable of that name, such as a matrix c.
OTHER_LETTERS = {"c": "j", "r": "i", "e": "i", "p": "g", "v": "vec", "w": "other_warp"}


def entry_name(name: str, constants: Iterable[str] = ()) -> str:
    """The `extern "C"` name of a kernel: the user's, with `_kernel` where C++, CUDA or a constexpr parameter has it.

    That word stands in front where all names that begin so are taken: `kernel_load_vec`. Letters that are not ASCII, which
    assemblers do not take, are spelled as `ascii_word` has it.
    """
    taken = set(constants)
    found = ascii_word(name)
    while found in taken or not can_be_global(found):
        behind = f"{found.lstrip('_')}_kernel"
        found = behind if can_be_global(behind) else f"kernel_{found}"
    return found


def ascii_word(name: str) -> str:
    """An identifier in ASCII: a Greek letter by its name, another by its code, as "u00f6"."""
    return name if name.isascii() else "".join(c if c.isascii() else _ascii_letter(c) for c in name)


def _ascii_letter(letter: str) -> str:
    import unicodedata

    called = re.fullmatch(r"GREEK SMALL LETTER (\w+)", unicodedata.name(letter, ""))
    return called[1].lower() if called else f"u{ord(letter):04x}"


class Names:
    """Gives every variable, and every derived thing, an identifier of its own.

    A variable's first choice is the user's name; a second variable of that name (its type changed) gets its type's word
    as a suffix: `x`, then `x_float`. Variables that no line sees both of share a name. Names are ASCII from the start: whoever
    looks for them in text need not know which letters Python takes, such as the mark above an x, which is no letter to a pattern.
    """

    def __init__(self, user_names: Iterable[str], avoided: Iterable[str] = MATH_NAMES) -> None:
        """`user_names` are kept free for the variables that bear them; `avoided` are given to nothing."""
        self._of: dict[object, str] = {}
        self._bearers: dict[str, list[Variable]] = {}
        self._kinds: dict[str, set[str]] = {}  # the types of a name's bearers
        self.apart: Callable[[Variable, Variable], bool] = lambda one, other: False  # whether two may have one name
        self.array_of: dict[Variable, Variable] = {}  # variables that are one array with another, and go by its name
        self.of_trip: dict[Variable, str] = {}  # variables that are arrays of what all trips load: the place of a trip
        self.results: dict[
            Variable, str
        ] = {}  # how variables are reduced from others: a word where those have the name
        self.avoided = frozenset(avoided)
        self._taken: set[str] = set(avoided)
        self._users = set(map(ascii_word, user_names))
        self._spare: dict[str, Iterator[str]] = {}
        self.wanted: dict[str, str] = {}  # what names of our own would be, were those free; see local_names.py

    def variable(self, variable: Variable, suffix: str = "") -> str:
        """The identifier of a variable; `suffix` tells apart the arrays of an index tile in several layouts."""
        variable = self.array_of.get(variable, variable)
        key = (variable, suffix)
        if key not in self._of:
            word = ascii_word(variable.name) if variable.name.strip("_") else UNNAMED
            word = f"_{word.lstrip('_')}" if word.startswith("__") else word
            base = f"{word}_{suffix}" if suffix else word
            kind = type_word(variable.type)
            has_kind = kind in self._kinds.get(base, ()) or f"{base}_{kind}" in self._users
            how = self.results.get(variable, "")
            result = [f"{base}_{how}"] if how and not base.endswith(how) else []
            choices = [base, *result] if has_kind else [base, *result, f"{base}_{kind}"]
            shared = next((choice for choice in choices if self._is_unseen(choice, variable)), "")
            self._of[key] = shared or self._claim(choices, own=base)
            self._bear(self._of[key], variable)
        return self._of[key] + self.of_trip.get(variable, "")

    def _is_unseen(self, name: str, variable: Variable) -> bool:
        """Whether variables have a name, and no line sees one of them together with `variable`."""
        bearers = self._bearers.get(name, [])
        return bool(bearers) and all(self.apart(variable, other) for other in bearers)

    def share(self, variable: Variable, other: Variable) -> None:
        """Gives a variable the identifier of another: what both stand for is one array."""
        self._of[variable, ""] = self.variable(other)
        self._bear(self._of[variable, ""], variable)

    def _bear(self, name: str, variable: Variable) -> None:
        self._bearers.setdefault(name, []).append(variable)
        self._kinds.setdefault(name, set()).add(type_word(variable.type))

    def is_version(self, variable: Variable) -> bool:
        """Whether a variable is one array with another."""
        return variable in self.array_of or variable in self.array_of.values()

    def in_block(self, variable: Variable) -> str:
        """The identifier of a variable of the translator's own, which further ones in other blocks may share in the end."""
        if (variable, "") not in self._of:
            self._of[variable, ""] = self.fresh(variable.name)
        return self._of[variable, ""]

    def bearers(self, name: str) -> set[Variable]:
        """The variables that have an identifier."""
        return set(self._bearers.get(name, ()))

    def is_users(self, word: str) -> bool:
        """Whether the user has a variable of that name."""
        return word in self._users

    def reserve(self, name: str) -> None:
        """Takes an identifier that stands for something that is no variable: a constexpr parameter."""
        self._taken.add(name)

    def once(self, choice: str, key: object, *others: str) -> str:
        """The identifier of a thing of the translator's own, the same for the same key."""
        if key not in self._of:
            self._of[key] = self.fresh(choice, *others)
        return self._of[key]

    def shared_index(self, letter: str) -> str:
        """A loop index: the letter, or another while the user has a variable of that name. Loops may share it."""
        letter = OTHER_LETTERS.get(letter, letter) if letter in self._users else letter
        while letter in self._users:
            letter = f"{letter}{letter}" if len(letter) == 1 else f"the_{letter}"
        return letter

    def counter(self, word: str, depth: int) -> str:
        """The identifier of a static loop's variable, which is no variable of the kernel: the user's name.

        At another `depth`, of loops in loops whose variables have one name, it is another one.
        """
        word, key = ascii_word(word) if word.strip("_") else UNNAMED, ("counter", word, depth)
        if key not in self._of:
            self._of[key] = self._claim([word], own=word)
        return self._of[key]

    def fresh(self, *choices: str) -> str:
        """An identifier that nothing else has: the first free choice, or the first with a word appended; in ASCII, as all are."""
        return self._claim(list(map(ascii_word, choices)), own="")

    def _claim(self, choices: list[str], own: str) -> str:
        name = self._first_free(choices, own)
        if not own and name != choices[0] and choices[0] not in self._users:
            self.wanted[name] = choices[0]
        return name

    def _first_free(self, choices: list[str], own: str) -> str:
        for choice in choices:
            if self._is_free(choice, own):
                return self._take(choice)
        base = choices[0]
        if not can_be_local(f"{base}_{AGAIN[0]}"):  # helpers have all names that begin so, such as load_...
            base = f"the_{base}"
            if self._is_free(base, own):
                return self._take(base)
        # What was taken once stays taken, so that the search goes on where it ended the last time.
        spare = self._spare.setdefault(base, spare_names(base))
        return self._take(next(name for name in spare if self._is_free(name, own)))

    def _is_free(self, choice: str, own: str) -> bool:
        if choice in self._taken or not can_be_local(choice):
            return False
        return choice == own or choice not in self._users

    def _take(self, choice: str) -> str:
        self._taken.add(choice)
        return choice


def spare_names(base: str) -> Iterator[str]:
    """The base with an ordinal appended, as a reader counts who meets the name again; past the last with two, and so on.

    Those of constants are in capitals, as constants are.
    """
    capitals = len(base) > 1 and base.isupper()
    for count in itertools.count(1):
        for words in itertools.product(AGAIN, repeat=count):
            suffix = "_".join(words)
            yield f"{base}_{suffix.upper() if capitals else suffix}"


def type_word(type_: ValueType) -> str:
    """A word for a type, for names: "float", "half", "ptr"."""
    if type_.is_pointer:
        return "ptr"
    word = type_.dtype.cuda.replace("__nv_", "").replace("signed char", "char").replace("unsigned", "uint")
    return word.replace("long long", "long").replace(" ", "").replace("bfloat16", "bf").replace("fp8_", "")
