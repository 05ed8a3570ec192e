"""Random stores through tiles of pointers: whatever is taken for a box has the addresses and the mask of the store."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import tilewright.language as tl
from box_machine import Machine, typed
from hypothesis import given, settings
from hypothesis import strategies as st
from tilewright.runtime.jit import JITFunction

ROWS, COLUMNS = 8, 4
SIGNATURE = f"*fp32:16, i32, i32, i32:16, i32:16, i32, {ROWS}, {COLUMNS}"
FACTORS = ("1", "2", "4", "8", "pid", "k", "start", "first", "rows", "R")
STRIDES = ("stride", "stride", "pitch", "32", "C")
RANGES = ("0, 5", "0, 40, 8", "2, 6", "first, first + 20, 8", "5, -1, -1", "pid, 9, 2")
SIGNS = ("{} < {}", "{} <= {}", "{1} > {0}", "{1} >= {0}")


@st.composite
def scalars(draw: Any) -> str:
    """A sum of a few products of the program's index, the trip, parameters and numbers."""
    text = "0"
    for _ in range(draw(st.integers(0, 2))):
        sign = draw(st.sampled_from("+++-"))
        text += f" {sign} {draw(st.sampled_from(FACTORS))} * {draw(st.sampled_from(FACTORS))}"
    return f"({text})"


@st.composite
def coordinates(draw: Any, lanes: str, size: str, side: str) -> str:
    """Positions along an axis from a start on, perhaps wrapped, perhaps spoiled."""
    start = draw(scalars())
    plain = (lanes, f"({start} + {lanes})", f"(start + {lanes})", f"(pid * {side} + {lanes})")
    others = (f"(({start} * {side} + {lanes}) % {size})", f"({lanes} * 2)", f"(({start} + {lanes}) % {size})")
    return draw(st.sampled_from(plain * 2 + others))


@st.composite
def masks(draw: Any, row: str, column: str) -> str:
    """A conjunction of bounds, of the tile's coordinates or of others."""
    parts = []
    for _ in range(draw(st.integers(0, 2))):
        of_tile = ((row, "rows"), (column, "columns")) * 3
        left, right = draw(st.sampled_from((*of_tile, (row, "columns"), ("i", "rows"), ("j", "columns - k * C"))))
        if draw(st.booleans()):
            moved = draw(scalars())
            left, right = f"{left} - {moved}", f"{right} - {moved}"
        parts.append(draw(st.sampled_from(SIGNS)).format(left, right))
    if draw(st.integers(0, 3)) == 0:
        parts.append(f"{draw(st.sampled_from((row, column)))} >= 0")
    return " & ".join(f"({part})" for part in parts)


@st.composite
def kernels(draw: Any) -> str:
    """The source of a kernel that stores in a loop, through pointers that the loop moves."""
    row, column = draw(coordinates("i", "rows", "R")), draw(coordinates("j", "columns", "C"))
    row_stride, column_stride = draw(st.sampled_from(STRIDES)), draw(st.sampled_from(("1", "1", "1", "1", "pitch")))
    swapped = draw(st.integers(0, 3)) == 0
    if swapped:
        row_stride, column_stride = column_stride, row_stride
    base = f"{draw(scalars())} * {draw(st.sampled_from(('0', '1', *STRIDES)))}"
    amount = f"{draw(st.sampled_from(('4', 'C', 'first')))} * {draw(st.sampled_from(('1', 'stride', '32', 'k')))}"
    moves = draw(st.booleans())
    before = row.replace("k", "0"), column.replace("k", "0")
    mask = draw(masks(*(before if moves else (row, column))))
    pointers = f"x_ptr + {base} + {{}} * {row_stride} + {{}} * {column_stride}"
    lines = [
        "def kernel(x_ptr, rows, columns, stride, pitch, first, R: tl.constexpr, C: tl.constexpr):",
        "    pid = tl.program_id(0)",
        f"    start = pid * {draw(st.sampled_from(('8', '4', '1', 'stride')))}",
        "    i, j = tl.arange(0, R)[:, None], tl.arange(0, C)[None, :]",
        f"    ptrs = {pointers.format(*before).replace('k', '0')}",
        f"    for k in range({draw(st.sampled_from(RANGES))}):",
    ]
    store = (
        f"        tl.store({'ptrs' if moves else pointers.format(row, column)}, 0.0{f', mask={mask}' if mask else ''})"
    )
    update = f"        ptrs += {amount}"
    lines += [store, update] if draw(st.booleans()) else [update, store]
    return "\n".join(lines) + "\n"


def make(source: str) -> JITFunction:
    """The kernel of a source text."""
    namespace: dict[str, Any] = {"tl": tl}
    exec(source, namespace)
    return JITFunction(namespace["kernel"], source=source)


def test_boxes_are_exact() -> None:
    found: set[str] = set()

    @settings(max_examples=200, deadline=None, derandomize=True)
    @given(kernels(), st.integers(0, 1000))
    def compare(source: str, seed: int) -> None:
        form = typed(make(source), SIGNATURE)
        generator = random.Random(seed)
        for _ in range(3):
            strides = generator.choices((16, 32, 48, 64), k=2)
            numbers = (
                1 << 40,
                generator.randint(1, 9) * 8,
                generator.randint(1, 40),
                *strides,
                generator.randint(-3, 12),
            )
            arguments = {p.variable: np.array(number) for p, number in zip(form.parameters, numbers, strict=True)}
            machine = Machine(form, arguments, (generator.randrange(4), 0, 0))
            machine.run(form.body)
            if machine.checked:
                found.add(source)

    compare()
    assert len(found) > 20
