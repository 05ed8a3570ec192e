"""Random kernels with dots: a seed gives a kernel, and a kernel, a scale and a seed give a launch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np
from random_modules import kernel_of
from random_product_chains import backward, chained, powers, state, through_memory
from random_product_shapes import halves, planes
from random_product_sums import carried, either, packed, parts, plain, ragged, two_loops
from random_product_words import words
from random_products import EIGHT, FUNCTIONS, SUM, Writer
from tilewright.runtime.jit import JITFunction

NUMPY = {
    "tl.float16": np.float16,
    "tl.bfloat16": ml_dtypes.bfloat16,
    "tl.float8e4nv": ml_dtypes.float8_e4m3fn,
    "tl.float8e5": ml_dtypes.float8_e5m2,
    "tl.int8": np.int8,
    "tl.int32": np.int32,
    "tl.float32": np.float32,
    "tl.float64": np.float64,
}


@dataclass(frozen=True)
class Program:
    """A kernel's text and how it is launched.

    `shapes` are rows and columns of the matrices in terms of M, N, K; `by_rows` how each lies; `even` the sides that are
    multiples of the tile's; `grid` a function of the numbers of tiles along M and N; `trips` the most that K has.
    """

    seed: int
    source: str
    types: dict[str, Any]
    shapes: dict[str, tuple[str, str]]
    by_rows: dict[str, bool]
    even: frozenset[str]
    tile: tuple[int, int, int]
    grid: str
    options: dict[str, int]
    tolerance: float
    padded: bool
    family: str
    single: str = ""  # sides that have one tile
    zeroed: frozenset[str] = frozenset()  # results that start from zero
    helpers: dict[str, str] = field(default_factory=lambda: dict(FUNCTIONS))


@dataclass(frozen=True)
class Family:
    """A way to write a program: how often it comes, the sides that are multiples of the tile's, those that have one tile."""

    write: Callable[[Writer, str, frozenset[str]], str]
    weight: int
    even: str = ""
    single: str = ""


FAMILIES = (
    Family(plain, 4),
    Family(two_loops, 2),
    Family(ragged, 1, "K"),
    Family(carried, 1),
    Family(parts, 1),
    Family(packed, 2, "K"),
    Family(either, 2, "K"),
    Family(halves, 1),
    Family(chained, 2, "N", "N"),
    Family(backward, 1, "N", "N"),
    Family(state, 1, "K", "K"),
    Family(through_memory, 1, "NK", "NK"),
    Family(powers, 1, "MNK", "NK"),
    Family(planes, 1, "MNK"),
    Family(words, 2, "K"),
)
KINDS = (*["tl.float16"] * 6, *["tl.bfloat16"] * 2, *["tl.float32"] * 2, "tl.float64", *EIGHT)
SHORT = ((1, 32), (8, 64), (48, 32), (16, 24), (80, 48), (64, 8), (5, 24), (4, 4))


def program(seed: int) -> Program:
    """The kernel of a seed."""
    w = Writer(seed)
    (family,) = w.random.choices(FAMILIES, [one.weight for one in FAMILIES])
    kind = w.pick(*KINDS)
    w.types["sum"] = SUM.get(kind, "tl.float32")
    w.precision = w.pick("tf32", "tf32", "ieee", "tf32x3", "bf16x3")
    if kind in ("tl.float32", "tl.bfloat16", *EIGHT):
        w.tolerance = 1e-3
    tile = _tile(w, kind, family)
    w.aligned, w.sides = w.chance(0.75), dict(zip(("BM", "BN", "BK"), tile, strict=True))
    even = frozenset(side for side in "MNK" if side in family.even or w.chance(0.5))
    grid = family.write(w, kind, even)
    if kind in EIGHT and w.tolerance > 1e-3:
        w.tolerance *= 4  # results that are rounded to so few bits
    source = "\n".join(w.lines) + "\n"
    options = {"num_warps": w.pick(1, 2, 4, 4, 4, 8, 8), "num_stages": w.pick(1, 2, 3, 3, 4, 5)}
    if tile[0] * tile[1] > 64 * 64:
        options["num_warps"] = max(options["num_warps"], 8 if tile[0] * tile[1] > 128 * 128 else 4)
    types = {name: NUMPY[w.types.get(name, "tl.float32")] for name in "abwcd"}
    padded = w.aligned or "_desc" in source
    return Program(seed, source, types, dict(w.shapes), dict(w.by_rows), even, tile, grid, options, w.tolerance, padded,
                   family.write.__name__, family.single, frozenset(w.zeroed))  # fmt: skip


