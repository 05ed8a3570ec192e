"""The element at an address, as a reader expects it: `x_ptr[offset]` rather than `*(x_ptr + offset)`."""

from __future__ import annotations

import re

from .spell import Text

LONG = "static_cast<long long>("


def pointed_to(address: Text) -> Text:
    """The element at an address: `x_ptr[offset]` where the offset is one term, or a sum of 64 bits from its start.

    A sum of 32 bits may wrap where adding its terms to the pointer one by one does not; it stays as it is.
    """
    if address.operator != "+":
        return Text(f"*{address.within(15)}" if not address.operator else f"*({address.text})", 15)
    base, _, offset = address.text.partition(" + ")
    if base.isidentifier() and (offset.startswith(LONG) or not re.search(r" [-+] ", _outside_brackets(offset))):
        return Text(f"{base}[{offset}]")
    return Text(f"*({address.text})", 15)


def _outside_brackets(text: str) -> str:
    """A text without what stands in brackets."""
    while (shorter := re.sub(r"\([^()]*\)|\[[^\[\]]*\]", "", text)) != text:
        text = shorter
    return text
