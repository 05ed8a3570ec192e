"""Random kernels as a whole: loops of all kinds, branches, and what stands in them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from random_tile_functions import hashed, written
from random_tile_lists import lists_kernel
from random_tile_memory import atomic, in_place, load, store
from random_tile_places import condition
from random_tile_rows import rows_kernel
from random_tile_shapes import reduction, reshaped
from random_tile_steps import TAME, binary, cast, tame, unary, with_number
from random_tile_unusual import advanced, called, chosen, hinted, special, spread, wide_integers
from random_tile_values import DIGITS, INTEGERS, Value, is_exact, limits
from random_tile_writer import Array, Trip, Writer

MOST_TRIPS = 40
CARRIED = ("int32", "int64", "uint32", "float32", "float16", "int16")
Step = Callable[[Writer], Value | None]
STEPS: tuple[tuple[Step, int], ...] = (
    (binary, 8), (with_number, 4), (unary, 3), (cast, 3), (reduction, 4), (reshaped, 2), (load, 5), (store, 2), (in_place, 2),
    (atomic, 1), (special, 1), (called, 1), (advanced, 1), (hinted, 1), (wide_integers, 1), (chosen, 1), (spread, 1),
    (hashed, 1), (written, 2),
)  # fmt: skip


def kernel(seed: int) -> Writer:
    """Writes the kernel of a seed."""
    w = Writer(seed)
    _head(w)
    if seed % 8 == 5 or w.chance(0.3):
        (lists_kernel if seed % 8 == 5 else rows_kernel)(w)
        return w
    for _ in range(w.number(1, 3)):
        load(w)
    if w.chance(0.1):
        w.put(f"if pid {w.pick('>=', '==')} {w.number(0, w.programs)}:", "return")
        w.leave(1)
    block(w, w.number(5, 14), 0)
    left = [v for v in w.values if v.name not in w.stored]
    for value in left[-w.number(3, 6) :]:
        store(w, value)
    if not any(array.empty for array in w.arrays.values()):
        store(w)
    return w


def _head(w: Writer) -> None:
    axes = [f"p{axis}" for axis in range(len(w.grid))]
    for axis, name in enumerate(axes):
        w.put(f"{name} = tl.program_id({axis})")
    text = axes[0]
    for axis, name in list(enumerate(axes))[1:]:
        text = f"({text}) * tl.num_programs({axis}) + {name}"
    w.put(f"pid = {text}")
    w.values.append(Value("pid", "int32", (), 0, w.programs - 1))
    w.stored.add("pid")
    for side in sorted({side for shape in w.shapes for side in shape}):
        if w.chance(0.7):
            w.ranges[side] = f"r{side}"
            w.put(f"r{side} = tl.arange(0, {side})")
            if w.chance(0.5):
                w.values.append(Value(f"r{side}", "int32", (side,), 0, side - 1))
    n = w.pick(1, 3, 16, 40)
    name = w.integer(n)
    if n > 1 and name not in w.constants:  # one that is 1 is no variable
        w.values.append(Value(name, "int32", (), n, n))
    w.stored |= {v.name for v in w.values}


def block(w: Writer, steps: int, depth: int) -> None:
    """Statements at the present depth."""
    for _ in range(steps):
        if depth < 2 and w.chance(0.16):
            loop(w, depth)
        elif depth < 3 and w.chance(0.08):
            branch(w, depth)
        elif not w.wide or len(w.values) < 40:
            w.pick(*[step for step, weight in STEPS for _ in range(weight)])(w)


def _carried(w: Writer, trips: int) -> list[Value]:
    """Some variables that what follows assigns again, with bounds that hold whatever it does.

    Older ones than the loop around keep theirs, which what stands above relies on.
    """
    chosen = []
    if w.chance(0.7):
        shape, dtype = w.shape(), w.pick("float32", "float32", "int32", "float16", "int64", "float64", "uint32")
        zero = w.pick("0", "1") if dtype not in DIGITS else w.pick("0.0", "0.5", "-1.0")
        text = (
            f"tl.zeros({list(shape)}, tl.{dtype})" if w.chance(0.6) else f"tl.full({list(shape)}, {zero}, tl.{dtype})"
        )
        rough = dtype == "float32" and w.chance(0.25)
        w.let(text, Value("", dtype, shape, -1, 1, 1, rough) if dtype in DIGITS else Value("", dtype, shape, 0, 1))
        chosen.append(w.values[-1])
    for _ in range(w.pick(0, 1, 1, 2)):
        v = w.some(lambda v: v in w.values[w.starts[-1] :] and v.dtype in CARRIED and v.name[0] == "v")
        if v is not None and v not in chosen:
            chosen.append(v)
    result = []
    for v in chosen:
        if v.is_float:
            reach, unit = max(v.reach, TAME) + TAME * trips, max(v.unit, 2)
            if not v.rough and not is_exact(v.dtype, reach, unit):
                continue
            wide = replace(v, low=-reach, high=reach, unit=unit)
        else:
            wide = replace(v, low=limits(v.dtype)[0], high=limits(v.dtype)[1])
        w.values[w.values.index(v)] = wide
        w.stored.discard(v.name)
        result.append(wide)
    return result


def _assign(w: Writer, v: Value, sums: bool) -> None:
    """A carried variable gets another value; `sums` says that something may be added to it."""
    x = w.some(
        lambda x: (
            x.name != v.name and x.shape in (v.shape, ()) and (x.is_float or x.dtype in INTEGERS) and x.rough <= v.rough
        )
    )
    if x is None:
        return
    if not v.is_float:
        if x.is_float:
            return
        w.put(f"{v.name} = ({v.name} {w.pick('+', '-', '^', '|', '*')} {x.name}).to(tl.{v.dtype})")
        return
    if not x.is_float and x.reach > 1000:
        return
    text, _ = tame(w, x.name, x)
    if x.dtype != v.dtype:
        text = f"({text}).to(tl.{v.dtype})"
    forms = ["{v} = tl.where({c}, {t}, {v})"]
    forms += ["{v} = tl.maximum({v}, {t})", "{v} = tl.minimum({t}, {v})"] if v.dtype != "bfloat16" else []
    if sums:
        forms += ["{v} += {t}", "{v} = {v} - {t}", "{v} += {t}"]
    if v.rough:
        forms += ["{v} = {v} * 0.5 + {t}"]
    known = w.some(lambda c: c.shape == v.shape and not c.rough)
    chosen = condition(w, known) if known else "pid < 1"
    if v.shape == () and x.shape == ():
        forms = forms[1:] or ["{v} = {v}"]
    w.put(w.pick(*forms).format(v=v.name, t=text, c=chosen))


def loop(w: Writer, depth: int) -> None:
    """A loop over a range, or a while: some variables are carried, others end with it."""
    trips = w.number(0, 5) if w.wide or depth else w.pick(0, 1, 2, 3, 4, 5, 8, 9, 12)
    if w.most_trips * max(trips, 1) > MOST_TRIPS:
        return
    carried = _carried(w, max(trips, 1))
    mark, at = len(w.values), w.indent
    w.starts.append(mark)
    counter = _opened(w, trips)
    before = len(w.lines)
    for _ in range(w.number(0, 2)):
        load(w)
    if w.chance(0.25):  # nothing that threads wait for each other in
        for _ in range(w.number(1, 4)):
            w.pick(binary, with_number, unary, load, store)(w)
    else:
        block(w, w.number(1, 4), depth + 1)
    for v in carried:
        if w.chance(0.9):
            _assign(w, v, True)
    if w.chance(0.6):
        store(w)
    if counter or len(w.lines) == before:
        w.put(f"{counter} += 1" if counter else "pass")
    w.leave(at)
    w.trips.pop()
    w.starts.pop()
    del w.values[mark:]


def _opened(w: Writer, trips: int) -> str | None:
    """Opens a loop of so many trips; returns the counter that has to be advanced at the end of each."""
    kind = w.pick(
        "range", "range", "range", "tl", "tl", "tl", "tl", "down", "while", "leave", "static", "loaded", "programs"
    )
    k = w.name("k")
    step = w.pick(1, 1, 2, 3, 16, 64)
    start = w.pick(0, 0, 0, 1, 7, 16, -8)
    stop = start + trips * step - (w.number(0, step - 1) if trips else w.number(0, 5))
    texts = [w.integer(x) if w.chance(0.45) else str(x) for x in (start, stop, step)]
    trip = k if (start, step) == (0, 1) else f"(({k} - {texts[0]}) // {texts[2]})"
    most, counter = max(trips, 1), None
    first = stop - 1 if trips else start
    variable = Value(k, "int32", (), start, max(first, start))
    if kind == "programs" and not w.trips and w.programs > 1:
        rows = w.pick(1, 2)
        texts = [f"pid * {rows}", w.integer(w.number(0, 2 * w.programs)), f"{w.programs * rows}"]
        w.put(f"for {k} in {w.pick('range', 'tl.range')}({', '.join(texts)}):")
        trip, most, variable = f"({k} // {w.programs * rows})", 2, replace(variable, low=0, high=2 * w.programs)
    elif kind == "static" and trips <= 5:
        w.put(f"for {k} in tl.static_range({trips}):")
        trip, variable = k, replace(variable, low=0, high=most - 1)
    elif kind == "down":
        w.put(f"for {k} in range({texts[1]}, {texts[0]}, -{step}):")
        trip, variable = f"(({texts[1]} - {k}) // {step})", replace(variable, low=start, high=max(stop, start))
    elif kind == "loaded":
        name = w.name("a")
        wide = w.pick("int32", "int32", "int64")
        w.arrays[name] = Array(wide, trips, trips)
        w.put(f"for {k} in range(tl.load({name}_ptr)):")
        trip, variable = k, Value(k, wide, (), 0, most - 1)
    elif kind in ("while", "leave"):
        bound = f"{k} < {w.integer(trips) if trips != 1 else trips}"
        found = w.some(lambda v: v.shape == () and v.dtype in CARRIED and not v.rough)
        if kind == "leave" and found:  # when a number says so, which may change in the loop
            bound = f"({bound}) & ({condition(w, found)})"
        w.put(f"{k} = {w.pick('0', 'pid * 0')}", f"while {bound}:")
        counter, trip, variable = k, k, replace(variable, low=0, high=most - 1)
    else:
        options = ""
        if kind == "tl":
            options = w.pick(
                "",
                ", num_stages=2",
                ", num_stages=3",
                ", num_stages=4",
                ", num_stages=1",
                ", loop_unroll_factor=2",
                ", flatten=True",
            )
        function = "range" if kind == "range" else "tl.range"
        count = 1 if (start, step) == (0, 1) and w.chance(0.5) else 2 if step == 1 else 3
        w.put(f"for {k} in {function}({texts[1] if count == 1 else ', '.join(texts[:count])}{options}):")
    if kind != "static":
        w.values.append(variable)
        w.stored.add(k)
    w.trips.append(Trip(trip, most))
    return counter


def branch(w: Writer, depth: int) -> None:
    """An if, with an else or without: variables from before it are assigned in it."""
    v = w.some(lambda v: v.shape == () and not v.rough and v.dtype != "int1")
    test = condition(w, v) if v and w.chance(0.7) else w.pick("pid % 2 == 0", "pid > 0", f"pid < {w.programs}")
    carried, at = _carried(w, 1), w.indent
    for number, line in enumerate((f"if {test}:", "else:")):
        if number and w.chance(0.4):
            break
        mark = len(w.values)
        w.put(line)
        block(w, w.number(0, 2), depth + 1)
        for v in carried:
            _assign(w, v, False)
        w.put("pass")
        w.leave(at)
        del w.values[mark:]
