"""Random kernels with dots in unusual surroundings: a seed gives a text, and a text and a size give a launch.

Every kernel has the same parameters. `a`, `b` and `w` are matrices with a stride each, `x` holds floats, `i` and `j` hold
orders of the rows of `a` and `b`, `c` and `d` are results. Numbers are multiples of a quarter, so that sums are exact and
every difference is a mistake, but where a text rounds or has an exponential.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from random_lines import Lines

PARAMETERS = (
    "a_ptr, b_ptr, w_ptr, x_ptr, i_ptr, j_ptr, c_ptr, d_ptr, M, N, K, sa, sb, sw, sc, "
    "BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr"
)
SUM = {"tl.int8": "tl.int32", "tl.float64": "tl.float64"}
EIGHT = ("tl.float8e4nv", "tl.float8e5", "tl.int8")


class Writer(Lines):
    """Lines of a kernel, and the choices that made them."""

    def __init__(self, seed: int) -> None:
        """Starts with nothing but the parameters."""
        self.random = random.Random(seed)
        self.lines = [f"def kernel({PARAMETERS}):"]
        self.indent = 1
        self.tolerance = 2e-5
        self.types: dict[str, str] = {}
        self.shapes: dict[str, tuple[str, str]] = {}
        self.by_rows: dict[str, bool] = {}
        self.zeroed: set[str] = set()
        self.aligned, self.precision = True, "tf32"
        self.sides: dict[str, int] = {}


@dataclass(frozen=True)
class Axis:
    """A side of a tile: where it starts, its name, the matrix's side, its indices."""

    start: str
    side: str
    limit: str
    indices: str


@dataclass
class Loaded:
    """A tile of a matrix: what stands before the loop, the expression in the loop, and what ends a trip."""

    before: list[str] = field(default_factory=list)
    text: str = ""
    after: list[str] = field(default_factory=list)


M_AXIS = Axis("m0", "BM", "M", "m")
N_AXIS = Axis("n0", "BN", "N", "n")
K_AXIS = Axis("k0", "BK", "K", "(k0 + k)")


def place(name: str, row: str, col: str, by_rows: bool) -> str:
    """The pointers of a tile, of indices without their axes."""
    return (
        f"{name}_ptr + {row}[:, None] * s{name} + {col}[None, :]"
        if by_rows
        else f"{name}_ptr + {col}[None, :] * s{name} + {row}[:, None]"
    )


def mask(w: Writer, even: Iterable[str], row: Axis, col: Axis) -> str:
    """The condition that a tile's elements lie in the matrix, or nothing where they must."""
    tests = [
        f"({axis.indices}{shape} < {axis.limit})"
        for axis, shape in ((row, "[:, None]"), (col, "[None, :]"))
        if axis.limit not in even or w.chance(0.2)
    ]
    return " & ".join(tests)


def load(w: Writer, name: str, row: Axis, col: Axis, even: frozenset[str], ways: tuple[str, ...] = ()) -> Loaded:
    """A tile of a matrix, loaded in one of many ways."""
    by_rows = w.by_rows.setdefault(name, w.chance(0.6))
    w.shapes.setdefault(name, (row.limit, col.limit))
    way = w.pick(*(ways or ("pointers", "pointers", "pointers", "block", "descriptor", "gather", "wrap")))
    axes = (row, col) if by_rows else (col, row)
    if w.sides[axes[-1].side] < 16:
        way = "pointers"  # a descriptor's rows have 16 bytes at least
    if way == "descriptor" or way == "block":
        turned = "" if by_rows else ".T"
        sizes, starts, sides = (", ".join(getattr(x, part) for x in axes) for part in ("limit", "start", "side"))
        if way == "descriptor":
            made = (
                f"tl.make_tensor_descriptor({name}_ptr, shape=[{sizes}], strides=[s{name}, 1], block_shape=[{sides}])"
            )
            return Loaded([f"{name}_desc = {made}"], f"{name}_desc.load([{starts}]){turned}")
        strides, order = (f"s{name}, 1", "(1, 0)") if by_rows else (f"1, s{name}", "(0, 1)")
        whole, first = f"({row.limit}, {col.limit}), ({strides})", f"({row.start}, {col.start})"
        block = f"tl.make_block_ptr({name}_ptr, {whole}, {first}, ({row.side}, {col.side}), {order})"
        return Loaded([], f'tl.load({block}, boundary_check=(0, 1), padding_option="zero")')
    inside = mask(w, even, row, col)
    tail = f", mask={inside}, other=0.0)" if inside else ")"
    rows = row.indices
    if way == "gather":
        numbers = {"M": "i", "K": "j"}.get(row.limit)
        if numbers:
            limit = f", mask={row.indices} < {row.limit}, other=0" if row.limit not in even else ""
            rows = f"tl.load({numbers}_ptr + {row.indices}{limit})"
    if way == "wrap" and row.limit in ("M",):
        rows = f"({row.indices} % {row.limit})"
    return Loaded([], f"tl.load({place(name, rows, col.indices, by_rows)}{tail}")


