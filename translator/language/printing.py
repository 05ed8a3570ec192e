"""The fixed parts of the lines that `tl.device_print` writes; kernels in the wild have their output parsed."""

from __future__ import annotations


def printed_prefix(prefix: str, has_values: bool) -> str:
    """What stands between the index and the value: the user's prefix, a colon before values, and a space in front."""
    prefix = encodable(prefix)
    if has_values:
        prefix = f"{prefix.removesuffix(' ').removesuffix(':')}: "
    return f" {prefix}" if len(prefix) > 2 and not prefix.startswith(" ") else prefix


def encodable(text: str) -> str:
    """The text with an escape in the place of half a surrogate pair, of which Python's strings may consist and no file can."""
    return text if text.isascii() else text.encode(errors="backslashreplace").decode()


def index_width(side: int) -> int:
    """How many characters an index along an axis of `side` elements takes."""
    return len(str(side - 1))
