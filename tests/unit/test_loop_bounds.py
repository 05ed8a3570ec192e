"""Values of loops' variables as text: put together from texts with their operators, with the parentheses that C needs."""

from __future__ import annotations

import pytest
from tilewright.ir.c_operators import UNARY
from tilewright.lower.staging.loop_bounds import steps_on
from tilewright.lower.text.operators import Text, infix

BEFORE_LAST = infix(Text("NUM_STAGES"), "-", Text("1"))


@pytest.mark.parametrize(
    ("start", "count", "step", "expected"),
    [
        (Text("0"), Text("stage"), Text("1"), "stage"),
        (Text("0"), Text("stage"), Text("BLOCK"), "stage * BLOCK"),
        (Text("0"), Text("1"), Text("-8", UNARY), "-8"),
        (Text("start"), Text("1"), Text("BLOCK"), "start + BLOCK"),
        (Text("start"), Text("2"), Text("BLOCK"), "start + 2 * BLOCK"),
        (Text("i"), BEFORE_LAST, Text("1"), "i + NUM_STAGES - 1"),
        (Text("i"), BEFORE_LAST, Text("8"), "i + (NUM_STAGES - 1) * 8"),
        (Text("i"), BEFORE_LAST, Text("-1", UNARY), "i - (NUM_STAGES - 1)"),
        (Text("i"), Text("2"), Text("-8", UNARY), "i - 2 * 8"),
        (infix(Text("a"), ">>", Text("1")), Text("1"), infix(Text("b"), "+", Text("c")), "(a >> 1) + b + c"),
        (Text("i"), Text("2"), infix(Text("b"), "+", Text("c")), "i + 2 * (b + c)"),
    ],
)
def test_steps_on(start: Text, count: Text, step: Text, expected: str) -> None:
    assert steps_on(start, count, step).text == expected
