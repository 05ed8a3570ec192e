"""Statements of random kernels that are rarer: infinities and no numbers, functions of the user's, pointers that advance."""

from __future__ import annotations

import math
from dataclasses import replace

from random_tile_memory import new_array, store
from random_tile_places import of_data, offsets
from random_tile_steps import TAME, tame
from random_tile_values import INTEGERS, Value, limits
from random_tile_writer import Writer

EXACT = (
    "-{s}", "tl.abs({s})", "{s} + {y}", "{s} - {s}", "{s} * {y}", "tl.maximum({s}, {y})", "tl.minimum({s}, {y})",
    "tl.maximum({s}, {y}, propagate_nan=tl.PropagateNan.ALL)", "tl.minimum({s}, {y}, propagate_nan=tl.PropagateNan.ALL)",
    "tl.where({s} > {y}, {s}, {y})", "tl.where({s} == {s}, {s}, 3.0)", "tl.where(~({s} < {y}), {y}, {s})",
)  # fmt: skip
WIDE = (
    "tl.floor({s})", "tl.ceil({s})", "tl.clamp({s}, -1.0, 1.0)", "tl.clamp({s}, -1.0, 1.0, propagate_nan=tl.PropagateNan.ALL)",
    "tl.where({s} > 1e30, 0.0, {s})", "tl.maximum({s}, 0.0)",
)  # fmt: skip
ROUGH = (
    "tl.exp({s})",
    "tl.sqrt({s})",
    "tl.sigmoid({s})",
    "{s} / {s}",
    "tl.exp2({s})",
    "tl.rsqrt(tl.abs({s}))",
    "1 / {s}",
)
CONDITIONS = ("{s} == {s}", "{s} != {y}", "{s} > {y}", "{s} <= {y}", "~({s} >= {y})", "{s}.to(tl.int1)", "{s} < 1")


def special(w: Writer) -> Value | None:
    """Infinities, zeros with a sign and what is no number: compared, chosen between, reduced, cast."""
    shape = w.shape()
    dtype = w.pick("float32", "float32", "float16", "bfloat16", "float64")
    place = offsets(w, shape)
    if place.high > 20000:
        return None
    name = new_array(w, dtype)
    w.arrays[name].length, w.arrays[name].special = place.high + 1, True
    s, y = w.name("s"), w.name("s")
    w.put(f"{s} = tl.load({name}_ptr + {place.text})")
    w.put(f"{y} = {w.pick(f'tl.load({name}_ptr + ({place.high} - ({place.text})))', f'tl.abs({s})', f'-{s}')}")
    kind = w.pick("exact", "exact", "wide", "rough", "condition", "condition", "reduce", "cast")
    value = Value("", dtype, shape, -4, 4)
    if kind == "condition":
        return w.let(w.pick(*CONDITIONS).format(s=s, y=y), replace(value, dtype="int1", low=0, high=1))
    if kind in ("wide", "rough") and dtype not in ("float32", "float64"):
        kind = "exact"
    if kind == "reduce" and shape and dtype in ("float32", "float64"):
        axis = w.number(0, len(shape) - 1)
        text = f"tl.{w.pick('max', 'min', 'sum')}({s}, axis={axis})"
        made = replace(value, shape=shape[:axis] + shape[axis + 1 :])
    elif kind == "cast":
        to = w.pick("float16", "bfloat16", "float32")
        eight = (
            w.pick("", "", ".to(tl.float8e4nv)", ".to(tl.float8e5)")
            if dtype in ("float32", "float16", "bfloat16")
            else ""
        )
        text, made = f"{s}{eight}.to(tl.{to})", replace(value, dtype=to)
    else:
        text = w.pick(*{"wide": WIDE, "rough": ROUGH}.get(kind, EXACT))
        widened = dtype == "bfloat16" and ("maximum" in text or "minimum" in text)
        made = replace(value, dtype="float32" if widened else dtype, rough=kind == "rough")
        text = text.format(s=s, y=y)
    stored = w.let(text, made)
    w.values.pop()
    store(w, stored)
    return None


FUNCTIONS = {
    "ordered": ("x, y", ["if x.dtype == tl.float32:", "    return tl.minimum(x, y), tl.maximum(x, y)", "else:",
                         "    return tl.minimum(x, y), tl.maximum(x, y)"]),
    "swapped": ("x, y", ["return y, x"]),
    "steps": ("x, y", ["z = x", "for i in range(3):", "    z = tl.where(i == 1, y, z)", "    z = tl.maximum(z, x)",
                       "return z, x"]),
    "guarded": ("x, y", ["z = x", "if tl.program_id(0) % 2 == 1:", "    z = y", "return z, ordered(x, y)[0]"]),
    "either": ("x, y", ["if tl.program_id(0) % 2 == 1:", "    return x, y", "return y, x"]),
}  # fmt: skip


