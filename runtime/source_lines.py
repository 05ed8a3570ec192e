"""Lines of generated text in what compilers and runs report, and the lines of the kernel that they came from."""

from __future__ import annotations

import re

from tilewright.artifact import Artifact


def explain(report: str, artifact: Artifact) -> str:
    """A report with every line of the generated text followed by the line of the kernel that it came from."""
    source = {generated: f"{file or artifact.file}:{line}" for generated, file, line in artifact.lines}

    def place(match: re.Match[str]) -> str:
        line = int(match[1])
        while line > 0 and line not in source:
            line -= 1
        return f"{source.get(line, artifact.file)} (.cu line {match[1]})"

    return re.sub(r"\bline (\d+)", place, report.strip())
