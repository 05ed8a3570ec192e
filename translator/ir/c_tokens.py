"""What of a text in C++ is code: all but strings, characters and comments, in which the user's own words may stand.

Comments quote the user's lines, and `tl.device_print` and `tl.device_assert` have strings: both may say `cols[0]` or
`__launch_bounds__(64)` without that being a name or a qualifier. So whoever looks for names in generated text, or changes some,
does it by way of these functions. They are asked of every line of every kernel: most lines are nothing but code, which a search
for four marks tells.
"""

from __future__ import annotations

import re
from collections.abc import Callable

STRING = r'"(?:[^"\\\n]|\\.)*"'
SILENT = re.compile(rf"({STRING}|'(?:[^'\\\n]|\\.)*'|//[^\n]*|/\*.*?\*/)", re.DOTALL)  # what is no code
# Names that are not ASCII are those of compile-time values, until `ascii_code`. Of the marks that Python takes in them \w has
# none, and Python takes 20 ms to compile a range that ends with Unicode: so these are all characters but the others of ASCII.
FIRST, FURTHER = r"[^\x00-@\[-^`{-\x7f]", r"[^\x00-/:-@\[-^`{-\x7f]"
NAME = rf"(?<![^\x00-\-/:-@\[-^`{{-\x7f]){FIRST}{FURTHER}*"  # no member, `x` in `threadIdx.x`, nor a number's suffix, `1.0f`
IDENTIFIER = re.compile(NAME)
PIECE = re.compile(rf"{STRING}|\d[\w.]*|\.[A-Za-z_]\w*|{NAME}|[\x00-!#-\-/:-@\[-^`{{-\x7f]+|.", re.DOTALL)


def is_code(text: str) -> bool:
    """Whether nothing in a text is a string, a character or a comment."""
    return '"' not in text and "//" not in text and "'" not in text and "/*" not in text


def code_of(text: str) -> str:
    """The text with a space in the place of every string, character and comment."""
    return text if is_code(text) else SILENT.sub(" ", text)


def in_code(text: str, change: Callable[[str], str]) -> str:
    """The text with its code changed, piece by piece where something stands in between."""
    if is_code(text):
        return change(text)
    parts = SILENT.split(text)
    parts[::2] = map(change, parts[::2])
    return "".join(parts)


def identifiers(text: str) -> list[str]:
    """The names in the code of a text, each as often as it is there."""
    return IDENTIFIER.findall(code_of(text))


def renamed(text: str, name: Callable[[str], str]) -> str:
    """The text with another name for every identifier in its code."""
    return in_code(text, lambda code: IDENTIFIER.sub(lambda match: name(match[0]), code))


def pieces(code: str) -> list[str]:
    """The words of a line of code and what stands between them, a string as a whole; together they are the line."""
    return PIECE.findall(code)


def blanked(code: str) -> str:
    """Code of the same length, in which strings and characters say nothing."""
    return code if is_code(code) else SILENT.sub(lambda match: f'"{"_" * (len(match[0]) - 2)}"', code)


def has_comment(line: str) -> bool:
    """Whether a comment ends a line, or is all of it."""
    return _comment(line) is not None


def split_comment(line: str) -> tuple[str, str]:
    """The code of a line and the comment behind it, without its mark; "" where there is none."""
    match = _comment(line)
    return (line, "") if match is None else (line[: match.start()].rstrip(), match[0][2:].strip())


def _comment(line: str) -> re.Match[str] | None:
    if "//" not in line:
        return None
    return next((match for match in SILENT.finditer(line) if match[0].startswith("//")), None)
