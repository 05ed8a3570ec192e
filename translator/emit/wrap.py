"""Lines of at most 110 columns: long ones break where they bind least, inside the outermost bracket that helps.

At one depth a comma goes before an operator and a loose operator before a tight one; template arguments stay together.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from ..ir.c_tokens import blanked
from ..language.printing import encodable

WIDTH = 110
FIELD_COLUMN = 11
# Where a line may break, the loosest first; commas end a line, operators begin the next.
BREAKS = (
    ("; ",), (", ",), (" ? ", " : "), (" || ",), (" && ",), (" | ",), (" ^ ",), (" & ",),
    (" == ", " != ", " < ", " <= ", " > ", " >= "), (" << ", " >> "), (" + ", " - "), (" * ", " / ", " % "),
)  # fmt: skip
FIRST = frozenset(mark[0] for marks in BREAKS for mark in marks)
TEMPLATE = re.compile(r"\w<(?=[\w ,*/+%:-]+>\()")  # the opening bracket of template arguments of a call


def wrap_code(code: str, indent: int, comment: str = "") -> list[str]:
    """A line at its indent (in columns), continued on further lines where it is too long.

    A comment stands behind it, or above it where the line has no room for both.
    """
    text = " " * indent + code
    if comment:
        line = closed(f"{text}   // {_printable(comment)}")
        return [line] if len(line) <= WIDTH else [*wrap_comment(comment, indent), *wrap_code(code.rstrip(), indent)]
    if len(text) <= WIDTH:
        return [text]
    cut = _best_cut(text, indent)
    if cut is None:
        return [text]
    lines: list[str] = []
    inside: list[int] = []  # of each bracket that is open, the column at which lines within it start
    while cut is not None:
        lines.append(text[: cut[0]].rstrip())
        inside = _inside(lines[-1], inside, cut[1])
        continuation = inside[-1] if inside else indent + 4
        text = " " * continuation + text[cut[0] :].lstrip()
        cut = _best_cut(text, continuation, len(inside)) if len(text) > WIDTH else None
    return [*lines, text]


def _inside(line: str, before: list[int], continuation: int) -> list[int]:
    """The columns at which lines within the brackets start that are open behind a line, given those open `before` it.

    `continuation` is that of the innermost, if the line has opened it.
    """
    found, own = list(before), len(before)  # `own` counts those of lines above that are still open
    for place, character in enumerate(blanked(line)):
        if character in "([{":
            found.append(min(place + 1, max(continuation, WIDTH // 2)))
        elif character in ")]}" and found:
            found.pop()
            own = min(own, len(found))
    return [*found[:-1], continuation] if len(found) > own else found


def _best_cut(line: str, indent: int, opened: int = 0) -> tuple[int, int] | None:
    """Where to break, and the next line's indent: the last of the loosest places at the shallowest bracket depth.

    `opened` counts the brackets that lines above have left open.
    """
    text = blanked(line)  # no string has a place to break, or a bracket
    equals, found = text.find(" = "), _loosest(text, indent, opened)
    assigned = 0 < equals < WIDTH - 2 and "(" not in text[:equals]
    below = (equals + 2, indent + 4) if assigned else None  # the value under its name
    fits = indent + 4 + len(text) - equals - 3 <= WIDTH
    if below and fits and (found is None or found[0][0] > 0):
        return below
    if found is None:
        return below
    (depth, _, position), continuation = found
    if position > WIDTH:
        return below or (position, continuation)
    rest = text[position:].lstrip()
    if continuation + len(rest) <= WIDTH and _closes_at_end(rest):
        return position, continuation  # all that the bracket holds, below its start
    if below and depth > 0 and continuation > WIDTH // 2 and indent + 8 < equals:
        return below
    return position, continuation if continuation <= WIDTH // 2 else indent + 8


def _closes_at_end(text: str) -> bool:
    """Whether a bracket that is open before a text closes at its end."""
    depth = 0
    for place, character in enumerate(text):
        depth += (character in "([{") - (character in ")]}")
        if depth < 0:
            return not text[place:].strip(")]};, ")
    return False


def _loosest(text: str, indent: int, opened: int) -> tuple[tuple[int, int, int], int] | None:
    """((depth, rank, position), continuation column) of the best break; None where there is none.

    Where none leaves a line that is short enough, it is the first.
    """
    candidates: list[tuple[tuple[int, int, int], int]] = []
    columns: list[int] = []
    templates = {match.end() - 1 for match in TEMPLATE.finditer(text)}
    closing: list[bool] = []  # of the open brackets: whether it is a template's
    for position, character in enumerate(text):
        if position >= WIDTH and candidates:
            break
        if character in "([{" or position in templates:
            columns.append(position + 1)
            closing.append(position in templates)
        elif columns and (character in ")]}" or (character == ">" and closing[-1])):
            columns.pop()
            closing.pop()
        elif character in ")]}" and opened:
            opened -= 1
        if character not in FIRST or position <= indent + 8 or (closing and closing[-1]):
            continue
        rank = next((k for k, marks in enumerate(BREAKS) if text.startswith(marks, position)), None)
        if rank is not None:
            after = position + (1 if text[position] in ",;" else 0)
            continuation = columns[-1] if columns else indent + 4
            if after <= WIDTH or not candidates:
                candidates.append(((opened + len(columns), rank, after), continuation))
    if not candidates:
        return None
    depth, rank, _ = min(place for place, _ in candidates)
    return max(one for one in candidates if one[0][:2] == (depth, rank))


def wrap_comment(text: str, indent: int, prefix: str = "// ", continuation: str = "// ") -> list[str]:
    """A comment in as many lines as it takes; a line that ends within the text would end the comment."""
    text = _printable(text)
    lines: list[str] = []
    current = " " * indent + prefix
    empty = True
    for word in text.split(" "):
        if not empty and len(current) + 1 + len(word) > WIDTH:
            lines.append(closed(current))
            current, empty = " " * indent + continuation, True
        if empty and not word:
            continue
        current += word if empty else f" {word}"
        empty = False
    lines.append(closed(current))
    return lines


def field_lines(word: str, lines: Iterable[str]) -> Iterator[str]:
    """A field of the block at the top of a file."""
    for line in lines:
        yield from wrap_comment(line, 0, f"//   {word:<{FIELD_COLUMN}}", "//   " + " " * FIELD_COLUMN)
        word = ""


def _printable(comment: str) -> str:
    return comment if comment.isprintable() else encodable(" ".join(comment.splitlines()))


def closed(comment: str) -> str:
    """The line of a comment, which takes no part of the next line in: C++ reads a line that ends in a backslash on.

    The trigraph of the backslash is one for the compilers that know trigraphs, and a warning of the others.
    """
    line = comment.rstrip().replace("??/", "?? /")
    return f"{line}." if line.endswith("\\") else line
