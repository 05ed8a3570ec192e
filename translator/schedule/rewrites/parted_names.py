"""A name that a kernel uses again for something else is another variable there, and what nothing reads is no value of it.

In: a typed kernel. Out: the same kernel; of an x that both branches of an `if` assign, and that nothing reads behind it, each
branch has its own, declared where it is assigned. A name has one variable as far as one line sees it: of values that follow each
other in a block, or in blocks inside of each other, only those become another variable that nothing reads, such as what a name
held before a loop that always assigns it first. Then the loop carries nothing, and the earlier loop over that name ends with it.

What the trips of a static loop assign stays as it is: the last one's values, which no trip reads, are like the others'. So do
indices, pointers and masks of several axes, which are computed once as long as branches assign them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import fields, replace
from typing import Any

from ...analysis.facts import has_effect
from ...ir.nodes import Assign, Expr, For, If, Inlined, Kernel, Note, Statement, Use, Variable, While
from ...ir.rewrite import substituted_in, with_bodies
from ...ir.static_loops import StaticLoop
from ...ir.walk import (
    assigned_variables,
    assignment_counts,
    blocks,
    bodies,
    common_path,
    next_key,
    read_variables,
    statements,
)

Path = tuple[tuple[Statement, int], ...]  # the blocks around a statement, outermost first
Value = tuple[Statement, Variable]  # what a statement assigns to a variable
Held = dict[Variable, frozenset[Value]]  # the values that variables may have


def with_parted_names(kernel: Kernel) -> Kernel:
    """See the module docstring."""
    counts = assignment_counts(kernel.body)
    counted = {s.variable for s in statements(kernel.body) if isinstance(s, For)}
    several = {v for v, count in counts.items() if count > 1 and not _is_spelled_out(v)} - counted
    tracked = several - set(_assigned_in_trips(kernel.body)) if several else several
    if not tracked:
        return kernel
    flow = _Flow(tracked)
    flow.block(kernel.body, (), {})
    names, key = dict[Value, Variable](), next_key(kernel)
    groups = flow.groups()
    for variable in counts:
        for group in groups.get(variable, [])[1:]:
            names |= dict.fromkeys(group, Variable(variable.name, variable.type, key))
            key += 1
    return replace(kernel, body=_renamed(kernel.body, names, flow.read)) if names else kernel


def _is_spelled_out(variable: Variable) -> bool:
    """Whether a variable that is assigned once is no tile, but its expression wherever it is read: indices of several axes."""
    type_ = variable.type
    return type_.rank > 1 and (type_.is_pointer or not type_.dtype.is_floating())


def _assigned_in_trips(body: tuple[Statement, ...]) -> Iterator[Variable]:
    """The variables that trips of static loops assign."""
    for block in blocks(body):
        within: set[StaticLoop] = set()
        for statement in block:
            if isinstance(statement, Note) and statement.trip is not None:
                loop, number = statement.trip.loop, statement.trip.number
                within = within | {loop} if number < len(loop.numbers) else within - {loop}
            elif within:
                yield from (v for inner in statements((statement,)) for v in assigned_variables(inner))


class _Flow:
    """Follows the values of variables through a kernel, to what reads them.

    Attributes:
      read: one of the values that a variable may have where a statement reads it; the others belong to it.
      homes: the innermost block that has all that a value and those which belong to it have to do with.
    """

    def __init__(self, tracked: set[Variable]) -> None:
        """Of the `tracked` variables."""
        self._tracked = tracked
        self._belongs: dict[Value, Value] = {}
        self._order: dict[Value, int] = {}
        self.homes: dict[Value, Path] = {}
        self.read: dict[Value, Value] = {}

    def block(self, body: Iterable[Statement], path: Path, held: Held) -> Held:
        """What variables hold behind a block, of what they `held` before it."""
        for statement in body:
            held = self._statement(statement, path, held)
        return held

    def _statement(self, statement: Statement, path: Path, held: Held) -> Held:
        match statement:
            case Inlined():  # its statements stand in the caller's block
                return self.block(statement.body, path, held)
            case If():
                self._reads(statement, path, held)
                ways = [self.block(body, (*path, (statement, n)), held) for n, body in enumerate(bodies(statement))]
                return self._either(*ways)
            case For():
                self._reads(statement, path, held)
                return self._repeated(statement, (*path, (statement, 0)), held)
            case While():
                return self._repeated(statement, (*path, (statement, 0)), held)
        self._reads(statement, path, held)
        if isinstance(statement, Assign):
            return held | {target: self._assigned(statement, target, path) for target in self._own(statement.targets)}
        return held

    def _repeated(self, loop: For | While, path: Path, held: Held) -> Held:
        """Behind a loop: what variables hold wherever it may end, before a trip."""
        before: Held = {}
        while before != held:
            before = held
            if isinstance(loop, While):
                held = self.block(loop.prelude, path, held)
                self._reads(loop, path if loop.prelude else path[:-1], held)
            held = self._either(before, self.block(loop.body, path, held))
        return self.block(loop.prelude, path, held) if isinstance(loop, While) else held

    def _either(self, one: Held, other: Held) -> Held:
        """What variables may hold where two ways meet: one value for those that belong together, or chains of loops take long."""
        both = {v: one.get(v, frozenset()) | other.get(v, frozenset()) for v in {**one, **other}}
        return {v: frozenset(map(self.first, held)) if len(held) > 1 else held for v, held in both.items()}

    def _own(self, variables: Iterable[Variable]) -> Iterator[Variable]:
        return (variable for variable in variables if variable in self._tracked)

    def _assigned(self, statement: Statement, target: Variable, path: Path) -> frozenset[Value]:
        self.homes.setdefault((statement, target), path)
        self._order.setdefault((statement, target), len(self._order))
        return frozenset({(statement, target)})

    def _reads(self, statement: Statement, path: Path, held: Held) -> None:
        for variable in self._own(read_variables(statement)):
            for value in sorted(held.get(variable, ()), key=self._order.__getitem__):
                one = self.read.setdefault((statement, variable), value)
                self.join(one, value)
                self._move(value, path)

    def first(self, value: Value) -> Value:
        """The value that stands for those that belong together."""
        while value in self._belongs:
            value = self._belongs[value]
        return value

    def join(self, one: Value, other: Value) -> None:
        """Both values are of one variable."""
        one, other = self.first(one), self.first(other)
        if one != other:
            self._belongs[other] = one
            self._move(one, self.homes[other])

    def _move(self, value: Value, path: Path) -> None:
        first = self.first(value)
        self.homes[first] = common_path(self.homes[first], path)

    def groups(self) -> dict[Variable, list[list[Value]]]:
        """The values of each variable by what can be a variable of its own, in the order of their first assignments."""
        read = {self.first(value) for value in self.read.values()}
        of_variables: dict[Variable, list[Value]] = {}
        for value in self.homes:
            of_variables.setdefault(value[1], []).append(value)
        return {variable: self._groups(values, read) for variable, values in of_variables.items()}

    def _groups(self, values: Sequence[Value], read: Set[Value]) -> list[list[Value]]:
        unread = {v for v in values if self.first(v) not in read and _is_only_a_value(v[0])}
        kept = [value for value in values if value not in unread]
        while pair := self._seen_together(kept):
            self.join(*pair)
        groups: dict[Value, list[Value]] = {}
        for value in kept:
            groups.setdefault(self.first(value), []).append(value)
        return [*groups.values(), *([value] for value in values if value in unread)]

    def _seen_together(self, values: Sequence[Value]) -> tuple[Value, Value] | None:
        """Two values that do not belong together, one of which has its home in a block around that of the other."""
        firsts = list(dict.fromkeys(map(self.first, values)))
        for number, one in enumerate(firsts):
            for other in firsts[:number]:
                homes = self.homes[one], self.homes[other]
                if common_path(*homes) in homes:
                    return other, one
        return None


def _is_only_a_value(statement: Statement) -> bool:
    """Whether a statement does nothing but give one variable a value."""
    return isinstance(statement, Assign) and len(statement.targets) == 1 and not has_effect(statement.value)


def _renamed(
    block: tuple[Statement, ...], names: dict[Value, Variable], read: dict[Value, Value]
) -> tuple[Statement, ...]:
    """A block with the variables that values have got."""
    result = []
    for statement in block:
        used = ((variable, read.get((statement, variable))) for variable in read_variables(statement))
        values = {old: Use(old.type, names[value]) for old, value in used if value in names}
        renamed = _with_own(statement, values) if values else statement
        if isinstance(renamed, Assign):
            targets = tuple(names.get((statement, target), target) for target in renamed.targets)
            renamed = renamed if targets == renamed.targets else replace(renamed, targets=targets)
        result.append(with_bodies(renamed, lambda body: _renamed(body, names, read)))
    return tuple(result)


def _with_own(statement: Statement, values: Mapping[Variable, Expr]) -> Statement:
    """A statement that reads other expressions for some variables, but for the blocks inside of it."""
    own = {field.name: getattr(statement, field.name) for field in fields(statement)}
    changed: dict[str, Any] = {n: substituted_in(one, values) for n, one in own.items() if isinstance(one, Expr)}
    return replace(statement, **changed)
