"""Random kernels that go where memory says: blocks from a list, at sums of distances, along chains, as many as it says."""

from __future__ import annotations

from dataclasses import dataclass

from random_tile_memory import LOADS, new_array, store
from random_tile_rows import MOST_TRIPS, STEPS, Rows, add_to_total, new_total
from random_tile_values import DIGITS, Value
from random_tile_writer import Array, Trip, Writer

SIDES = (32, 64, 100, 128, 256, 512, 1024)
FARTHEST = 5  # blocks: the largest number in a list, and the largest distance


@dataclass(frozen=True)
class Way:
    """How a loop goes from block to block: lines that give `at`, the block's number, before the loop and in each trip."""

    before: tuple[str, ...] = ()
    at_top: tuple[str, ...] = ()
    at_end: tuple[str, ...] = ()
    most: int = FARTHEST  # that `at` can be
    by_steps: bool = False  # each trip adds `step`, nothing else


def lists_kernel(w: Writer) -> None:
    """Writes a kernel behind its head."""
    side = w.pick(1, 1, 4, 16, 32)
    width = w.pick(*(width for width in SIDES if side * width <= 4096))
    m = Rows(side, width, 0, width, width, side == 1)
    w.largest = side * width
    w.put(f"cols = tl.arange(0, {width})")
    if not m.flat:
        w.put(f"lines = tl.arange(0, {side})")
    totals = [new_total(w, m) for _ in range(w.pick(1, 1, 2))]
    at, mark = w.indent, len(w.values)
    way = w.pick(_listed, _summed, _summed, _summed, _chained)(w)
    w.put(*way.before)
    moving = _data(w, m, way) if way.by_steps and w.chance(0.4) else None
    if moving is not None:
        w.put(f"places = {moving}_ptr + ({_rows(w, m)})")
    ends = _open_loop(w)
    w.put(*way.at_top)
    for _ in range(w.pick(1, 1, 2)):
        _load(w, m, way)
    if moving is not None:
        array = w.arrays[moving]
        w.let("tl.load(places)", Value("", array.dtype, m.shape, array.low, array.high, array.unit))
        ends = [f"places += step * {m.side * m.width}", *ends]
    for _ in range(w.number(0, 5)):
        w.pick(*STEPS)(w)
    for total in totals:
        add_to_total(w, m, total)
    if w.chance(0.4):
        store(w)
    inside = w.indent
    w.put(*way.at_end)
    w.leave(inside)
    w.put(*ends)
    w.leave(at)
    w.trips.pop()
    del w.values[mark:]
    for total in totals:
        store(w, total)


def _of_program(w: Writer, dtype: str, high: int, length: int) -> str:
    """Where this program's part of a new array of numbers up to `high` begins."""
    name = w.name("a")
    w.arrays[name] = Array(dtype, 0, high, 0, w.programs * length)
    return f"{name}_ptr + pid * {length}"


def _integers(w: Writer) -> str:
    return str(w.pick("int32", "int32", "int64"))


def _listed(w: Writer) -> Way:
    """The list holds the blocks themselves."""
    return Way(at_top=(f"at = tl.load({_of_program(w, _integers(w), FARTHEST, MOST_TRIPS)} + i)",))


def _summed(w: Writer) -> Way:
    """The list holds how far a block lies behind the one before; what follows the last one may not be asked for."""
    dtype = _integers(w)
    first = f"at = tl.load({_of_program(w, dtype, FARTHEST, 1)})" + w.pick("", "", ".to(tl.int64)")
    guard = w.pick("", "", ", mask=i + 1 < count", f", mask=i != {w.number(0, 3)}")
    guard += f", other={w.number(0, 1)}" if guard else ""
    step = f"step = tl.load({_of_program(w, dtype, FARTHEST, MOST_TRIPS)} + i{guard})"
    plain = w.chance(0.6)
    go = w.pick(("at += step",), ("at = at + step",)) if plain else w.pick(
        ("at += step * 2", "at -= step"), ("if i != 1:", "at += step"), ("at = tl.where(i != 2, at + step, at)",)
    )  # fmt: skip
    early = w.chance(0.3)
    return Way(
        (first,),
        (step,) if early else (),
        go if early else (step, *go),
        FARTHEST * (2 * MOST_TRIPS + 1),
        by_steps=plain,
    )


def _chained(w: Writer) -> Way:
    """Each block says which one follows."""
    name, dtype = w.name("a"), _integers(w)
    w.arrays[name] = Array(dtype, 0, FARTHEST, 0, FARTHEST + 1)
    first = f"at = tl.load({_of_program(w, dtype, FARTHEST, 1)})"
    return Way((first,), (), (f"at = tl.load({name}_ptr + at)",))


def _open_loop(w: Writer) -> list[str]:
    """Begins the loop over `i`; returns the lines that end a trip."""
    limit = f"tl.load({_of_program(w, 'int32', MOST_TRIPS, 1)})"
    w.put(f"count = {w.pick(limit, limit, limit, w.integer(w.number(0, MOST_TRIPS)), str(w.number(1, MOST_TRIPS)))}")
    w.trips.append(Trip("i", MOST_TRIPS))
    if w.chance(0.1):
        w.put("i = 0", "while i < count:")
        return ["i += 1"]
    stages = w.pick("", "", ", num_stages=2", ", num_stages=3", ", num_stages=4", ", loop_unroll_factor=2")
    w.put(f"for i in {'tl.range' if stages else 'range'}(0, count{stages}):")
    return []


def _rows(w: Writer, m: Rows) -> str:
    """Places of the elements of the block `at`, as the kernel spells them."""
    size = w.integer(m.side * m.width) if w.chance(0.3) else m.side * m.width
    if m.flat:
        return str(w.pick(f"at * {size} + cols", f"cols + at * {size}"))
    width = w.integer(m.width) if w.chance(0.3) else m.width
    return str(
        w.pick(
            f"at * {size} + lines[:, None] * {width} + cols[None, :]",
            f"(at * {m.side} + lines)[:, None] * {width} + cols[None, :]",
        )
    )


def _data(w: Writer, m: Rows, way: Way) -> str:
    """A new array of blocks."""
    name = new_array(w, w.pick("float16", "float16", "float32", "float32", "bfloat16", "int8", "int32"))
    w.arrays[name].length = (way.most + 1) * m.side * m.width
    return name


def _load(w: Writer, m: Rows, way: Way) -> None:
    name = _data(w, m, way)
    array = w.arrays[name]
    columns = f"{'cols' if m.flat else 'cols[None, :]'} < {w.integer(w.pick(m.width, m.width - 1, m.width // 2))}"
    mask = w.pick("", "", "", f", mask={columns}, other=0", ", mask=i + 1 < count, other=0")
    hint = f", {w.pick(*LOADS)}" if w.chance(0.1) else ""
    low, high = (min(array.low, 0), max(array.high, 0)) if mask else (array.low, array.high)
    value = Value("", array.dtype, m.shape, low, high, array.unit)
    x = w.let(f"tl.load({name}_ptr + {_rows(w, m)}{mask}{hint})", value)
    if array.dtype in DIGITS and array.dtype != "float32" and w.chance(0.7):
        w.let(f"{x.name}.to(tl.float32)", Value("", "float32", m.shape, x.low, x.high, x.unit))
