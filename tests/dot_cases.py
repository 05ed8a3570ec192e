"""The table of kernels with dots: arguments, what must come out in float64, tolerance. `scale` multiplies all sizes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import dot_kernels as kernels
import dot_kernels_more as more
import ml_dtypes
import numpy as np
import tilewright.language as tl

Array = np.ndarray[Any, Any]


@dataclass
class Problem:
    """A launch: `arguments` by name, what arrays among them must hold afterwards, and how exactly.

    `keeps` are results that start from their content; all others are poisoned before the launch.
    """

    kernel: Any
    grid: tuple[int, ...]
    arguments: dict[str, Any]
    expected: dict[str, Array]
    tolerance: float = 1e-4
    keeps: tuple[str, ...] = ()


@dataclass(frozen=True)
class Case:
    """A problem by name; `build(scale)` makes it, `options` go with the launch."""

    name: str
    build: Callable[[int], Problem]
    options: dict[str, int] = field(default_factory=dict)


def normal(*shape: int, dtype: Any = np.float16, seed: int = 1) -> Array:
    """Random numbers of a type."""
    generator = np.random.default_rng((seed, *shape))
    if np.dtype(dtype) == np.int8:
        return generator.integers(-128, 128, shape).astype(np.int8)
    return generator.standard_normal(shape).astype(np.float32).astype(dtype)


def wide(array: Array) -> Array:
    """In float64."""
    return array.astype(np.float32).astype(np.float64) if array.dtype.itemsize < 4 else array.astype(np.float64)


def poisoned(shape: tuple[int, ...], dtype: Any = np.float32) -> Array:
    """What a result holds before the launch."""
    return np.full(shape, np.nan if np.dtype(dtype).kind != "i" else 2**30, dtype)


def tiles(scale: int, bn: int = 32, bk: int = 32, bm: int = 64) -> dict[str, int]:
    """Tile sizes, larger on a GPU."""
    return {"BM": bm * min(scale, 2), "BN": bn * min(scale, 2), "BK": bk}


def product(
    kernel: Any,
    m: int = 128,
    n: int = 64,
    k: int = 160,
    reference: Callable[[Array, Array, dict[str, int]], Array] | None = None,
    grid: Callable[[dict[str, int], int, int], tuple[int, ...]] | None = None,
    out: Any = np.float32,
    bn: int = 32,
    bk: int = 32,
    bm: int = 64,
    tolerance: float = 1e-4,
    **meta: Any,
) -> Callable[[int], Problem]:
    """A case of the usual arguments; `reference(a, b, blocks)` in float64 is a @ b unless it says otherwise."""

    def build(scale: int) -> Problem:
        blocks = tiles(scale, bn, bk, bm)
        sizes = m * scale, n * min(scale, 2), k
        a, b = normal(sizes[0], sizes[2]), normal(sizes[2], sizes[1])
        expected = (reference or (lambda a, b, _: a @ b))(wide(a), wide(b), blocks)
        programs = (grid or both)(blocks, sizes[0], sizes[1])
        arguments = dict(a_ptr=a, b_ptr=b, c_ptr=poisoned(expected.shape, out), M=sizes[0], N=sizes[1], K=sizes[2])
        return Problem(kernel, programs, {**arguments, **meta, **blocks}, {"c_ptr": expected}, tolerance)

    return build


def both(blocks: dict[str, int], m: int, n: int) -> tuple[int, int]:
    """A program per tile."""
    return -(-m // blocks["BM"]), -(-n // blocks["BN"])


def by_rows(blocks: dict[str, int], m: int, n: int) -> tuple[int]:
    """A program per row of tiles."""
    return (-(-m // blocks["BM"]),)


def some_of_k(start: int, stop: int | None, step: int) -> Callable[[Array, Array, dict[str, int]], Array]:
    """The product over some blocks of K."""

    def reference(a: Array, b: Array, blocks: dict[str, int]) -> Array:
        k = blocks["BK"]
        chosen = np.arange(a.shape[1]).reshape(-1, k)[start:stop:step].reshape(-1)
        return np.asarray(a[:, chosen] @ b[chosen])

    return reference


def _odd_rows(a: Array, b: Array, blocks: dict[str, int]) -> Array:
    return a @ b * (np.arange(len(a)) // blocks["BM"] % 2 == 1)[:, None]


def _centred(a: Array, b: Array, blocks: dict[str, int]) -> Array:
    c = (a @ b).reshape(len(a), -1, blocks["BN"])
    return np.asarray((c - c.mean(axis=2, keepdims=True)).reshape(len(a), -1))


def _column_sums(a: Array, b: Array, blocks: dict[str, int]) -> Array:
    return np.asarray((a @ b).reshape(-1, blocks["BM"], b.shape[1]).sum(axis=1))


def _last_again(a: Array, b: Array, blocks: dict[str, int]) -> Array:
    last = a.shape[1] - blocks["BK"]
    return np.asarray(a @ b + a[:, last:] @ b[last:])


def _halved(a: Array, b: Array, blocks: dict[str, int]) -> Array:
    total = np.zeros((len(a), b.shape[1]))
    n = total.shape[1] // blocks["BN"]
    highest = np.zeros((len(a), n, 1))
    for k in range(0, a.shape[1], blocks["BK"]):
        total = total * 0.5 + a[:, k : k + blocks["BK"]] @ b[k : k + blocks["BK"]]
        highest = np.maximum(highest, total.reshape(len(a), n, -1).max(axis=2, keepdims=True))
    return np.asarray((total.reshape(len(a), n, -1) + highest).reshape(total.shape))


def _columns(c: Array, blocks: dict[str, int]) -> Array:
    c = c * 2
    c[:, :: blocks["BN"]] = np.arange(len(c))[:, None]
    return c


def _halves(a: Array, b: Array, blocks: dict[str, int]) -> Array:
    n = blocks["BN"]
    return np.concatenate([(a @ b[:, :n]).reshape(-1), (a @ b[:, n:]).T.reshape(-1)])


def _running(a: Array, b: Array, blocks: dict[str, int]) -> Array:
    k = blocks["BK"]
    return np.concatenate([a[:, : i + k] @ b[: i + k] for i in range(0, a.shape[1], k)])


def _strided(scale: int) -> Problem:
    problem = product(kernels.strided, k=256)(scale)
    a, b = (wide(problem.arguments[name]) for name in ("a_ptr", "b_ptr"))
    problem.arguments |= {"first": 32, "step": 96}
    problem.expected["c_ptr"] = some_of_k(1, None, 3)(a, b, {"BK": 32}) + 224
    return problem


def _listed(writes: bool) -> Callable[[int], Problem]:
    def build(scale: int) -> Problem:
        problem = product(kernels.places_in_memory, k=256)(scale)
        places = np.array([3, 0, 7, 1, 5, 2, 2, 0, 0, 0], np.int32)
        used = np.arange(3, 10) % 8 if writes else places[:7]
        if writes:  # programs would write over each other's list
            problem = product(kernels.places_in_memory, k=256, m=64, n=32)(1)
        chosen = (used[:, None] * 32 + np.arange(32)).reshape(-1)
        a, b = (wide(problem.arguments[name]) for name in ("a_ptr", "b_ptr"))
        problem.arguments |= {"list_ptr": places, "count": 7, "WRITES": writes}
        problem.expected["c_ptr"] = a[:, chosen] @ b[chosen]
        return problem

    return build


def _fused(kernel: Any, n: int) -> Callable[[int], Problem]:
    def build(scale: int) -> Problem:
        problem = product(kernel, n=n, k=288, grid=by_rows, tolerance=2e-3)(scale)
        a, b, blocks = problem.arguments["a_ptr"], problem.arguments["b_ptr"], tiles(scale)
        w = normal(b.shape[1], blocks["BN"], seed=2)
        middle = (wide(a) @ wide(b)).astype(np.float32).astype(np.float16)
        problem.expected = {"c_ptr": wide(middle) @ wide(w)}
        problem.arguments |= {"w_ptr": w, "c_ptr": poisoned(problem.expected["c_ptr"].shape)}
        return problem

    return build


def _returning(by_tile: bool) -> Callable[[int], Problem]:
    def build(scale: int) -> Problem:
        problem = product(kernels.early_return, m=256)(scale)
        counts = np.zeros((problem.grid[0], 4), np.int32)
        counts[1::2, 0] = 1
        problem.arguments |= {
            "count_ptr": counts,
            "BY_TILE": by_tile,
            "c_ptr": np.zeros_like(problem.arguments["c_ptr"]),
        }
        problem.keeps = ("c_ptr",)
        rows = np.repeat(counts[:, 0], problem.arguments["BM"])[:, None]
        problem.expected["c_ptr"] = problem.expected["c_ptr"] * rows
        return problem

    return build


def _in_place(scale: int) -> Problem:
    steps, width, bm, bk = 6, 128 * scale, 64, 32
    x, w = normal(steps + 1, width, bk), normal(steps, bk, bk, seed=2) * np.float16(0.2)
    expected = wide(x)
    for i in range(steps):
        step = (expected[i].astype(np.float16).astype(np.float64) @ wide(w[i])).astype(np.float16)
        expected[i + 1] = (expected[i + 1].astype(np.float16) + step).astype(np.float64)
    arguments = dict(x_ptr=x, w_ptr=w, steps=steps, W=width, BM=bm, BK=bk)
    return Problem(kernels.in_place, (width // bm,), arguments, {"x_ptr": expected}, 3e-3, ("x_ptr",))


def _itself(scale: int) -> Problem:
    m, k = 64 * 2 * scale, 160
    a = normal(m, k)
    square = wide(a).reshape(-1, 64, k)
    expected = (square @ square.swapaxes(1, 2)).reshape(m, 64)
    return Problem(
        more.with_itself,
        (m // 64,),
        dict(a_ptr=a, c_ptr=poisoned((m, 64)), M=m, K=k, BM=64, BK=32),
        {"c_ptr": expected},
    )


def _bytes(scale: int) -> Problem:
    m, n, k = 64 * scale, 64, 128 * 3
    a, b = normal(k, m, dtype=np.int8), normal(n, k, dtype=np.int8)
    rows = np.random.default_rng(3).permutation(m).astype(np.int32)
    chosen = wide(a).T[rows]
    expected = chosen @ wide(b).T + chosen.sum(axis=1, keepdims=True)
    arguments = dict(
        a_ptr=a, b_ptr=b, row_ptr=rows, c_ptr=poisoned((m, n), np.int32), M=m, N=n, K=k, BM=64, BN=64, BK=128
    )
    return Problem(more.scattered_bytes, (m // 64, 1), arguments, {"c_ptr": expected}, 0.0)


def _summed(out: Any, tolerance: float) -> Callable[[int], Problem]:
    def build(scale: int) -> Problem:
        problem = product(
            more.summed_rows, m=64 * 5 - 8, n=64, bn=64, k=96, grid=by_rows, out=out, tolerance=tolerance
        )(scale)
        n = problem.arguments["N"]
        bias = normal(n, dtype=np.float32)
        c = problem.expected["c_ptr"] + bias
        problem.arguments |= {
            "bias_ptr": bias,
            "row_ptr": poisoned((len(c),)),
            "OUT": tl.float16 if out == np.float16 else tl.float32,
        }
        problem.expected = {"c_ptr": c, "row_ptr": c.sum(axis=1)}
        return problem

    return build


def _accumulated(scale: int) -> Problem:
    problem = product(more.accumulated)(scale)
    c = normal(*problem.expected["c_ptr"].shape, dtype=np.float32, seed=3)
    problem.arguments |= {"c_ptr": c, "beta": -2.0}
    problem.expected["c_ptr"] = problem.expected["c_ptr"] - 2 * c
    problem.keeps = ("c_ptr",)
    return problem


def _turned(scale: int, **sizes: int) -> Problem:
    problem = product(more.turned, **sizes)(scale)  # type: ignore[arg-type]
    for name in ("a_ptr", "b_ptr"):
        problem.arguments[name] = problem.arguments[name].T.copy()
    problem.arguments["c_ptr"] = problem.arguments["c_ptr"].T.copy()
    problem.expected["c_ptr"] = problem.expected["c_ptr"].T
    return problem


TYPES: dict[str, tuple[Any, Any, Any, float]] = {  # operands, sum, and the tolerance
    "bf16": (ml_dtypes.bfloat16, np.float32, tl.float32, 1e-4),
    "fp32": (np.float32, np.float32, tl.float32, 2e-3),
    "fp64": (np.float64, np.float64, tl.float64, 1e-12),
    "int8": (np.int8, np.int32, tl.int32, 0.0),
    "e4m3": (ml_dtypes.float8_e4m3fn, np.float32, tl.float32, 1e-2),
    "e5m2": (ml_dtypes.float8_e5m2, np.float32, tl.float32, 1e-2),
    "half sums": (np.float16, np.float16, tl.float16, 2e-2),
}  # fmt: skip


# Of float32 operands: what is kept of them, to a factor of four.
PRECISIONS = {"tf32x3": 2.0**-20, "bf16x3": 2.0**-14, "bf16x6": 2.0**-20, "ieee": 2.0**-20}


def _typed(name: str, precision: str | None = None) -> Callable[[int], Problem]:
    def build(scale: int) -> Problem:
        operand, result, acc, tolerance = TYPES[name]
        tolerance = PRECISIONS.get(precision or "", tolerance)
        m, n, k, blocks = 64 * 2 * scale, 64 * scale, 192, tiles(1, 32, 64)
        a, b = normal(m, k, dtype=operand), normal(n, k, dtype=operand)
        arguments = dict(
            a_ptr=a, b_ptr=b, c_ptr=poisoned((m, n), result), M=m, N=n, K=k, ACC=acc, PRECISION=precision, **blocks
        )
        return Problem(more.of_any_type, both(blocks, m, n), arguments, {"c_ptr": wide(a) @ wide(b).T}, tolerance)

    return build


def _of_floats(build: Callable[[int], Problem]) -> Callable[[int], Problem]:
    """The same problem with float32 operands, which wgmma reads along K only."""

    def built(scale: int) -> Problem:
        problem = build(scale)
        for name in ("a_ptr", "b_ptr"):
            problem.arguments[name] = problem.arguments[name].astype(np.float32)
        return problem

    return built


def _planes(p: int, m: int, n: int) -> Callable[[int], Problem]:
    def build(scale: int) -> Problem:
        k = 96 * scale
        a, b = normal(p, m, k), normal(p, k, n)
        arguments = dict(a_ptr=a, b_ptr=b, c_ptr=poisoned((p, m, n)), P=p, M=m, N=n, K=k, BK=32)
        return Problem(more.planes, (1,), arguments, {"c_ptr": wide(a) @ wide(b)})

    return build


def small_rings(monkeypatch: Any) -> None:
    """Two or three stages in what is translated from here on, so that small sizes come round to the first one again.

    Translations are checked and made anew: what is kept on disk has other stages.
    """
    monkeypatch.setattr("tilewright.schedule.staging.rings.MOST_STAGES", 2)
    monkeypatch.setenv("TILEWRIGHT_VERIFY", "1")


def _case(name: str, build: Callable[[int], Problem], **options: int) -> Case:
    return Case(name, build, options)


def all_cases() -> list[Case]:
    """Every case, in a fixed order."""
    plain = product(kernels.product, START=0, STEP=1)
    three = dict(n=128, bm=128, bn=64, m=256, k=96, START=0, STEP=1)
    sixteen = partial(_turned, m=256, n=128, bm=128, bn=128, k=96)
    half = dict(out=np.float16, tolerance=2e-3)
    turns = dict(grid=lambda *_: (3,), PROGRAMS=3, **half)
    even, odd = dict(m=160, n=80, k=112), dict(m=152, n=71, k=103)
    return [
        *(_case(f"{stages} stages", plain, num_stages=stages) for stages in (1, 2, 5)),
        *(_case(f"{warps} warps", plain, num_warps=warps) for warps in (1, 2, 16)),
        *(_case(f"K of {k}", product(kernels.product, k=k, START=0, STEP=1)) for k in (32, 416)),
        _case("no trip", product(kernels.product, k=32, START=1, STEP=1, reference=some_of_k(1, 0, 1))),
        _case("edges", product(kernels.product, m=112, n=48, START=0, STEP=1)),
        _case("eight columns", product(kernels.product, n=8, bn=8, START=0, STEP=1)),
        _case("wide lines", product(kernels.product, n=128, bn=128, bk=64, k=192, START=0, STEP=1), num_warps=8),
        _case("two warpgroups side by side", product(kernels.product, **(three | {"bm": 64, "bn": 128})), num_warps=8),
        _case("two warpgroups below each other", product(kernels.product, **three), num_warps=8),
        _case("from the third block", product(kernels.product, START=2, STEP=1, reference=some_of_k(2, None, 1))),
        _case("every second block", product(kernels.product, START=1, STEP=2, reference=some_of_k(1, None, 2))),
        _case("down", product(kernels.product, START=1, STEP=-1, reference=some_of_k(0, -1, 1))),
        _case("start and step at run time", _strided),
        _case("two loops", product(kernels.two_loops, reference=lambda a, b, _: 1.5 * (a @ b))),
        _case("two loops, two stages", product(kernels.two_loops, reference=lambda a, b, _: 1.5 * (a @ b)), num_stages=2),
        _case("loop in while", product(kernels.loop_in_while, n=128, grid=by_rows)),
        _case("loop in loop", product(kernels.loop_in_loop, n=128, grid=by_rows, reference=_centred)),
        _case("loop in a condition", product(kernels.loop_in_condition, m=256, reference=_odd_rows)),
        _case("dot in a condition", product(kernels.dot_in_condition, k=224, reference=some_of_k(1, None, 3))),
        _case("tile loaded before the loop", product(kernels.resident, n=160, k=32, grid=by_rows)),
        _case("sums change places", product(kernels.swapped_sums, reference=lambda a, b, _: 2 * (a @ b) + 3)),
        _case("tiles used after the loop", product(kernels.used_after, reference=_last_again)),
        _case("tile loaded after an inner loop", _fused(kernels.outer_tile_after_inner_loop, 96)),
        _case("early return by a scalar", _returning(False)),
        _case("early return by a sum", _returning(True)),
        _case("stored by one trip, loaded by the next", _in_place),
        _case("places in memory", _listed(False)),
        _case("places in memory that the kernel writes", _listed(True)),
        _case("rescaled sums", product(more.rescaled, reference=_halved)),
        _case("shared operand", product(more.shared_operand, grid=by_rows, reference=_halves)),
        _case("tile times itself", _itself),
        *(_case(f"bytes of lanes, {warps} warps", _bytes, num_warps=warps) for warps in (1, 4)),
        _case("chained dots", _fused(more.chained, 32)),
        _case("running sums in one place", product(more.running_sums, SAME_PLACE=True)),
        _case("running sums", product(more.running_sums, SAME_PLACE=False, reference=_running)),
        _case("loop in loop, two warpgroups", product(kernels.loop_in_loop, n=128, m=256, bm=128, grid=by_rows,
                                                      reference=_centred), num_warps=8),
        _case("stored twice", product(more.stored_twice, reference=lambda a, b, blocks: _columns(a @ b, blocks))),
        _case("sums of rows behind the store", _summed(np.float32, 1e-4)),
        _case("sums of rows, half results", _summed(np.float16, 2e-3), num_warps=8),
        _case("sums of columns alone", product(more.column_sums, m=320, n=32, k=32, grid=by_rows, reference=_column_sums)),
        _case("result that is read first", _accumulated),
        _case("turned", _turned),
        _case("turned, 16 warps", sixteen, num_warps=16),
        *(_case(f"type {name}", _typed(name)) for name in TYPES),
        *(_case(f"precision {name}", _typed("fp32", name)) for name in PRECISIONS),
        *(_case(f"short tiles {bm} x {bn} x {bk}", product(kernels.product, m=6 * bm, n=3 * bn, bm=bm, bn=bn, bk=bk, k=5 * bk,
                START=0, STEP=1)) for bm, bn, bk in ((1, 32, 64), (4, 8, 16), (16, 2, 32), (8, 1, 8), (48, 24, 40), (3, 5, 12))),
        _case("short planes", _planes(2, 4, 2)), _case("odd planes", _planes(3, 5, 12)),
        *(_case(f"{p} planes, {warps} warps", _planes(p, m, n), num_warps=warps) for p, m, n, warps in
          ((2, 16, 16, 1), (4, 32, 16, 4), (1, 64, 32, 4), (8, 16, 8, 4))),
        _case("descriptors in turn", product(more.by_descriptors, **even, **turns)),
        _case("odd descriptors in turn", product(more.by_descriptors, **(odd | {"n": 72, "k": 104}), **turns)),
        _case("block pointers", product(more.by_block_pointers, **even, **half)),
        _case("odd block pointers", product(more.by_block_pointers, **odd, **half)),
        _case("odd block pointers of floats", _of_floats(product(more.by_block_pointers, **odd, **half))),
        _case("floats, rows of b aligned", _of_floats(product(more.by_block_pointers, **(odd | {"n": 72}), **half))),
    ]  # fmt: skip
