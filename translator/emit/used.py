"""Which of the helpers that lowerings asked for a file needs."""

from __future__ import annotations

import re

from ..ir.c_tokens import identifiers

# The types, functions and variables that a helper defines.
DEFINED = re.compile(
    r"^(?:(?:struct(?: alignas\(\d+\))?|using|template <.*> struct) (\w+)"
    r"|(?:static )?__device__ [^(\[\n]*?(\w+)(?:<[^>]*>)?[(\[])",
    re.M,
)


def used_helpers(helpers: list[str], words: set[str]) -> list[str]:
    """The helpers among some words, or that a helper below them mentions: a lowering may ask for one and then do without."""
    kept: list[str] = []
    mentioned = set(words)
    for helper in reversed(helpers):
        if mentioned & {type_ or function for type_, function in DEFINED.findall(helper)}:
            kept.insert(0, helper)
            mentioned.update(identifiers(helper))
    return kept
