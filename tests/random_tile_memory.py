"""Statements of random kernels that touch memory: loads, stores, updates in place, atomics."""

from __future__ import annotations

import math
from dataclasses import replace

from random_tile_places import Mask, mask, offsets
from random_tile_steps import tame
from random_tile_values import DIGITS, EIGHT_BIT, INTEGERS, Value, is_exact, limits
from random_tile_writer import Array, Writer

LARGEST = 60000  # elements of an array that is read
MOST_STORED = 1 << 18
LOADS = ('eviction_policy="evict_first"', 'eviction_policy="evict_last"', 'cache_modifier=".cg"', 'cache_modifier=".ca"',
         "volatile=True")  # fmt: skip
STORES = ('cache_modifier=".cs"', 'cache_modifier=".wt"', 'eviction_policy="evict_last"')
ATOMICS = {
    "add": ("int32", "int64", "uint32", "uint64", "float32", "float16", "bfloat16", "float64"),
    "max": ("int32", "int64", "uint32", "uint64", "float32"),
    "min": ("int32", "int64", "uint32", "uint64", "float32"),
    "and": ("int32", "uint32", "int64"),
    "or": ("int32", "uint64", "int64"),
    "xor": ("int32", "uint32", "int64"),
    "xchg": ("int32", "uint64", "float32"),
    "cas": ("int32", "int64", "uint32"),
}


def new_array(w: Writer, dtype: str) -> str:
    """An array that the kernel reads; returns its name."""
    low, high, unit = 0.0, 0.0, 0
    if dtype in INTEGERS:
        least, most = limits(dtype)
        low, high = w.pick((0, 7), (0, 60), (-5, 5), (least, most)) if least else w.pick((0, 7), (0, 60), (least, most))
    elif dtype != "int1":
        unit = w.pick(0, 0, 1, 2)
        low, high = w.pick((-4, 4), (0, 4), (-1, 1))
    name = w.name("a")
    w.arrays[name] = Array(
        dtype, max(low, limits(dtype)[0]) if dtype in INTEGERS else low, high, unit, skip=w.pick(0, 0, 0, 0, 1, 3)
    )
    if dtype == "int1":
        w.arrays[name].high = 1
    return name


def load(w: Writer) -> Value | None:
    """A tile or a scalar from an array that the kernel does not write."""
    shape = w.shape()
    dtype = w.pick(
        *["float32"] * 5, *["float16"] * 3, *["int32"] * 5, "bfloat16", *INTEGERS, "float64", "int1", *EIGHT_BIT
    )
    place = offsets(w, shape)
    chosen = mask(w, shape, place)
    needed = place.high + 1 if chosen is None or chosen.limit is None else chosen.limit
    if needed > LARGEST:
        return None
    known = [name for name, array in w.arrays.items() if array.dtype == dtype and not array.written]
    name = w.pick(*known) if known and w.chance(0.6) else new_array(w, dtype)
    array = w.arrays[name]
    array.length = max(array.length, needed)
    low, high, unit = array.low, array.high, array.unit
    pointer = _pointer(w, name, place.text)
    parts = [pointer]
    if chosen is not None:
        parts.append(f"mask={chosen.text}")
        if w.chance(0.6):
            other = _other(w, array)
            parts.append(f"other={other}")
            low, high = min(low, float(other)), max(high, float(other))
            unit = max(unit, 1)
        else:
            low, high = min(low, 0), max(high, 0)
    if w.chance(0.15):
        parts.append(w.pick(*LOADS))
    text = f"tl.load({', '.join(parts)})"
    if dtype in EIGHT_BIT:
        text, dtype = f"{text}.to(tl.{w.pick('float32', 'float16')})", ""
        dtype = text.rsplit(".", 1)[1][:-1]
    if dtype in INTEGERS:
        low, high = int(low), int(high)
    return w.let(text, Value("", dtype, shape, low, high, unit if dtype in DIGITS else 0))


def _pointer(w: Writer, name: str, text: str) -> str:
    if w.chance(0.15):
        pointer = w.name("p")
        w.put(
            f"{pointer} = {name}_ptr + {text}"
            if "arange" in text or w.chance(0.5)
            else f"{pointer} = {name}_ptr + ({text})"
        )
        return pointer
    return f"{name}_ptr + {text}" if w.chance(0.7) else f"{name}_ptr + ({text})"


