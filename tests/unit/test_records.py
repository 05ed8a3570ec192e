"""Our dataclasses, against Python's own."""

from __future__ import annotations

import copy
import dataclasses
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tilewright import records
from tilewright.records import dataclass, lent_to


@dataclass(frozen=True, slots=True)
class Base:
    """A field by place, and one by name that does not count."""

    kind: str
    place: int | None = dataclasses.field(default=None, kw_only=True, compare=False)


@dataclass(frozen=True, slots=True)
class Child(Base):
    """Fields with defaults of both kinds."""

    sizes: tuple[int, ...] = ()
    notes: list[str] = dataclasses.field(default_factory=list, compare=False)


@dataclass(slots=True)
class Changing:
    """One that can change."""

    count: int = 0


@dataclass(frozen=True, slots=True)
class Checked:
    """Rejects what is below zero, has a hash of its own and a text of its own."""

    size: int

    def __post_init__(self) -> None:
        if self.size < 0:
            raise ValueError("below zero")

    def __hash__(self) -> int:
        return 7

    def __repr__(self) -> str:
        return "<checked>"


def test_instances_are_made_as_pythons() -> None:
    made = Child("a", (1, 2), place=3)
    assert (made.kind, made.sizes, made.notes, made.place) == ("a", (1, 2), [], 3)
    assert Child("a").notes is not Child("a").notes
    assert repr(made) == "Child(kind='a', place=3, sizes=(1, 2), notes=[])"
    for wrong in ((), ("a", (), [], 4)):
        with pytest.raises(TypeError, match=r"Child\.__init__\(\)"):
            Child(*wrong)
    with pytest.raises(ValueError, match="below zero"):
        Checked(-1)


def test_equality_and_hash_are_those_of_the_fields_that_count() -> None:
    assert Child("a", place=1) == Child("a", notes=["x"]) != Child("b")
    assert hash(Child("a", place=1)) == hash(Child("a"))
    assert Base("a") != Child("a")
    assert hash(Checked(1)) == 7 and repr(Checked(1)) == "<checked>"
    assert Changing(1) == Changing(1) != Changing(2)
    with pytest.raises(TypeError, match="unhashable"):
        hash(Changing())


def test_frozen_ones_stay_as_they_are() -> None:
    made: Any = Child("a")
    with pytest.raises(dataclasses.FrozenInstanceError, match="'kind'"):
        made.kind = "b"
    with pytest.raises(dataclasses.FrozenInstanceError, match="'kind'"):
        del made.kind
    changed = Changing()
    changed.count += 1
    assert changed == Changing(1)


def test_what_works_on_dataclasses_works_on_ours() -> None:
    made = Child("a", (1,), place=3)
    assert dataclasses.replace(made, kind="b") == Child("b", (1,))
    assert dataclasses.asdict(made) == {"kind": "a", "place": 3, "sizes": (1,), "notes": []}
    for again in (copy.copy(made), copy.deepcopy(made), pickle.loads(pickle.dumps(made))):
        assert again == made and again.place == 3
    match made:
        case Child("a", sizes):
            assert sizes == (1,)
        case _:
            pytest.fail("fields by place are not matched")


def test_methods_are_written_once() -> None:
    @dataclass(frozen=True, slots=True)
    class Fresh:
        number: int

    assert Fresh(1) == Fresh(1)
    methods = Fresh.__init__, Fresh.__eq__
    assert Fresh(2) != Fresh(3)
    assert methods == (Fresh.__init__, Fresh.__eq__)
    assert Fresh.__init__.__qualname__.endswith("Fresh.__init__")


LENT = """
import dataclasses, pickle, sys
from pathlib import Path
pythons = dataclasses.dataclass
import tilewright.frontend
assert dataclasses.dataclass is pythons
import libcst as cst
from libcst.metadata import MetadataWrapper, PositionProvider

ours = [one for one in vars(cst).values() if getattr(getattr(one, "__setattr__", 0), "__module__", "") == "tilewright.records"]
text = Path(sys.argv[1]).read_text()
tree = cst.parse_module(text)
assert tree.code == text and tree.deep_clone().deep_equals(tree)
assert pickle.loads(pickle.dumps(tree)).code == text
assert max(one.end.line for one in MetadataWrapper(tree).resolve(PositionProvider).values()) == text.count("\\n") + 1

class Renamed(cst.CSTTransformer):
    def leave_Name(self, original_node, updated_node):
        return updated_node.with_changes(value=updated_node.value + "_")

assert "def kernel_(" in tree.visit(Renamed()).code
try:
    tree.body = ()
except dataclasses.FrozenInstanceError:
    print(len(ours), repr(tree))
"""


def test_libcst_works_with_ours_as_with_pythons(tmp_path: Path) -> None:
    """Its classes parse, print, change and are pickled; what they show is what they show by themselves."""
    file = tmp_path / "kernel.py"
    file.write_text(
        "def kernel(a, *, b=(1, 2), **c):\n    # why\n    for i in range(a):\n        b += f'{c!r}' if i else [*b]\n"
    )
    plain = LENT.replace("import tilewright.frontend\n", "")
    lent, own = (
        subprocess.run([sys.executable, "-c", text, file], capture_output=True, text=True, check=True).stdout.split(
            " ", 1
        )
        for text in (LENT, plain)
    )
    assert int(lent[0]) > 150 and int(own[0]) == 0
    assert lent[1] == own[1]


def test_only_the_one_package_gets_ours() -> None:
    def asked_from(module: str, options: str) -> Any:
        names = {"__name__": module, "dataclasses": dataclasses}
        text = f"@dataclasses.dataclass({options})\nclass Made:\n    number: int\n"
        exec(compile(text, module, "exec", dont_inherit=True), names)
        return names["Made"]

    with lent_to("there"):
        ours, others, ordered = (
            asked_from("there.deep", "frozen=True"), asked_from("here", "frozen=True"), asked_from("there", "order=True"),
        )  # fmt: skip
    pythons = asked_from("there", "frozen=True")
    assert [one.__setattr__.__module__ == records.__name__ for one in (ours, others, pythons)] == [True, False, False]
    assert ordered(1) < ordered(2)
