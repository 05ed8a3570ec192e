"""Which named constants a file declares, and their lines."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from ..ir.c_tokens import code_of, identifiers
from ..lower.text.unit import TOPICS, Constant
from .wrap import wrap_code, wrap_comment

COMMENT_COLUMN = 64
OF_FUNCTION = re.compile(r"__forceinline__ [\w:<>,* ]+\(([^()]*)\)")


def used_constants(constants: tuple[Constant, ...], words: set[str], helpers: Iterable[str]) -> list[Constant]:
    """The constants that a text and its helpers need, with those that they are computed from, each once.

    `words` are those of the text, in which alone names of the user mean something: `b` in a helper is an operand of its own, and
    so is `COLS` in a helper with a template parameter of that name.
    """
    by_name = {constant.name: constant for constant in constants}
    theirs = {word for one in helpers for word in {*identifiers(one)} - {*_parameters(code_of(one))}}
    needed = [name for name, one in by_name.items() if name in words or (one.topic != "user" and name in theirs)]
    pending = list(needed)
    while pending:
        for word in identifiers(by_name[pending.pop()].value):
            if word in by_name and word not in needed:
                needed.append(word)
                pending.append(word)
    by_topic = sorted((by_name[name] for name in by_name if name in needed), key=lambda c: TOPICS.index(c.topic))
    return _in_order_of_use(by_topic)


def _in_order_of_use(constants: list[Constant]) -> list[Constant]:
    """The same constants, each after those that its value mentions."""
    placed: list[Constant] = []
    names = {constant.name for constant in constants}
    mentioned = {constant.name: names.intersection(identifiers(constant.value)) for constant in constants}
    while len(placed) < len(constants):
        done = {constant.name for constant in placed}
        for constant in constants:
            if constant.name not in done and mentioned[constant.name] <= done:
                placed.append(constant)
                break
    return placed


def values_in_code(chosen: list[tuple[str, dict[str, Any]]], helpers: list[str]) -> Iterator[str]:
    """The names in what templates of helpers were given, without comments, a function's own parameters and a template's."""
    for (_, values), helper in zip(chosen, helpers, strict=True):
        code = code_of(helper)
        own = {name for given in OF_FUNCTION.findall(code) for name in re.findall(r"(\w+)(?:,|$)", given)}
        own.update(_parameters(code))
        texts = (text for text in map(str, values.values()) if text in code or text not in helper)
        yield from (word for text in texts for word in identifiers(text) if word not in own)


def constant_lines(constant: Constant) -> list[str]:
    """The declaration, with its comment beside it or above it, below what else is said of it."""
    text = f"constexpr {constant.ctype} {constant.name} = {constant.value};"
    above = [line for comment in constant.above for line in wrap_comment(comment, 0)]
    if not constant.comment:
        return [*above, text]
    return [*above, *wrap_code(f"{text:<{COMMENT_COLUMN - 3}}", 0, constant.comment)]


def _parameters(helper: str) -> list[str]:
    """The names of a helper's template parameters."""
    return [name for line in re.findall(r"template <(.*)>", helper) for name in re.findall(r"(\w+)(?:,|$)", line)]
