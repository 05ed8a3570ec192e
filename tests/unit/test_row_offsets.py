"""Offsets that several accesses share: what they add for a row is computed once, under a name.

In 32 bits where a launch is asked whether they are enough; without guards in 64.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import tilewright as triton
import tilewright.language as tl
from tilewright.analysis.facts import find_facts
from tilewright.artifact import LARGEST_OFFSET
from tilewright.ir.nodes import Literal
from tilewright.ir.structured import assigns
from tilewright.ir.walk import statements
from tilewright.pipeline import translate_stages
from tilewright.runtime.arguments.signature import parse_signature
from tilewright.runtime.options import make_options
from tilewright.schedule.accesses.small_offsets import small_offsets
from tilewright.schedule.targets import find_target


@triton.jit
def halves_turned(x_ptr, out_ptr, M, stride, ROWS: tl.constexpr, HALF: tl.constexpr):
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    offsets = (rows * 3)[:, None] * stride + tl.arange(0, HALF)[None, :]
    mask = (rows < M)[:, None]
    left, right = tl.load(x_ptr + offsets, mask=mask), tl.load(x_ptr + offsets + HALF, mask=mask)
    tl.store(out_ptr + offsets, -right, mask=mask)
    tl.store(out_ptr + offsets + HALF, left, mask=mask)


SIGNATURE = "*fp32:16, *fp32:16, i32, i32:16, 16, 32"


def test_four_accesses_read_the_place_of_their_row(run_everywhere: Any) -> None:
    """Each of them had `static_cast<long long>(rows[r] * 3) * stride` of its own."""
    text = halves_turned.translate(SIGNATURE).source
    assert len(re.findall(r"_ptr \+ offsets_of_row\[?r?\]? \+ ", text)) == 4 and "long long" not in text
    text = halves_turned.translate(SIGNATURE, guards=False).source
    assert len(re.findall(r"_ptr \+ offsets_of_row\[?r?\]? \+ ", text)) == 4
    assert text.count("* stride") - text.count("* stride +") == 1  # beside the quoted line
    assert text.count("(the rest formed where it is used)") == 1
    assert not re.search(r"constexpr int OFFSETS_\w+|offsets_of_row_row", text)  # tiles in registers give the names
    x = np.random.default_rng(1).standard_normal((3 * 20, 64)).astype(np.float32)
    _, out = run_everywhere(halves_turned, (2,), x, np.zeros_like(x), 20, 64, ROWS=16, HALF=32)
    expected = np.zeros_like(x)
    expected[::3] = np.concatenate([-x[::3, 32:], x[::3, :32]], axis=1)
    assert np.array_equal(out, expected)


@triton.jit
def by_columns(x_ptr, y_ptr, out_ptr, stride, ROWS: tl.constexpr, COLS: tl.constexpr):
    rows, cols = tl.arange(0, ROWS), tl.arange(0, COLS)
    at = rows[:, None] - 8 + (cols * 2)[None, :] * stride + (tl.program_id(0) + 1) * 8
    tl.store(out_ptr + at, tl.load(x_ptr + at) + tl.load(y_ptr + at))


def test_either_axis_may_be_the_one_that_is_multiplied(run_everywhere: Any) -> None:
    text = by_columns.translate("*fp32:16, *fp32:16, *fp32:16, i32:16, 16, 8").source
    assert len(re.findall(r"_ptr(?: \+ |\[)at_of_row\b", text)) == 3
    x, y = np.random.default_rng(2).standard_normal((2, 2000)).astype(np.float32)
    *_, out = run_everywhere(by_columns, (1,), x, y, np.zeros_like(x), 128, ROWS=16, COLS=8)
    place = np.arange(16)[:, None] + np.arange(8)[None, :] * 2 * 128
    assert np.array_equal(out[place], (x + y)[place]) and np.count_nonzero(out) == place.size


@triton.jit
def far_apart(x_ptr, out_ptr, stride, ROWS: tl.constexpr, COLS: tl.constexpr):
    offs = tl.arange(0, ROWS)[:, None] * stride + tl.arange(0, COLS)[None, :]
    tl.store(out_ptr + offs, tl.load(x_ptr + offs) + 1.0)


def test_places_beyond_32_bits_are_found() -> None:
    artifact = far_apart.translate("*fp32:16, *fp32:16, i32:16, 8, 64")
    assert re.search(r"int offs_of_row(?:\[\w+\])?(?:;| =)", artifact.source) and "long long" not in artifact.source
    assert artifact.reaches == ("stride * 7 + 63",) and artifact.guards == ("stride >= 0",)
    text = far_apart.translate("*fp32:16, *fp32:16, i32:16, 8, 64", guards=False).source
    assert re.search(r"long long offs_of_row(?:\[\w+\])?(?:;| =)", text) and "static_cast<long long>" in text


@triton.jit
def by_blocks(x_ptr, out_ptr, M, stride, ROWS: tl.constexpr, COLS: tl.constexpr):
    rows = tl.arange(0, ROWS)
    for first in range(0, M, ROWS):
        offs = (first + rows)[:, None] * stride + tl.arange(0, COLS)[None, :]
        tl.store(out_ptr + offs, tl.load(x_ptr + offs) + 1.0)


def test_a_sum_that_is_multiplied_has_32_bits_itself() -> None:
    """In 64 bits, its product would take several instructions; alone, in any other offset, it has 32, too."""
    text = by_blocks.translate("*fp32:16, *fp32:16, i32, i32:16, 8, 64", guards=False).source
    assert re.search(r"offs_of_row(?:\[r\])? = static_cast<long long>\(first \+ (?:rows(?:\[r\])?)\) \* stride;", text)


@triton.jit
def moved_by_trips(x_ptr, out_ptr, n, stride, ROWS: tl.constexpr, COLS: tl.constexpr):
    offs = tl.arange(0, ROWS)[:, None] * stride + tl.arange(0, COLS)[None, :]
    for first in range(0, n, COLS):
        tl.store(out_ptr + first + offs, tl.load(x_ptr + first + offs) + 1.0)


def test_rows_of_pointers_that_trips_move_have_64_bits() -> None:
    """A loop adds to a pointer of 64 bits; offsets of 32 it would have to widen each time."""
    artifact = moved_by_trips.translate("*fp32:16, *fp32:16, i32, i32, 8, 64")
    assert re.search(r"long long offs_of_row(?:\[\w+\])?(?:;| =)", artifact.source) and not artifact.reaches


@triton.jit
def found_in_each_trip(x_ptr, out_ptr, n, stride, ROWS: tl.constexpr, COLS: tl.constexpr):
    rows, cols = tl.arange(0, ROWS), tl.arange(0, COLS)
    total = tl.zeros((ROWS, COLS), tl.float32)
    for first in range(0, n):
        offs = rows[:, None] * stride + cols[None, :]
        total += tl.load(x_ptr + offs + first) + tl.load(x_ptr + offs + first + COLS)
    tl.store(out_ptr + rows[:, None] * COLS + cols[None, :], total)


def test_a_row_of_32_bits_is_asked_for_wherever_it_is_found() -> None:
    """The product is the same in all trips, as those of pointers that a loop moves are, which ask for nothing."""
    artifact = found_in_each_trip.translate("*fp32:16, *fp32:16, i32, i32, 8, 64")
    assert "int offs_of_row" in artifact.source and artifact.reaches == ("stride * 7 + n + 128",)


@triton.jit
def read_by_nobody(x_ptr, out_ptr, stride, ROWS: tl.constexpr, COLS: tl.constexpr):
    offs = tl.arange(0, ROWS)[:, None] * stride + tl.arange(0, COLS)[None, :]
    tl.load(x_ptr + offs)
    tl.load(x_ptr + offs + 1)
    tl.store(out_ptr + tl.arange(0, COLS), 1.0)


def test_a_row_of_loads_that_nobody_reads_asks_for_nothing() -> None:
    artifact = read_by_nobody.translate("*fp32:16, *fp32:16, i32, 8, 64")
    assert "of_row" not in artifact.source and not artifact.reaches


@triton.jit
def found_in_memory(rows_ptr, x_ptr, out_ptr, stride, ROWS: tl.constexpr, COLS: tl.constexpr):
    rows, cols = tl.load(rows_ptr + tl.arange(0, ROWS)), tl.arange(0, COLS)
    tl.store(out_ptr + rows[:, None] * stride + cols[None, :], tl.load(x_ptr + rows[:, None] * stride + cols[None, :]))


def test_what_is_made_of_a_row_without_a_reach_is_too_far_for_every_launch() -> None:
    """No pass makes one today; the text for all sizes would be taken."""
    options, target = make_options({}, None), find_target("sm_90a")
    arguments = parse_signature(found_in_memory, "*i32:16, *fp32:16, *fp32:16, i32, 8, 64")
    found = translate_stages(found_in_memory, arguments, options, target)
    (rows,) = (s.targets[0] for s in statements(found.prepared.body) if assigns(s, "load") and s.target.name == "rows")
    short = replace(found.prepared, short_rows=frozenset({rows}))
    (reach,) = small_offsets(short, find_facts(short), options, False).reaches
    assert isinstance(reach, Literal) and reach.value == LARGEST_OFFSET + 1
    assert not small_offsets(found.prepared, found.facts, options, False).reaches


@triton.jit
def sums_far_apart(x_ptr, out_ptr, stride, ROWS: tl.constexpr, COLS: tl.constexpr):
    rows, cols = tl.arange(0, ROWS), tl.arange(0, COLS)
    offs = rows[:, None] * stride + cols[None, :]
    tl.store(out_ptr + rows[:, None] * COLS + cols[None, :], tl.load(x_ptr + offs) + tl.load(x_ptr + offs + COLS))


def test_rows_that_reach_too_far_take_the_text_with_64_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_MODE", "cpu")
    stride = 1 << 29
    x, out = np.zeros(7 * stride + 32, np.int8), np.zeros((8, 16), np.int8)  # pages that nobody touches take no memory
    for row in range(8):
        x[row * stride : row * stride + 32] = row + np.arange(32)
    taken = sums_far_apart[(1,)](x, out, stride, ROWS=8, COLS=16)
    np.testing.assert_array_equal(out, 2 * np.arange(8)[:, None] + 2 * np.arange(16) + 16)
    assert not taken.metadata.guards and "long long offs_of_row" in taken.source
    near = sums_far_apart[(1,)](x, out, 32, ROWS=8, COLS=16)
    assert near.metadata.guards and "int offs_of_row" in near.source


@triton.jit
def read_otherwise(x_ptr, out_ptr, n, stride, ROWS: tl.constexpr, COLS: tl.constexpr):
    offs = tl.arange(0, ROWS)[:, None] * stride + tl.arange(0, COLS)[None, :]
    tl.store(out_ptr + offs, tl.load(x_ptr + offs, mask=offs < n, other=0.0), mask=offs < n)


@triton.jit
def added_once(x_ptr, out_ptr, stride, ROWS: tl.constexpr, COLS: tl.constexpr):
    offs = tl.arange(0, ROWS)[:, None] * stride + tl.arange(0, COLS)[None, :]
    tl.store(out_ptr + offs, 1.0)
    tl.store(x_ptr + tl.arange(0, COLS), 2.0)


@pytest.mark.parametrize(
    ("kernel", "signature"),
    [(read_otherwise, "*fp32:16, *fp32:16, i32, i32, 8, 64"), (added_once, "*fp32:16, *fp32:16, i32, 8, 64")],
)
def test_an_offset_that_is_compared_or_added_once_is_written_out(kernel: Any, signature: str) -> None:
    assert "of_row" not in kernel.translate(signature).source


@triton.jit
def beside_extrema(x_ptr, out_ptr, stride, ROWS: tl.constexpr, COLS: tl.constexpr):
    offs = tl.arange(0, ROWS)[:, None] * stride + tl.arange(0, COLS)[None, :]
    x = tl.load(x_ptr + offs)
    place, most = tl.max(tl.reshape((x * 8.0).to(tl.int32), (ROWS, COLS, 1)), axis=2, return_indices=True)
    tl.store(out_ptr + offs, x + (place + most).to(tl.float32))


def test_a_statement_may_assign_several_tiles(run_everywhere: Any) -> None:
    assert "offs_of_row" in beside_extrema.translate("*fp32:16, *fp32:16, i32:16, 8, 64").source
    x = np.arange(8 * 64, dtype=np.float32).reshape(8, 64) / 8
    _, out = run_everywhere(beside_extrema, (1,), x, np.zeros_like(x), 64, ROWS=8, COLS=64)
    assert np.array_equal(out, x + x * 8)
