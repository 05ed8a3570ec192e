"""Names for infinities, which CUDA spells by their bits."""

from __future__ import annotations

import re

from ..context import Context
from .unit import Node, const, rewritten

NEGATIVE_INFINITY = "__int_as_float(0xff800000)"
INFINITIES = re.compile(r"__int_as_float\(0x[7f]f800000\)")


def with_infinities_named(context: Context, body: tuple[Node, ...]) -> tuple[tuple[Node, ...], tuple[Node, ...]]:
    """(What declares infinities, which CUDA spells by their bits; the body with their names)."""
    names: dict[str, str] = {}

    def named(match: re.Match[str]) -> str:
        word = "neg_inf" if match[0] == NEGATIVE_INFINITY else "inf"
        return names.setdefault(match[0], names.get(match[0]) or context.names.fresh(word, f"the_{word}"))

    body = rewritten(body, lambda text: INFINITIES.sub(named, text))
    return tuple(const("float", name, text) for text, name in names.items()), body
