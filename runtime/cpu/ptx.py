"""Takes PTX out of generated text: what a helper does in PTX is done by a function of our headers.

In: the text. Out: the same text, line for line, in which a helper that is PTX is gone, so that the function of its name in
`*_words.h` takes its place. The names of mma and wgmma helpers do not tell their types; such a helper stays, with a call
in place of the instruction, whose types and operands are read from the PTX itself.
"""

from __future__ import annotations

import functools
import re
from importlib import resources
from pathlib import Path

from tilewright.diagnostics import ToolchainError
from tilewright.ir.c_tokens import identifiers

HELPER = re.compile(
    r"^(?P<template>template <[^\n]*>\n)?(?P<head>__device__ [^\n]*?(?P<name>\w+)\([^{}]*)\)\n"
    r"\{\n(?P<body>(?:(?!\}\n).*\n)*?)\}\n",
    re.MULTILINE,
)
PTX_WORDS = frozenset(("asm", "shared_address", "__cvta_generic_to_shared"))  # what a helper in PTX has, or calls
MMA_DOUBLE = re.compile(r"\"mma\.sync\.aligned\.m(8|16)n8k(\d+)\.row\.col\.f64\.f64\.f64\.f64 ")
MMA = re.compile(r"\"mma\.sync\.aligned\.m16n8k(\d+)\.row\.col\.\w+\.(\w+)\.(\w+)\.\w+ ")
WGMMA = re.compile(r"\"wgmma\.mma_async\.sync\.aligned\.m64n(\d+)k(\d+)\.\w+\.(\w+)\.(\w+) ")
WGMMA_OPERANDS = re.compile(r"\"(\{[^}]*\}|%\d+), %\d+((?:, \d)+);\"")
NO_CHANGE = re.compile(r'asm volatile\("(mov\.b32 %0, %1;)?" :')  # of helpers that only tell the compiler something


@functools.cache
def words() -> str:
    """The text of our headers that define words of PTX."""
    folder = Path(str(resources.files("tilewright.runtime.cpu")))
    names = [*sorted(folder.glob("*_words.h"))]
    return "\n".join(path.read_text(encoding="utf-8") for path in names)


def without_ptx(text: str) -> str:
    """The text for the host's compiler; its lines keep their numbers.

    Raises:
      ToolchainError: for a helper in PTX that the CPU run does not know.
    """
    return HELPER.sub(_replaced, text)


def _replaced(match: re.Match[str]) -> str:
    body = match["body"]
    if PTX_WORDS.isdisjoint(identifiers(body)):
        return match[0]
    lines = match[0].count("\n")
    if NO_CHANGE.search(body):
        return f"{match['template'] or ''}{match['head']}) {{}}" + "\n" * (lines - _height(match))
    call = _multiplication(body, match["name"])
    if call is not None:
        head = f"{match['template'] or ''}{match['head']}, int line = __builtin_LINE())"
        return f"{head} {{ {call} }}" + "\n" * (lines - _height(match))
    if not re.search(rf"\b{match['name']}\b", words()):
        raise ToolchainError(f"the CPU run does not know the PTX of the helper {match['name']}")
    return "\n" * lines


def _height(match: re.Match[str]) -> int:
    """The line breaks within a helper's head."""
    return ((match["template"] or "") + match["head"]).count("\n")


def _multiplication(body: str, name: str) -> str | None:
    """The call that does what the mma or wgmma in `body` does; None without one."""
    if found := MMA_DOUBLE.search(body):
        rows, k = found.groups()
        places = "upper, lower" if rows == "16" else "sums, nullptr"
        return f"tilewright::mma_double<{rows}, {k}>({places}, a, b, line);"
    if found := MMA.search(body):
        k, a_type, b_type = found.groups()
        return f"tilewright::mma<tilewright::{a_type}, tilewright::{b_type}, {k}>(upper, lower, a, b, line);"
    if not (found := WGMMA.search(body)):
        return None
    n, k, a_type, b_type = found.groups()
    operands = WGMMA_OPERANDS.search(body)
    flags = [int(flag) for flag in re.findall(r"\d", operands[2])] if operands else []
    scales, transposed = flags[:3], flags[3:]
    if not operands or any(scale != 1 for scale in scales):
        raise ToolchainError(f"the CPU run does not know the wgmma of the helper {name}: it has other scales than 1")
    if operands[1].startswith("{"):
        transposed = [0, *transposed]
    a_transposed, b_transposed = (str(bool(flag)).lower() for flag in (*transposed, 0, 0)[:2])
    types = f"tilewright::{a_type}, tilewright::{b_type}, {n}, {k}, {a_transposed}, {b_transposed}"
    return f"tilewright::wgmma<{types}>(acc[0], acc[1], a, b, line);"
