"""The same kernel with other names: those that the translator gives to variables of its own in that kernel's text."""

from __future__ import annotations

import ast
import keyword
import random
import re

# Words of the language that a renamed variable would hide, or that stand before "=" in calls.
LANGUAGE = {
    *keyword.kwlist,
    "tl",
    "triton",
    "range",
    "min",
    "max",
    "abs",
    "float",
    "int",
    "mask",
    "other",
    "axis",
    "num_stages",
}
DECLARED = re.compile(r"\b(?:int|auto|unsigned|float|half|double|bool|long|char|short|SharedArrays)\b[&* ]+([a-z]\w*)")
SUBSCRIBED = re.compile(r"\b([a-z]\w*)(?=\[)")
BOUND = re.compile(r"auto& \[([^\]]*)\]")


def with_names_of_text(source: str, text: str, seed: int) -> str:
    """A kernel's source with up to eight of its variables called as something else is in the text `text` of it."""
    rng = random.Random(seed)
    function = next(node for node in ast.parse(source).body if isinstance(node, ast.FunctionDef))
    parameters = {argument.arg for argument in function.args.args}
    names = (n for n in ast.walk(function) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store))
    users = sorted({name.id for name in names} - parameters - LANGUAGE)
    code = re.sub(r"//.*", "", text[text.index('extern "C"') :])
    bound = {name for group in BOUND.findall(code) for name in group.split(", ")}
    ours = sorted({*DECLARED.findall(code), *SUBSCRIBED.findall(code), *bound} - {*users} - parameters - LANGUAGE)
    count = min(len(users), len(ours), rng.randint(1, 8))
    called = dict(zip(rng.sample(users, count), rng.sample(ours, count), strict=True))
    if not called:
        return source
    words = "|".join(map(re.escape, called))
    return re.sub(rf"\b({words})\b", lambda match: called[match[1]], source)
