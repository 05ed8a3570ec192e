"""What a text needs: of the helpers and constants that lowerings asked for, those that something mentions."""

from __future__ import annotations

import re
from collections.abc import Iterable

from ..lower.unit import TOPICS, Constant

# The types and functions that a helper defines.
DEFINED = re.compile(
    r"^(?:(?:struct(?: alignas\(\d+\))?|using|template <.*> struct) (\w+)|__device__ [^(\n]*?(\w+)\()", re.MULTILINE
)


def words_in(text: str) -> list[str]:
    """The names in a line of code."""
    return re.findall(r"[A-Za-z_]\w*", re.sub(r"//.*", "", text))


def _parameters(helper: str) -> list[str]:
    """The names of a helper's template parameters."""
    return [name for line in re.findall(r"template <(.*)>", helper) for name in re.findall(r"(\w+)(?:,|$)", line)]


def used_helpers(helpers: list[str], text: str) -> list[str]:
    """The helpers that a text, or a helper below them, mentions: a lowering may ask for one and then do without."""
    kept: list[str] = []
    mentioned = set(words_in(text))
    for helper in reversed(helpers):
        if mentioned & {type_ or function for type_, function in DEFINED.findall(helper)}:
            kept.insert(0, helper)
            mentioned.update(words_in(helper))
    return kept


def used_constants(constants: tuple[Constant, ...], text: str, helpers: Iterable[str]) -> list[Constant]:
    """The constants that a text and its helpers need, with those that they are computed from, each once.

    Names of the user mean something in the text alone: `b` in a helper is an operand of its own, and so is `COLS` in a
    helper with a template parameter of that name.
    """
    by_name = {constant.name: constant for constant in constants}
    words, theirs = set(words_in(text)), {word for one in helpers for word in {*words_in(one)} - {*_parameters(one)}}
    needed = [name for name, one in by_name.items() if name in words or (one.topic != "user" and name in theirs)]
    pending = list(needed)
    while pending:
        for word in re.findall(r"[A-Za-z_]\w*", by_name[pending.pop()].value):
            if word in by_name and word not in needed:
                needed.append(word)
                pending.append(word)
    by_topic = sorted((by_name[name] for name in by_name if name in needed), key=lambda c: TOPICS.index(c.topic))
    return _in_order_of_use(by_topic)


def _in_order_of_use(constants: list[Constant]) -> list[Constant]:
    """The same constants, each after those that its value mentions."""
    placed: list[Constant] = []
    names = {constant.name for constant in constants}
    while len(placed) < len(constants):
        done = {constant.name for constant in placed}
        for constant in constants:
            mentioned = set(re.findall(r"[A-Za-z_]\w*", constant.value)) & names
            if constant.name not in done and mentioned <= done:
                placed.append(constant)
                break
    return placed