COMPUTED = (
    "({0}.to(tl.float32) * 2).to({1})",
    "tl.where({0}.to(tl.float32) > 0, {0}.to(tl.float32), 0).to({1})",
    "({0}.to(tl.float32) + 0.25).to({1})",
    "tl.maximum({0}.to(tl.float32), 0.0).to({1})",
    "tl.trans(tl.trans({0}))",
    "tl.abs({0}.to(tl.float32)).to({1})",
    "({0}.to(tl.float32) * tl.load(x_ptr + {3})[:, None]).to({1})",
    "({0}.to(tl.float32) * tl.load(x_ptr + {4})[None, :]).to({1})",
    "tl.exp({0}.to(tl.float32) * 0.25).to({1})",
    "leaky({0}.to(tl.float32)).to({1})",
    "halved({0}.to(tl.float32)).to({1})",
    "twice({0}.to(tl.float32)).to({1})",
)
# Functions that the kernels may call; those of one tile keep their names in the text.
FUNCTIONS = {
    "halved": "def halved(x):\n    return x * 0.5\n",
    "leaky": "def leaky(x):\n    y = halved(x)\n    return tl.where(x > 0, x, y)\n",
    "twice": "def twice(x):\n    for _ in range(2):\n        x = halved(x)\n    return x * 8.0\n",
    "shifted": "def shifted(x, y):\n    return leaky(x) + y\n",
}


def operand(w: Writer, name: str, kind: str, row: Axis, col: Axis, even: frozenset[str], **ways: Any) -> Loaded:
    """A tile that a dot takes: loaded, perhaps of another type, perhaps computed."""
    stored = kind
    if w.chance(0.25):
        stored = w.pick(*{
            "tl.float16": ("tl.int8", "tl.float32", "tl.float8e4nv", "tl.bfloat16"),
            "tl.bfloat16": ("tl.int8", "tl.float32", "tl.float16"),
            "tl.float32": ("tl.float16", "tl.bfloat16", "tl.int8"),
        }.get(kind, (kind,)))  # fmt: skip
    stored = w.types.setdefault(name, stored)
    found = load(w, name, row, col, even, **ways)
    text = f"{name} = {found.text}"
    whole = kind == "tl.int8"
    if stored != kind:
        text += f"\n{name} = {name}.to({kind})"
    if w.chance(0.35) and not whole:
        form = w.pick(*COMPUTED)
        if "exp" in form:
            w.tolerance = max(w.tolerance, 1e-2)
        if stored == "tl.int8" and "0.25" in form and kind in EIGHT:
            w.tolerance = max(w.tolerance, 1e-2)
        limits = [axis.indices for axis in (row, col)]
        text += f"\n{name} = {form.format(name, kind, None, *limits)}"
    return Loaded(found.before, text, found.after)


def dot(w: Writer, kind: str, left: str, right: str, total: str) -> str:
    """A dot that adds to a sum."""
    extra = ""
    if kind == "tl.float32":
        extra = f', input_precision="{w.precision}"'
    forms = (f"{total} = tl.dot({left}, {right}, {total}{extra})", f"{total} += tl.dot({left}, {right}{extra})")
    return w.pick(*forms)


LOOPS = (
    ("for k0 in range(0, K, BK):",),
    ("for k0 in range(0, K, BK):",),
    ("for k0 in tl.range(0, K, BK, num_stages=3):",),
    ("for t in range(tl.cdiv(K, BK)):", "k0 = t * BK"),
    ("for k0 in range(tl.cdiv(K, BK) * BK - BK, -1, -BK):",),
    ("k0 = -BK", "while k0 < K - BK:", "k0 += BK"),
    ("for half in range(0, 2):", "for k0 in range(half * BK, K, 2 * BK):"),
    ("for k0 in range(tl.load(i_ptr) * 0, tl.load(j_ptr) * 0 + K, BK):",),
    (
        "for half in range(2):",
        "for k0 in range(half * (K // BK // 2 * BK), (K // BK // 2 * BK) if half == 0 else K, BK):",
    ),
    # Along K as memory says: blocks from a list; at sums of what memory holds, one block on or the same again.
    ("for t in range(tl.cdiv(K, BK)):", "k0 = tl.load(j_ptr + t) % tl.cdiv(K, BK) * BK"),
    ("k0 = 0", "for t in range(tl.cdiv(K, BK) - 1):", "k0 += tl.load(i_ptr + t) % 2 * BK"),
    (
        "k0, here = 0, 0",
        "for t in tl.range(tl.load(j_ptr) * 0, tl.cdiv(K, BK) - 1, num_stages=3):",
        "k0 = here * BK",
        "here += tl.load(i_ptr + t) % 2",
    ),
)
PLACES = (  # where a program's tile is; which grid
    (("m0 = tl.program_id(0) * BM", "n0 = tl.program_id(1) * BN"), "(tm, tn)"),
    (("m0 = tl.program_id(1) * BM", "n0 = tl.program_id(0) * BN"), "(tn, tm)"),
    (("m0 = tl.program_id(0) // tl.cdiv(N, BN) * BM", "n0 = tl.program_id(0) % tl.cdiv(N, BN) * BN"), "(tm * tn,)"),
    (("m0 = tl.program_id(2) * BM", "n0 = tl.program_id(1) * BN"), "(1, tn, tm)"),
    (("m0 = tl.program_id(0) * BM", "n0 = tl.program_id(1) * BN", "if m0 >= M:", "    return"), "(tm + 2, tn)"),
    (("for tile in range(tl.program_id(0), tl.cdiv(M, BM) * tl.cdiv(N, BN), tl.num_programs(0)):",
      "m0 = tile // tl.cdiv(N, BN) * BM", "n0 = tile % tl.cdiv(N, BN) * BN"), "(min(3, tm * tn),)"),
    (("m0 = tl.program_id(0) * BM", "for n0 in range(tl.program_id(1) * BN, N, BN * tl.num_programs(1)):"), "(tm, min(tn, 2))"),
)  # fmt: skip
EPILOGUES = (
    "total * 0.5", "tl.maximum(total, 0)", "total + tl.load(x_ptr + n)[None, :]", "total + tl.load(x_ptr + m)[:, None]",
    "total - tl.max(total, axis=1)[:, None]", "total + tl.sum(total, axis=0)[None, :] * 0.25",
    "tl.where(m[:, None] >= n[None, :], total, 0)", "tl.where(total > 0, total, total * 0.5)",
    "leaky(total)", "halved(total)", "twice(halved(total))", "shifted(total, tl.load(x_ptr + n)[None, :])",
)  # fmt: skip


