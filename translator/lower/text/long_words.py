"""Names for what CUDA spells at length: a program's place in the grid as an int, infinities by their bits."""

from __future__ import annotations

import re

from ..context import Context
from .unit import Node, const, every, rewritten, texts_of

NEGATIVE_INFINITY = "__int_as_float(0xff800000)"
INFINITIES = re.compile(r"__int_as_float\(0x[7f]f800000\)")
LAUNCH_WORD = re.compile(r"static_cast<int>\((blockIdx|gridDim)\.([xyz])\)")


def with_launch_words_named(context: Context, body: tuple[Node, ...]) -> tuple[Node, ...]:
    """The body with a name for a program's place in the grid, and for the grid's sides, where it computes with them."""
    found = {word for node in every(body) for text in texts_of(node) for word in LAUNCH_WORD.findall(text)}
    known = {"blockIdx": ("program", "the program's place"), "gridDim": ("num_programs", "how many there are")}
    names = {
        (word, axis): context.constants.place(f"{known[word][0]}_{axis}", f"{word}.{axis}", "", known[word][1])
        for word, axis in sorted(found)
    }
    return rewritten(body, lambda text: LAUNCH_WORD.sub(lambda match: names[match[1], match[2]], text))


def with_infinities_named(context: Context, body: tuple[Node, ...]) -> tuple[tuple[Node, ...], tuple[Node, ...]]:
    """(What declares infinities, which CUDA spells by their bits; the body with their names)."""
    names: dict[str, str] = {}

    def named(match: re.Match[str]) -> str:
        word = "neg_inf" if match[0] == NEGATIVE_INFINITY else "inf"
        return names.setdefault(match[0], names.get(match[0]) or context.names.fresh(word, f"the_{word}"))

    body = rewritten(body, lambda text: INFINITIES.sub(named, text))
    return tuple(const("float", name, text) for text, name in names.items()), body
