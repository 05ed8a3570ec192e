"""What is known of variables along the way through a block: a journal of their axis information.

A block is followed in the order in which it runs; loops are repeated until nothing changes. Every place can be asked
afterwards what was known there (`Place`), without a copy of the table for each: the journal keeps the values of each variable
with the times at which it got them, and what a branch or a loop has changed is all that has to be put back or met.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import reduce

from ..ir.nodes import Assign, Effect, For, If, Statement, Variable, While
from ..ir.structured import is_elementwise
from ..ir.walk import bodies
from .axis_info import AxisInfo, axis_info, unknown


class Place(Mapping[Variable, AxisInfo]):
    """What was known of variables at one moment of a journal."""

    def __init__(self, journal: Journal, time: int) -> None:
        """The moment after the `time`th entry."""
        self._journal, self.time = journal, time

    def __getitem__(self, variable: Variable) -> AxisInfo:
        times, values = self._journal.entries[variable]
        position = bisect_right(times, self.time) - 1
        found = values[position] if position >= 0 else None
        if found is None:
            raise KeyError(variable)
        return found

    def __iter__(self) -> Iterator[Variable]:
        return (variable for variable in self._journal.entries if self.get(variable) is not None)

    def __len__(self) -> int:
        return sum(1 for _ in self)


class Journal:
    """Values of variables over time; None stands for "not assigned yet"."""

    def __init__(self, known: Mapping[Variable, AxisInfo]) -> None:
        """Begins with what is known before the block."""
        self.entries: dict[Variable, tuple[list[int], list[AxisInfo | None]]] = {}
        self._written: list[Variable] = []
        for variable, info in known.items():
            self.write(variable, info)

    @property
    def time(self) -> int:
        """How many entries there are."""
        return len(self._written)

    def write(self, variable: Variable, info: AxisInfo | None) -> None:
        """What is known of a variable from now on."""
        self._written.append(variable)
        times, values = self.entries.setdefault(variable, ([], []))
        times.append(self.time)
        values.append(info)

    def now(self) -> Place:
        """What is known now, to be asked later too."""
        return Place(self, self.time)

    def latest(self, variable: Variable) -> AxisInfo | None:
        """What is known of a variable now."""
        return self.entries[variable][1][-1]

    def everywhere(self) -> dict[Variable, AxisInfo]:
        """What holds of each variable whichever of its values it has."""
        found = {}
        for variable, (_, values) in self.entries.items():
            ever = [value for value in dict.fromkeys(values) if value is not None]
            if ever:
                found[variable] = reduce(AxisInfo.meet, ever)
        return found

    def changed_since(self, time: int) -> dict[Variable, AxisInfo | None]:
        """The variables that were written after a moment, with what is known of them now."""
        return {variable: self.latest(variable) for variable in dict.fromkeys(self._written[time:])}


Environments = dict[Statement, Mapping[Variable, AxisInfo]]


def follow(
    block: tuple[Statement, ...], known: Mapping[Variable, AxisInfo]
) -> tuple[dict[Variable, AxisInfo], Environments]:
    """What is known of each variable wherever it is read, and at each statement that accesses memory."""
    journal, environments = Journal(known), Environments()
    _follow(block, journal, environments)
    return journal.everywhere(), environments


def _follow(block: tuple[Statement, ...], journal: Journal, environments: Environments) -> None:
    for statement in block:
        match statement:
            case Assign(value=value, targets=targets):
                if not is_elementwise(value):
                    environments[statement] = journal.now()
                for target in targets:
                    single = len(targets) == 1
                    journal.write(target, axis_info(value, journal.now()) if single else unknown(target.type))
            case Effect():
                environments[statement] = journal.now()
            case If():
                _follow_branches(statement, journal, environments)
            case For() | While():
                _follow_loop(statement, journal, environments)
            case _:
                for body in bodies(statement):
                    _follow(body, journal, environments)


def _follow_branches(statement: If, journal: Journal, environments: Environments) -> None:
    before = journal.now()
    _follow(statement.then, journal, environments)
    then = journal.changed_since(before.time)
    for variable in then:
        journal.write(variable, before.get(variable))
    middle = journal.now()
    _follow(statement.otherwise, journal, environments)
    otherwise = journal.changed_since(middle.time)
    for variable in dict.fromkeys((*then, *otherwise)):
        old = before.get(variable)
        journal.write(variable, _meet(then.get(variable, old), otherwise.get(variable, old)))


def _follow_loop(statement: For | While, journal: Journal, environments: Environments) -> None:
    skipped: AxisInfo | None = None  # what the loop's variable holds behind a loop without a trip
    if isinstance(statement, For):
        place = journal.now()
        skipped = axis_info(statement.previous, place) if statement.previous is not None else None
        first = axis_info(statement.start, place).meet(axis_info(statement.step, place))
        journal.write(statement.variable, replace(first, value=None))  # divisible as its first value and its step are
    settled = False
    while not settled:
        before = journal.now()
        for body in bodies(statement):
            _follow(body, journal, environments)
        settled = True
        for variable, after in journal.changed_since(before.time).items():
            old = before.get(variable)
            met = _meet(old, after)
            settled = settled and met == old
            journal.write(variable, met)
    if isinstance(statement, For) and skipped is not None:
        journal.write(statement.variable, _meet(journal.latest(statement.variable), skipped))


def _meet(left: AxisInfo | None, right: AxisInfo | None) -> AxisInfo | None:
    """What holds whichever is the case; a variable that only one way assigns is as that way leaves it."""
    if left is None or right is None:
        return left or right
    return left.meet(right)