def _tile(w: Writer, kind: str, family: Family) -> tuple[int, int, int]:
    """Rows, columns and the length along K of a program's tiles."""
    slow = kind == "tl.float64" or (kind == "tl.float32" and w.precision == "ieee")
    sides = (16, 32, 64) if slow else (16, 32, 64, 64, 128)
    m, n = w.pick(*sides, sides[-1]), w.pick(*sides, 256 if kind == "tl.float16" else 32)
    k = max(w.pick(*sides), 32 if kind in EIGHT else 16)
    if w.chance(0.12):
        m, n = w.pick(*SHORT)
    if family.write is words and w.chance(0.7):  # tiles that wgmma takes, and tensor copies bring
        m, n, k = w.pick(64, 128), w.pick(64, 128, 128), w.pick(32, 64, 128)
    if family.write is planes:
        m, n, k = (min(side, 32) for side in (m, n, k))
    if family.write is halves:
        m, n = max(m, 8) // 4 * 4, max(n, 8)
    if family.write in (through_memory, powers):
        n = k
    if family.write is powers:
        m = k
    return m, n, k


def make(program: Program) -> JITFunction:
    """The kernel of a program."""
    return kernel_of(program.helpers, program.source)


def arguments(program: Program, scale: int, seed: int) -> tuple[dict[str, Any], tuple[int, ...]]:
    """Arguments by name, arrays of NumPy among them, and the grid; `scale` bounds the numbers of tiles."""
    rng = np.random.default_rng((program.seed, seed, scale))
    sides = dict(zip("MNK", program.tile, strict=True))
    most = {"M": 2 * scale, "N": scale + 1, "K": 3 * scale + 2}
    counts = {s: 1 if s in program.single else int(rng.integers(0 if s == "K" else 1, most[s] + 1)) for s in "MNK"}
    sizes = {s: counts[s] * sides[s] - (0 if s in program.even else int(rng.integers(0, sides[s]))) for s in "MNK"}
    sizes = {s: max(size, 0 if s == "K" else 1) for s, size in sizes.items()}
    values: dict[str, Any] = {}
    strides = {}
    for name in "abwcd":
        rows, cols = (sizes[s] for s in program.shapes.get(name, ("M", "N")))
        lines, stride = (rows, cols) if program.by_rows.get(name, True) else (cols, rows)
        stride = -(-max(stride, 1) // 16) * 16 if program.padded else max(stride, 1)
        strides[name] = stride
        values[name] = _matrix(rng, (max(lines, 1), stride), program.types[name], name, program)
    strides["c"] = max(strides["c"], strides["d"])
    for name in "cd":
        values[name] = np.resize(values[name], (len(values[name]), strides["c"]))
    longest = 4096
    values["x"] = (rng.integers(-4, 5, longest) / 4).astype(np.float32)
    values["i"], values["j"] = (_order(rng, sizes[s], longest) for s in "MK")
    named = (
        {f"{name}_ptr": values[name] for name in "abwxijcd"} | sizes | {f"s{name}": strides[name] for name in "abwc"}
    )
    tiles = {f"t{s.lower()}": -(-sizes[s] // sides[s]) for s in "MNK"}
    grid = eval(program.grid, {"min": min}, tiles)
    return named | {f"B{s}": sides[s] for s in "MNK"}, grid


def _matrix(rng: Any, shape: tuple[int, int], dtype: Any, name: str, program: Program) -> Any:
    if name in "cd":
        poison = np.nan if np.dtype(dtype).kind != "i" else 99
        return np.full(shape, 0 if name in program.zeroed else poison, np.float32).astype(dtype)
    numbers = rng.integers(-4, 5, shape)
    return (numbers if np.dtype(dtype).kind == "i" else numbers / 4).astype(np.float32).astype(dtype)


def _order(rng: Any, size: int, length: int) -> Any:
    numbers = np.zeros(max(length, size), np.int32)
    numbers[:size] = rng.permutation(size)
    return numbers


def difference(program: Program, name: str, found: Any, expected: Any) -> str | None:
    """What is wrong with a result, or nothing."""
    one, other = (np.asarray(x).astype(np.float64) for x in (found, expected))
    if not (np.isnan(one) == np.isnan(other)).all():
        wrong = np.isnan(one) != np.isnan(other)
        at = tuple(np.argwhere(wrong)[0])
        return f"{name}: {int(wrong.sum())} of {wrong.size} are no numbers on one side, the first at {at}"
    one, other = np.nan_to_num(one), np.nan_to_num(other)
    scale = max(float(np.abs(other).max(initial=0)), 1e-3)
    wrong = np.abs(one - other) > program.tolerance * scale
    if wrong.any():
        at = tuple(np.argwhere(wrong)[0])
        return f"{name}: {int(wrong.sum())} of {wrong.size}, the first at {at}: {one[at]}, not {other[at]}; largest {scale}"
    return None
