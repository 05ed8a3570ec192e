"""The recipes of CONTRIBUTING.md and the documents name files that exist, and in them what they say is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tilewright.ir.structured import STRUCTURED

ROOT = Path(__file__).resolve().parent.parent
RECIPES = re.findall(r"^- \[ \] (.*?)(?=^- \[ \]|^$|\Z)", (ROOT / "CONTRIBUTING.md").read_text("utf-8"), re.M | re.S)
QUOTED = re.compile(r"`([^`]+)`")
FILE = re.compile(r"[\w./<>*\[\]-]+/(?:[\w<>*\[\]-]+(?:\.[\w\[\]]+)+)?|[\w<>-]+\.(?:py|md)")
NAME = re.compile(r"[A-Za-z]\w*|_\w+")
CODE = [path for part in ("translator", "runtime") for path in (ROOT / part).rglob("*.py")]
DOCUMENTS = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")])


def files_of(text: str) -> list[str]:
    """The paths in a text that are written as code, `<placeholders>` as patterns."""
    return [re.sub(r"<\w+>", "*", quoted) for quoted in QUOTED.findall(text) if FILE.fullmatch(quoted)]


@pytest.mark.parametrize("step", RECIPES, ids=lambda step: " ".join(step.split())[:60])
def test_a_step_names_what_is_there(step: str) -> None:
    found = [path for file in files_of(step) for place in (file, f"*/*/{file}") for path in ROOT.glob(place)]
    text = "\n".join(path.read_text("utf-8") for path in found if path.is_file())
    for name in QUOTED.findall(step):
        if NAME.fullmatch(name) and name != "tl":
            assert re.search(rf"\b{name}\b", text), f"{name} is in none of {files_of(step)}"


def test_the_operations_of_the_tree_are_described_as_they_are() -> None:
    """docs/ir.md has every structured operation, and no attribute that code neither sets nor asks for."""
    text = (ROOT / "docs" / "ir.md").read_text("utf-8")
    rows = [line.split("|") for line in text.splitlines() if line.startswith("| `")]
    described = {name for row in rows for name in QUOTED.findall(row[1])}
    kinds = {f"atomic{name}" if name.startswith("_") else name for name in described}
    assert kinds >= STRUCTURED
    code = "\n".join(path.read_text("utf-8") for path in CODE)
    for row in rows:
        for name in QUOTED.findall(row[3]):
            spelled = rf'"{name}"|\b{name}=|^class {name}:'
            assert not NAME.fullmatch(name) or re.search(spelled, code, re.M), name


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_the_files_of_a_document_exist(document: Path) -> None:
    """A path is one of the project, or of a package of it, as `schedule/staging/rings.py` is."""
    missing = [
        file
        for file in files_of(document.read_text("utf-8"))
        if "/" in file and not any(any(ROOT.glob(place)) for place in (file, f"translator/{file}", f"runtime/{file}"))
    ]
    assert missing == []


def test_the_files_that_code_speaks_of_exist() -> None:
    """Of the same package, or named from the project's root or from `translator/` or `runtime/`."""
    missing = []
    for path in CODE:
        for file in re.findall(r"`([a-z]\w*(?:/\w+)*\.py)`", path.read_text("utf-8")):
            places = (
                ROOT,
                ROOT / "translator",
                ROOT / "runtime",
                *path.parents[: len(path.relative_to(ROOT).parts) - 1],
            )
            missing += (
                [] if any((place / file).is_file() for place in places) else [f"{path.relative_to(ROOT)}: {file}"]
            )
    assert missing == []


def test_every_variable_of_the_environment_is_documented() -> None:
    names = {name for path in CODE for name in re.findall(r"\bTILEWRIGHT_[A-Z_]+\b", path.read_text("utf-8"))}
    documents = (ROOT / "README.md").read_text("utf-8") + (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    assert set(re.findall(r"\bTILEWRIGHT_[A-Z_]+\b", documents)) == names
