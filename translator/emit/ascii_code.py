"""Identifiers in ASCII: the assembler takes no others, while Python does. Comments and strings stay as they are, in UTF-8."""

from __future__ import annotations

from ..ir.c_tokens import identifiers, renamed
from ..lower.text.names import ascii_word


def ascii_code(text: str) -> str:
    """The text with every identifier in ASCII, different ones differently."""
    if text.isascii():
        return text
    words = dict.fromkeys(identifiers(text))
    taken = {word for word in words if word.isascii()}
    spelled: dict[str, str] = {}
    for word in words:
        if not word.isascii():
            found = ascii_word(word)
            while found in taken:
                found += "_"
            taken.add(found)
            spelled[word] = found
    return renamed(text, lambda word: spelled.get(word, word))
