"""What is known of integers: ranges by enumeration, elements of fixed tiles, and banks that lanes meet."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from tilewright.analysis.axis_info import known_divisor
from tilewright.analysis.fixed_tiles import fixed_tile
from tilewright.analysis.ranges import integer_range
from tilewright.ir.nodes import Call, Expr, Literal, Use, Variable
from tilewright.ir.types import ValueType
from tilewright.language.dtypes import int1, int8, int32, uint8
from tilewright.ops.registry import OPS
from tilewright.schedule.products.held_operands import ROWS_OF_LANES
from tilewright.schedule.products.shared_tiles import SharedTile

SIDES = ((-3, 5), (0, 6), (2, 9), (-7, -1), (4, 5))
TILE = ValueType(int32, (8,))


def arange(start: int, end: int) -> Call:
    return Call(ValueType(int32, (end - start,)), "arange", (), (("start", start), ("end", end)))


def binary(op: str, left: Expr, right: Expr) -> Call:
    return Call(left.type, op, (left, right))


@pytest.mark.parametrize("op", ["add", "sub", "mul", "and", "or", "xor", "shr", "mod", "minimum", "maximum"])
def test_ranges_hold_every_result(op: str) -> None:
    for (a, b), (c, d) in itertools.product(SIDES, SIDES):
        if (op == "shr" and c < 0) or (op == "mod" and c <= 0 < d):
            continue
        least, greatest = integer_range(binary(op, arange(a, b), arange(c, d)), {})
        left, right = np.meshgrid(np.arange(a, b), np.arange(c, d))
        results = OPS[op].numpy(left, right)
        assert least <= results.min() and results.max() <= greatest, (op, a, b, c, d)


@pytest.mark.parametrize("op", ["lt", "le", "gt", "ge"])
def test_ranges_of_choices_between_what_is_compared(op: str) -> None:
    for left, right in itertools.permutations((arange(*side) for side in SIDES), 2):
        condition = Call(ValueType(int1, (8,)), op, (left, right))
        x, y = np.meshgrid(np.arange(*_ends(left)), np.arange(*_ends(right)))
        holds = OPS[op].numpy(x, y)
        for yes, no, results in ((left, right, np.where(holds, x, y)), (right, left, np.where(holds, y, x))):
            least, greatest = integer_range(Call(left.type, "where", (condition, yes, no)), {})
            assert least <= results.min() and results.max() <= greatest, (op, left, right)
    number = Literal(TILE, 5)
    word = Use(TILE, Variable("word", TILE, 1))
    known = {"lt": (-(1 << 31), 5), "le": (-(1 << 31), 5), "gt": (5, (1 << 31) - 1), "ge": (5, (1 << 31) - 1)}
    condition = Call(ValueType(int1, (8,)), op, (word, number))
    assert integer_range(Call(TILE, "where", (condition, word, number)), {}) == known[op]


def _ends(tile: Call) -> tuple[int, int]:
    return tile.attribute("start"), tile.attribute("end")


def test_ranges_that_matter() -> None:
    word = Use(TILE, Variable("word", TILE, 1))
    nibble = binary("and", binary("shr", word, Literal(TILE, 4)), Literal(TILE, 15))
    assert integer_range(nibble, {}) == (0, 15)
    assert integer_range(binary("sub", nibble, Literal(TILE, 8)), {}) == (-8, 7)
    assert integer_range(Call(ValueType(int8, (8,)), "cast", (word,)), {}) == (-128, 127)
    assert integer_range(Use(ValueType(uint8, ()), Variable("byte", ValueType(uint8, ()), 2)), {}) == (0, 255)
    assert integer_range(binary("add", word, Literal(TILE, 1)), {}) == (-(1 << 31), (1 << 31) - 1)


@pytest.mark.parametrize(("divisor", "known"), [(8, True), (16, True), (4, False)])
def test_what_remains_of_a_division_is_known_where_the_rest_is_a_multiple(divisor: int, known: bool) -> None:
    block, eight = Variable("block", ValueType(int32), 1), Literal(TILE, 8)
    start = Call(TILE, "broadcast", (Use(block.type, block),))
    shift = binary("mul", binary("mod", binary("add", start, arange(0, 8)), eight), Literal(TILE, 4))
    info = known_divisor(divisor)
    environment = {block: type(info)(info.contiguity, info.divisibility, info.constancy, None, True)}
    found = fixed_tile(shift, {}, environment)
    assert (found is not None) == known
    assert found is None or found.tolist() == [0, 4, 8, 12, 16, 20, 24, 28]
    assert fixed_tile(shift, {}, {block: info}) is None  # what is negative leaves a negative rest


@pytest.mark.parametrize("run", [4, 8])
@pytest.mark.parametrize("k", [64, 128])
def test_lanes_that_read_runs_of_a_together_meet_no_bank_twice(run: int, k: int) -> None:
    tile, together = SharedTile((16, k), 1, 2), 128 // (2 * run)
    for first in range(0, 32, together):
        banks: list[int] = []
        for lane in range(first, first + together):
            row = sum((lane >> bit & 1) << place for place, bit in enumerate(ROWS_OF_LANES[run]))
            start = tile.offset((row, lane % 4 * run)) * 2 // 4
            banks += [bank % 32 for bank in range(start, start + run // 2)]
        assert len(set(banks)) == 32