def called(w: Writer) -> Value | None:
    """Two tiles given to a function that returns two."""
    x = w.some(lambda v: v.dtype in (*INTEGERS, "float32"))
    y = w.some(lambda v: x is not None and v.shape == x.shape and v.dtype == x.dtype and v.name != x.name)
    if x is None or y is None:
        return None
    kind = w.pick(*FUNCTIONS)
    for name in ("ordered", kind):
        parameters, lines = FUNCTIONS[name]
        w.helpers[name] = f"def {name}({parameters}):\n" + "".join(f"    {line}\n" for line in lines)
    names = w.name(), w.name()
    w.put(f"{names[0]}, {names[1]} = {kind}({x.name}, {y.name})")
    united = replace(
        x, low=min(x.low, y.low), high=max(x.high, y.high), unit=max(x.unit, y.unit), rough=x.rough or y.rough
    )
    w.values += [replace(united, name=name) for name in names]
    return w.values[-1]


def advanced(w: Writer) -> Value | None:
    """A loop in which a pointer, or offsets, advance; what is loaded is added up."""
    shape = w.shape()
    place, trips, step = offsets(w, shape), w.number(0, 6), w.pick(1, 3, 16, 32)
    if w.most_trips > 8 or place.high + trips * step > 30000:
        return None
    dtype = w.pick("int32", "int32", "float32", "float16", "int64", "uint8")
    name = new_array(w, dtype)
    array, p, total, k = w.arrays[name], w.name("p"), w.name(), w.name("k")
    back = w.chance(0.2)
    array.length = place.high + max(trips - 1, 0) * step + 1
    start = f" + {(trips - 1) * step}" if back and trips else ""
    change = f"{'-' if back else '+'}= {w.integer(step) if w.chance(0.4) else step}"
    held = "int32" if dtype == "uint8" else "float32" if dtype == "float16" else dtype
    w.put(f"{total} = tl.zeros({list(shape)}, tl.{held})")
    whole = w.chance(0.5)
    w.put(f"{p} = {name}_ptr + ({place.text}){start}" if whole else f"{p} = {place.text}{start}")
    at = w.indent
    stages = w.pick("", "", ", num_stages=3")
    w.put(w.pick(f"for {k} in tl.range({trips}{stages}):", f"for {k} in tl.range(0, {w.integer(trips)}{stages}):"))
    value = Value("", dtype, shape, array.low, array.high, array.unit)
    loaded = w.name()
    w.put(f"{loaded} = tl.load({p if whole else f'{name}_ptr + {p}'})")
    text, _ = tame(w, loaded, value)
    w.put(f"{total} += {text}.to(tl.{held})" if dtype != held else f"{total} += {text}", f"{p} {change}")
    w.leave(at)
    reach = TAME * max(trips, 1)
    bounds = (0, reach) if held.startswith("int") else (-reach, reach)
    w.values.append(Value(total, held, shape, *bounds, array.unit if held == "float32" else 0))
    return w.values[-1]


def chosen(w: Writer) -> Value | None:
    """A load from one of two arrays, element by element or for all alike; or of a scalar's place that a mask widens."""
    shape = w.shape()
    dtype = w.pick("int32", "float32", "float16", "int64")
    first, second = offsets(w, shape), offsets(w, shape)
    if max(first.high, second.high) > 30000:
        return None
    test = of_data(w, shape) if w.chance(0.5) else None
    test = test or f"pid < {w.number(0, w.programs)}"
    names = new_array(w, dtype), new_array(w, dtype)
    for name, place in zip(names, (first, second), strict=True):
        w.arrays[name].length = place.high + 1
    one, two = (f"{name}_ptr + ({place.text})" for name, place in zip(names, (first, second), strict=True))
    low, high = (pick(w.arrays[name].__dict__[end] for name in names) for pick, end in ((min, "low"), (max, "high")))
    unit = max(w.arrays[name].unit for name in names)
    return w.let(f"tl.load(tl.where({test}, {one}, {two}))", Value("", dtype, shape, low, high, unit))


def spread(w: Writer) -> Value | None:
    """A scalar, or a row, stored into a tile; or a scalar loaded once for every element of a mask."""
    v = w.some(lambda v: v.shape == () and v.dtype in (*INTEGERS, "float32") and not v.rough)
    shape = w.shape()
    if v is None or not shape or w.programs * w.most_trips * math.prod(shape) > 1 << 16:
        return None
    store(w, replace(v, shape=shape))
    return None


def hinted(w: Writer) -> Value | None:
    """What is true of a scalar or a tile is told."""
    v = w.some(lambda v: v.name[0] == "r" and len(v.shape) == 1)
    if v is None or w.chance(0.5):
        return None
    side = v.shape[0] & -v.shape[0]
    return w.let(f"tl.max_contiguous(tl.multiple_of({v.name}, {side}), {side})", replace(v, name=""))


def wide_integers(w: Writer) -> Value | None:
    """Numbers of more than 32 bits, and back."""
    v = w.some(lambda v: v.dtype in ("int32", "int16", "uint8") and math.prod(v.shape) <= 8192)
    if v is None:
        return None
    big = w.pick(2**31, 2**33, 3 * 2**40)
    factor = w.integer(big) if w.chance(0.5) else str(big)
    low, high = limits("int64")
    made = w.let(f"{v.name}.to(tl.int64) * {factor}", Value("", "int64", v.shape, v.low * big, v.high * big))
    if made.low == low or made.high == high:
        return made
    to = w.pick("int32", "int64")
    return w.let(f"({made.name} // {factor}).to(tl.{to})", Value("", to, v.shape, v.low, v.high))
