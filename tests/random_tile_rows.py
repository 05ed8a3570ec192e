"""Random kernels that go over the rows of a matrix: whole rows or rows by pieces, loaded ahead, reduced, scaled, added up."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from random_tile_memory import LOADS, STORES, new_array, store
from random_tile_shapes import reduction
from random_tile_steps import TAME, binary, cast, unary, with_number
from random_tile_values import DIGITS, Value, is_exact
from random_tile_writer import Array, Trip, Writer

STEPS: tuple[Callable[[Writer], Value | None], ...] = (
    binary, binary, with_number, unary, cast, reduction, reduction, reduction,
)  # fmt: skip
SIDES = (32, 100, 128, 256, 512, 777, 1000, 1024, 2048, 4096, 8192, 16384)
MOST_TRIPS = 4


@dataclass(frozen=True)
class Rows:
    """The matrices of a kernel: rows of a trip, columns of a tile, and the names of their numbers of rows, columns, stride."""

    side: int
    width: int
    rows: int
    columns: int
    stride: int
    flat: bool  # a tile is one row, without an axis for it

    @property
    def shape(self) -> tuple[int, ...]:
        """Of a tile."""
        return (self.width,) if self.flat else (self.side, self.width)


def rows_kernel(w: Writer) -> None:
    """Writes a kernel behind its head."""
    pieces = w.chance(0.3)
    side = 1 if pieces else w.pick(1, 1, 1, 2, 4, 8, 16)
    width = (
        w.pick(4096, 8192, 16384)
        if side == 1 and w.chance(0.3)
        else w.pick(*(x for x in SIDES if side * x <= (2048 if pieces else 16384)))
    )
    columns = w.pick(width, width - 1, width - 5, width // 2 + 3, width // 16 * 16, 1)
    columns = w.pick(columns, 2 * width + 7, 3 * width) if pieces else columns
    stride = w.pick(columns, -(-columns // 16) * 16, -(-columns // 16) * 16, columns + 1, columns + 3)
    m = Rows(
        side,
        width,
        w.number(0, w.programs * side * MOST_TRIPS),
        columns,
        stride,
        pieces or (side == 1 and w.chance(0.6)),
    )
    w.largest = side * width
    (_pieces if pieces else _whole)(w, m)


def _whole(w: Writer, m: Rows) -> None:
    w.put(f"cols = tl.arange(0, {m.width})")
    if w.chance(0.6):
        name = new_array(w, w.pick("float32", "float16"))
        array = w.arrays[name]
        array.length = m.columns
        value = Value("", array.dtype, (m.width,), min(array.low, 0), max(array.high, 0), array.unit)
        w.let(f"tl.load({name}_ptr + cols, mask=cols < {w.integer(m.columns)}, other=0.0)", value)
    sums = [new_total(w, m) for _ in range(w.pick(0, 1, 1, 2))]
    at, mark = w.indent, len(w.values)
    row, ends = _open_rows(w, m)
    if not m.flat:
        w.put(f"rows = {row} + tl.arange(0, {m.side})")
    for _ in range(w.pick(1, 1, 2, 3)):
        _load(w, m, "rows" if not m.flat else row, "cols", row)
    if w.chance(0.25):
        _softmax(w, m, row)
    if w.chance(0.5):
        _norm(w, m, row)
    for _ in range(w.number(0, 9)):
        w.pick(*STEPS)(w)
    for total in sums:
        add_to_total(w, m, total)
    _store(w, m, row, "cols")
    for value in [v for v in w.values[mark:] if v.name not in w.stored][-w.number(0, 3) :]:
        store(w, value)
    w.put(*ends)
    w.leave(at)
    w.trips.pop()
    del w.values[mark:]
    for total in sums:
        store(w, total)


def _open_rows(w: Writer, m: Rows) -> tuple[str, list[str]]:
    step, name = w.programs * m.side, "row"
    first, stop = "pid" if m.side == 1 else f"pid * {m.side}", w.integer(m.rows)
    ends = []
    if w.chance(0.12):
        w.put(f"{name} = {first}", f"while {name} < {stop}:")
        ends = [f"{name} += {step}"]
    else:
        stages = w.pick("", "", ", num_stages=2", ", num_stages=3", ", num_stages=4")
        w.put(
            f"for {name} in {'tl.range' if stages else w.pick('range', 'tl.range')}({first}, {stop}, {step}{stages}):"
        )
    w.trips.append(Trip(f"({name} // {step})", MOST_TRIPS))
    return name, ends


def _inside(w: Writer, m: Rows, cols: str, tile: bool = True) -> str:
    within = f"{cols} < {w.integer(m.columns) if w.chance(0.8) else m.columns}"
    if m.flat:
        return within
    if m.columns == m.width and w.chance(0.5):
        return f"rows[:, None] < {w.integer(m.rows)}"
    form = w.pick("(rows < {})[:, None] & ({})[None, :]", "(rows[:, None] < {}) & ({})")
    return form.format(
        w.integer(m.rows), within if "None" in form.split("&")[1] else within.replace(cols, f"{cols}[None, :]", 1)
    )


def _place(w: Writer, m: Rows, name: str, rows: str, cols: str) -> str:
    stride = w.integer(m.stride)
    if m.flat:
        form = w.pick(
            "{n}_ptr + {r} * {s} + {c}", "{n}_ptr + ({r} * {s} + {c})", "{n}_ptr + {r}.to(tl.int64) * {s} + {c}"
        )
        return form.format(n=name, r=rows, s=stride, c=cols)
    form = w.pick("{n}_ptr + {r}[:, None] * {s} + {c}[None, :]", "{n}_ptr + ({r}[:, None] * {s} + {c}[None, :])")
    return form.format(n=name, r=rows, s=stride, c=cols)


def _load(w: Writer, m: Rows, rows: str, cols: str, row: str) -> Value:
    dtype = w.pick("float16", "float16", "float32", "float32", "bfloat16", "int8", "int32")
    name = new_array(w, dtype)
    array = w.arrays[name]
    array.length = max((m.rows - 1) * m.stride + m.columns, 1)
    value = Value("", dtype, m.shape, min(array.low, 0), max(array.high, 0), array.unit)
    inside = _inside(w, m, cols)
    if w.chance(0.12) and not m.flat:
        sizes, strides = f"({w.integer(m.rows)}, {w.integer(m.columns)})", f"({w.integer(m.stride)}, 1)"
        whole = f"{sizes}, {strides}, ({row}, 0), ({m.side}, {m.width}), (1, 0)"
        return w.let(
            f'tl.load(tl.make_block_ptr({name}_ptr, {whole}), boundary_check=(0, 1), padding_option="zero")', value
        )
    size = {"float32": 4, "int32": 4, "int8": 1}.get(dtype, 2)
    even = m.rows > 0 and m.stride * size % 16 == 0 and not array.skip and m.width & (m.width - 1) == 0
    if even and not m.flat and m.width * size >= 16 and m.width <= 256 and w.chance(0.3):
        whole = f"shape=[{w.integer(m.rows)}, {w.integer(m.columns)}], strides=[{w.integer(m.stride)}, 1]"
        w.put(f"d = tl.make_tensor_descriptor({name}_ptr, {whole}, block_shape=[{m.side}, {m.width}])")
        return w.let(f"d.load([{row}, 0])", value)
    if w.chance(0.2) and m.rows:  # rows from a list
        order = w.name("a")
        w.arrays[order] = Array(w.pick("int32", "int64"), 0, m.rows - 1, 0, m.rows)
        limit = "" if m.flat else f", mask=rows < {w.integer(m.rows)}, other=0"
        w.put(f"{w.name('i')} = tl.load({order}_ptr + {rows}{limit})")
        rows = f"i{w.count}"
    else:
        w.rows_of.append(name)
    other = w.pick("", ", other=0.0", ", other=0.0") if dtype in DIGITS else w.pick("", ", other=0")
    hint = f", {w.pick(*LOADS)}" if w.chance(0.1) else ""
    x = w.let(f"tl.load({_place(w, m, name, rows, cols)}, mask={inside}{other}{hint})", value)
    if dtype != "float32" and w.chance(0.7):
        return w.let(f"{x.name}.to(tl.float32)", value_as(x, "float32")) if x.reach < 1e6 else x
    return x


def value_as(x: Value, dtype: str) -> Value:
    """A value in a wider type."""
    return Value("", dtype, x.shape, x.low, x.high, x.unit, x.rough)


def _softmax(w: Writer, m: Rows, row: str) -> None:
    name = new_array(w, w.pick("float32", "float16"))
    w.arrays[name].length = max((m.rows - 1) * m.stride + m.columns, 1)
    axis = 0 if m.flat else 1
    wide = "" if m.flat else "[:, None]"
    place = _place(w, m, name, row if m.flat else "rows", "cols")
    w.put(f'x = tl.load({place}, mask={_inside(w, m, "cols")}, other=-float("inf")).to(tl.float32)')
    w.put(f"e = tl.exp(x - tl.max(x, axis={axis}){wide})", f"s = tl.sum(e, axis={axis})")
    _store(w, m, row, "cols", Value(f"(e / s{wide})", "float32", m.shape, 0, 1, rough=True))


def _norm(w: Writer, m: Rows, row: str) -> None:
    """A row less something that it is reduced to, reduced again and scaled: tiles that are used across reductions."""
    x = w.some(lambda v: v.shape == m.shape and v.is_float and not v.rough and v.reach <= TAME)
    if x is None or not is_exact("float32", x.reach * m.width, x.unit):
        return
    axis, wide = len(m.shape) - 1, "" if m.flat else "[:, None]"
    f = f"{x.name}.to(tl.float32)" if w.chance(0.6) or x.dtype == "float64" else x.name
    rows = m.shape[:-1]
    if w.chance(0.5) and x.dtype != "float64":
        f = w.let(f"{x.name}.to(tl.float32)", value_as(x, "float32")).name
    most = x.reach * m.width
    lines = {
        "total": (f"tl.sum({f}.to(tl.float32), axis={axis})", Value("", "float32", rows, -most, most, x.unit)),
        "top": (f"tl.max({f}, axis={axis})", Value("", "float32", rows, x.low, x.high, x.unit)),
        "low": (f"tl.min({f}.to(tl.float32), axis={axis})", Value("", "float32", rows, x.low, x.high, x.unit)),
        "squares": (f"tl.sum({f}.to(tl.float32) * {f}.to(tl.float32), axis={axis})",
                    Value("", "float32", rows, 0, x.reach**2 * m.width, rough=True)),
    }  # fmt: skip
    if x.dtype == "float64":
        lines = {"total": lines["total"]}
    made = [w.let(*lines[name]) for name in w.random.sample(list(lines), w.number(1, len(lines)))]
    centre = w.pick(*made)
    if centre.rough:
        centre = w.let(f"{centre.name} * {1 / m.width}", Value("", "float32", rows, 0, x.reach**2, rough=True))
    reach = x.reach + centre.reach
    d = w.let(
        f"{f}.to(tl.float32) - {centre.name}{wide}", Value("", "float32", m.shape, -reach, reach, x.unit, centre.rough)
    )
    again = w.let(
        f"tl.{w.pick('max', 'min')}(tl.abs({d.name}), axis={axis})",
        Value("", "float32", rows, 0, reach, d.unit, d.rough),
    )
    if w.chance(0.7):
        scale = w.let(f"1 / ({again.name} + 1.0)", Value("", "float32", rows, 0, 1, rough=True))
        out = w.let(f"{d.name} * {scale.name}{wide}", Value("", "float32", m.shape, -1, 1, rough=True))
        if w.chance(0.7):
            _store(w, m, row, "cols", out)
    if w.chance(0.5):
        _store(w, m, row, "cols", x)


def _store(w: Writer, m: Rows, row: str, cols: str, value: Value | None = None) -> None:
    value = value or w.some(lambda v: v.shape == m.shape and v.dtype != "int1")
    if value is None:
        return
    tolerance = (
        max(value.reach, 1e-3) * {"float16": 4e-3, "bfloat16": 3e-2}.get(value.dtype, 1e-4) if value.rough else 0.0
    )
    length = max((m.rows - 1) * m.stride + m.columns, 1)
    same = [name for name in w.rows_of if w.arrays[name].dtype == value.dtype and w.arrays[name].length == length]
    if same and not value.rough and w.chance(0.3):  # in place
        name = w.pick(*same)
        w.rows_of.remove(name)
        w.arrays[name].written = True
        place = _place(w, m, name, row if m.flat else "rows", cols)
        w.put(f"tl.store({place}, {value.name}, mask={_inside(w, m, cols)})")
        return
    name = w.name("o")
    w.arrays[name] = Array(
        value.dtype, length=length, skip=w.pick(0, 0, 0, 1), tolerance=tolerance, empty=True, written=True
    )
    hint = f", {w.pick(*STORES)}" if w.chance(0.1) else ""
    place = _place(w, m, name, row if m.flat else "rows", cols)
    w.put(f"tl.store({place}, {value.name}, mask={_inside(w, m, cols)}{hint})")
    w.stored.add(value.name)


def new_total(w: Writer, m: Rows) -> Value:
    """Zeros to which the trips of a loop add."""
    shape = w.pick(m.shape, (m.width,))
    reach = TAME * m.side * MOST_TRIPS
    return w.let(f"tl.zeros({list(shape)}, tl.float32)", Value("", "float32", shape, -reach, reach, 2))


def add_to_total(w: Writer, m: Rows, total: Value) -> None:
    """Adds something that the loop has made, if it fits."""
    x = w.some(lambda v: v.shape == m.shape and v.is_float and not v.rough and v.reach <= TAME and v.unit <= 2)
    if x is not None:
        text = f"{x.name}.to(tl.float32)" if x.dtype != "float32" else x.name
        w.put(f"{total.name} += " + (text if total.shape == m.shape else f"tl.sum({text}, axis=0)"))


def _pieces(w: Writer, m: Rows) -> None:
    at = w.indent
    row, ends = _open_rows(w, m)
    inner, mark = w.indent, len(w.values)
    trips = -(-m.columns // m.width)
    reach = TAME * trips
    total = w.let(f"tl.zeros([{m.width}], tl.float32)", Value("", "float32", (m.width,), -reach, reach, 2))
    for second in (False, True):
        before = len(w.values)
        stages = w.pick("", "", ", num_stages=2", ", num_stages=3", ", num_stages=4", ", loop_unroll_factor=2")
        stop, step = w.integer(m.columns) if w.chance(0.7) else m.columns, m.width
        w.put(f"for c in {'tl.range' if stages else 'range'}(0, {stop}, {step}{stages}):")
        w.trips.append(Trip(f"(c // {step})", trips))
        w.put(f"cols = c + tl.arange(0, {m.width})")
        for _ in range(w.pick(1, 1, 2)):
            _load(w, m, row, "cols", row)
        for _ in range(w.number(0, 4)):
            w.pick(*STEPS)(w)
        if second:
            _store(w, m, row, "cols")
        else:
            add_to_total(w, m, total)
        if w.chance(0.3):
            store(w)
        w.trips.pop()
        w.leave(inner)
        del w.values[before:]
        if not second:
            whole = Value("", "float32", (), -reach * m.width, reach * m.width, 2)
            if is_exact("float32", whole.reach, 2):
                w.let(f"tl.sum({total.name}, axis=0)", whole)
            w.let(f"tl.max({total.name}, axis=0)", Value("", "float32", (), -reach, reach, 2))
    for value in w.values[mark:]:
        store(w, value)
    w.put(*ends)
    w.leave(at)
    w.trips.pop()
    del w.values[mark:]
