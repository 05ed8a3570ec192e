"""Declarations are read as they are written, whatever their type; what is none is not taken for one."""

from __future__ import annotations

from pathlib import Path

import pytest
from tilewright.lower.text.declarations import Declaration, declaration_of, declared_names
from tilewright.lower.text.unit import Line, Loop, Place

GOLDENS = sorted((Path(__file__).parents[1] / "goldens").rglob("*.cu"))


@pytest.mark.parametrize(
    ("text", "declared"),
    [
        ("const int row = tid / 4;", Declaration("int", "row", "", "tid / 4")),
        ("float x[ELEMS];", Declaration("float", "x", "[ELEMS]")),
        ("float acc[2][PIECES] = {};", Declaration("float", "acc", "[2][PIECES]", "{}")),
        ("const unsigned long long n = f(x, y);", Declaration("unsigned long long", "n", "", "f(x, y)")),
        ("const __half* start = x_ptr + i;", Declaration("const __half*", "start", "", "x_ptr + i")),
        ("MaxState<float> best;", Declaration("MaxState<float>", "best")),
    ],
)
def test_a_declaration(text: str, declared: Declaration) -> None:
    assert declaration_of(Line(text)) == declared
    assert declared.line(constant=text.startswith("const ") and not declared.is_pointer) == Line(text)
    assert [*declared_names(Line(text))] == [declared.name]


@pytest.mark.parametrize(
    "text", ["x = y;", "x += 1;", "return x;", "int a = 1, b = 2;", "f(x);", "__syncthreads();", "++i;"]
)
def test_what_is_none(text: str) -> None:
    assert declaration_of(Line(text)) is None and not [*declared_names(Line(text))]


def test_names_that_other_nodes_declare() -> None:
    assert [*declared_names(Line("const auto policy = f();"))] == ["policy"]
    assert [*declared_names(Loop("const auto shown = [&](int v)", (), closing="};"))] == ["shown"]
    assert [*declared_names(Place("row", "tid / 4"))] == ["row"]


def test_declarations_of_all_goldens_are_written_as_they_were_read() -> None:
    read = 0
    for path in GOLDENS:
        for line in path.read_text(encoding="utf-8").splitlines():
            text = line.split("//")[0].strip()
            if (found := declaration_of(Line(text))) is not None:
                read += 1
                assert text in (found.line().text, found.line(constant=True).text), path
    assert read > 1000