def start(w: Writer, even: frozenset[str]) -> str:
    """The program's place; returns the grid."""
    lines, grid = w.pick(*PLACES)
    for line in lines:
        w.put(line) if line.strip() != "return" else w.put("return")
        if line.strip() == "return":
            w.indent -= 1
    w.put("m, n, k = m0 + tl.arange(0, BM), n0 + tl.arange(0, BN), tl.arange(0, BK)")
    return str(grid)


def loop(w: Writer, kinds: tuple[tuple[str, ...], ...] = LOOPS) -> None:
    """Opens a loop over K."""
    w.put(*w.pick(*kinds))


def tiles(w: Writer, *found: Loaded) -> None:
    """The lines that load tiles."""
    order = list(found)
    w.random.shuffle(order)
    for one in order:
        w.put(*one.text.split("\n"))


def finish(w: Writer, even: frozenset[str], total: str = "total", name: str = "c", depth: int = 1) -> None:
    """What becomes of a sum [BM, BN], and its store."""
    for _ in range(w.pick(0, 0, 1, 1, 2)):
        text = w.pick(*EPILOGUES)
        if w.types["sum"] == "tl.int32":
            text = w.pick("tl.maximum(total, 0)", "total - tl.max(total, axis=1)[:, None]", "total * 2")
        w.put(f"{total} = ({text.replace('total', total)}).to({w.types['sum']})")
    store(w, even, total, name)


def store(w: Writer, even: frozenset[str], total: str, name: str) -> None:
    """Stores a tile [BM, BN] of a result by rows, in one of many ways."""
    out = w.types.setdefault(
        name, w.pick(w.types["sum"], w.types["sum"], "tl.float16" if w.types["sum"] == "tl.float32" else w.types["sum"])
    )
    if out == "tl.float16":
        w.tolerance = max(w.tolerance, 1e-3)
    w.by_rows[name] = w.by_rows.get(name, w.chance(0.75))
    w.shapes[name] = ("M", "N")
    way = w.pick(
        "pointers",
        "pointers",
        "pointers",
        "block",
        "descriptor",
        "atomic" if w.types[name] in ("tl.float32", "tl.int32") else "pointers",
    )
    value = f"{total}.to({out})"
    inside = "(m[:, None] < M) & (n[None, :] < N)"
    stride = "sc"
    if way == "descriptor" and w.by_rows[name] and w.aligned and w.sides["BN"] >= 8:
        w.put(
            f"{name}_desc = tl.make_tensor_descriptor({name}_ptr, shape=[M, N], strides=[{stride}, 1], block_shape=[BM, BN])"
        )
        w.put(f"{name}_desc.store([m0, n0], {value})")
    elif way == "block" and w.by_rows[name]:
        w.put(f"{name}_block = tl.make_block_ptr({name}_ptr, (M, N), ({stride}, 1), (m0, n0), (BM, BN), (1, 0))")
        w.put(f"tl.store({name}_block, {value}, boundary_check=(0, 1))")
    elif way == "atomic":
        w.zeroed.add(name)
        w.put(
            f"tl.atomic_add({place('c', 'm', 'n', w.by_rows[name]).replace('c_ptr', name + '_ptr')}, {value}, mask={inside})"
        )
    else:
        w.put(
            f"tl.store({place('c', 'm', 'n', w.by_rows[name]).replace('c_ptr', name + '_ptr')}, {value}, mask={inside})"
        )
