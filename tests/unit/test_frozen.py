"""Values that nobody changes: what `@frozen` makes of a class, and that Python's development mode holds everybody to it."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
from dataclasses import asdict, field, fields, replace
from pathlib import Path

import pytest
from tilewright.frozen import frozen

ROOT = Path(__file__).resolve().parent.parent.parent


@frozen
class Place:
    """A place with a remark that does not count."""

    line: int
    column: int = 0
    remark: str = field(default="", kw_only=True, compare=False)


@frozen
class Range(Place):
    """A place with an end."""

    end: int = 0


@frozen
class Other:
    """The fields of a place, but not one."""

    line: int
    column: int = 0


@frozen(eq=False)
class Name:
    """A name, each of its own."""

    text: str

    def __repr__(self) -> str:
        return f"%{self.text}"


@frozen
class Nothing:
    """No fields."""


def test_equal_are_objects_of_one_class_with_equal_fields() -> None:
    assert Place(1, 2) == Place(1, 2, remark="seen") != Place(1, 3)
    assert Place(1, 2) != Other(1, 2) and Place(1, 2) != Range(1, 2) and Place(1, 2) != (1, 2)
    assert Range(1, 2, 3) == Range(1, 2, end=3) != Range(1, 2, 4)
    assert Nothing() == Nothing() != Place(1)


def test_equal_objects_have_one_hash() -> None:
    assert len({Place(1), Place(1, 0, remark="seen"), Place(2), Range(1), Nothing(), Nothing()}) == 4


def test_without_eq_each_is_equal_to_itself_only() -> None:
    name = Name("a")
    assert name == name != Name("a")
    assert len({name, name, Name("a")}) == 2


def test_the_text_names_class_and_fields_unless_the_class_has_a_text_of_its_own() -> None:
    assert repr(Range(1, end=2)) == "Range(line=1, column=0, remark='', end=2)"
    assert (repr(Nothing()), repr(Name("a"))) == ("Nothing()", "%a")


def test_what_is_made_for_dataclasses_takes_them() -> None:
    one = replace(Place(1), column=5)
    assert one == Place(1, 5) and asdict(one) == {"line": 1, "column": 5, "remark": ""}
    assert [one.name for one in fields(Range)] == ["line", "column", "remark", "end"]
    assert copy.deepcopy(one) == pickle.loads(pickle.dumps(one)) == one


def test_there_is_no_room_for_other_attributes() -> None:
    with pytest.raises(AttributeError):
        object.__setattr__(Place(1), "length", 3)


def test_equality_hash_and_text_are_compiled_once_for_all_classes() -> None:
    for name in ("__eq__", "__hash__", "__repr__"):
        assert getattr(Place, name) is getattr(Other, name)


def test_in_development_mode_an_assignment_is_an_error_and_a_translation_makes_none() -> None:
    code = (
        "from dataclasses import FrozenInstanceError\n"
        "import matmul\n"
        "from tilewright.artifact import Options\n"
        "try:\n"
        "    Options().num_warps = 8\n"
        "except FrozenInstanceError:\n"
        "    strides = 'i32:16, i32:1, ' * 3\n"
        "    signature = '*fp16:16, ' * 3 + 'i32:16, ' * 3 + strides + '128, 256, 64, 8, \"\"'\n"
        "    print(matmul.matmul_kernel.translate(signature, num_warps=8).source.count('wgmma_commit'))\n"
    )
    done = subprocess.run(
        [sys.executable, "-X", "dev", "-c", code], cwd=ROOT / "samples", capture_output=True, text=True, timeout=120
    )
    assert int(done.stdout or 0) > 0, done.stderr
