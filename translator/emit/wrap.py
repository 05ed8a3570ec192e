"""Lines of at most 110 columns: long ones break after a comma or before an operator, inside the outermost bracket."""

from __future__ import annotations

WIDTH = 110
OPERATORS = (" && ", " || ", " ? ", " : ", " + ", " - ", " * ", " / ")


def wrap_code(line: str, indent: int) -> list[str]:
    """The line at its indent (in columns), continued on further lines where it is too long."""
    text = " " * indent + line
    if len(text) <= WIDTH:
        return [text]
    code, separator, comment = line.partition("   // ")
    if separator:
        return [*wrap_comment(comment, indent), *wrap_code(code, indent)]
    cut = _best_cut(text, indent)
    if cut is None:
        return [text]
    continuation, lines = cut[1], []
    while cut is not None:
        lines.append(text[: cut[0]].rstrip())
        text = " " * continuation + text[cut[0] :].lstrip()
        cut = _best_cut(text, continuation) if len(text) > WIDTH else None
    return [*lines, text]


def _best_cut(text: str, indent: int) -> tuple[int, int] | None:
    """Where to break: the last place of the shallowest bracket depth that leaves enough, and the next line's indent."""
    candidates: list[tuple[int, int, int]] = []  # (depth, position, continuation column)
    columns: list[int] = []
    quoted = False
    for position, character in enumerate(text[:WIDTH]):
        if character == '"' and text[position - 1] != "\\":
            quoted = not quoted
        if quoted:
            continue
        if character in "([{":
            columns.append(position + 1)
        elif character in ")]}" and columns:
            columns.pop()
        continuation = columns[-1] if columns else indent + 4
        if position <= indent + 8:
            continue
        if text.startswith(", ", position) and position + 1 <= WIDTH:
            candidates.append((len(columns), position + 1, continuation))
        elif any(text.startswith(operator, position) for operator in OPERATORS):
            candidates.append((len(columns), position, continuation))
    if not candidates:
        return None
    shallow = min(depth for depth, _, _ in candidates)
    _, position, continuation = max(c for c in candidates if c[0] == shallow)
    return position, min(continuation, WIDTH // 2)


def wrap_comment(text: str, indent: int, prefix: str = "// ", continuation: str = "// ") -> list[str]:
    """A comment in as many lines as it takes."""
    lines: list[str] = []
    current = " " * indent + prefix
    empty = True
    for word in text.split(" "):
        if not empty and len(current) + 1 + len(word) > WIDTH:
            lines.append(current.rstrip())
            current, empty = " " * indent + continuation, True
        current += word if empty else f" {word}"
        empty = False
    lines.append(current.rstrip())
    return lines
