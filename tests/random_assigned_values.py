"""Expressions of random programs whose names are assigned again and again (random_assignments.py), by tables of forms.

All numbers are integers which float32 has exactly in whatever order they are added up: `kept` leaves them within 300, and
integers have 10 bits. So all ways to run a program leave the same, bit by bit.
"""

from __future__ import annotations

import random
import re
from dataclasses import dataclass

from random_lines import Choices

SHAPES = {"s": "()", "f": "()", "i": "(N,)", "v": "(N,)", "r": "(R,)", "m": "(R, N)"}
"""The kinds of values by the letter that their names begin with: integer and float scalars, integer and float tiles."""

PLACES = {"i": "column", "v": "column", "r": "row", "m": "at"}
FLOATS = "fvrm"
FLOAT_TILES = "vrm"

# {x} is a value of the same kind, {c} a condition of its shape, {p} one of scalars, {k} a number, {place} the kind's places.
LEAVES = {
    "s": ("pid", "n", "{k}", "tl.load(k_ptr + pid)", "tl.load(k_ptr + {k})"),
    "f": ("tl.load(x_ptr + pid)", "tl.load(x_ptr + {k})"),
    "i": ("{place}", "{place} // 4", "{place} % 3", "tl.load(k_ptr + {place})", "tl.load(k_ptr + {place} // 4)"),
    "v": ("tl.load(x_ptr + {place} + {k})", "tl.load(x_ptr + {place} // 4)", "tl.full({shape}, {k}, tl.float32)"),
    "r": ("tl.load(x_ptr + {place} + {k})", "tl.load(x_ptr + {place}, mask={place} < n * 3, other=2.0)"),
    "m": (
        "tl.load(x_ptr + {place} + {k})", "tl.load(x_ptr + {place} // 4)", "tl.load(x_ptr + row[:, None] + column[None, :] * R)",
        "tl.load(x_ptr + row[:, None] + column[None, :] * 0)", "tl.zeros({shape}, tl.float32)",
    ),
}  # fmt: skip
FLOAT_FORMS = ("kept({x} + {x})", "kept({x} - {x})", "kept({x} * {x})", "tl.maximum({x}, {x})")
TILE_FORMS = (
    "kept({x} * {f})", "tl.where({c}, {x}, {x})", "({x} if {p} else {x})", "tl.minimum({x}, {x})",
    "tl.load(x_ptr + {place} + {k}, mask={c}, other={x})", "{x}.to(tl.float16).to(tl.float32)",
)  # fmt: skip
FORMS = {
    "s": (
        "(({s} + {s}) & 1023)", "(({s} * {s}) & 255)", "(({s} & 1023) // {k})", "tl.where({p}, {s}, {s})",
        "({s} if {p} else {s})", "tl.sum({i} & 63, 0)", "tl.xor_sum({i} & 63, 0)", "tl.argmax({v}, 0)", "tl.argmin({r}, 0)",
        "tl.load(k_ptr + ({s} & 31))",
    ),
    "f": (*FLOAT_FORMS, "kept(tl.sum({v}, 0))", "tl.max({r}, 0)", "tl.reduce({v}, 0, larger)", "kept(tl.sum(tl.sum({m}, 1), 0))"),
    "i": (
        "(({i} + {s}) & 1023)", "(({i} ^ {i}) & 255)", "(({i} & 1023) // {k})", "(({i} & 1023) % {k})", "tl.where({c}, {i}, {i})",
        "tl.argmax({m}, 0)", "{v}.to(tl.int32)", "tl.load(k_ptr + ({i} & 31))", "({i} if {p} else {i})",
    ),
    "v": (
        *FLOAT_FORMS, *TILE_FORMS, "kept(tl.sum({m}, 0))", "tl.min({m}, 0)", "tl.load(x_ptr + ({i} & 63))", "pairs_swapped({v})",
        "({i} & 127).to(tl.float32)",
    ),
    "r": (*FLOAT_FORMS, *TILE_FORMS, "kept(tl.sum({m}, 1))", "tl.reduce({m}, 1, larger)", "tl.argmin({m}, 1).to(tl.float32)"),
    "m": (
        *FLOAT_FORMS, *TILE_FORMS, "tl.trans(tl.reshape({m}, (N, R)))", "kept({v}[None, :] * {m})", "kept({r}[:, None] - {m})",
        "kept({r}[:, None] + {v}[None, :])", "tl.reshape(tl.permute(tl.reshape({m}, (2, R // 2, N)), (1, 0, 2)), (R, N))",
    ),
}  # fmt: skip
PRODUCT = "kept(tl.dot({m}.to(tl.float16), {m}.to(tl.float16), {m}))"  # of square tiles
MOST_PRODUCTS = 4
DEEPEST = 3

HELPERS = {
    "larger": "def larger(a, b):\n    return tl.maximum(a, b)\n",
    "kept": "def kept(x):\n    return tl.minimum(tl.maximum(x, -300.0), 300.0)\n",
    "pairs_swapped": "def pairs_swapped(x):\n    a, b = tl.split(tl.reshape(x, (N // 2, 2)))\n"
    "    return tl.reshape(tl.join(b, a), (N,))\n",
}


@dataclass
class Expressions(Choices):
    """Writes expressions of what is in scope; `square` says that tiles of rank 2 may be multiplied."""

    random: random.Random
    square: bool
    products: int = 0

    def value(self, kind: str, scope: dict[str, str], depth: int = 0) -> str:
        """A value of a kind; `scope` has the kind of each name."""
        names = [name for name, other in scope.items() if other == kind]
        if depth >= DEEPEST or self.chance(0.3):
            text = self.random.choice(names) if names and self.chance(0.8) else self.random.choice(LEAVES[kind])
        elif kind == "m" and self.square and self.products < MOST_PRODUCTS and self.chance(0.15):
            self.products += 1
            text = PRODUCT
        else:
            text = self.random.choice(FORMS[kind])
        return re.sub(r"\{(\w+)\}", lambda found: self._part(found[1], kind, scope, depth + 1), text)

    def _part(self, word: str, kind: str, scope: dict[str, str], depth: int) -> str:
        if word == "c":
            return f"({self.condition(kind, scope, depth)})"
        if word == "p":
            return f"({self.condition('s', scope, depth)})"
        if word == "k":
            return str(self.random.choice((1, 2, 3, 4, 8)))
        fixed = {"place": PLACES.get(kind, ""), "shape": SHAPES[kind]}
        if word in fixed:
            return fixed[word]
        return f"({self.value(kind if word == 'x' else word, scope, depth)})"

    def condition(self, kind: str, scope: dict[str, str], depth: int = 1) -> str:
        """A comparison of values of a kind, or of scalars."""
        sign = self.random.choice(("<", ">", "==", "!=", "<=", ">="))
        other = {"s": "s", "i": "s"}.get(kind, "f") if self.chance(0.4) else kind
        first = f"({self.value(kind, scope, depth)}) {sign} ({self.value(other, scope, depth)})"
        if kind == "s" and self.chance(0.25):
            return f"{first} {self.random.choice(('and', 'or'))} {self.condition(kind, scope, depth + 1)}"
        return f"not ({first})" if kind == "s" and self.chance(0.1) else first
