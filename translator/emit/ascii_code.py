"""Identifiers in ASCII: the assembler takes no others, while Python does. Comments and strings stay as they are, in UTF-8."""

from __future__ import annotations

import re

from ..lower.text.names import ascii_word

TOKENS = re.compile(r'//[^\n]*|"(?:[^"\\\n]|\\.)*"|(?:\w|[^\x00-\x7f])+')


def ascii_code(text: str) -> str:
    """The text with every identifier in ASCII, different ones differently."""
    if text.isascii():
        return text
    words = dict.fromkeys(word for word in TOKENS.findall(text) if word[0] not in '/"')
    taken = {word for word in words if word.isascii()}
    spelled: dict[str, str] = {}
    for word in words:
        if not word.isascii():
            found = ascii_word(word)
            while found in taken:
                found += "_"
            taken.add(found)
            spelled[word] = found
    return TOKENS.sub(lambda match: spelled.get(match[0], match[0]), text)
