"""Our dataclasses, against Python's own."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from typing import Any

import pytest
from tilewright.records import dataclass


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
