"""Offsets with products of products: in 32 bits where a launch's sizes allow it, in 64 elsewhere."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
import tilewright as triton
import tilewright.language as tl
from tilewright.analysis.facts import find_facts
from tilewright.analysis.parameter_text import parameter_text
from tilewright.analysis.reach import Reach, Reaches, conditions_of, furthest
from tilewright.artifact import GRID_SIDES
from tilewright.diagnostics import ArgumentKindError
from tilewright.ir.nodes import Call, Expr, For, Kernel, Literal, Use, Variable
from tilewright.ir.symbols import Name, OfTrips
from tilewright.ir.types import ValueType
from tilewright.ir.walk import statements
from tilewright.language.dtypes import int1, int32, uint32
from tilewright.pipeline import translate_stages
from tilewright.runtime.arguments.signature import parse_signature
from tilewright.runtime.launching.host_expressions import condition, evaluator
from tilewright.runtime.options import make_options
from tilewright.schedule.targets import find_target

SIGNATURE = "*i8:16, *i8:16, i32, i32, 64"


@triton.jit
def columns_kernel(x_ptr, y_ptr, H, W, BLOCK: tl.constexpr):
    plane = tl.program_id(1)
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    row, col = i % H, i // H
    x = tl.load(x_ptr + (plane * H + row) * W + col, mask=i < H * W)
    tl.store(y_ptr + plane * BLOCK + i, x, mask=i < H * W)


def test_the_text_says_when_it_holds() -> None:
    artifact = columns_kernel.translate(SIGNATURE)
    assert "x_ptr[(plane * H + row) * W + col]" in artifact.source
    assert artifact.guards == ("H > 0", "W >= 0")  # H need not be compared with zero twice
    assert artifact.reaches == ("num_programs_y * H * W + num_programs_x * 64 // H",)
    header = artifact.source[: artifact.source.index("constexpr int")]
    words = " ".join(header.replace("//", " ").split())
    assert "holds for H > 0, W >= 0 and for num_programs_y * H * W + num_programs_x * 64 / H < 2^31" in words
    assert "otherwise take --no-guards" in words


def test_the_other_text_is_right_for_all_sizes() -> None:
    artifact = columns_kernel.translate(SIGNATURE, guards=False)
    assert "(static_cast<long long>(plane) * H + row) * W + col" in artifact.source
    assert not artifact.reaches and "guards" not in artifact.source


def test_small_sizes(run_everywhere: Any) -> None:
    x = np.arange(3 * 7 * 9, dtype=np.int8).reshape(3, 7, 9)
    y = run_everywhere(columns_kernel, (1, 3), x, np.zeros((3, 64), np.int8), 7, 9, BLOCK=64)[1]
    np.testing.assert_array_equal(y[:, :63], x.transpose(0, 2, 1).reshape(3, 63))


def test_a_launch_that_reaches_too_far_takes_64_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_MODE", "cpu")
    side = 1 << 15
    x = np.zeros(2 * side * side + 4096 * side, np.int8)  # pages that nobody touches take no memory
    x[2 * side * side :: side] = np.arange(4096) % 100
    x[: 65 * side : side] = np.arange(65)
    y = np.zeros((3, 64), np.int8)
    taken = columns_kernel[(1, 3)](x, y, side, side, BLOCK=64)
    np.testing.assert_array_equal(y[2], np.arange(64))
    assert not taken.metadata.guards and "static_cast<long long>(plane)" in taken.source
    near = columns_kernel[(1, 1)](x, y, side, side, BLOCK=64)  # the same sizes: one plane is near enough
    assert near.metadata.guards
    with pytest.raises(ArgumentKindError, match="need another specialisation"):
        near[(1, 3)](x, y, side, side, 64)
    behind = x[64 * side :]  # sides below zero lead back, to what is in front
    assert columns_kernel[(1, 1)](behind, y, -side, -side, BLOCK=64).metadata.guards is False
    np.testing.assert_array_equal(y[0], x[64 * side : 0 : -side])


@triton.jit
def named_kernel(x_ptr, y_ptr, num_programs_y, W, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + (tl.program_id(1) * num_programs_y + i % 7) * W + i // 7)
    tl.store(y_ptr + i, x)


@triton.jit
def found_kernel(x_ptr, i_ptr, y_ptr, H, W, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    plane = tl.load(i_ptr + i)
    tl.store(y_ptr + i, tl.load(x_ptr + (plane * H + i % 7) * W + i // 7))


@triton.jit
def rows_kernel(x_ptr, y_ptr, H, W, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + i, tl.load(x_ptr + tl.program_id(1) * H * W + i, mask=i < W), mask=i < W)


@pytest.mark.parametrize(
    ("kernel", "signature"),
    [(named_kernel, SIGNATURE), (found_kernel, "*i8:16, *i32:16, *i8:16, i32, i32, 64"), (rows_kernel, SIGNATURE)],
    ids=["a parameter has the name of the grid's side", "planes are loaded", "scalars alone are multiplied"],
)
def test_what_no_launch_is_asked(kernel: Any, signature: str) -> None:
    artifact = kernel.translate(signature)
    assert not artifact.reaches and not artifact.guards and "static_cast<long long>" in artifact.source


@triton.jit
def windows_of_rows(x_ptr, y_ptr, H, W, WIDTH: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    row, col = i // W, i % W
    total = tl.zeros((BLOCK,), tl.int32)
    for c in range(WIDTH):
        total += tl.load(x_ptr + row * W + col + c, mask=(row < H) & (col + c < W), other=0).to(tl.int32)
    tl.store(y_ptr + i, total, mask=i < H * W)


@triton.jit
def windows_by_launch(x_ptr, y_ptr, H, W, width, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    row, col = i // W, i % W
    total = tl.zeros((BLOCK,), tl.int32)
    for c in range(width):
        total += tl.load(x_ptr + row * W + col + c, mask=(row < H) & (col + c < W), other=0).to(tl.int32)
    tl.store(y_ptr + i, total, mask=i < H * W)


@pytest.mark.parametrize(
    ("kernel", "width", "asks"),
    [(windows_of_rows, "3", True), (windows_of_rows, "9", False), (windows_by_launch, "i32", False)],
)
def test_trips_that_are_written_out_move_no_pointer(kernel: Any, width: str, asks: bool) -> None:
    """A pointer that a loop moves keeps its 64 bits; few trips are no loop in the end."""
    artifact = kernel.translate(f"*i8:16, *i32:16, i32, i32, {width}, 64")
    assert bool(artifact.reaches) == asks and ("static_cast<long long>(row" in artifact.source) != asks


# ------------------------------------------------------------------------------------------------------- the analysis


@triton.jit
def leaves_kernel(y_ptr, M, N):
    for k in range(2, M, 3):
        tl.store(y_ptr + k, N)


INT = ValueType(int32)
PLACES = tuple((name, place) for place, name in enumerate(("M", "N", *GRID_SIDES)))
POSITIONS = 16
BINARY = ("add", "sub", "mul", "mul", "floordiv", "mod", "minimum", "maximum", "shr", "where")


def leaves() -> tuple[Kernel, dict[str, Expr]]:
    """A kernel, and what offsets in it are made of."""
    arguments = parse_signature(leaves_kernel, "*i32:16, i32, i32")
    kernel = translate_stages(leaves_kernel, arguments, make_options({}, None), find_target("sm_90a")).kernel
    _, m, n = (parameter.variable for parameter in kernel.parameters)
    (loop,) = (statement for statement in statements(kernel.body) if isinstance(statement, For))
    positions = Call(ValueType(int32, (POSITIONS,)), "arange", (), (("start", 0), ("end", POSITIONS)))
    found: dict[str, Expr] = {"M": Use(INT, m), "N": Use(INT, n), "k": Use(INT, loop.variable), "i": positions}
    return kernel, found | {f"p{axis}": Call(INT, "program_id", (), (("axis", axis),)) for axis in range(3)}


def random_offset(draw: random.Random, known: dict[str, Expr], depth: int) -> Expr:
    """An expression of leaves and numbers."""
    if depth == 0 or draw.random() < 0.15:
        return draw.choice([*known.values(), Literal(INT, draw.randrange(-3, 9))])
    op = draw.choice(BINARY)
    args = [random_offset(draw, known, depth - 1) for _ in range(2)]
    if op == "shr":
        args[1] = Literal(INT, draw.randrange(3))
    if op == "where":
        args.insert(0, Call(ValueType(int1), "lt", tuple(args)))
    return Call(INT, op, tuple(args))


def value(expr: Expr, values: dict[Expr, int]) -> int:
    """What an offset is, as a GPU computes it."""
    if expr in values:
        return values[expr]
    if isinstance(expr, Literal):
        return int(expr.value)
    assert isinstance(expr, Call)
    *rest, a, b = (value(arg, values) for arg in expr.args)
    match expr.op:
        case "floordiv":
            return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
        case "mod":
            return abs(a) % abs(b) * (1 if a >= 0 else -1)
        case "where":
            return a if rest[0] else b
    return {"add": a + b, "sub": a - b, "mul": a * b, "minimum": min(a, b), "maximum": max(a, b), "shr": a >> max(b, 0),
            "lt": a < b}[expr.op]  # fmt: skip


def test_no_offset_is_further_away_than_it_reaches() -> None:
    kernel, known = leaves()
    reaches = Reaches(kernel, find_facts(kernel).definitions)
    draw, compared, nearest = random.Random(7), 0, 0
    for _ in range(1500):
        offset = random_offset(draw, known, draw.randrange(1, 5))
        reach = reaches.of((offset,))
        if reach is None:
            continue
        texts = (*map(parameter_text, conditions_of([reach])), f"{parameter_text(reach.most)} >= 0")
        bound = evaluator((parameter_text(reach.most),), PLACES)
        for _ in range(20):
            m, n, grid = draw.randrange(-1, 40), draw.randrange(-1, 12), [draw.randrange(1, 9) for _ in range(3)]
            counters = range(2, m, 3) or [0]
            chosen = [m, n, draw.choice(counters), draw.randrange(POSITIONS), *(draw.randrange(side) for side in grid)]
            if not condition(texts, PLACES[:2])((m, n), grid):
                continue
            try:
                found = value(offset, dict(zip(known.values(), chosen, strict=True)))
            except ZeroDivisionError:
                continue
            most = bound((m, n, *grid))[0]
            assert abs(found) <= most, (offset, chosen, grid, parameter_text(reach.most))
            compared, nearest = compared + 1, nearest + (abs(found) >= most // 2)
    assert compared > 10_000 and nearest > compared // 20  # bounds that are far off would hold, too


def test_what_is_loaded_has_no_reach() -> None:
    kernel, known = leaves()
    unknown = Use(INT, Variable("loaded", INT, 1000))
    reaches = Reaches(kernel, {})
    assert reaches.of((known["M"], unknown)) is None
    assert reaches.of((Call(INT, "mod", (unknown, known["M"])),)) is not None
    unsigned = Call(ValueType(uint32), "cast", (known["M"],))
    assert reaches.of((unsigned,)) is None  # one below zero would be far away


def test_a_number_of_static_trips_is_the_largest_of_all_trips() -> None:
    """As a divisor it says nothing: other trips divide by others."""
    kernel, known = leaves()
    step = Literal(INT, 2, symbol=Name("step", trips=OfTrips((-9, 7), 1)))
    reaches = Reaches(kernel, {})
    for op, most in (("add", "M + 9"), ("mul", "M * 9"), ("floordiv", "M"), ("mod", "9")):
        reach = reaches.of((Call(INT, op, (known["M"], step)),))
        assert reach is not None and parameter_text(reach.most) == most


@pytest.mark.parametrize("outer", ["minimum", "maximum"])
def test_what_is_cut_off_at_edges_is_between_them(outer: str) -> None:
    kernel, known = leaves()
    last, zero = Call(INT, "sub", (known["M"], Literal(INT, 1))), Literal(INT, 0)
    loaded = Use(INT, Variable("loaded", INT, 1000))
    inner = {"minimum": ("maximum", (loaded, zero), last), "maximum": ("minimum", (loaded, last), zero)}[outer]
    index = Variable("index", INT, 1001)
    reaches = Reaches(kernel, {index: Call(INT, inner[0], inner[1])})
    for args in [(Use(INT, index), inner[2]), (inner[2], Use(INT, index))]:
        reach = reaches.of((Call(INT, outer, args),))
        assert reach is not None and parameter_text(reach.most) == "M + 1"
    assert reaches.of((Use(INT, index),)) is None


@pytest.mark.parametrize("op", ["mul", "floordiv"])
def test_places_that_grow_and_grow_have_no_reach(op: str) -> None:
    """Multiplied out, or rounded one inside the other, they would double with each line."""
    kernel, known = leaves()
    values: dict[Variable, Expr] = {}
    last = Call(INT, "add", (known["M"], known["p0"]))
    for number in range(60):
        variable = Variable("x", INT, 1000 + number)
        values[variable], last = last, Use(INT, variable)
        by = last if op == "mul" else Literal(INT, 3)
        last = Call(INT, "add", (Call(INT, op, (last, by)), Call(INT, "add", (last, known["i"]))))
    reaches = Reaches(kernel, values)
    assert reaches.of((last,)) is None
    assert reaches.of((Call(INT, "mod", (last, known["M"])),)) is not None


def test_bounds_that_others_exceed_are_left_out() -> None:
    kernel, known = leaves()
    reaches = Reaches(kernel, {})
    m, n, two = known["M"], known["N"], Literal(INT, 2)

    def reach(expr: Expr) -> Reach:
        found = reaches.of((expr,))
        assert found is not None
        return found

    near, far = reach(Call(INT, "mul", (m, n))), reach(Call(INT, "mul", (Call(INT, "add", (m, two)), n)))
    assert furthest([near, far]) == furthest([far, near]) == (far.most,)
    assert furthest([far, reach(m)]) == (far.most, reach(m).most)  # N may be 0
