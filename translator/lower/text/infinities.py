"""Names for infinities, which CUDA spells by their bits."""

from __future__ import annotations

import re

from ..context import Context
from .literals import infinity_bits
from .unit import Node, const, rewritten

WORDS = {infinity_bits(True): "neg_inf", infinity_bits(False): "inf"}
INFINITY = re.compile("|".join(map(re.escape, WORDS)))


def with_infinities_named(context: Context, body: tuple[Node, ...]) -> tuple[tuple[Node, ...], tuple[Node, ...]]:
    """(What declares those that the body mentions, in the order of the text; the body with their names)."""
    names: dict[str, str] = {}

    def named(match: re.Match[str]) -> str:
        bits = match[0]
        if bits not in names:
            names[bits] = context.names.fresh(WORDS[bits], f"the_{WORDS[bits]}")
        return names[bits]

    body = rewritten(body, lambda text: INFINITY.sub(named, text))
    return tuple(const("float", name, bits) for bits, name in names.items()), body
