"""Kernels from text, each in a file of its own: what users write that no test module could hold."""

from __future__ import annotations

from pathlib import Path
from typing import Any


def written_module(file: Path, text: str) -> dict[str, Any]:
    """What a file of this text defines, with tilewright and its language imported as users do."""
    imports = "import tilewright as triton\nimport tilewright.language as tl\n"
    file.write_text(imports + text, encoding="utf-8")
    namespace: dict[str, Any] = {"__name__": file.stem}
    exec(compile(file.read_text(encoding="utf-8"), str(file), "exec"), namespace)
    return namespace


def written_kernel(file: Path, header: str, body: str) -> Any:
    """The function `kernel` that a header begins, with this body: written to `file`, and run from there."""
    file.write_text(header + "".join(f"    {line}\n" for line in body.split("\n")), encoding="utf-8")
    namespace: dict[str, Any] = {"__name__": file.stem}
    exec(compile(file.read_text(encoding="utf-8"), str(file), "exec"), namespace)
    return namespace["kernel"]
