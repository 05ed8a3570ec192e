"""What declares or assigns is a node of its own, whatever its type is: whoever moves one need not read it out of a line."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from golden_cases import GOLDEN_CASES, GoldenCase
from tilewright.artifact import Options
from tilewright.cli import load_kernel
from tilewright.lower.text.unit import (
    Assignment,
    Declaration,
    Lambda,
    Line,
    Node,
    Place,
    const,
    declared_name,
    every,
    texts_of,
    with_text,
)
from tilewright.pipeline import translate_stages
from tilewright.runtime.arguments.signature import parse_signature
from tilewright.schedule.targets import find_target

SAMPLES = Path(__file__).parents[2] / "samples"
TYPED = re.compile(
    r"(?:const )?[A-Za-z_][\w:<>]*(?: (?:char|short|int|long))*\** [A-Za-z_]\w*(?:\[[^\]]*\])*(?: = .*)?;"
)
ASSIGNS = re.compile(r"\w+(?:\[[^\]]*\])* [-+*/%&|^]?= .*;")


@pytest.mark.parametrize(
    ("node", "text"),
    [
        (const("int", "row", "tid / 4"), "const int row = tid / 4;"),
        (Declaration("float", "x", sides="[ELEMS]"), "float x[ELEMS];"),
        (Declaration("float", "acc", "{}", "[2][PIECES]"), "float acc[2][PIECES] = {};"),
        (Declaration("const half*", "start", "x_ptr + i"), "const half* start = x_ptr + i;"),
        (Assignment("x[c]", "y + 1"), "x[c] = y + 1;"),
        (Assignment("x[c]", "y", "+"), "x[c] += y;"),
    ],
)
def test_the_line_of_code(node: Declaration | Assignment, text: str) -> None:
    assert node.text == text and [*texts_of(node)] == [text]


def test_what_declares_a_name() -> None:
    nodes: list[Node] = [const("auto", "policy", "f()"), Lambda("shown", "int v", ()), Place("row", "tid / 4")]
    assert [*map(declared_name, nodes)] == ["policy", "shown", "row"]
    assert declared_name(Assignment("x", "y")) is None and declared_name(Line("f(x);")) is None


def test_other_names_in_every_part() -> None:
    def other(text: str) -> str:
        return re.sub(r"\bx\b", "y", text)

    assert with_text(Declaration("float", "x", "x2 + x", "[x]"), other) == Declaration("float", "y", "x2 + y", "[y]")
    assert with_text(Assignment("a[x]", "x"), other) == Assignment("a[y]", "y")
    assert with_text(Lambda("x", "int x", ()), other) == Lambda("y", "int y", ())


@pytest.mark.parametrize("case", GOLDEN_CASES, ids=lambda case: case.path)
def test_no_line_of_a_golden_declares_or_assigns(case: GoldenCase) -> None:
    kernel = load_kernel(f"{SAMPLES / case.sample}.py:{case.kernel}")
    arguments = parse_signature(kernel, case.signature)
    unit = translate_stages(kernel, arguments, Options(**case.options), find_target(case.arch)).unit
    lines = [node.text for node in every(unit.body) if isinstance(node, Line)]
    assert not [text for text in lines if TYPED.fullmatch(text) or ASSIGNS.fullmatch(text)]