def _other(w: Writer, array: Array) -> str:
    if array.dtype == "int1":
        return "0"
    if array.dtype in INTEGERS:
        return str(w.pick(0, int(array.low), int(array.high), max(int(array.low), -1), 1))
    return str(w.pick("0.0", "0.5", "-1.0", *(() if array.dtype in EIGHT_BIT else ("3", "0"))))


def store(w: Writer, value: Value | None = None) -> Value | None:
    """A variable put where nothing else is stored: in a place for every trip of every program."""
    value = value or w.some(lambda v: v.name not in w.stored) or w.some(lambda v: True)
    if value is None:
        return None
    stretch = w.pick(1, 1, 1, 2, 3)
    size = math.prod(value.shape) * stretch
    region = w.programs * w.most_trips * size
    if region > MOST_STORED:
        return None
    tolerance = 0.0
    if value.rough:
        tolerance = (
            max(value.reach, 1e-3) * {"float16": 4e-3, "bfloat16": 3e-2, "float32": 1e-4, "float64": 1e-4}[value.dtype]
        )
    dtype = value.dtype
    if dtype in ("int8", "int16", "uint8") and w.chance(0.2):
        dtype = w.pick("int32", "int64")
    if dtype == "float32" and not value.rough and is_exact("float16", value.reach, value.unit) and w.chance(0.3):
        dtype = "float16"
    known = [
        name for name, a in w.arrays.items() if a.empty and a.dtype == dtype and (a.tolerance > 0) == (tolerance > 0)
    ]
    name = w.pick(*known) if known and w.chance(0.8) else w.name("o")
    array = w.arrays.setdefault(name, Array(dtype, length=0, skip=w.pick(0, 0, 0, 0, 1, 5), empty=True, written=True))
    start = -(-array.length // 16) * 16 if w.chance(0.7) else array.length
    array.length = start + region
    array.tolerance = max(array.tolerance, tolerance)
    text = _position(w, value.shape, stretch)
    turn = w.turn()
    base = turn if size == 1 else f"{turn} * {w.integer(size) if w.chance(0.2) else size}"
    base = f"{start} + {base}" if start else base
    pointer = (
        f"{name}_ptr + {base}"
        if not text
        else _pointer(w, name, f"{base} + {text}" if w.chance(0.7) else f"{text} + ({base})")
    )
    chosen = mask(w, value.shape) if w.chance(0.5) else None
    parts = [pointer, value.name] + ([f"mask={chosen.text}"] if chosen else [])
    w.put(f"tl.store({', '.join([*parts, *([w.pick(*STORES)] if w.chance(0.1) else [])])})")
    w.stored.add(value.name)
    return value


def _position(w: Writer, shape: tuple[int, ...], stretch: int = 1, plain: bool = False) -> str:
    """Places of a tile's elements, each its own: in any order of the axes, some backwards, perhaps with gaps."""
    order = list(range(len(shape)))
    if not plain and w.chance(0.3):
        w.random.shuffle(order)
    terms, step = {}, stretch
    for axis in reversed(order):
        index = w.along(shape, axis)
        if not plain and w.chance(0.12):
            index = f"({shape[axis] - 1} - {index})"
        terms[axis] = index if step == 1 else f"{index} * {w.integer(step) if w.chance(0.2) else step}"
        step *= shape[axis]
    return " + ".join(terms[axis] for axis in sorted(terms))


def in_place(w: Writer) -> Value | None:
    """A part of an array of the program's own: loaded, changed and stored, once or several times, in different orders."""
    shape = w.shape()
    dtype = w.pick("int32", "int32", "float32", "int16", "uint8", "int64", "float16")
    size = math.prod(shape) + (shift := w.pick(0, 0, 1, 16, 5))
    if w.programs * size > LARGEST:
        return None
    name = w.name("m")
    exact = dtype in DIGITS
    low, high = (-4, 4) if exact else limits(dtype)
    w.arrays[name] = Array(dtype, low, high, 0, w.programs * size, w.pick(0, 0, 0, 1), written=True)
    base = f"{name}_ptr + pid * {size}"
    plain, other = _position(w, shape, plain=True) or "0", _position(w, shape) or "0"
    turned = f"{other} + {shift}" if shift else other
    index = w.some(lambda v: v.shape == shape and v.dtype in ("int32", "int64") and 0 <= v.low and v.high < 2**30)
    if index and shape and w.chance(0.5):  # gathered
        other = f"{index.name} % {size}"
    if w.chance(0.3):
        pointer = w.name("p")
        w.put(f"{pointer} = {base}")
        base = pointer
    first = w.let(f"tl.load({base} + {w.pick(plain, other)})", Value("", dtype, shape, low, high))
    known, made = w.some(lambda v: v.shape == shape and not v.rough and v.name != first.name), f"{first.name}"
    if known and known.dtype in INTEGERS and not exact:
        made = f"{first.name} + {known.name}.to(tl.{dtype})"
    elif exact:
        made = w.pick(f"-{first.name}", f"tl.abs({first.name})", f"{first.name}")
    else:
        made = w.pick(f"{first.name} * 3", f"~{first.name}", f"{first.name} + 1")
    chosen = mask(w, shape) if w.chance(0.4) else None
    tail = f", mask={chosen.text})" if chosen else ")"
    where = plain if w.chance(0.4) else turned
    if w.chance(0.3) and where != plain:
        w.put("tl.debug_barrier()")
    w.put(f"tl.store({base} + {where}, {made}{tail}")
    if w.chance(0.3):
        w.put("tl.debug_barrier()")
    again = w.let(f"tl.load({base} + {w.pick(plain, turned, other)})", Value("", dtype, shape, low, high))
    if w.chance(0.4):
        w.put("tl.debug_barrier()", f"tl.store({base} + {w.pick(plain, turned)}, {again.name})", "tl.debug_barrier()")
    elif w.trips:
        w.put("tl.debug_barrier()")
    return again


def atomic(w: Writer) -> Value | None:
    """An atomic operation: on places of its own, whose old numbers are used, or on places that many share."""
    kind = w.pick("add", "add", "add", *ATOMICS)
    v = w.some(lambda v: v.dtype in ATOMICS[kind] and not v.rough and math.prod(v.shape) <= 4096)
    if v is None:
        return None
    shape = v.shape
    shared = kind not in ("xchg", "cas") and w.chance(0.6)
    text, held = tame(w, v.name, v) if v.is_float or w.chance(0.5) else (v.name, v)
    times = math.prod(shape) * w.programs * w.most_trips
    if v.is_float and kind == "add" and not is_exact(v.dtype, held.reach * times + 4, held.unit):
        return None
    low, high = (-4, 4) if v.is_float else limits(v.dtype)
    name = w.name("m")
    array = w.arrays[name] = Array(v.dtype, low, high, 0, skip=w.pick(0, 0, 0, 1), written=True)
    if shared:
        index = w.some(lambda i: i.shape == shape and i.dtype in ("int32", "int64") and i.low >= 0 and i.high < 5000)
        if index and w.chance(0.6):
            where, array.length = index.name, int(index.high) + 1
        elif shape:
            side = w.pick(1, 3, 16, 64)
            where, array.length = f"({_position(w, shape)}) % {side}", side
        else:
            where, array.length = w.pick(("0", 1), ("pid // 2", w.programs))
    else:
        size = math.prod(shape)
        array.length = w.programs * size
        where = f"pid * {size}" + (f" + {position}" if (position := _position(w, shape)) else "")
    if kind == "cas":
        call = f"tl.atomic_cas({name}_ptr + {where}, {w.pick(v.name, f'{v.name} + 1')}, {text}"
    else:
        chosen: Mask | None = mask(w, shape) if shape and shared else None
        call = f"tl.atomic_{kind}({name}_ptr + {where}, {text}{f', mask={chosen.text}' if chosen else ''}"
    call += w.pick("", "", ', sem="relaxed"', ', sem="acq_rel"', ', scope="gpu"') + ")"
    if shared:
        w.put(call)
        return v
    reach = max(array.high, held.reach) + (held.reach * w.most_trips if kind == "add" else 0)
    unit = held.unit
    if v.is_float:
        return w.let(call, Value("", v.dtype, shape, -reach, reach, unit))
    return w.let(call, replace(v, low=limits(v.dtype)[0], high=limits(v.dtype)[1]))
