"""Statements of random kernels that call functions of scalars, which keep their names: random ones, and hashes."""

from __future__ import annotations

import re
from dataclasses import replace

from random_tile_steps import binary, cast, unary, with_number
from random_tile_values import DIGITS, INTEGERS, Value, limits
from random_tile_writer import Writer

TYPES = (*INTEGERS, *DIGITS, "int1")


HASHES = {
    "mixed": ("h", ["h = h * 1103515245 + 12345", "return h ^ (h >> 16)"]),
    "part_of_square": ("x", ["return (x * x) >> 3"]),
    "square": ("x", ["return x * x"]),
    "is_below_next": ("x", ["return (x + 0x7FFF_0000 > x).to(x.dtype)"]),
    "shifted_sum": ("h", ["h = (h + 0x165667B1) + (h << 5)", "return (h ^ 0x27D4EB2F) // 7"]),
}
ASKED = ("{}", "{} >> 5", "({} > 3).to(tl.int32)", "{} // 11", "tl.abs({})", "({} & 0x7FFF) + 1", "{} * 69069 + 1")


def hashed(w: Writer) -> Value | None:
    """Integers that are mixed until they overflow: by a function that keeps its name, in a loop, or in an expression."""
    v = w.some(lambda v: v.dtype in ("int32", "int64"))
    if v is None:
        return None
    kind = w.pick(*HASHES)
    text = f"{kind}({v.name})"
    parameter, lines = HASHES[kind]
    if w.chance(0.3):
        text = f"({v.name} * 1103515245 + {w.pick(12345, 0x7FFFFFFF)})"
    else:
        w.helpers[kind] = f"def {kind}({parameter}):\n" + "".join(f"    {line}\n" for line in lines)
    text = w.pick(*ASKED).format(text)
    dtype = "int32" if text.endswith(".to(tl.int32)") else v.dtype
    return w.let(text, Value("", dtype, v.shape, *limits(dtype)))


def written(w: Writer) -> Value | None:
    """A function of up to three numbers, called with tiles of one shape and scalars."""
    first = w.some(lambda v: v.dtype in TYPES)
    if first is None:
        return None
    others = [w.some(lambda v: v.dtype in TYPES and v.shape in (first.shape, ())) for _ in range(w.pick(0, 1, 1, 2))]
    given = [first, *(v for v in others if v is not None)]
    parameters = [replace(v, name=w.name(), shape=()) for v in given]
    outside = w.lines, w.indent, w.values
    w.lines, w.indent, w.values = [], 1, list(parameters)
    if w.chance(0.3) and not first.shape and first.dtype in INTEGERS:
        w.put(f"if {parameters[0].name} {w.pick('<', '==', '>=')} {w.number(0, 3)}:", f"return {parameters[0].name}")
        w.leave(1)
        result: Value | None = parameters[0]
    else:
        result = None
    for _ in range(w.number(1, 5)):
        w.pick(binary, binary, with_number, unary, cast)(w)
    fitting = [v for v in w.values if result is None or v.dtype == result.dtype]
    last = fitting[-1]
    w.put(f"return {last.name}")
    body, (w.lines, w.indent, w.values) = w.lines, outside
    names = [v.name for v in parameters]
    used = sorted(set(re.findall(r"\b(?:pid|n\d+)\b", "\n".join(body))))
    name = w.name("f")
    w.helpers[name] = f"def {name}({', '.join([*names, *used])}):\n" + "".join(f"{line}\n" for line in body)
    low, high = (min(result.low, last.low), max(result.high, last.high)) if result else (last.low, last.high)
    text = f"{name}({', '.join([*(v.name for v in given), *used])})"
    tiles = {own.name for own, v in zip(parameters, given, strict=True) if v.shape}
    for target, _, line in (line.partition(" = ") for line in body):
        if not tiles.isdisjoint(re.findall(r"\w+", line)):
            tiles.add(target.strip())
    shape = first.shape if last.name in tiles else ()
    return w.let(text, replace(last, low=low, high=high, shape=shape))
